"""Constants: what is computed from splats alone is a splat.

The value is computed in float64, so it is the oracle's. A floating result is folded only where float32 gives the
same kind of number: what overflows, vanishes or becomes subnormal on the device must be seen to do so there, and
what jumps (a comparison, a floor) must jump the same way in both.
"""
from __future__ import annotations

from math import isfinite, prod
from typing import Any

import numpy as np

from lavax.ir.graph import Node
from lavax.ir.operation import OPERATIONS
from lavax.ir.types import DType, TensorType
from lavax.passes.builder import splat, zeros
from lavax.passes.simplify.matching import is_splat, splat_value

_LIMITS = np.finfo(np.float32)
_JUMPING = frozenset({"ceil", "floor", "modulo", "remainder", "round", "sign", "truncate"})


def _evaluate(node: Node, floating: type[np.floating[Any]]) -> Any:
    """The node's value for one element of each splat operand."""

    def held(dtype: DType) -> np.dtype[Any]:
        return np.dtype(floating) if dtype.is_float else dtype.numpy

    with np.errstate(all="ignore"):
        values = [np.asarray(splat_value(operand)).astype(held(operand.dtype)) for operand in node.operands]
        scalar = TensorType((), node.dtype)
        return OPERATIONS[node.op].evaluate(values, node.attrs, scalar, held(node.dtype)).item()


def _is_normal(value: float) -> bool:
    return float(_LIMITS.tiny) <= abs(value) <= float(_LIMITS.max)


def _agree(precise: float, rounded: float) -> bool:
    """Whether float32 gives the same kind of number as float64."""
    if _is_normal(precise):
        return _is_normal(rounded)
    return precise == rounded or (precise != precise and rounded != rounded)


def elementwise(node: Node) -> Node | None:
    """op(splat, …) -> splat."""
    if not all(map(is_splat, node.operands)):
        return None
    precise, rounded = _evaluate(node, np.float64), _evaluate(node, np.float32)
    exact = not node.dtype.is_float or node.op in _JUMPING
    agrees = precise == rounded if exact else _agree(precise, rounded)
    return splat(precise, node.type) if agrees else None


def empty(node: Node) -> Node | None:
    """A value of no elements -> a splat, of zeros."""
    if node.type.size or (is_splat(node) and not splat_value(node)):
        return None
    return zeros(node.type)


def movement(node: Node) -> Node | None:
    """The elements of a splat stay equal wherever they go."""
    return splat(splat_value(node.operands[0]), node.type) if is_splat(node.operands[0]) else None


def _wrapped(value: int, dtype: DType) -> int:
    return int(np.asarray(value % 2**32, np.uint32).astype(dtype.numpy))


def _folded(value: float, node: Node) -> Node | None:
    if not node.dtype.is_float:
        return splat(_wrapped(int(value), node.dtype), node.type)
    return splat(value, node.type) if value == 0 or _is_normal(value) or not isfinite(value) else None


def sum_of_splat(node: Node) -> Node | None:
    """The sum of n equal elements -> n times the element, rounded once."""
    (x,) = node.operands
    if not is_splat(x):
        return None
    value = splat_value(x)
    total = value * (x.type.size // node.type.size)
    return None if isfinite(value) and not isfinite(total) else _folded(total, node)


def prod_of_splat(node: Node) -> Node | None:
    """The product of n equal elements -> the n-th power of the element."""
    (x,) = node.operands
    if not is_splat(x):
        return None
    value, count = splat_value(x), prod(x.shape[axis] for axis in node.attrs["axes"])
    if not node.dtype.is_float:
        return splat(_wrapped(pow(value, count, 2**32), node.dtype), node.type)
    with np.errstate(all="ignore"):
        power = float(np.power(np.float64(value), np.float64(count)))
    unchanged = value == power or (value != value and power != power)
    return splat(power, node.type) if unchanged or _is_normal(power) else None
