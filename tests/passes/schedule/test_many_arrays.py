"""Programs of thousands of arrays: every stage takes time that grows as they do."""
from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.plan.profile import CPU_DRIVER
from lavax.ir.graph import Graph, input_node, make_node
from lavax.ir.types import TensorType, float32
from lavax.passes.fuse.extract import Piece
from lavax.passes.kernels.kernel import Domain, Kernel
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.schedule.wide_values import wide_values
from lavax.tracer.compiled.collection import without_collection


def _sorted(arrays: Sequence[Any]) -> list[Any]:
    return [lnp.sort(array) for array in arrays]


def _sliced(arrays: Sequence[Any]) -> list[Any]:
    whole = lnp.concatenate(arrays)
    return [whole[8 * number : 8 * number + 8] * 2 for number in range(len(arrays))]


def _gradients(arrays: Sequence[Any]) -> Any:
    return lx.grad(lambda arrays: lnp.sum(lnp.concatenate([lnp.sin(array) for array in arrays]) ** 2))(arrays)


def _seconds(function: Callable[[Sequence[Any]], Any], count: int, to_shaders: bool) -> float:
    kinds = [lx.ShapeDtype((8,), "float32")] * count
    start = time.process_time()
    with without_collection:  # as when a program is made: it would go over all that lives, again and again
        graph = lx.compile(function).lower(kinds)._parts.graph
        if to_shaders:
            emit_program(schedule(prepare(graph), tuple(range(count))), CPU_DRIVER)
    return time.process_time() - start


@pytest.mark.parametrize(("function", "to_shaders"), [(_sorted, True), (_sliced, False), (_gradients, False)])
def test_time_grows_as_the_arrays_do(function: Callable[[Sequence[Any]], Any], to_shaders: bool) -> None:
    """Four times as many take some four times as long."""
    _seconds(function, 100, to_shaders)
    few, many = (min(_seconds(function, count, to_shaders) for _ in range(2)) for count in (500, 2000))
    assert many < 6.5 * few


def test_wide_values_are_found_in_a_time_that_grows_as_they_do() -> None:
    kernel = Kernel("map", Graph((), (), ()), Domain((), (), (), ()), {})

    def seconds(count: int) -> float:
        first = [input_node(f"x{number}", TensorType((1 << 14,), float32)) for number in range(count)]
        wide = [make_node("negate", [node]) for node in first]
        last = [make_node("sin", [node]) for node in wide]
        pairs = (*zip(first, wide, strict=True), *zip(wide, last, strict=True))
        pieces = [Piece("map", (read,), (node,), (node,), lambda: kernel) for read, node in pairs]
        start = time.process_time()
        with without_collection:  # as when a program is made
            assert wide_values(pieces, dict.fromkeys(wide, 0), lambda node, held: None, 2.0) == {}
        return time.process_time() - start

    seconds(100)
    assert min(seconds(16000), seconds(16000)) < 8 * min(seconds(4000), seconds(4000))
