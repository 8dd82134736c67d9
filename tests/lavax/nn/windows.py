"""Convolution and window reductions by their definitions, in float64, and derivatives by differences."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

import lavax as lx
import lavax.numpy as lnp
from lavax.ir import interpret
from tests.lavax.numpy.arrays import F32, sample


def spread(x: np.ndarray, axis: int, step: int) -> np.ndarray:
    """Zeros between neighbours, so that they lie `step` apart."""
    shape = list(x.shape)
    shape[axis] = max((shape[axis] - 1) * step + 1, 0)
    result = np.zeros(shape, x.dtype)
    result[(slice(None),) * axis + (slice(None, None, step),)] = x
    return result


def widened(x: np.ndarray, axis: int, before: int, after: int, fill: Any = 0) -> np.ndarray:
    """`fill` at the ends of an axis, or elements cut off there."""
    widths = [(0, 0)] * x.ndim
    widths[axis] = (max(before, 0), max(after, 0))
    cut = [slice(None)] * x.ndim
    padded = np.pad(x, widths, constant_values=fill)
    cut[axis] = slice(max(-before, 0), padded.shape[axis] - max(-after, 0))
    return padded[tuple(cut)]


def convolved(
    x: np.ndarray,
    w: np.ndarray,
    strides: Sequence[int],
    pads: Sequence[tuple[int, int]],
    spread_by: Sequence[int],
    dilation: Sequence[int],
    groups: int = 1,
) -> np.ndarray:
    """The convolution of x[N,C,…] with w[O,I,…]."""
    x, w = x.astype(np.float64), w.astype(np.float64)
    for place, (step, (before, after)) in enumerate(zip(spread_by, pads, strict=True)):
        x = widened(spread(x, place + 2, step), place + 2, before, after)
    spans = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation, strict=True)]
    extents = [max((n - span) // s + 1, 0) for n, span, s in zip(x.shape[2:], spans, strides, strict=True)]
    result = np.zeros((len(x), len(w), *extents))
    features, channels = len(w) // groups, w.shape[1]
    for out in product(*map(range, extents)):
        places = tuple(
            slice(o * s, o * s + span, d) for o, s, span, d in zip(out, strides, spans, dilation, strict=True)
        )
        for group in range(groups):
            window = x[(slice(None), slice(group * channels, (group + 1) * channels), *places)]
            own = slice(group * features, (group + 1) * features)
            result[(slice(None), own, *out)] = np.tensordot(window, w[own], (range(1, x.ndim), range(1, x.ndim)))
    return result


def pooled(
    x: np.ndarray,
    window: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[tuple[int, int]],
    dilation: Sequence[int],
    axes: Sequence[int],
    fold: Callable[[np.ndarray], Any],
    fill: Any,
) -> np.ndarray:
    """`fold` of the elements of every window, which come as one row."""
    for axis, (before, after) in zip(axes, pads, strict=True):
        x = widened(x, axis, before, after, fill)
    shape = list(x.shape)
    for axis, k, s, d in zip(axes, window, strides, dilation, strict=True):
        shape[axis] = max((x.shape[axis] - (k - 1) * d - 1) // s + 1, 0)
    result = np.zeros(shape, x.dtype)
    for out in product(*map(range, shape)):
        places: list[Any] = [slice(o, o + 1) for o in out]
        for axis, k, s, d in zip(axes, window, strides, dilation, strict=True):
            places[axis] = slice(out[axis] * s, out[axis] * s + (k - 1) * d + 1, d)
        result[out] = fold(x[tuple(places)].ravel())
    return result


def check_derivatives(
    function: Callable[..., Any], arrays: Sequence[np.ndarray], constants: Sequence[np.ndarray] = ()
) -> None:
    """First and second derivatives along random directions, in the interpreter in float64.

    `constants` are further arguments of `function`, such as indices, that are not differentiated.
    """
    count, places = len(arrays), tuple(range(len(arrays)))
    weights = sample(lx.eval_shape(function, *arrays, *constants).shape, seed=5)
    directions = [sample(array.shape, seed=6) for array in arrays]
    given = [array.astype(np.float64) for array in (*arrays, weights, *directions)]
    last = len(given)

    def loss(*values: Any) -> Any:
        return 1.7 * lnp.sum(values[count] * function(*values[:count], *values[last:]) ** 2)

    def along(differentiated: Callable[..., Any]) -> Callable[..., Any]:
        def slope(*values: Any) -> Any:
            gradients = lx.grad(differentiated, places)(*values)
            return sum(lnp.sum(g * d) for g, d in zip(gradients, values[count + 1 : last], strict=True))

        return slope

    def exactly(traced: Callable[..., Any], step: float = 0) -> Any:
        moved = [x + step * d for x, d in zip(given[:count], given[count + 1 :], strict=True)]
        graph = lx.trace(traced)(*(array.astype(F32) for array in given), *constants)
        return interpret(graph, *moved, *given[count:], *constants)[0]

    for lower, upper in ((loss, along(loss)), (along(loss), along(along(loss)))):
        low, high = exactly(lower, -1e-5), exactly(lower, 1e-5)
        np.testing.assert_allclose(exactly(upper), (high - low) / 2e-5, rtol=1e-6, atol=1e-7 * abs(high) + 1e-9)
