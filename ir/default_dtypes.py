"""The dtypes of numbers that are given without one: of 32 bits, or of 64 within `enable_x64` or with LAVAX_X64=1."""
from __future__ import annotations

from lavax.base.config import keeps_64_bits
from lavax.ir.types import DType, complex64, complex128, float32, float64, int32, int64, uint32, uint64


def default_float() -> DType:
    """The dtype of Python's floats, and of arrays that are made without a dtype."""
    return float64 if keeps_64_bits() else float32


def default_integer() -> DType:
    """The dtype of Python's integers, of positions and of counts."""
    return int64 if keeps_64_bits() else int32


def default_unsigned() -> DType:
    """The dtype of unsigned integers, such as random bits and the sums of narrower ones."""
    return uint64 if keeps_64_bits() else uint32


def default_complex() -> DType:
    """The dtype of Python's complex numbers."""
    return complex128 if keeps_64_bits() else complex64
