"""Scans whose rows never meet: workgroups run all turns for their own rows. On the device, against the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.compile.shader_compiler import compile_glsl
from lavax.backends.vulkan.emit.loop import slices, slices_choice
from lavax.backends.vulkan.emit.loop.slices_choice import slices_of
from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph, Node, interpret, parse
from lavax.ir.types import DTYPES
from lavax.passes.kernels.commands import steps_of
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import simplify
from tests.backends.vulkan.run.execution import backend_with, run

random = np.random.default_rng(5)


def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
    return random.normal(size=shape, scale=scale).astype("f")


H, W, ROWS = normal(3, 8), normal(8, 8, scale=0.3), normal(11, 3, 8)


def rnn(h: Any, w: Any, rows: Any, reverse: bool = False) -> Any:
    def turn(h: Any, x: Any) -> Any:
        after = lnp.tanh(h @ w + x)
        return after, after

    return lx.scan(turn, h, rows, reverse=reverse)


def lstm(h: Any, u: Any, b: Any, rows: Any) -> Any:
    def turn(state: Any, x: Any) -> Any:
        h, c = state
        i, f, g, o = lnp.split(h @ u + x @ u + b, 4, axis=1)
        c = lx.nn.sigmoid(f) * c + lx.nn.sigmoid(i) * lnp.tanh(g)
        h = lx.nn.sigmoid(o) * lnp.tanh(c)
        return (h, c), (h, c)

    return lx.scan(turn, (h, h * 0.5), rows)


def gru(h: Any, w: Any, rows: Any) -> Any:
    def turn(h: Any, x: Any) -> Any:
        z, r = lx.nn.sigmoid(h @ w + x), lx.nn.sigmoid(h @ w.T - x)
        h = (1 - z) * h + z * lnp.tanh((r * h) @ w + x)
        return h, h * 2

    return lx.scan(turn, h, rows)


def exchanged(h: Any, w: Any, rows: Any) -> Any:
    """Carries that change, are exchanged and stay; a count, which is stacked; what each row has of its own."""
    own, kept = h[:, :1] * 0.1, h * 0.2

    def turn(state: Any, x: Any) -> Any:
        a, b, k, n = state
        a, b = b + k[:, ::-1], lnp.tanh(a @ w + x * own) + n * 0.1
        return (a, b, k, n + 1), (n, b[:, 1:4], a)

    return lx.scan(turn, (h, h * 2, kept, lnp.int32(3)), rows)


def batched(h: Any, ws: Any) -> Any:
    """Each row has a matrix of its own."""
    return lx.fori_loop(0, 9, lambda i, c: lnp.tanh(lx.vmap(lambda x, w: w @ x)(c, ws)) + i * 0.1, h)


def sides(h: Any, w: Any) -> Any:
    """The rows are those of the right operand, and the product's axes are exchanged."""
    return lx.fori_loop(0, 9, lambda i, c: lnp.sin(w @ c.T).T * 0.5 + c, h)


def neighbours(h: Any, rows: Any, reverse: bool = False) -> Any:
    """No products: elements of a row meet their neighbours, and each turn a row of its own."""

    def turn(h: Any, x: Any) -> Any:
        before = lnp.pad(h, [(0, 0), (2, 0)], constant_values=-1.0)[:, :-2]
        after = lnp.tanh(h * 0.5 + before * lnp.sin(x) + lnp.roll(h, 1, axis=1))
        return after, after * x

    return lx.scan(turn, h, rows, reverse=reverse)


def loss_of_neighbours(h: Any, rows: Any) -> Any:
    last, stacked = neighbours(h, rows)
    return lnp.sum(last * lnp.sin(last)) + lnp.sum(stacked * stacked * rows)


def ctc(logits: Any, targets: Any) -> Any:
    logs = lx.nn.log_softmax(logits)
    return lx.nn.ctc_loss(logs, targets, 12 - 2 * lnp.arange(3), 2 + lnp.arange(3))


def loss(w: Any, h: Any, rows: Any) -> Any:
    last, stacked = rnn(h, w, rows)
    return lnp.sum(last * lnp.sin(last)) + lnp.sum(stacked * stacked * rows)


def loss_of_gates(u: Any, h: Any, b: Any, rows: Any) -> Any:
    (last, _), (stacked, cells) = lstm(h, u, b, rows)
    return lnp.sum(last * lnp.sin(last)) + lnp.sum(stacked * cells * rows)


