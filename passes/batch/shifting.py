"""Batching of operations that treat each axis separately: their axes shift by one, and the batch axis is untouched."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lavax.ir.graph import Node
from lavax.ir.operation import names_of_family
from lavax.ir.ops.attention import OPERANDS as ATTENTION
from lavax.ir.ops.cumulative import CUMULATIVE
from lavax.passes.batch.batch_rule import Axis, BatchRule, Operand, batched_by, in_front, shifted
from lavax.passes.build.builder import build

# attribute -> its new value, from the old one and the batch axis
Change = Callable[[Any, Axis], Any]


def _axis(value: int, axis: Axis) -> int:
    return value + 1


def _axes(value: tuple[int, ...], axis: Axis) -> tuple[int, ...]:
    return shifted(value)


def _axes_after_front(value: tuple[int, ...], axis: Axis) -> tuple[int, ...]:
    return (0, *shifted(value))


def _with_zero(value: tuple[int, ...], axis: Axis) -> tuple[int, ...]:
    return (0, *value)


def _with_one(value: tuple[int, ...], axis: Axis) -> tuple[int, ...]:
    return (1, *value)


def _with_size(value: tuple[int, ...], axis: Axis) -> tuple[int, ...]:
    return (axis.size, *value)


def shifting(**changes: Change) -> BatchRule:
    """The rule of an operation whose attributes change this way; others, and the result's other axes, stay."""

    def rule(node: Node, operands: Sequence[Operand], axis: Axis) -> Node:
        attrs: Mapping[str, Any] = {
            name: changes[name](value, axis) if name in changes else value for name, value in node.attrs.items()
        }
        repeated = [in_front(operand, axis) for operand in operands]
        return build(node.op, *repeated, type=node.type.with_shape((axis.size, *node.shape)), **attrs)

    return batched_by(rule)


RULES: dict[str, BatchRule] = {
    "sum": shifting(axes=_axes),
    "prod": shifting(axes=_axes),
    "max": shifting(axes=_axes),
    "min": shifting(axes=_axes),
    "argmax": shifting(axis=_axis),
    "argmin": shifting(axis=_axis),
    "reshape": shifting(),
    "transpose": shifting(axes=_axes_after_front),
    "broadcast": shifting(axes=_axes_after_front),
    "slice": shifting(start=_with_zero, limit=_with_size, stride=_with_one),
    "pad": shifting(low=_with_zero, high=_with_zero, interior=_with_zero),
    "concatenate": shifting(axis=_axis),
    "fft": shifting(axis=_axis),
    "rfft": shifting(),
    "irfft": shifting(),
    "trigonometric_4": shifting(axis=_axis),
    "flip": shifting(axes=_axes),
    "shear": shifting(axes=_axes, along=_axes),
    "unshear": shifting(axes=_axes, along=_axes),
    **{name: shifting(axis=_axis) for name in CUMULATIVE},
    "sort": shifting(axis=_axis),
    "sort_order": shifting(axis=_axis),
    "top_order": shifting(axis=_axis),
    "unsort": shifting(axis=_axis),
    "search_sorted": shifting(),
    **{op: shifting() for op in ATTENTION if op not in names_of_family("lowered")},
    **{op: shifting() for op in ("cholesky", "triangular_solve", "lu", "linear_solve", "qr", "eigh", "svd")},
}
