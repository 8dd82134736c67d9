"""Constant folding: a value computed from splats alone is a splat.

The value is computed in float64, as the reference interpreter does. A floating result is folded only if float32 gives
the same kind of number: a result that overflows, underflows or becomes subnormal must do so on the device, and a
discontinuous function (a comparison, a floor) must give the same result in both.
"""
from __future__ import annotations

from math import isfinite, prod
from typing import Any

import numpy as np

from lavax.ir.graph import Node
from lavax.ir.interpreter import held_as
from lavax.ir.operation import OPERATIONS
from lavax.ir.types import DType, TensorType, float32, float64
from lavax.passes.build.builder import splat, zeros
from lavax.passes.build.matching import is_splat, splat_value

_LIMITS = np.finfo(np.float32)
_JUMPING = frozenset({"ceil", "floor", "modulo", "remainder", "round", "sign", "truncate"})
_EXACT_OF_COMPLEX = frozenset({"complex", "conjugate", "imag", "negate", "real"})


def _evaluate(node: Node, floating: type[np.floating[Any]]) -> Any:
    """The node's value for one element of each splat operand."""

    def held(dtype: DType) -> np.dtype[Any]:
        return held_as(dtype, np.dtype(floating))

    with np.errstate(all="ignore"):
        values = [np.asarray(_held_value(operand)).astype(held(operand.dtype)) for operand in node.operands]
        scalar = TensorType((), node.dtype)
        return OPERATIONS[node.op].evaluate(values, node.attrs, scalar, held(node.dtype)).item()


def _held_value(node: Node) -> Any:
    """A splat's value rounded to its dtype, except float32, which is rounded at the very end."""
    value = splat_value(node)
    return value if node.dtype in (float32, float64) or not node.dtype.is_float else _rounded(value, node.dtype)


def _rounded(value: float, dtype: DType) -> float:
    return float(dtype.rounded(np.array(value, np.float64)))


def _is_normal(value: float) -> bool:
    return float(_LIMITS.tiny) <= abs(value) <= float(_LIMITS.max)


def _agree(precise: float, rounded: float) -> bool:
    """Whether float32 gives the same kind of number as float64."""
    if _is_normal(precise):
        return _is_normal(rounded)
    return precise == rounded or (precise != precise and rounded != rounded)


def elementwise(node: Node) -> Node | None:
    """op(splat, …) -> splat."""
    for operand in node.operands:
        if not is_splat(operand):
            return None
    if any(value.dtype.is_complex for value in (node, *node.operands)):
        return _complex(node)
    precise = _evaluate(node, np.float64)
    if node.op == "cast" and node.dtype == float64:
        (x,) = node.operands
        return splat(_rounded(splat_value(x), x.dtype) if x.dtype.is_inexact else float(splat_value(x)), node.type)
    if float64 in (node.dtype, node.operands[0].dtype):
        return splat(precise, node.type)
    if node.dtype.is_inexact and node.dtype != float32:
        return splat(_rounded(precise, node.dtype), node.type)
    rounded = _evaluate(node, np.float32)
    exact = not node.dtype.is_inexact or node.op in _JUMPING
    agrees = precise == rounded if exact else _agree(precise, rounded)
    return splat(precise, node.type) if agrees else None


def _complex(node: Node) -> Node | None:
    """Only operations that are exact: others are folded when the parts are on their own."""
    if node.op not in _EXACT_OF_COMPLEX:
        return None
    return splat(_evaluate(node, np.float64), node.type)


def empty(node: Node) -> Node | None:
    """A value without elements -> a splat of zeros."""
    if node.type.size or (is_splat(node) and not splat_value(node)):
        return None
    return zeros(node.type)


def movement(node: Node) -> Node | None:
    """Movement of a splat -> a splat."""
    return splat(splat_value(node.operands[0]), node.type) if is_splat(node.operands[0]) else None


def _wrapped(value: int, dtype: DType) -> int:
    width = dtype.bits
    return int(np.array(value % (1 << width), f"u{width // 8}").view(dtype.numpy))


def _folded(value: float, node: Node) -> Node | None:
    if not node.dtype.is_inexact:
        return splat(_wrapped(int(value), node.dtype), node.type)
    if node.dtype != float32:
        return splat(_rounded(value, node.dtype), node.type)
    return splat(value, node.type) if value == 0 or _is_normal(value) or not isfinite(value) else None


def sum_of_splat(node: Node) -> Node | None:
    """The sum of n equal elements -> n times the element, rounded once."""
    (x,) = node.operands
    if not is_splat(x) or x.dtype.is_complex:
        return None
    value = splat_value(x)
    total = value * (x.type.size // node.type.size)
    return None if isfinite(value) and not isfinite(total) else _folded(total, node)


def prod_of_splat(node: Node) -> Node | None:
    """The product of n equal elements -> the n-th power of the element."""
    (x,) = node.operands
    if not is_splat(x) or x.dtype.is_complex:
        return None
    value, count = splat_value(x), prod(x.shape[axis] for axis in node.attrs["axes"])
    if not node.dtype.is_inexact:
        return splat(_wrapped(pow(value, count, 1 << node.dtype.bits), node.dtype), node.type)
    with np.errstate(all="ignore"):
        power = float(np.power(np.float64(value), np.float64(count)))
    unchanged = value == power or (value != value and power != power)
    if node.dtype != float32:
        return splat(_rounded(power, node.dtype), node.type)
    return splat(power, node.type) if unchanged or _is_normal(power) else None
