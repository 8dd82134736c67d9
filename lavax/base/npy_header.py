"""What an array in NumPy's format says of itself, checked against its bytes before any memory is taken for it.

This module imports nothing of lavax.
"""
from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

_MOST_AXES = 64


class NpyHeader(NamedTuple):
    """The dtype and shape of an array, and whether its numbers are in Fortran's order."""

    dtype: np.dtype
    shape: tuple[int, ...]
    fortran: bool


def read_npy_header(file: Any, nbytes: int) -> NpyHeader:
    """Reads the header, and leaves `file` behind it. The array has `nbytes` bytes, with its header.

    Raises ValueError if it is damaged, holds Python objects, or announces other numbers than there are bytes for.
    """
    start = file.tell()
    forms = np.lib.format
    try:
        version = forms.read_magic(file)
        read: Any = forms.read_array_header_1_0 if version == (1, 0) else forms.read_array_header_2_0
        shape, fortran, dtype = read(file)
    except Exception as error:  # NumPy raises errors of many classes for headers that are not its own
        raise ValueError(f"its header cannot be read ({error})") from None
    if dtype.hasobject:
        raise ValueError("Object arrays are not read: they could run code")
    if len(shape) > _MOST_AXES or min(shape, default=0) < 0 or not dtype.itemsize:
        raise ValueError(f"no array has the shape {shape!s:.80} and dtype {dtype}")
    there, announced = nbytes - (file.tell() - start), prod(shape) * dtype.itemsize
    if announced != there:
        raise ValueError(f"it announces {announced} bytes of numbers, and there are {there}")
    return NpyHeader(dtype, shape, fortran)
