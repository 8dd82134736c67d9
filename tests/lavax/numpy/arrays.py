"""Samples, and the comparison of an array function with NumPy's."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lavax.ir import Graph, interpret, verify
from lavax.tracer import Value, dtype_of, lift
from lavax.tracer.tracing.tracing import Input, trace_function

F32, I32, U32, BOOL = (np.dtype(name) for name in ("float32", "int32", "uint32", "bool"))
DTYPES = (F32, I32, U32, BOOL)
NUMBERS = (F32, I32, U32)
SHAPES: tuple[tuple[int, ...], ...] = ((), (5,), (3, 4), (2, 1, 3), (2, 3, 1, 4), (0,), (3, 0, 2))
# Sums and products of a few dozen terms of size 1 round to within some units in the last place.
ROUNDING = 16 * float(np.finfo(np.float32).eps)


def sample(shape: Sequence[int], dtype: np.dtype = F32, low: float = -3, high: float = 3, seed: int = 0) -> np.ndarray:
    """Numbers from low to high (from 0, if unsigned)."""
    random = np.random.default_rng([seed, len(shape), *shape])
    if dtype == BOOL:
        return np.asarray(random.random(shape) < 0.5)
    if dtype == F32:
        return np.asarray(random.uniform(low, high, shape), np.float32)
    return np.asarray(random.integers(max(int(low), 0) if dtype == U32 else int(low), int(high) + 1, shape), dtype)


def traced(function: Callable[..., Any], *arrays: np.ndarray) -> Graph:
    """The graph of `function` of values like `arrays`, called x0, x1, …"""
    inputs = [Input(f"x{place}", lift(array).abstract) for place, array in enumerate(arrays)]
    return trace_function(lambda values: function(*values), inputs, "test").graph


def check(
    ours: Callable[..., Any],
    theirs: Callable[..., Any],
    *arrays: np.ndarray,
    rtol: float = ROUNDING,
    atol: float = ROUNDING,
) -> None:
    """`ours` agrees with `theirs` in shape, dtype and numbers: at once on arrays, and as a graph in float64."""
    with np.errstate(all="ignore"):
        expected = _listed(theirs(*arrays))
    found = _listed(ours(*map(lift, arrays)))
    graph = traced(ours, *arrays)
    verify(graph)
    assert len(graph.inputs) == len(arrays), "an argument was captured"
    exact = interpret(graph, *arrays)
    assert len(found) == len(expected) == len(exact)
    for one, interpreted, right in zip(found, exact, map(np.asarray, expected), strict=True):
        assert isinstance(one, Value)
        assert one.shape == right.shape == interpreted.shape
        assert one.dtype == dtype_of(right.dtype).numpy
        np.testing.assert_allclose(np.asarray(one), right, rtol=rtol, atol=atol)
        np.testing.assert_allclose(interpreted, right, rtol=rtol, atol=atol)


def _listed(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (list, tuple)) else [result]
