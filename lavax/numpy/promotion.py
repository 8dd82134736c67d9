"""Which dtype operands of several dtypes are computed in."""
from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Protocol

from lavax.ir.types import DType, TensorType, bool_, float32, int32, uint32


class Promotable(Protocol):
    """What promotion looks at: a type, and whether its dtype yields to others."""

    @property
    def weak(self) -> bool: ...

    @property
    def type(self) -> TensorType: ...


_ORDER = (bool_, uint32, int32, float32)
# The promotion table of the array API standard, with two entries of our own where the standard has none
# among 32-bit dtypes: unsigned with signed gives int32, an integer with a float gives float32.
_ROWS: dict[DType, tuple[DType, ...]] = {
    bool_: (bool_, uint32, int32, float32),
    uint32: (uint32, uint32, int32, float32),
    int32: (int32, int32, int32, float32),
    float32: (float32, float32, float32, float32),
}
PROMOTION: dict[tuple[DType, DType], DType] = {
    (row, column): dtype for row, dtypes in _ROWS.items() for column, dtype in zip(_ORDER, dtypes, strict=True)
}
_KIND_ORDER = {"bool": 0, "uint": 1, "int": 1, "float": 2}


def join(first: DType, second: DType) -> DType:
    """The dtype two strong dtypes are computed in."""
    return PROMOTION[first, second]


def promote(operands: Iterable[Promotable]) -> tuple[DType, bool]:
    """The common dtype of `operands`, and whether it is weak.

    A weak dtype, that of a Python scalar, yields to a strong one unless it is of a higher kind
    (bool < integer < float): `x * 2` keeps the dtype of `x`, `i * 0.5` is float.
    """
    operands = list(operands)
    strong = [operand.type.dtype for operand in operands if not operand.weak]
    weak = [operand.type.dtype for operand in operands if operand.weak]
    if not weak:
        return reduce(join, strong), False
    yielding = reduce(join, weak)
    if not strong:
        return yielding, True
    dtype = reduce(join, strong)
    if _KIND_ORDER[yielding.kind] > _KIND_ORDER[dtype.kind]:
        return yielding, True
    return dtype, False


def floating(dtype: DType) -> DType:
    """The dtype that functions of real numbers compute `dtype` in."""
    return dtype if dtype.is_float else float32


def accumulating(dtype: DType) -> DType:
    """The dtype in which elements of `dtype` are summed: truth values are counted."""
    return int32 if dtype == bool_ else dtype
