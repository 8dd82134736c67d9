"""Loops on top of each other take their turns together, if each goes through rows of those before it alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph, Node, interpret
from lavax.passes.build.inline import inline_calls
from lavax.passes.kernels.commands import Command, Repeat
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.kernels.kernel import KernelStep
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.rotated_turns import halves_of
from lavax.passes.schedule.schedule import schedule, with_results_apart
from lavax.passes.schedule.small_steps import COUNTER
from lavax.passes.schedule.touched import ARENA, Memory, Touched
from lavax.passes.schedule.wavefront import turns_of_block
from lavax.passes.simplify import simplify
from tests.sweeps import each_value

WIDE_GPU = replace(GENERIC_GPU, float16=True, int8=True, int16=True, storage_8bit=True, storage_16bit=True)
GPU = target_of(WIDE_GPU, 1 << 34, 1 << 32)
CPU = target_of(CPU_DRIVER, 1 << 34, 1 << 32)
ROWS, WIDTH = 3, 260  # no workgroup runs so wide a loop slice by slice, and a product is one of gates
random = np.random.default_rng(3)
WEIGHTS = [random.normal(size=(WIDTH, WIDTH), scale=WIDTH**-0.5).astype("f") for _ in range(6)]


def rows(length: int) -> np.ndarray:
    return random.normal(size=(length, ROWS, WIDTH)).astype("f")


def layer(x: Any, w: Any, *, reverse: bool = False, start: Any = None) -> Any:
    """A layer's last state, and all of them."""

    def turn(h: Any, row: Any) -> Any:
        after = lnp.tanh(row + h @ w)
        return after, after

    return lx.scan(turn, lnp.zeros((ROWS, WIDTH)) if start is None else start, x, reverse=reverse)


def two(x: Any, *w: Any) -> Any:
    return layer(layer(x, w[0])[1] @ w[1], w[2])[1]


def backwards(x: Any, *w: Any) -> Any:
    return layer(layer(x, w[0], reverse=True)[1] @ w[1], w[2], reverse=True)


def three(x: Any, *w: Any) -> Any:
    """Layers that each read all those below."""
    first = layer(x, w[0])[1]
    second = layer(first @ w[1], w[2])[1]
    return layer(first + second @ w[3] + x, w[4]), second


def straight(x: Any, *w: Any) -> Any:
    """Nothing lies between the loops."""
    return layer(layer(x, w[0])[1], w[1])


def all_read(x: Any, *w: Any) -> Any:
    """What lies between is read elsewhere, too."""
    last, first = layer(x, w[0])
    between = first @ w[1]
    return layer(lnp.sin(between) * x + w[5][0, 0], w[2])[1], between * 2, first[::-1], last


def loss(x: Any, *w: Any) -> Any:
    return lnp.sum(lnp.square(two(x, *w) - x[::-1]))


def gradients(x: Any, *w: Any) -> Any:
    """In the middle of a graph."""
    found = lx.grad(loss, argnums=(0, 1, 2, 3))(lnp.sin(x), *w)
    return tuple(2 * each for each in found)


def of_three(x: Any, *w: Any) -> Any:
    return lx.grad(lambda x, *w: lnp.sum(lnp.square(three(x, *w)[0][1])), argnums=(0, 1, 2, 5))(x, *w)