def joined(h: Any, w: Any, rows: Any) -> Any:
    """What is multiplied is parts end to end, joined, and padded to where they belong, as gradients of gates are."""

    def turn(h: Any, x: Any) -> Any:
        a, b = lnp.sin(h) * x, h - x * x
        left, right = lnp.pad(a, [(0, 0), (0, 8)]) + lnp.pad(b, [(0, 0), (8, 0)]), lnp.concatenate([b * h, a], axis=1)
        return lnp.tanh((left + right * 2.0) @ w), left

    return lx.scan(turn, h, rows)


def of_two_parts(h: Any, w: Any, rows: Any) -> Any:
    """Values that are as wide as two of the parts that others end at."""

    def turn(h: Any, x: Any) -> Any:
        two = lnp.concatenate([h, h * x], axis=1) * 0.5
        whole = lnp.pad(two, [(0, 0), (8, 0)]) + lnp.concatenate([lnp.sin(x), h, x], axis=1)
        return lnp.tanh((whole + lnp.concatenate([two, x], axis=1)) @ w), h

    return lx.scan(turn, h, rows)


def unequal(h: Any, w: Any, rows: Any) -> Any:
    """Parts of two lengths, and a part that is padded with ones."""

    def turn(h: Any, x: Any) -> Any:
        whole = lnp.concatenate([h[:, :3] * x[:, 1:4], h, lnp.cos(x[:, :5])], axis=1)
        return lnp.tanh((whole + lnp.pad(h * x, [(0, 0), (0, 8)], constant_values=1.0)) @ w), h

    return lx.scan(turn, h, rows)


def at_computed_places(h: Any, w: Any, table: Any, places: Any) -> Any:
    """What follows a product is at a place that a turn's number tells."""

    def turn(h: Any, place: Any) -> Any:
        h = lnp.tanh(h @ w) * table[lnp.where(place > 2, place, place + 3)]
        return h, h[:, 0]

    return lx.scan(turn, h, places)


LOOPS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "rnn": (rnn, (H, W, ROWS)),
    "rnn in reverse": (lambda h, w, rows: rnn(h, w, rows, reverse=True), (H, W, ROWS)),
    "odd extents": (rnn, (normal(2, 5), normal(5, 5, scale=0.3), normal(9, 2, 5))),
    "a part of the sum each": (rnn, (normal(2, 12), normal(12, 12, scale=0.3), normal(10, 2, 12))),
    "lstm": (lstm, (H, normal(8, 32, scale=0.3), normal(32), ROWS)),
    "gru": (gru, (H, W, ROWS)),
    "exchanged": (exchanged, (H, W, ROWS)),
    "matrices of rows": (batched, (H, normal(3, 8, 8, scale=0.3))),
    "sides": (sides, (H, W)),
    "neighbours": (neighbours, (normal(3, 40), normal(11, 3, 40))),
    "neighbours in reverse": (lambda h, rows: neighbours(h, rows, reverse=True), (H, ROWS)),
    "gradient of neighbours": (lx.grad(loss_of_neighbours, argnums=(0, 1)), (normal(3, 40), normal(11, 3, 40))),
    "ctc": (ctc, (normal(12, 3, 6), random.integers(1, 6, (3, 4)).astype(np.int32))),
    "gradient of ctc": (lx.grad(ctc), (normal(12, 3, 6), random.integers(1, 6, (3, 4)).astype(np.int32))),
    "joined": (joined, (H, normal(16, 8, scale=0.1), ROWS)),
    "of two parts": (of_two_parts, (H, normal(24, 8, scale=0.1), ROWS)),
    "unequal": (unequal, (H, normal(16, 8, scale=0.3), ROWS)),
    "gradient of gates": (lx.grad(loss_of_gates, argnums=(0, 1)), (normal(8, 32, scale=0.3), H, normal(32), ROWS)),
    "gradient": (lx.grad(loss, argnums=(0, 1, 2)), (W, H, ROWS)),
    "at computed places": (at_computed_places, (H, W, normal(9), np.array([0, 5, 2, 8, 1, 4, 3, 2, 6], np.int32))),
}


def sums(x: Any) -> Any:
    return lx.fori_loop(0, 9, lambda i, c: c * 0.5 + lnp.sum(c, axis=0), x)


