"""Sums of products.

float32 operands may be rounded before they are multiplied, to the dtype that the attribute `precision` names, "f16" or
"bf16"; products are still added in float32. "" does not round. `backward` is the `precision` of the operation's
gradients, and of their gradients in turn.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lavax.base.errors import DtypeError, ShapeError
from lavax.ir.operation import Attributes, Operation, define
from lavax.ir.types import DTYPES, TensorType, float32


def free_axes(type: TensorType, batch: Sequence[int], contract: Sequence[int]) -> tuple[int, ...]:
    """The axes of a dot's operand that are neither batched nor contracted."""
    return tuple(axis for axis in range(type.rank) if axis not in batch and axis not in contract)


# Optional attributes of sums of products.
DEFAULTS = {"batch": ((), ()), "precision": "", "backward": ""}
# The dtypes that operands may be rounded to.
ROUNDED = frozenset(("f16", "bf16"))


def check_precision(name: str, left: TensorType, attrs: Attributes) -> None:
    """Raises DtypeError if operands of this type cannot be rounded to this precision."""
    for key in ("precision", "backward"):
        chosen = attrs.get(key, "")
        if chosen and chosen not in ROUNDED:
            raise DtypeError(f"{name}: {key} must be one of {', '.join(map(repr, sorted(ROUNDED)))}, got {chosen!r}")
        if chosen and left.dtype != float32:
            raise DtypeError(f"{name}: {key} is a choice for operands of float32, and these are {left}")


def rounded_operands(arrays: Sequence[np.ndarray], attrs: Attributes) -> Sequence[np.ndarray]:
    """The operands as the operation multiplies them."""
    if not attrs["precision"]:
        return arrays
    dtype = DTYPES[attrs["precision"]]
    return [dtype.rounded(array).astype(array.dtype) for array in arrays]


def _infer_dot(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    """The result's axes: batch, free axes of the left operand, free axes of the right one."""
    left, right = operands
    if left.dtype != right.dtype:
        raise DtypeError(f"dot: operands must have one dtype, got {left} and {right}")
    if left.dtype.kind == "bool":
        raise DtypeError(f"dot is not defined for {left}")
    check_precision("dot", left, attrs)
    (left_batch, right_batch), (left_sum, right_sum) = attrs["batch"], attrs["contract"]
    for operand, batch, contract in ((left, left_batch, left_sum), (right, right_batch, right_sum)):
        axes = (*batch, *contract)
        if len(set(axes)) != len(axes) or any(not 0 <= axis < operand.rank for axis in axes):
            given = f"batch {list(batch)} and contract {list(contract)}"
            raise ShapeError(f"dot: {given} must be distinct axes of {operand}")
    pairs = [("batch", left_batch, right_batch), ("contract", left_sum, right_sum)]
    for what, of_left, of_right in pairs:
        if [left.shape[a] for a in of_left] != [right.shape[a] for a in of_right]:
            raise ShapeError(
                f"dot: {left} and {right} do not agree on the axes to {what}: {list(of_left)} and {list(of_right)}"
            )
    return left.with_shape(
        tuple(left.shape[axis] for axis in left_batch)
        + tuple(left.shape[axis] for axis in free_axes(left, left_batch, left_sum))
        + tuple(right.shape[axis] for axis in free_axes(right, right_batch, right_sum))
    )


def _evaluate_dot(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    left, right = rounded_operands(arrays, attrs)
    (left_batch, right_batch), (left_sum, right_sum) = attrs["batch"], attrs["contract"]
    left_label = list(range(left.ndim))
    right_label = [left.ndim + axis for axis in range(right.ndim)]
    for of_left, of_right in zip((*left_batch, *left_sum), (*right_batch, *right_sum), strict=True):
        right_label[of_right] = of_left
    result = (
        list(left_batch)
        + [label for axis, label in enumerate(left_label) if axis not in (*left_batch, *left_sum)]
        + [label for axis, label in enumerate(right_label) if axis not in (*right_batch, *right_sum)]
    )
    return np.asarray(np.einsum(left, left_label, right, right_label, result, optimize=True)).astype(dtype, copy=False)


_DOT = ("contract", "batch", "precision", "backward")

define(Operation("dot", "contraction", _infer_dot, _evaluate_dot, _DOT, defaults=DEFAULTS))
