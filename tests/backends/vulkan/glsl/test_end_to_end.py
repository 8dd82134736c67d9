"""An element of arrays that lie end to end is one load on GPUs, from the array that has it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.plan.profile import GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from tests.backends.vulkan.run.execution import assert_agrees, backend_with

Function = Callable[..., object]
rng = np.random.default_rng(4)


def _wide(x: Any) -> Any:
    return x.astype("float32")


def _standardized(*parts: object) -> object:
    """Channels last, less their means, over their deviations; each part is joined to all before it."""
    x = _wide(reduce(lambda joined, part: lnp.concatenate([joined, part], -1), parts))
    x = x - lnp.mean(x, (0, 1), keepdims=True)
    return x / lnp.sqrt(lnp.mean(x * x, (0, 1), keepdims=True) + 1e-5)


def _sums(*parts: object) -> object:
    return lnp.sum(_wide(lnp.concatenate(parts, -1)), (0, 1))


def _of_other_order(first: object, *parts: object) -> object:
    """The first part has channels first."""
    return _standardized(lnp.transpose(first, (1, 2, 0)), *parts)


def _sliced(*parts: object) -> object:
    return lnp.tanh(_wide(lnp.concatenate(parts, -1)[:, 1:, 4:-8]))


def _nested(first: object, second: object, *parts: object) -> object:
    return lnp.tanh(_wide(lnp.concatenate([first, lnp.concatenate([second, *parts], -1), first], -1)))


def _across(*parts: object) -> object:
    """Along the first axis of what is read with the last one first."""
    joined = lnp.concatenate([lnp.transpose(part, (2, 0, 1)) for part in parts])
    return lnp.tanh(_wide(lnp.transpose(joined, (1, 2, 0))))


def _along_rows(*parts: object) -> object:
    return lnp.sum(_wide(lnp.concatenate(parts, -1)), -1)


def _reversed(*parts: object) -> object:
    return lnp.tanh(_wide(lnp.concatenate([part[:, ::-1] for part in parts], -1)))


def _turned_and_added(*parts: object) -> object:
    """Eight elements, of which the second half is read from its end on: all places are numbers."""
    joined = _wide(lnp.concatenate(parts))
    return joined[:4] + joined[:3:-1]


def _two_axes(first: object, second: object, third: object) -> object:
    """Parts that are parts along another axis."""
    return lnp.tanh(_wide(lnp.concatenate([lnp.concatenate([first, second], 0), third], 1)))


def _repeated(first: object, second: object, third: object) -> object:
    """Parts that have one element along the axis, again and again."""
    first, third = lnp.broadcast_to(first, (5, 6, 8)), lnp.broadcast_to(third, (5, 6, 3))
    return lnp.tanh(_wide(lnp.concatenate([first, second, third], -1)))


def _of_heads(*heads: object) -> object:
    """Sums over tokens of arrays [h,t,d] whose heads stand side by side, joined."""
    joined = [lnp.transpose(each, (1, 0, 2)).reshape(each.shape[1], -1) for each in heads]
    return lnp.sum(_wide(lnp.concatenate(joined, -1)), 0)


FUNCTIONS: dict[str, tuple[Function, tuple[tuple[int, ...], ...]]] = {
    "channels": (_standardized, ((9, 16, 8), (9, 16, 4), (9, 16, 20))),
    "uneven channels": (_standardized, ((9, 16, 7), (9, 16, 4), (9, 16, 21))),
    "many channels": (_standardized, ((4, 8, 64), *((4, 8, 32),) * 13)),
    "sums": (_sums, ((9, 16, 8), (9, 16, 24))),
    "another order": (_of_other_order, ((32, 9, 16), (9, 16, 8), (9, 16, 8))),
    "heads": (_of_heads, ((2, 40, 16), (3, 40, 16), (1, 40, 16))),
    "heads of other lengths": (_of_heads, ((2, 40, 16), (3, 40, 8), (1, 40, 4))),
    "slices": (_sliced, ((5, 6, 8), (5, 6, 12), (5, 6, 4), (5, 6, 8))),
    "nested": (_nested, ((5, 6, 8), (5, 6, 12), (5, 6, 4))),
    "across": (_across, ((6, 8, 12), (6, 8, 4))),
    "along rows": (_along_rows, ((40, 3, 32), (40, 3, 64))),
    "along uneven rows": (_along_rows, ((40, 3, 31), (40, 3, 66))),
    "reversed": (_reversed, ((6, 5, 8), (6, 5, 8))),
    "turned and added": (_turned_and_added, ((4,), (4,))),
    "repeated": (_repeated, ((5, 6, 1), (5, 6, 4), (5, 1, 1))),
    "two axes": (_two_axes, ((2, 8, 8), (3, 8, 8), (5, 4, 8))),
}


def _graph(function: Function, shapes: Sequence[tuple[int, ...]], dtype: str) -> Graph:
    return lx.trace(function)(*(lx.ShapeDtypeStruct(shape, dtype) for shape in shapes))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int32", "int8", "bool"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers_are_the_interpreters(name: str, dtype: str) -> None:
    graph = _graph(*FUNCTIONS[name], dtype)
    arrays = [node.dtype.rounded(30 * rng.normal(size=node.shape)) for node in graph.inputs]
    assert_agrees(graph, arrays, device=backend_with(kind="gpu"), ulps=32)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers_are_the_interpreters_where_addresses_are_pairs_of_words(name: str) -> None:
    graph = _graph(*FUNCTIONS[name], "float32")
    arrays = [30 * rng.normal(size=node.shape).astype(np.float32) for node in graph.inputs]
    assert_agrees(graph, arrays, device=backend_with(kind="gpu", int64=False), ulps=32)


def _source(graph: Graph) -> str:
    target = target_of(GENERIC_GPU, 1 << 34, 1 << 32)
    program = schedule(prepare(graph, target), target=target)
    (dispatch,) = emit_program(program, GENERIC_GPU).dispatches
    return dispatch.shader.source


@pytest.mark.parametrize("parts", [2, 8, 12])
def test_channels_are_read_once_into_registers_whatever_the_number_of_parts(parts: int) -> None:
    source = _source(_graph(_standardized, [(8, 16, 32)] * parts, "float32"))
    loads = re.findall(r"F32x4\(\w+\)\.data\[.*?\]\)?;", source)
    assert "for (" not in source
    assert len(loads) == len(re.findall(r"int k\d* = ", source))


def test_sums_over_tokens_read_neighbours_of_heads() -> None:
    source = _source(_graph(_of_heads, ((16, 256, 64),) * 3, "float32"))
    assert re.findall(r"F32x4\(\w+\)\.data", source) and not re.findall(r"F32\(\w+\)\.data\[[^]]*\]\)", source)
    assert "either(" in source


def test_positions_of_turned_parts_are_never_negative() -> None:
    """The part of an index that falls begins at its largest: SPIR-V gives negative ones no meaning."""
    source = _source(_graph(*FUNCTIONS["reversed"], "float32"))
    turned = [index for index in re.findall(r"data\[\((.*?)\)\]", source) if " * -2" in index]
    assert turned and all(index.endswith(" + 8") for index in turned), turned