# Rows that need others, too few turns, and too much to read or to compute in each turn.
OTHERS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "sums over rows": (sums, (H,)),
    "reversed rows": (lambda h, w: lx.fori_loop(0, 9, lambda i, c: lnp.tanh(c[::-1] @ w), h), (H, W)),
    "many elements without products": (neighbours, (normal(3, 2100), normal(9, 3, 2100))),
    "few turns": (rnn, (H, W, ROWS[:2])),
    "large weights": (rnn, (normal(3, 512), normal(512, 512), normal(9, 3, 512))),
    "other numbers of rows": (
        lambda h, w: lx.fori_loop(0, 9, lambda i, c: (lnp.tanh(c[0] @ w), c[1] + lnp.sum(c[0])), (h, w)),
        (H, W),
    ),
}


def graph_of(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Graph:
    return simplify(lx.trace(function)(*arguments))


def program_of(graph: Graph) -> KernelProgram:
    target = target_of(GENERIC_GPU, 1 << 34, 1 << 32)
    return schedule(prepare(graph, target), target=target)


def slice_kernels(program: KernelProgram) -> list[Any]:
    return [step.kernel for step in steps_of(program.steps) if step.kernel.kind == "slices"]


def loop_in(graph: Graph) -> Node:
    return next(node for node in graph.nodes if node.op == "scan")


@pytest.mark.parametrize("name", LOOPS)
def test_workgroups_compute_what_the_loop_does(name: str) -> None:
    function, arguments = LOOPS[name]
    graph = graph_of(function, arguments)
    assert slice_kernels(program_of(graph))
    results = run(graph, [np.asarray(argument) for argument in arguments], device=backend_with(kind="gpu"))
    for found, wanted in zip(results, interpret(graph, *arguments), strict=True):
        scale = max(1.0, float(np.max(np.abs(wanted))))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5 * scale)


def narrow(name: str, dtype: str) -> tuple[Graph, list[np.ndarray]]:
    """A loop's graph over numbers of 16 bits, and these in float32."""
    function, arguments = LOOPS[name]
    kind = DTYPES[dtype]
    given = [kind.rounded(np.asarray(argument)).astype("f") for argument in arguments]
    shapes = [lx.ShapeDtype(argument.shape, kind.user_name) for argument in given]
    return simplify(lx.trace(function)(*shapes)), given


