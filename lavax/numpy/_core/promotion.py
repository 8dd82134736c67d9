"""Promotion: the common dtype of operands."""
from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache, reduce
from typing import Protocol

from lavax.base import config
from lavax.ir.default_dtypes import default_float, default_integer, default_unsigned
from lavax.ir.types import DTYPES, DType, bfloat16, complex_of, float16, float32, float64, int32, uint32, uint64
from lavax.tracer.values.abstract import Abstract


class Promotable(Protocol):
    """An operand of promotion: a type, and whether its dtype yields to others."""

    @property
    def abstract(self) -> Abstract: ...


KIND_ORDER = {"bool": 0, "uint": 1, "int": 1, "float": 2, "complex": 3}
# The promotion table of the array API standard. Beyond the standard: bool yields to numbers; integers yield to the
# float, and numbers to the complex dtype that holds them; float16 with bfloat16 gives float32; uint64 with a signed
# integer gives int64. Without 64 bits enabled, uint32 with a signed integer gives int32, see join.
_FLOATS = {
    (float16, bfloat16): float32,
    **{(narrow, float32): float32 for narrow in (float16, bfloat16)},
    **{(narrow, float64): float64 for narrow in (float16, bfloat16, float32)},
}


def _joined(first: DType, second: DType) -> DType:
    if first == second:
        return first
    if first.kind == second.kind:
        if first.is_float:
            return _FLOATS[first, second] if (first, second) in _FLOATS else _FLOATS[second, first]
        return max(first, second, key=lambda dtype: dtype.bits)
    low, high = sorted((first, second), key=lambda dtype: (KIND_ORDER[dtype.kind], dtype.kind == "int"))
    if low.is_float and high.is_complex:
        return complex_of(_joined(low, high.part))
    if low.kind == "bool" or high.is_inexact:
        return high
    # An unsigned integer and a signed one: the least that holds both.
    bits = high.bits if low.bits < high.bits else min(2 * low.bits, 64)
    return DTYPES[f"i{bits}"]


PROMOTION: dict[tuple[DType, DType], DType] = {
    (first, second): _joined(first, second) for first in DTYPES.values() for second in DTYPES.values()
}


def join(first: DType, second: DType) -> DType:
    """The common dtype of two strong dtypes. Without 64 bits enabled, narrower integers have no 64-bit result.

    With them, uint64 and a signed integer, of which no integer dtype holds both, give float64.
    """
    found = PROMOTION[first, second]
    if no_integer_holds(first, second):
        return float64
    if not found.is_integer or found.bits < 64 or 64 in (first.bits, second.bits) or config.keeps_64_bits():
        return found
    return int32


def no_integer_holds(first: DType, second: DType) -> bool:
    """Whether the dtypes are uint64 and a signed integer, where 64 bits are enabled."""
    return uint64 in (first, second) and "int" in (first.kind, second.kind) and config.keeps_64_bits()


def promote(operands: Iterable[Promotable]) -> tuple[DType, bool]:
    """The common dtype of `operands`, and whether it is weak.

    A weak dtype, that of a Python scalar, yields to a strong one unless it is of a higher kind
    (bool < integer < float): `x * 2` keeps the dtype of `x`, `i * 0.5` is float.
    """
    kinds = [operand.abstract for operand in operands]
    return _promoted(tuple([(kind.type.dtype, kind.weak) for kind in kinds]), config.keeps_64_bits())


@lru_cache(1024)
def _promoted(dtypes: tuple[tuple[DType, bool], ...], keeps_64_bits: bool) -> tuple[DType, bool]:
    """The same for dtypes, each with whether it is weak. `keeps_64_bits`, which join asks for, is a part of the key."""
    strong = [dtype for dtype, is_weak in dtypes if not is_weak]
    weak = [dtype for dtype, is_weak in dtypes if is_weak]
    if not weak:
        return _of_strong(strong)
    yielding = reduce(join, weak)
    if not strong:
        return yielding, True
    dtype, is_weak = _of_strong(strong)
    if is_weak:
        return join(dtype, yielding), True
    if dtype.is_float and yielding.is_complex:
        return complex_of(dtype), False
    if KIND_ORDER[yielding.kind] > KIND_ORDER[dtype.kind]:
        return yielding, True
    return dtype, False


def _of_strong(dtypes: list[DType]) -> tuple[DType, bool]:
    """The common dtype of strong ones, and whether it is weak: a float that integers alone have made is."""
    found = reduce(join, dtypes)
    return found, found.is_float and all(dtype.is_integer for dtype in dtypes)


def floating(dtype: DType) -> DType:
    """The dtype in which functions of real or complex numbers compute `dtype`: 32-bit integers in float32, as JAX."""
    if dtype.is_inexact:
        return dtype
    return default_float() if dtype.bits == 64 else float32


def accumulating(dtype: DType) -> DType:
    """The dtype in which elements of `dtype` are summed: truth values are counted, integers have at least 32 bits."""
    if dtype.is_inexact or dtype.bits >= 32:
        return dtype
    return uint32 if dtype.kind == "uint" else int32


def summed(dtype: DType) -> DType:
    """The dtype of sums of `dtype` that are given none: integers have the bits of the default ones at least."""
    if dtype.is_inexact:
        return dtype
    least = default_unsigned() if dtype.kind == "uint" else default_integer()
    return least if dtype.bits < least.bits else dtype


def averaging(dtype: DType) -> DType:
    """The dtype in which floats of `dtype` are averaged: sums of many 16-bit floats exceed their range."""
    return float32 if dtype in (float16, bfloat16) else dtype
