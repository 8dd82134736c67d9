"""Products of a vector in recorded turns are products of one row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph, interpret, parse
from lavax.passes.build.inline import inline_calls
from lavax.passes.schedule.vectors_as_rows import with_vectors_as_rows
from lavax.passes.simplify import simplify
from lavax.passes.target.target import Target

WIDE_GPU = replace(GENERIC_GPU, float16=True, int8=True, int16=True, storage_8bit=True, storage_16bit=True)
random = np.random.default_rng(6)


def target(profile: Any = WIDE_GPU) -> Target:
    return target_of(profile, 1 << 34, 1 << 32)


def vectors(h: Any, w: Any, rows: Any) -> Any:
    """A state without an axis of rows, and what is computed of the product in several forms."""

    def turn(h: Any, row: Any) -> Any:
        both = lnp.pad(w @ (h * 2), (1, 0)) + row
        first, second = both[: h.shape[0]], both[1 : 1 + h.shape[0]]
        after = lnp.tanh(first * second + 0.5)
        return after, (lnp.concatenate([first, after]), lnp.reshape(w @ after, (2, -1)), row)

    return lx.scan(turn, h, rows)


def traced(width: int) -> tuple[Graph, list[np.ndarray]]:
    shapes = (width,), (width, width), (5, width + 1)
    arrays = [random.normal(size=shape, scale=0.3).astype("f") for shape in shapes]
    return simplify(inline_calls(lx.trace(vectors)(*arrays))), arrays


def products_of(graph: Graph) -> list[tuple[int, ...]]:
    (scan,) = (node for node in graph.nodes if node.op == "scan")
    return [node.shape for node in scan.attrs["body"].nodes if node.op == "dot"]


def test_products_of_vectors_have_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lavax.backends.vulkan.target.slices_of", lambda scan, profile: 0)
    graph, arrays = traced(64)
    found = with_vectors_as_rows(graph, target().loops)
    assert products_of(graph) == [(64,)] * 2 and products_of(found) == [(1, 64)] * 2
    assert [output.type for output in found.outputs] == [output.type for output in graph.outputs]
    for got, want in zip(interpret(found, *arrays), interpret(graph, *arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize(("width", "profile"), [(64, CPU_DRIVER), (30, WIDE_GPU)])
def test_other_products_stay(width: int, profile: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU driver has no kernels of gates, and these have fours of columns."""
    monkeypatch.setattr("lavax.backends.vulkan.target.slices_of", lambda scan, profile: 0)
    graph, _ = traced(width)
    assert products_of(with_vectors_as_rows(graph, target(profile).loops)) == [(width,)] * 2


def test_loops_that_workgroups_run_stay() -> None:
    graph, _ = traced(64)
    slices = replace(target().loops, slices=lambda scan: 1)
    assert products_of(with_vectors_as_rows(graph, slices)) == [(64,)] * 2


def test_products_that_sum_nothing_stay() -> None:
    graph = parse("""
        graph (h: f32[64], rows: f32[9,3,5]) {
          %0 = scan(h, rows) carries=1 sequences=1 length=9 reverse=false body=graph (x0: f32[64], x1: f32[3,5]) {
            %0 = tanh(x0) : f32[64]
            %1 = dot(%0, x1) contract=[]x[] : f32[64,3,5]
            return %0, %1
          } : (f32[64], f32[9,64,3,5])
          %1 = item(%0) index=1 : f32[9,64,3,5]
          return %1
        }
        """)
    for profile in (CPU_DRIVER, WIDE_GPU):
        assert products_of(with_vectors_as_rows(graph, target(profile).loops)) == [(64, 3, 5)]