def through_reshapes(x: Any, *w: Any) -> Any:
    """Turns and rows in one axis, columns in two, and cut, joined and padded ones."""
    flat = lnp.reshape(layer(x, w[0])[1], (-1, WIDTH)) @ w[1]
    heads = lnp.transpose(lnp.reshape(flat, (*x.shape[:2], 4, WIDTH // 4)), (0, 1, 3, 2))
    normed = heads - lnp.mean(heads, axis=-1, keepdims=True)
    both = lnp.concatenate([normed, lnp.reshape(flat, normed.shape)], axis=2)
    padded = lnp.pad(both[..., 1:3], ((0, 0), (0, 0), (0, 0), (1, 1)))
    return layer(lnp.reshape(padded, (*x.shape[:2], -1))[..., :WIDTH], w[2])


def lstm(x: Any, w: Any) -> Any:
    """A cell with gates, whose gradient is recorded from product to product."""
    whole = lnp.concatenate([w, w.T, w[::-1], w[:, ::-1]], axis=1)

    def turn(state: Any, row: Any) -> Any:
        h, c = state
        i, f, g, o = lnp.split(lnp.tile(row, 4) + h @ whole, 4, axis=-1)
        c = nn.sigmoid(f) * c + nn.sigmoid(i) * lnp.tanh(g)
        h = nn.sigmoid(o) * lnp.tanh(c)
        return (h, c), h

    return lx.scan(turn, (lnp.zeros((ROWS, WIDTH)), lnp.ones((ROWS, WIDTH))), x)[1]


def of_cells(x: Any, *w: Any) -> Any:
    def loss(x: Any, *w: Any) -> Any:
        return lnp.sum(lnp.sin(lstm(lstm(x, w[0]) @ w[1] + x, w[2])) * x)

    return lx.grad(loss, argnums=(0, 1, 2, 3))(x, *w)


JOINED: dict[str, tuple[Callable[..., Any], int]] = {  # each with its number of wavefronts
    "two": (two, 1),
    "backwards": (backwards, 1),
    "three": (three, 1),
    "straight": (straight, 1),
    "all read": (all_read, 1),
    "gradients": (gradients, 2),
    "gradients of three": (of_three, 2),
    "gradients of cells": (of_cells, 2),
    "through reshapes": (through_reshapes, 1),
}
APART: dict[str, Callable[..., Any]] = {
    "other directions": lambda x, *w: layer(layer(x, w[0])[1] @ w[1], w[2], reverse=True),
    "other lengths": lambda x, *w: layer(layer(x, w[0])[1][:-1] @ w[1], w[2]),
    "rows in another order": lambda x, *w: layer(layer(x, w[0])[1][::-1] @ w[1], w[2]),
    "sums of rows": lambda x, *w: layer(lnp.cumsum(layer(x, w[0])[1], axis=0), w[2]),
    "other axes": lambda x, *w: layer(lnp.reshape(lnp.swapaxes(layer(x, w[0])[1], 0, 1), x.shape), w[1]),
    "the last state": lambda x, *w: layer(x, w[1], start=layer(x, w[0])[0]),
    "the last state in each row": lambda x, *w: layer(layer(x, w[0])[0] + x, w[1]),
    "a number of the last state": lambda x, *w: layer(x * lnp.max(layer(x, w[0])[0]), w[1]),
    "products with the last state": lambda x, *w: layer(x @ layer(x, w[0])[0].T @ w[1][:ROWS], w[1]),
    "a matrix of all rows": lambda x, *w: layer(x, lnp.mean(layer(x, w[0])[1], axis=0).T @ w[1][:ROWS]),
    "rows times rows": lambda x, *w: layer(x @ lnp.mean(layer(x, w[0])[1], axis=0).T @ w[1][:ROWS], w[1]),
    "a loop between": lambda x, *w: layer(x + lx.scan(lambda c, r: (c + r, c), x[0], layer(x, w[0])[1])[1], w[1]),
    "no products": lambda x, *w: lx.scan(lambda c, r: (c + r, c * r), x[0], layer(x, w[0])[1]),
}


def prepared_graph(function: Callable[..., Any], arrays: Sequence[Any], target: Any = GPU) -> Graph:
    return with_results_apart(prepare(simplify(inline_calls(lx.trace(function)(*arrays))), target), {})


def is_rotated(program: KernelProgram) -> bool:
    """Whether a loop is recorded from product to product."""
    wavefronts = [node for node in program.graph.nodes if node.op == "wavefront"]
    scans = [node for each in wavefronts for node in each.attrs["body"].nodes if node.op == "scan"]
    return any(halves_of(scan, GPU.loops) is not None for scan in scans)


def loops_of(program: KernelProgram) -> list[str]:
    return [node.op for node in program.graph.nodes if node.op in ("wavefront", "scan")]


@each_value(name=list(JOINED), length=[32, 47, 70])
def test_loops_on_top_of_each_other_take_their_turns_together(name: str, length: int) -> None:
    function, count = JOINED[name]
    arrays = [rows(length), *WEIGHTS]
    graph = prepared_graph(function, arrays)
    program = schedule(graph, target=GPU)
    assert loops_of(program) == ["wavefront"] * count
    assert is_rotated(program) is name.startswith("gradients")
    NoRaces(program).run(program.steps)
    expected = interpret(graph, *arrays)
    for found in (interpret_kernels(program, *arrays), interpret(program.graph, *arrays)):
        for got, want in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * np.abs(want).max())


@pytest.mark.parametrize("name", APART)
def test_other_loops_stay_apart(name: str) -> None:
    arrays = [rows(40), *WEIGHTS]
    graph = prepared_graph(APART[name], arrays)
    program = schedule(graph, target=GPU)
    assert "wavefront" not in loops_of(program)
    for got, want in zip(interpret_kernels(program, *arrays), interpret(graph, *arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-9 * np.abs(want).max())


def test_few_turns_and_cpu_drivers_have_no_wavefronts() -> None:
    for length, target in ((31, GPU), (70, CPU)):
        program = schedule(prepared_graph(two, [rows(length), *WEIGHTS], target), target=target)
        assert "wavefront" not in loops_of(program)


@pytest.mark.parametrize(("length", "turns"), [(31, 0), (32, 8), (63, 8), (64, 16), (1000, 16)])
def test_blocks_have_fewer_turns_if_loops_are_short(length: int, turns: int) -> None:
    assert turns_of_block(length, GPU.loops) == turns


@pytest.mark.parametrize(("name", "loops"), [("two", 2), ("three", 3)])
def test_two_loops_wait_a_block_longer_than_one(name: str, loops: int) -> None:
    """A turn waits once, and so do what begins a loop and what lies before each block."""
    length, block = 128, 16
    program = schedule(prepared_graph(JOINED[name][0], [rows(length), *WEIGHTS]), target=GPU)
    waits = NoRaces(program).run(program.steps)
    assert waits <= length + (loops - 1) * block + length // block + 8 * loops


def test_at_most_four_loops_are_together() -> None:
    def six(x: Any, *w: Any) -> Any:
        for each in w:
            x = layer(x, each)[1]
        return x

    arrays = [rows(40), *WEIGHTS]
    graph = prepared_graph(six, arrays)
    program = schedule(graph, target=GPU)
    assert loops_of(program) == ["wavefront", "wavefront"]
    for got, want in zip(interpret_kernels(program, *arrays), interpret(graph, *arrays), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-12)


class NoRaces:
    """Goes through a program's commands, and finds what touches memory that others write without a barrier between."""

    def __init__(self, program: KernelProgram) -> None:
        self.program, self.numbers = program, dict[str, int]()
        self.read, self.written = Touched(), Touched()

    def run(self, commands: Sequence[Command]) -> int:
        """How many barriers there are."""
        waits = 0
        for command in commands:
            if isinstance(command, Repeat):
                waits += sum(self.run(command.commands) for _ in range(command.count))
                continue
            assert isinstance(command, KernelStep)
            waits += command.barrier
            self.step(command)
        return waits

    def step(self, step: KernelStep) -> None:
        if step.barrier:
            self.read, self.written = Touched(), Touched()
        reads, writes = list[Memory](), list[Memory]()
        for kernel, names, results in zip(step.kernels, step.reads, step.writes, strict=True):
            reads += [self.memory(name, node) for name, node in zip(names, kernel.graph.inputs, strict=True)]
            writes += [self.memory(name, node) for name, node in zip(results, kernel.graph.outputs, strict=True)]
        assert not self.written.meets(reads), step.name
        assert not self.written.meets(writes), step.name
        assert not self.read.meets(writes), step.name
        self.read.add(reads)
        self.written.add(writes)
        for kernel, names, results in zip(step.kernels, step.reads, step.writes, strict=True):
            if all(node.type == COUNTER for node in (*kernel.graph.inputs, *kernel.graph.outputs)):
                values = interpret(kernel.graph, *(np.int32(self.numbers.get(name, 0)) for name in names))
                self.numbers |= {name: int(value) for name, value in zip(results, values, strict=True)}

    def memory(self, name: str, node: Node) -> Memory:
        offset = 0
        while name in self.program.views:
            view = self.program.views[name]
            offset += self.numbers[view.counter] * view.stride
            name = view.buffer
        assert 0 <= offset <= self.program.sizes[name] - node.type.nbytes, name
        place = self.program.offsets.get(name)
        start = offset + (place or 0)
        where = ARENA if place is not None else self.program.donors.get(name, name)
        return where, start, start + max(node.type.nbytes, 1)
