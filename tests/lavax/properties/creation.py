"""Arrays made from numbers that the program knows."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.lavax.properties.cases import DTYPES, F32, I32, NUMBERS, Arguments, Case, Draw, named, numbers, one, shapes

# NumPy's floats are float64 where none are asked for; the same kind is what counts.
dtypes = st.sampled_from(DTYPES)
small = st.integers(0, 4)
offsets = st.integers(-4, 4)


def options(**strategies: st.SearchStrategy[Any]) -> st.SearchStrategy[Arguments]:
    """Arguments that the program knows, by name."""
    return st.fixed_dictionaries(strategies).map(lambda chosen: Arguments((), chosen))


@st.composite
def counting(draw: Draw) -> Arguments:
    quarters = st.integers(-20, 20)
    integers = draw(st.booleans())
    start, stop, step = (draw(quarters) for _ in range(3))
    scale = 1 if integers else 0.25
    return Arguments((), {"start": start * scale, "stop": stop * scale, "step": (step or 1) * scale})


@st.composite
def between(draw: Draw, low: float, high: float, dtypes: tuple[Any, ...]) -> Arguments:
    shape = draw(shapes(0, 2))
    axis = draw(st.integers(-len(shape) - 1, len(shape)))
    chosen = {"num": draw(st.integers(0, 6)), "endpoint": draw(st.booleans()), "axis": axis}
    return Arguments(tuple(numbers(draw, shape, dtypes, low, high) for _ in range(2)), chosen)


@st.composite
def filled(draw: Draw) -> Arguments:
    x = numbers(draw, draw(shapes(0, 3)))
    shape = draw(shapes(0, 2, 1)) + x.shape
    return Arguments((x,), {"shape": shape})


def _arange(namespace: Any) -> Callable[..., Any]:
    return lambda start, stop, step: namespace.arange(start, stop, step)


def _with_two(name: str) -> Callable[[Any], Callable[..., Any]]:
    return lambda namespace: lambda n, m, **options: getattr(namespace, name)(n, m, **options)


def _indices_of(name: str) -> Callable[[Any], Callable[..., Any]]:
    return lambda namespace: lambda n, k, m: getattr(namespace, name)(n, k, m)


CASES: dict[str, Case] = {
    "arange": Case(counting(), _arange),
    "linspace": named("linspace", between(-3, 3, NUMBERS)),
    "logspace": named("logspace", between(-2, 2, NUMBERS)),
    "geomspace": named("geomspace", between(1, 5, (F32,))),
    "eye": Case(options(n=small, m=small, k=offsets, dtype=dtypes), _with_two("eye")),
    "tri": Case(options(n=small, m=small, k=offsets, dtype=dtypes), _with_two("tri")),
    "identity": named("identity", options(n=small, dtype=dtypes)),
    "zeros": named("zeros", options(shape=shapes(), dtype=dtypes)),
    "ones": named("ones", options(shape=shapes(), dtype=dtypes)),
    "empty": named("empty", options(shape=shapes(), dtype=dtypes), np.zeros),
    "full": named("full", options(shape=shapes(), fill_value=st.sampled_from([2, 0.5, True]))),
    "full of rows": Case(filled(), lambda n: lambda x, shape: n.full(shape, x)),
    "empty_like": named("empty_like", one(), np.zeros_like),
    "full_like": named("full_like", one().map(lambda drawn: Arguments(drawn.arrays, {"fill_value": 1}))),
    "indices": named("indices", options(dimensions=shapes(1, 3), sparse=st.booleans())),
    "diag_indices": named("diag_indices", options(n=small, ndim=st.integers(1, 3))),
    "tril_indices": Case(options(n=small, k=offsets, m=small), _indices_of("tril_indices"), eager=True),
    "triu_indices": Case(options(n=small, k=offsets, m=small), _indices_of("triu_indices"), eager=True),
    "vander": Case(
        st.tuples(one((F32, I32), low=1, high=1), small, st.booleans()).map(
            lambda drawn: Arguments(drawn[0].arrays, {"n": drawn[1], "increasing": drawn[2]})
        ),
        lambda namespace: lambda x, n, increasing: namespace.vander(x, n, increasing),
    ),
    "asarray": named("asarray", one()),
    "array": named("array", one()),
    "broadcast_shapes": Case(
        options(shapes=st.sampled_from([((2, 1), (3,)), ((), (4,)), ((0,), (1, 1)), ((2, 3), (3, 2))])),
        lambda namespace: lambda shapes: namespace.broadcast_shapes(*shapes),
        eager=True,
    ),
}
