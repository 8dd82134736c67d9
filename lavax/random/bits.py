"""Uniform bits."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lavax.ir.default_dtypes import default_unsigned
from lavax.ir.types import DType, uint32
from lavax.numpy._core.application import apply
from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.errors import dtype_error
from lavax.numpy._core.operands import ArrayLike, cast
from lavax.numpy._core.shape_arguments import checked_shape
from lavax.random.keys import BOTH, FIRST, SECOND, as_key, block, positions
from lavax.random.reuse import consume
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value


@one_program("shape", "dtype")
def bits(key: ArrayLike, shape: int | Sequence[int] = (), dtype: Any = None, *, out_sharding: Any = None) -> Value:
    """Uniform random bits of `shape` in an unsigned `dtype`, by default uint32 (uint64 within `lavax.enable_x64`).

    An 8-bit or 16-bit draw is the low end of the 32-bit one. Raises DtypeError for other dtypes.
    """
    return drawn_bits("bits", key, checked_shape("bits", shape), _unsigned(dtype))


def drawn_bits(name: str, key: ArrayLike, shape: tuple[int, ...], dtype: DType = uint32) -> Value:
    """The bits for the function `name`."""
    checked = as_key(name, key)
    consume(name, key)
    if dtype.bits == 64:
        high, low = (cast(block(checked, positions(shape), word), dtype) for word in (FIRST, SECOND))
        return apply("or", apply("shift_left", high, 32), low)
    return cast(block(checked, positions(shape), BOTH), dtype)


def _unsigned(dtype: Any) -> DType:
    held = default_unsigned() if dtype is None else canonical_dtype(dtype)
    if held.kind != "uint":
        raise dtype_error(f"bits: dtype must be unsigned, got {held.numpy}")
    return held
