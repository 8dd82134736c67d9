"""Arrays written as subscripts: grids (`mgrid[0:3, 0:4]`), joins (`r_[0:3, 7]`) and open meshes."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.default_dtypes import default_integer
from lavax.numpy._core.broadcasting import common_dtype
from lavax.numpy._core.errors import index_error, shape_error
from lavax.numpy._core.movement import reshaped, transposed
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.numpy.arrays.joining import concatenate, stack
from lavax.numpy.arrays.ranges import arange, linspace
from lavax.numpy.grids.grids import meshgrid
from lavax.numpy.indexing.nonzero import nonzero
from lavax.tracer.values.value import Value

__all__ = ["c_", "index_exp", "ix_", "mgrid", "ogrid", "r_", "s_"]

s_ = np.s_  # the key of x[...], as a value
index_exp = np.index_exp  # the same, always as a tuple


def _line(part: slice) -> Value:
    """start:stop:step as `arange`; start:stop:nj as `linspace` of n points, including the last."""
    if not isinstance(part, slice):
        raise index_error(f"a grid is made of slices, got {part!r:.40}")
    start = 0 if part.start is None else part.start
    step = 1 if part.step is None else part.step
    if part.stop is None:
        raise shape_error(f"a grid needs an end, got {part}")
    if isinstance(step, complex):
        return linspace(float(start), float(part.stop), int(math.fabs(step.imag)))
    return arange(start, part.stop, step)


@dataclass(frozen=True)
class Grid:
    """Makes coordinates from slices, one per axis; an imaginary step is a number of points including the end.

    `sparse`: a list of arrays, each along its own axis, that broadcast; else they are stacked in their full shape.
    One slice gives an array of one axis.
    """

    sparse: bool

    def __getitem__(self, key: slice | tuple[slice, ...]) -> Any:
        if isinstance(key, slice):
            return _line(key)
        grids = meshgrid(*common_dtype([_line(part) for part in key]), indexing="ij", sparse=self.sparse)
        return grids if self.sparse else stack(grids)


@dataclass(frozen=True)
class Join:
    """Joins arrays, numbers and slices (as in `Grid`) along an axis.

    A leading string of up to three integers changes: the axis, the minimum number of axes of each part, and the
    position of the axes of parts with fewer (-1: behind the new ones). Raises ValueError for another string.
    """

    axis: int
    rank: int
    place: int

    def __getitem__(self, key: Any) -> Value:
        parts = list(key) if isinstance(key, tuple) else [key]
        if parts and isinstance(parts[0], str):
            return self._directed(parts[0])[tuple(parts[1:])]
        return concatenate([self._part(part) for part in parts], self.axis)

    def _directed(self, directive: str) -> Join:
        try:
            numbers = [int(word) for word in directive.split(",")]
        except ValueError:
            numbers = []
        if not 1 <= len(numbers) <= 3:
            raise ValueError(f"r_ and c_ take up to three integers as a string, 'axis,rank,place', got {directive!r}")
        given = [*numbers, *(self.rank, self.place)[len(numbers) - 1 :]]
        return Join(*given)

    def _part(self, part: Any) -> Value:
        value = _line(part) if isinstance(part, slice) else as_value(part)
        added = max(self.rank - value.ndim, 1 - value.ndim, 0)
        rank = value.ndim + added
        raised = reshaped(value, (1,) * added + value.shape)
        if not added or self.place == -1:
            return raised
        first = self.place if self.place >= 0 else self.place + added + 1
        order = [*range(first), *range(added, rank), *range(first, added)]
        return transposed(raised, order)


mgrid = Grid(sparse=False)
ogrid = Grid(sparse=True)
r_ = Join(0, 1, -1)
c_ = Join(-1, 2, 0)


def ix_(*args: ArrayLike) -> tuple[Value, ...]:
    """Index arrays that together select all combinations of the positions in `args`, one per axis.

    Each has one axis, of integers, or of truth values, which select where they are true. Raises ShapeError for others.
    """
    result = []
    for place, positions in enumerate(args):
        value = as_value(positions)
        if value.ndim != 1:
            raise shape_error(f"ix_: the positions along an axis must have one axis, got {value.type}")
        if value.type.dtype.kind == "bool":
            (value,) = nonzero(value)
        elif not value.size and value.type.dtype.is_inexact:  # as an empty list is
            value = cast(value, default_integer())
        result.append(reshaped(value, tuple(value.size if d == place else 1 for d in range(len(args)))))
    return tuple(result)
