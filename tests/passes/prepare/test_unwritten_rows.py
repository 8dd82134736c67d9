"""Attention to a cache with a new row: the same numbers, and nothing waits for the write."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.backends.vulkan.plan.profile import GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph, interpret
from lavax.ir.graph import graph_of
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.decompose.unwritten_rows import read_before_writing
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import remove_stop_gradient

KEYS, HEADS = 40, 2
rng = np.random.default_rng(7)


def _drawn(*shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype("f")


def _set(held: Any, row: Any, at: Any) -> Any:
    return held.at[lnp.arange(held.shape[0])[:, None], at[:, None]].set(row)


# Writes that a reader can tell, each with an array that they go to, its rows and places.
TOLD: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "one row": (lambda x, row, at: x.at[at].set(row), (_drawn(6, 5), _drawn(5), np.int32(4))),
    "an element": (lambda x, row, at: x.at[at].set(row), (_drawn(6), np.float32(2), np.int32(3))),
    "counted from the end": (lambda x, row, at: x.at[at].set(row), (_drawn(6, 5), _drawn(5), np.int32(-2))),
    "outside": (lambda x, row, at: x.at[at].set(row), (_drawn(6, 5), _drawn(5), np.int32(6))),
    "along another axis": (lambda x, row, at: x.at[:, at].set(row), (_drawn(6, 5), _drawn(6), np.int32(1))),
    "one for each entry": (_set, (_drawn(3, 6, 5), _drawn(3, 1, 5), np.array([5, 0, 9], np.int32))),
    "a batch of one": (_set, (_drawn(1, 6, 5), _drawn(1, 1, 5), np.array([2], np.int32))),
    "moved after": (
        lambda x, row, at: lnp.swapaxes(lnp.broadcast_to(x.at[at].set(row), (2, 6, 5)), 0, 2)[1:],
        (_drawn(6, 5), _drawn(5), np.int32(0)),
    ),
}
NOT_TOLD: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "two rows": (lambda x, row, at: x.at[at].set(row), (_drawn(6, 5), _drawn(2, 5), np.array([4, 1], np.int32))),
    "added": (lambda x, row, at: x.at[at].add(row), (_drawn(6, 5), _drawn(5), np.int32(4))),
    "two places": (lambda x, row, at: x.at[at, at].set(row), (_drawn(6, 5), np.float32(1), np.int32(4))),
    "entries in an order of their own": (
        lambda x, row, at: x.at[at[:, None], at[:, None]].set(row),
        (_drawn(3, 6, 5), _drawn(3, 1, 5), np.array([1, 0, 1], np.int32)),
    ),
}


def _rewritten(graph: Graph) -> Graph:
    return graph_of(graph.inputs, [read_before_writing(output) for output in graph.outputs])


@pytest.mark.parametrize("name", TOLD)
def test_a_reader_tells_the_new_row(name: str) -> None:
    function, arrays = TOLD[name]
    graph = remove_stop_gradient(lx.trace(function)(*arrays))
    found = _rewritten(graph)
    assert not any(node.op == "scatter_set" for node in found.nodes)
    for got, want in zip(interpret(found, *arrays), interpret(graph, *arrays), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", NOT_TOLD)
def test_other_writes_come_first(name: str) -> None:
    graph = remove_stop_gradient(lx.trace(NOT_TOLD[name][0])(*NOT_TOLD[name][1]))
    assert str(_rewritten(graph)) == str(graph)


def _attend(query: Any, key: Any, value: Any, cache: Any, lengths: Any) -> Any:
    cache = cache.append(lnp.sin(key), value, lengths)
    return cache.attend(query, lengths), cache


def _decoding(batch: int, head: int, dtype: Any) -> tuple[Graph, list[np.ndarray]]:
    news = [_drawn(batch, 1, heads, head).astype(dtype) for heads in (2 * HEADS, HEADS, HEADS)]
    cache = nn.KeyValueCache(*(_drawn(batch, KEYS, HEADS, head).astype(dtype) for _ in range(2)))
    lengths = np.arange(batch, dtype=np.int32) + KEYS - 1  # the second entry has no room
    graph = remove_stop_gradient(lx.trace(_attend)(*news, cache, lengths))
    return graph, [*news, cache.keys, cache.values, lengths]


def _program(graph: Graph) -> KernelProgram:
    target = target_of(GENERIC_GPU, 1 << 34, 1 << 32)
    return schedule(prepare(graph, target), (3, 4), target=target)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(("head", "kernels"), [(8, 1), (12, 2)], ids=["in one kernel", "by rows"])
def test_attention_does_not_wait_for_the_write(head: int, kernels: int, batch: int, dtype: str) -> None:
    graph, arrays = _decoding(batch, head, lnp.bfloat16 if dtype == "bfloat16" else np.float32)
    program = _program(graph)
    tolerance = 1e-5 if dtype == "float32" else 1 / 64
    found, expected = interpret_kernels(program, *arrays), interpret(graph, *arrays)
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got.astype("f"), want.astype("f"), rtol=tolerance, atol=tolerance)
    computing = [step for step in program.steps if step.kernel.graph.outputs[0].op != "scatter_set"]
    reading = [step for step in computing if step.kernel.kind in ("row", "routine")]
    assert len(reading) == kernels and all(name not in program.results for step in reading for name in step.reads[0])
    assert set(program.donors) == {program.results[1], program.results[2]}  # they are updated in place
