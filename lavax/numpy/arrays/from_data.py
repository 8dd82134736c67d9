"""Arrays from bytes, text, iterators and functions of positions."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from lavax.ir.brain_floats import brain_floats_from_bits, is_brain_float
from lavax.ir.types import bfloat16
from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.shape_arguments import checked_shape
from lavax.numpy.arrays.creation import asarray
from lavax.numpy.arrays.ranges import arange
from lavax.numpy.arrays.scalar_types import ScalarType
from lavax.tracer.calls.signature import require_function
from lavax.tracer.transforms.vmap import vmap
from lavax.tracer.values.value import Value

__all__ = ["frombuffer", "fromfunction", "fromiter", "fromstring"]


def _in_memory(dtype: Any) -> Any:
    """The dtype of the bytes: that of `dtype`, or 64 bits for Python's own types."""
    return dtype.dtype if isinstance(dtype, ScalarType) else dtype


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> Value:
    """`count` numbers of `dtype` (-1: all) in a buffer (bytes, …), from the byte `offset` on.

    64-bit numbers become 32-bit ones unless `lavax.enable_x64` says otherwise. Raises ValueError if the buffer does
    not hold that many.
    """
    held = _in_memory(dtype)
    if is_brain_float(held):
        return asarray(brain_floats_from_bits(np.frombuffer(buffer, np.uint16, count, offset)), bfloat16)
    return asarray(np.frombuffer(buffer, held, count, offset))


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str) -> Value:
    """`count` numbers (-1: all) in a text, separated by `sep`. Raises ValueError if it contains anything else."""
    held = canonical_dtype(dtype)
    words = string.replace(sep, " ") if sep.strip() else string
    read = np.fromiter((float(word) if held.is_float else int(word) for word in words.split()), held.numpy, -1)
    if count > read.size:
        raise ValueError(f"fromstring: {count} numbers asked for, but the text has {read.size}")
    return asarray(read if count < 0 else read[:count], held)


def fromiter(iterable: Iterable[Any], dtype: Any, count: int = -1) -> Value:
    """`count` numbers (-1: all) from an iterable. Raises ValueError if it has fewer."""
    held = canonical_dtype(dtype)
    return asarray(np.fromiter(iterable, held.numpy, count), held)


def fromfunction(
    function: Callable[..., Any], shape: int | Sequence[int], *, dtype: Any = float, **kwargs: Any
) -> Any:
    """The results of `function` for the position of each element of an array of `shape`, one argument per axis.

    It is called once, with scalars of `dtype` that represent all positions, as by `vmap`.
    """
    require_function(function, "fromfunction takes a function")
    extents = checked_shape("fromfunction", shape)
    mapped: Callable[..., Any] = lambda *places: function(*places, **kwargs)  # noqa: E731
    for axis in reversed(range(len(extents))):
        mapped = vmap(mapped, in_axes=tuple(0 if d == axis else None for d in range(len(extents))))
    return mapped(*(arange(extent, dtype=dtype) for extent in extents))
