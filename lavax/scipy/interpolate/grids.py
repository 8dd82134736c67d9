"""Values between the points of a grid whose axes are at right angles."""
from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import lavax.numpy as lnp
from lavax.base.quick_dataclasses import dataclass
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.pytrees.registration import register_dataclass
from lavax.tracer.values.value import Value

_METHODS = ("linear", "nearest")


@register_dataclass(static=("method", "fill_value"))
@dataclass(frozen=True, init=False)
class RegularGridInterpolator:
    """`RegularGridInterpolator(points, values)(xi)`: values [n₁, …, nₖ, ...] given at rising points, at other points.

    `points` are k vectors [nᵢ], `xi` [..., k]. `method` is "linear" or "nearest". Outside the grid the result is
    `fill_value`, or with None it is extrapolated. Gradients flow to values, points and `xi`. A pytree. Raises
    ShapeError if the shapes do not fit, ValueError for another method, and for `bounds_error`: computed numbers raise
    no errors.
    """

    grid: Any
    values: Any
    method: str
    fill_value: float | None

    def __init__(
        self,
        points: Sequence[ArrayLike],
        values: ArrayLike,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: float | None = math.nan,
    ) -> None:
        if method not in _METHODS or bounds_error:
            raise ValueError(f"RegularGridInterpolator: method is one of {_METHODS}, without bounds_error: {method!r}")
        grid, given = tuple(as_floating(each) for each in points), as_floating(values)
        if any(each.ndim != 1 for each in grid) or given.shape[: len(grid)] != tuple(each.size for each in grid):
            shown = ", ".join(str(each.type) for each in grid)
            raise shape_error(f"RegularGridInterpolator: points ({shown}) do not fit values {given.type}")
        for name, value in (("grid", grid), ("values", given), ("method", method), ("fill_value", fill_value)):
            object.__setattr__(self, name, value)

    def __call__(self, xi: ArrayLike | Sequence[ArrayLike], method: str | None = None) -> Value:
        """The values [..., *rest] at `xi` [..., k], or at k coordinates in a tuple, which broadcast."""
        chosen = self.method if method is None else method
        if chosen not in _METHODS:
            raise ValueError(f"RegularGridInterpolator: method must be one of {_METHODS}, got {chosen!r}")
        count = len(self.grid)
        whole = isinstance(xi, tuple)
        given = lnp.stack(lnp.broadcast_arrays(*map(as_floating, xi)), axis=-1) if whole else as_floating(xi)  # type: ignore[arg-type]
        if count == 1 and (not given.ndim or given.shape[-1] != 1):
            given = given[..., None]
        if not given.ndim or given.shape[-1] != count:
            raise shape_error(f"RegularGridInterpolator takes coordinates [..., {count}], got {given.type}")
        return self._at([given[..., axis] for axis in range(count)], chosen)

    def _at(self, coordinates: list[Value], method: str) -> Value:
        sides, outside = [], lnp.zeros(coordinates[0].shape, "bool")
        for points, place in zip(self.grid, coordinates, strict=True):
            last = max(points.shape[0] - 2, 0)
            below = lnp.clip(lnp.searchsorted(points, place, side="right") - 1, 0, last)
            above = lnp.minimum(below + 1, points.shape[0] - 1)
            width = points[above] - points[below]
            fraction = (place - points[below]) / lnp.where(width == 0, 1.0, width)
            outside = outside | (place < points[0]) | (place > points[-1])
            if method == "nearest":
                sides.append([(lnp.where(fraction <= 0.5, below, above), lnp.ones_like(fraction))])
            else:
                sides.append([(below, 1 - fraction), (above, fraction)])
        spread = (..., *(None for _ in self.values.shape[len(self.grid) :]))
        total: Any = None
        for corner in itertools.product(*sides):
            weight: Any = 1.0
            for _, part in corner:
                weight = weight * part
            term = self.values[tuple(place for place, _ in corner)] * weight[spread]
            total = term if total is None else total + term
        if self.fill_value is None:
            return total  # type: ignore[no-any-return]
        filled: Value = lnp.where(outside[spread], self.fill_value, total)
        return filled
