"""Shapes as users give them."""
from __future__ import annotations

import math
from collections.abc import Iterable

from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.number_arguments import whole_number

Shape = tuple[int, ...]

MOST_ELEMENTS = 2**63 - 1  # of an array; NumPy has the same bound


def as_shape(shape: int | Iterable[int], what: str = "an extent of the shape") -> Shape:
    """A shape, or other integers, from an int or a sequence of them. Raises DtypeError for anything but integers."""
    if not isinstance(shape, Iterable) or getattr(shape, "ndim", 1) == 0:
        return (whole_number(what, shape),)
    return tuple(whole_number(what, extent) for extent in shape)


def checked_shape(name: str, shape: int | Iterable[int]) -> Shape:
    """The shape of an array that `name` makes.

    Raises ShapeError for negative extents and for 2⁶³ elements or more, DtypeError for anything but integers.
    """
    extents = as_shape(shape)
    if min(extents, default=0) < 0:
        raise shape_error(f"{name}: a shape has no negative extents, got {extents}")
    if math.prod(extents) > MOST_ELEMENTS:
        raise shape_error(f"{name}: an array of shape {extents} has more elements than any memory")
    return extents
