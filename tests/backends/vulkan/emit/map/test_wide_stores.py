"""Maps of CPU drivers that store several vectors at once: which do, and that every element is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.plan.profile import CPU_DRIVER
from lavax.ir import Graph, interpret
from lavax.passes.simplify import simplify
from tests.backends.vulkan.emit.emission import dispatch_of
from tests.backends.vulkan.run.execution import run

RANDOM = np.random.default_rng(7)

# What maps read: vectors, neighbours anywhere, rows and columns, places, nothing at all; several results.
MAPS: dict[str, Callable[[Any], Any]] = {
    "vectors": lambda x: x * 3 - 1,
    "neighbours": lambda x: x[1:] - x[:-1] * 2,
    "backwards": lambda x: x[::-1] + x,
    "rows and columns": lambda x: x[:72, None] - x[None, :72] * 2,
    "three axes": lambda x: x[:12, None, None] + 2 * x[None, :20, None] + 3 * x[None, None, :24],
    "places": lambda x: x[(lnp.arange(x.shape[0]) * 7) % 11] + x,
    "few places before others": lambda x: lnp.concatenate([x[x[:3].astype("int32") % 5], x * 2]),
    "truth values": lambda x: x > 4,
    "two results": lambda x: (x + 1, x * 2),
    "few of many": lambda x: x[: x.shape[0] // 2 : 2] + x[1],
    "very few of many": lambda x: x[:21] * x[1],
    "two results of few": lambda x: (x[:1502] * 2, x[1:1503] - 1),
    "results of two widths": lambda x: (x + 1, x.astype("int8")),
}


def _graph(name: str, count: int, dtype: str) -> Graph:
    return simplify(lx.trace(MAPS[name])(lx.ShapeDtype((count,), dtype)))


@pytest.mark.parametrize("count", [5184, 5189, 6000])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("name", MAPS)
def test_every_element_is_right(name: str, dtype: str, count: int) -> None:
    graph = _graph(name, count, dtype)
    x = RANDOM.integers(0, 10, count).astype(dtype)
    for got, want in zip(run(graph, [x]), interpret(graph, x), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["vectors", "neighbours", "rows and columns", "places", "truth values"])
def test_eight_words_are_one_store(name: str) -> None:
    """Whatever the number of elements, as those behind the last eight are computed by themselves."""
    for count in (5184, 5189):
        source = dispatch_of(_graph(name, count, "float32"), CPU_DRIVER).shader.source
        assert "eights1.data[(w1 >> 1)" in source and "stores" not in source


def test_what_is_stored_by_vectors() -> None:
    """Results of two widths, small ones, and all where shaders have no integers of 64 bits."""
    without = replace(CPU_DRIVER, int64=False)
    cases = (
        ("results of two widths", 5184, CPU_DRIVER), ("vectors", 2048, CPU_DRIVER), ("vectors", 5184, without),
    )  # fmt: skip
    for name, count, profile in cases:
        assert "eights" not in dispatch_of(_graph(name, count, "float32"), profile).shader.source
