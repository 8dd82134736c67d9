"""Second moments kept as a row and a column (Shazeer and Stern 2018, "Adafactor")."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import lavax.numpy as lnp
from lavax.optim.transforms.transformation import GradientTransformation
from lavax.optim.tree.moments import increment
from lavax.optim.tree.precision import size_dtype, squared_size, wide
from lavax.tracer.pytrees import pytree


class FactoredState(NamedTuple):
    """Steps done (int32); means of squares along the longest axis and along the next, or else of every number.

    What an array does not use is one zero.
    """

    count: Any
    v_row: Any
    v_col: Any
    v: Any


class _Moved(NamedTuple):
    """An update, and the three means after it."""

    update: Any
    v_row: Any
    v_col: Any
    v: Any


def _decay_rate(step: Any, exponent: Any) -> Any:
    """1 - (step + 1)^-exponent (section 7.2)."""
    return 1 - (step + 1).astype(lnp.float32) ** (-exponent)


def _factored_axes(shape: tuple[int, ...], factored: bool, least: int) -> tuple[int, int] | None:
    """The second longest axis and the longest, if both are at least `least` long."""
    if not factored or len(shape) < 2:
        return None
    second, first = (int(axis) for axis in np.argsort(shape)[-2:])
    return (second, first) if shape[second] >= least else None


def scale_by_factored_rms(
    factored: bool = True, decay_rate: Any = 0.8, step_offset: Any = 0, min_dim_size_to_factor: int = 128,
    epsilon: Any = 1e-30, decay_rate_fn: Callable[[Any, Any], Any] = _decay_rate,
) -> GradientTransformation:
    """Updates over the root of a mean of squares that matrices keep as the outer product of a row and a column.

    Arrays whose second longest axis is shorter than `min_dim_size_to_factor` keep it whole.
    """

    def axes_of(leaf: Any) -> tuple[int, int] | None:
        return _factored_axes(tuple(lnp.shape(leaf)), factored, min_dim_size_to_factor)

    def init(params: Any) -> FactoredState:
        def zeros(leaf: Any, without: int | None) -> Any:
            shape = [size for axis, size in enumerate(lnp.shape(leaf)) if axis != without]
            return lnp.zeros(shape, size_dtype(leaf))

        def unused(leaf: Any) -> Any:
            """Made anew for each place, because a donated state must not hold an array twice."""
            return lnp.zeros((1,), size_dtype(leaf))

        def start(leaf: Any) -> _Moved:
            axes = axes_of(leaf)
            if axes is None:
                return _Moved(None, unused(leaf), unused(leaf), zeros(leaf, None))
            return _Moved(None, zeros(leaf, axes[1]), zeros(leaf, axes[0]), unused(leaf))

        return _state(lnp.zeros((), lnp.int32), pytree.map(start, params))

    def update(updates: Any, state: FactoredState, params: Any = None) -> tuple[Any, FactoredState]:
        rate = decay_rate_fn(state.count - step_offset, decay_rate)

        def moved(leaf: Any, row: Any, column: Any, whole: Any) -> _Moved:
            g, axes = wide(leaf), axes_of(leaf)
            square = squared_size(g) + epsilon
            if axes is None:
                v = rate * whole + (1 - rate) * square
                return _Moved(g * lnp.rsqrt(v), row, column, v)
            second, first = axes
            row = rate * row + (1 - rate) * lnp.mean(square, axis=first)
            column = rate * column + (1 - rate) * lnp.mean(square, axis=second)
            mean = lnp.mean(row, axis=second - 1 if second > first else second, keepdims=True)
            row_factor, column_factor = lnp.rsqrt(row / mean), lnp.rsqrt(column)
            scaled = g * lnp.expand_dims(row_factor, first) * lnp.expand_dims(column_factor, second)
            return _Moved(scaled, row, column, whole)

        found = pytree.map(moved, updates, state.v_row, state.v_col, state.v)
        return _each("update", found), _state(increment(state.count), found)

    return GradientTransformation(init, update)


def _each(field: str, found: Any) -> Any:
    return pytree.map(lambda leaf: getattr(leaf, field), found, is_leaf=lambda part: isinstance(part, _Moved))


def _state(count: Any, found: Any) -> FactoredState:
    return FactoredState(count, _each("v_row", found), _each("v_col", found), _each("v", found))