NARROW = ("rnn", "odd extents", "lstm", "gru", "matrices of rows", "joined", "gradient of gates", "gradient")


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("kept", [24, 3])
@pytest.mark.parametrize("name", NARROW)
def test_floats_of_16_bits_are_sliced_too(name: str, kept: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where registers have too little room for vectors of numbers, and hold some as words."""
    limits(monkeypatch, kept=kept)
    graph, arguments = narrow(name, dtype)
    assert slice_kernels(program_of(graph))
    results = run(graph, arguments, device=backend_with(kind="gpu"))
    for found, wanted in zip(results, interpret(graph, *arguments), strict=True):
        scale = max(1.0, float(np.max(np.abs(wanted))))
        error = np.abs(found.astype(np.float64) - wanted)
        assert np.max(error) <= {"bf16": 2**-5, "f16": 2**-8}[dtype] * scale


def shader_of(graph: Graph) -> str:
    """The shader of a graph's last loop."""
    plan = emit_program(program_of(graph), GENERIC_GPU)
    sources: list[str] = [each.shader.source for each in plan.dispatches]
    return [source for source in sources if "int turn = 0" in source][-1]


def limits(monkeypatch: pytest.MonkeyPatch, **changes: int) -> None:
    changed = replace(slices_choice.SLICED_LOOPS, **changes)
    for module in (slices_choice, slices):
        monkeypatch.setattr(module, "SLICED_LOOPS", changed)


@pytest.mark.parametrize(("kept", "words", "in_turns"), [(24, 0, 0), (4, 2, 0), (3, 4, 0), (2, 4, 1)])
def test_registers_hold_numbers_and_then_words(
    kept: int, words: int, in_turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five vectors are the same in all turns. What there is no room for is read in each turn."""
    limits(monkeypatch, kept=kept, ahead=0)
    shapes = [lx.ShapeDtype(shape, "bfloat16") for shape in ((3, 20), (20, 20), (11, 3, 20))]
    before, turn = shader_of(simplify(lx.trace(rnn)(*shapes))).split("int turn = 0")
    assert before.count("uvec2 v") == words and turn.count("U32x2(") == in_turns


def test_an_element_of_joined_parts_is_computed_alone() -> None:
    function, arguments = LOOPS["gradient of gates"]
    source = shader_of(graph_of(function, arguments))
    assert "mix(" not in source and "int f = e - 24;" in source
    function, arguments = LOOPS["unequal"]
    assert "mix(" in shader_of(graph_of(function, arguments))


def test_rows_are_loaded_a_turn_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    function, arguments = LOOPS["neighbours in reverse"]
    graph = graph_of(function, arguments)
    assert "max(v" in (source := shader_of(graph)) and source.count("ahead0_float0 = ") == 2
    limits(monkeypatch, ahead=0)
    assert "ahead0" not in shader_of(graph)


@pytest.mark.parametrize("name", OTHERS)
def test_other_loops_are_not_sliced(name: str) -> None:
    function, arguments = OTHERS[name]
    assert not slice_kernels(program_of(graph_of(function, arguments)))


def test_a_workgroup_has_a_row() -> None:
    function, arguments = LOOPS["rnn"]
    graph = graph_of(function, arguments)
    plan = emit_program(program_of(graph), GENERIC_GPU)
    (dispatch,) = plan.dispatches
    assert dispatch.groups == (3, 1, 1) and compile_glsl(dispatch.shader.source)
    assert slices_of(loop_in(graph), GENERIC_GPU) == 3
    assert slices_of(loop_in(graph), CPU_DRIVER) == 0
    assert slices_of(loop_in(graph), replace(GENERIC_GPU, shared_memory_bytes=64)) == 0
    assert [slices_of(loop_in(graph), replace(GENERIC_GPU, told_processors=told)) for told in (3, 2)] == [3, 0]


@pytest.mark.parametrize(("elements", "threads"), [(8, 32), (40, 64), (600, 512)])
def test_workgroups_without_products_have_no_more_invocations_than_elements(elements: int, threads: int) -> None:
    graph = graph_of(neighbours, (normal(3, elements), normal(9, 3, elements)))
    (dispatch,) = emit_program(program_of(graph), GENERIC_GPU).dispatches
    assert f"local_size_x = {threads}," in dispatch.shader.source


@pytest.mark.parametrize("reverse", [False, True])
def test_long_scans_are_several_dispatches(reverse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their results are the same bit by bit."""
    graph = graph_of(lambda h, w, rows: rnn(h, w, rows, reverse=reverse), (H, W, ROWS))
    whole = run(graph, [H, W, ROWS], device=backend_with(kind="gpu"))
    monkeypatch.setattr("lavax.passes.schedule.control_flow.most_turns_of_slices", lambda loop: 4)
    turns = [kernel.graph.nodes[0].attrs["length"] for kernel in slice_kernels(program_of(graph))]
    assert sorted(turns) == [2, 3]
    for one, other in zip(whole, run(graph, [H, W, ROWS], device=backend_with(kind="gpu")), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kept", [0, 3])
def test_registers_keep_a_part_of_the_weights(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = replace(slices_choice.SLICED_LOOPS, kept=kept, threads=64)
    for module in ("slices", "slices_choice"):
        monkeypatch.setattr(f"lavax.backends.vulkan.emit.loop.{module}.SLICED_LOOPS", changed)
    test_workgroups_compute_what_the_loop_does("lstm")
    test_workgroups_compute_what_the_loop_does("matrices of rows")


@pytest.mark.parametrize("reverse", [False, True])
def test_a_number_that_is_carried_is_stacked_too(reverse: bool) -> None:
    """By nodes of their own, which are one in the kernels of a turn: one writes it to shared memory."""

    def loop(h: Any, rows: Any) -> Any:
        def turn(state: Any, x: Any) -> Any:
            h, before = state
            after = lnp.tanh(h * 0.5 + before * lnp.sin(x) + lnp.roll(h, 1, axis=1))
            return (after, lnp.full(h.shape, 1.5)), lnp.full(h.shape, 1.5)

        return lx.scan(turn, (h, h), rows, reverse=reverse)

    arrays = [H, ROWS]
    text = str(lx.trace(loop)(*arrays))  # not simplified: then nothing would be stacked
    known = "constant() value=1.5 : f32[3,8]"
    graph = parse(text.replace("return %9, %10, %10", f"%11 = {known}\n    return %9, %10, %11"))
    for got, want in zip(run(graph, arrays, device=backend_with(kind="gpu")), interpret(graph, *arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
