"""What array functions record: few nodes, in one canonical form."""
from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import lavax.nn as nn
import lavax.numpy as lnp
from tests.lavax.numpy.arrays import F32, I32, traced

EXPECTED: dict[str, tuple[Callable[..., Any], list[tuple[tuple[int, ...], np.dtype]], str]] = {
    "scalars are constants of the final shape": (
        lambda x: x * 2 + 1,
        [((3,), F32)],
        """
        graph (x0: f32[3]) {
          %0 = constant() value=2.0 : f32[3]
          %1 = multiply(x0, %0) : f32[3]
          %2 = constant() value=1.0 : f32[3]
          %3 = add(%1, %2) : f32[3]
          return %3
        }
        """,
    ),
    "softmax": (
        nn.softmax,
        [((2, 3), F32)],
        """
        graph (x0: f32[2,3]) {
          %0 = max(x0) axes=[1] : f32[2]
          %1 = stop_gradient(%0) : f32[2]
          %2 = broadcast(%1) axes=[0] : f32[2,3]
          %3 = subtract(x0, %2) : f32[2,3]
          %4 = exp(%3) : f32[2,3]
          %5 = sum(%4) axes=[1] : f32[2]
          %6 = broadcast(%5) axes=[0] : f32[2,3]
          %7 = divide(%4, %6) : f32[2,3]
          return %7
        }
        """,
    ),
    "a slice, then a flip": (
        lambda x: x[::-1, 1:3],
        [((4, 5), F32)],
        """
        graph (x0: f32[4,5]) {
          %0 = slice(x0) start=[0,1] limit=[4,3] stride=[1,1] : f32[4,2]
          %1 = flip(%0) axes=[0] : f32[4,2]
          return %1
        }
        """,
    ),
    "one entry": (
        lambda x: x[2],
        [((4, 5), F32)],
        """
        graph (x0: f32[4,5]) {
          %0 = slice(x0) start=[2,0] limit=[3,5] stride=[1,1] : f32[1,5]
          %1 = reshape(%0) : f32[5]
          return %1
        }
        """,
    ),
    "take_along_axis is one gather": (
        lambda x, i: lnp.take_along_axis(x, i, axis=-1, mode="promise_in_bounds"),
        [((4, 5), F32), ((4, 1), I32)],
        """
        graph (x0: f32[4,5], x1: i32[4,1]) {
          %0 = iota() axis=0 : i32[4,1]
          %1 = constant() value=0 : i32[4,1]
          %2 = less(x1, %1) : bool[4,1]
          %3 = constant() value=5 : i32[4,1]
          %4 = add(x1, %3) : i32[4,1]
          %5 = where(%2, %4, x1) : i32[4,1]
          %6 = gather(x0, %0, %5) axes=[0,1] : f32[4,1]
          return %6
        }
        """,
    ),
    "a linear layer": (
        lambda x, w, b: lnp.maximum(x @ w + b, 0),
        [((2, 3), F32), ((3, 4), F32), ((4,), F32)],
        """
        graph (x0: f32[2,3], x1: f32[3,4], x2: f32[4]) {
          %0 = dot(x0, x1) contract=[1]x[0] : f32[2,4]
          %1 = broadcast(x2) axes=[1] : f32[2,4]
          %2 = add(%0, %1) : f32[2,4]
          %3 = constant() value=0.0 : f32[2,4]
          %4 = maximum(%2, %3) : f32[2,4]
          return %4
        }
        """,
    ),
    "a small power is products": (
        lambda x: x**3 + x**-2 + x**0.5,
        [((), F32)],
        """
        graph (x0: f32[]) {
          %0 = multiply(x0, x0) : f32[]
          %1 = multiply(x0, %0) : f32[]
          %2 = constant() value=1.0 : f32[]
          %3 = divide(%2, x0) : f32[]
          %4 = multiply(%3, %3) : f32[]
          %5 = add(%1, %4) : f32[]
          %6 = sqrt(x0) : f32[]
          %7 = add(%5, %6) : f32[]
          return %7
        }
        """,
    ),
    "variance": (
        lambda x: lnp.var(x, axis=-1),
        [((2, 3), F32)],
        """
        graph (x0: f32[2,3]) {
          %0 = sum(x0) axes=[1] : f32[2]
          %1 = constant() value=3.0 : f32[2]
          %2 = divide(%0, %1) : f32[2]
          %3 = broadcast(%2) axes=[0] : f32[2,3]
          %4 = subtract(x0, %3) : f32[2,3]
          %5 = multiply(%4, %4) : f32[2,3]
          %6 = sum(%5) axes=[1] : f32[2]
          %7 = constant() value=3.0 : f32[2]
          %8 = divide(%6, %7) : f32[2]
          return %8
        }
        """,
    ),
    "one hot": (
        lambda x: nn.one_hot(x, 4),
        [((3,), I32)],
        """
        graph (x0: i32[3]) {
          %0 = broadcast(x0) axes=[0] : i32[3,4]
          %1 = iota() axis=1 : i32[3,4]
          %2 = equal(%0, %1) : bool[3,4]
          %3 = cast(%2) : f32[3,4]
          return %3
        }
        """,
    ),
    "a scalar condition": (
        lambda x: lnp.where(True, x, 0),
        [((3,), F32)],
        """
        graph (x0: f32[3]) {
          %0 = constant() value=true : bool[3]
          %1 = constant() value=0.0 : f32[3]
          %2 = where(%0, x0, %1) : f32[3]
          return %2
        }
        """,
    ),
    "a cast comes before a broadcast": (
        lambda x, i: x + i,
        [((2, 3), F32), ((3,), I32)],
        """
        graph (x0: f32[2,3], x1: i32[3]) {
          %0 = cast(x1) : f32[3]
          %1 = broadcast(%0) axes=[1] : f32[2,3]
          %2 = add(x0, %1) : f32[2,3]
          return %2
        }
        """,
    ),
}
NOTHING: list[Callable[[Any], Any]] = [
    lambda x: x.reshape(2, 3),
    lambda x: x[...],
    lambda x: x[:, :],
    lambda x: x.transpose(0, 1),
    lambda x: x.astype(F32),
    lambda x: lnp.broadcast_to(x, (2, 3)),
    lambda x: lnp.squeeze(x),
    lambda x: lnp.flip(x, ()),
    lambda x: lnp.roll(x, 3, 1),
    lambda x: lnp.tile(x, 1),
    lambda x: lnp.concatenate([x]),
    lambda x: lnp.sum(x, ()),
    lambda x: lnp.asarray(x, F32),
    lambda x: x**1,
    lambda x: +x,
    lambda x: lnp.einsum("ij->ij", x),
    lambda x: lnp.pad(x, 0),
]


def like(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return np.zeros(shape, dtype)


@pytest.mark.parametrize("name", EXPECTED)
def test_graphs(name: str) -> None:
    function, inputs, text = EXPECTED[name]
    assert str(traced(function, *(like(*one) for one in inputs))) == dedent(text).strip()


@pytest.mark.parametrize("place", range(len(NOTHING)))
def test_what_changes_nothing_records_nothing(place: int) -> None:
    assert traced(NOTHING[place], like((2, 3), F32)).nodes == ()


def test_nodes_know_the_line_they_come_from() -> None:
    graph = traced(lambda x: x * 2, like((3,), F32))
    assert graph.outputs[0].location is not None and "test_graphs.py:" in graph.outputs[0].location
