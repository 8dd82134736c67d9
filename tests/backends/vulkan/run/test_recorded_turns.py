"""Loops of dispatches whose turns are recorded one after the other, each with buffers of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.loop import slices_choice
from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.plan.plan import RepeatDispatches
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph, interpret, parse
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import simplify
from lavax.passes.target.target import Loops
from tests.backends.vulkan.run.execution import backend_with, run
from tests.passes.program_checks import check_sizes

random = np.random.default_rng(11)
H, W = random.normal(size=(3, 5)).astype("f"), random.normal(size=(5, 5), scale=0.3).astype("f")
ROWS = random.normal(size=(19, 3, 5)).astype("f")
X = random.normal(size=6).astype("f")


def scan(step: Callable[[Any, Any, Any], Any], length: int = 19, reverse: bool = False) -> Callable[..., Any]:
    """A scan over rows of a step that also takes weights."""
    return lambda h, w, rows: lx.scan(lambda c, row: step(c, w, row), h, rows[:length], reverse=reverse)


def stacked(h: Any, w: Any, row: Any) -> Any:
    after = lnp.tanh(h @ w + row)
    return after, (after, h)


def several(carry: Any, w: Any, row: Any) -> Any:
    """Carries that change, swap, stay, and are counted; one is stacked before and after the turn, one before only."""
    a, b, c, kept, place = carry
    after = lnp.tanh(a @ w + row * kept + place)
    return (after, c, b + lnp.sum(a), kept, place - 2), (after, a, c, place, a)


def of_several(length: int, reverse: bool = False) -> Callable[..., Any]:
    whole = scan(several, length, reverse)
    return lambda h, w, rows: whole((h, h * 2, h - 1, h * 0.5, lnp.int32(40)), w, rows)


def set_in_place(x: Any) -> Any:
    def turn(i: Any, c: Any) -> Any:
        return c.at[i % 6].set(lnp.sum(c[::-1] * 0.3) + i), None

    return lx.scan(lambda c, i: turn(i, c), x, lnp.arange(19))


def loss(h: Any, w: Any, rows: Any) -> Any:
    last, (after, before) = scan(stacked)(h, w, rows)
    return lnp.sum(last * lnp.sin(last)) + lnp.sum(after * after * rows) + lnp.sum(before * rows[::-1])


def within(h: Any, w: Any, rows: Any) -> Any:
    """A scan of scans in a loop that ends by data, and in a branch."""

    def outer(c: Any, row: Any) -> Any:
        c, found = scan(stacked, 5)(c + row, w, rows)
        return c[::-1], found[0]

    def turn(state: Any) -> Any:
        c, n = state
        c, found = lx.scan(outer, c, rows[:3])
        return lx.cond(n > 0, lambda c: scan(stacked, 4)(c, w, rows)[0], lambda c: c - lnp.mean(found[0]), c), n + 1

    return lx.while_loop(lambda state: state[1] < 2, turn, (h, 0))


LOOPS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    **{f"stacked, {n} turns": (scan(stacked, n), (H, W, ROWS)) for n in (1, 2, 3, 4, 5, 16, 17, 18, 19)},
    "stacked in reverse": (scan(stacked, 19, reverse=True), (H, W, ROWS)),
    **{f"several carries, {n} turns": (of_several(n), (H, W, ROWS)) for n in (1, 2, 7, 18, 19)},
    "several carries in reverse": (of_several(19, reverse=True), (H, W, ROWS)),
    "an index that is a result": (lambda x: lx.fori_loop(3, 40, lambda i, c: c[::-1] * 0.5 + i, x), (X,)),
    "two indices": (
        lambda x: lx.fori_loop(0, 21, lambda i, c: (c[0][::-1] * 0.5 + c[1], c[1] + 1), (x, lnp.int32(2))),
        (X,),
    ),
    "neighbours": (lambda x: lx.fori_loop(0, 33, lambda i, c: c[::-1] * 0.5 + c, x), (X,)),
    "nothing but copies": (lambda x: lx.fori_loop(0, 33, lambda i, c: (c[1], c[0], c[2]), (x, x * 2, x * 3)), (X,)),
    "in place": (set_in_place, (X,)),
    "gradient": (lx.grad(loss, argnums=(0, 1, 2)), (H, W, ROWS)),
    "within others": (within, (H, W, ROWS)),
    "no turns": (lambda x: lx.fori_loop(0, 0, lambda i, c: c[::-1] + lnp.sum(c), x), (X,)),
}


def graph_of(name: str) -> tuple[Graph, tuple[Any, ...]]:
    function, arguments = LOOPS[name]
    return simplify(lx.trace(function)(*arguments)), arguments


def program_of(graph: Graph, turns: int) -> KernelProgram:
    target = target_of(GENERIC_GPU, 1 << 34, 1 << 32)
    target = replace(target, loops=Loops(turns=turns, write_copies=True))
    return schedule(prepare(graph, target), target=target)


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("turns", [2, 4, 16])
def test_kernels_compute_what_the_loop_does(name: str, turns: int) -> None:
    graph, arguments = graph_of(name)
    program = program_of(graph, turns)
    check_sizes(program)
    for found, wanted in zip(interpret_kernels(program, *arguments), interpret(graph, *arguments), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "name",
    [
        "stacked, 17 turns",
        "stacked in reverse",
        "several carries, 18 turns",
        "several carries in reverse",
        "an index that is a result",
        "nothing but copies",
        "in place",
        "gradient",
        "within others",
    ],
)
def test_the_device_computes_what_the_loop_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices_choice, "SLICED_LOOPS", replace(slices_choice.SLICED_LOOPS, turns=1 << 20))
    graph, arguments = graph_of(name)
    arrays = [np.asarray(argument) for argument in arguments]
    results = run(graph, arrays, device=backend_with(kind="gpu"))
    for found, wanted in zip(results, interpret(graph, *arguments), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-4)


def test_a_turn_is_one_dispatch() -> None:
    """What is stacked before and after the turn, and the carry, are written by the product's kernel."""
    plan = emit_program(program_of(graph_of("stacked, 19 turns")[0], 4), GENERIC_GPU)
    (loop,) = (command for command in plan.commands if isinstance(command, RepeatDispatches))
    assert loop.count == 4 and len(loop.commands) == 5
    assert all(len({dispatch.shader for dispatch in part}) == 1 for part in (loop.commands[:4], loop.commands[4:]))


def test_commands_of_a_loop() -> None:
    graph = parse(
        dedent("""
            graph (h: f32[64,256], w: f32[256,256], n: i32[]) {
              %0 = scan(h, n, w) body=graph (c: f32[64,256], i: i32[], w: f32[256,256]) {
                %0 = dot(c, w) contract=[1]x[0] : f32[64,256]
                %1 = constant() value=3 : i32[]
                %2 = add(i, %1) : i32[]
                return %0, %2, c
              } carries=2 length=8 reverse=false sequences=0 : (f32[64,256], i32[], f32[8,64,256])
              %1 = item(%0) index=0 : f32[64,256]
              %2 = item(%0) index=1 : i32[]
              %3 = item(%0) index=2 : f32[8,64,256]
              return %1, %2, %3
            }
        """)
    )
    lines = str(program_of(graph, 2)).split("\n")
    shown = [line for line in lines if "kernel" in line or "->" in line or "repeat" in line or "view" in line]
    assert (
        "\n".join(shown)
        == dedent("""
        program (h: f32[64,256], w: f32[256,256], n: i32[]) -> (%r0, %r1, %r2) arena=768
        view %k0.row0.0 = %r2 + 65536 * %k0.counter0
        view %k0.row0.1 = %r2 + 65536 * %k0.counter1
        view %k0.row0.2 = %r2 + 65536 * %k0.counter2
        kernel %k0.start kind=map outer=[] after_barrier
          [] () -> (%k0.counter0, %k0.counter1, %k0.counter2)
        kernel %k0.begin0 kind=map outer=[64,256] after_barrier
          [64,256] (h) -> (%k0.row0.0)
        repeat 3
          kernel %k0.body.turn0.k0 kind=contract outer=[64,256] after_barrier
            [64,256] (%k0.row0.0, w) -> (%k0.row0.1)
          kernel %k0.body.turn1.k0 kind=contract outer=[64,256] after_barrier
            [64,256] (%k0.row0.1, w) -> (%k0.row0.2)
          kernel %k0.next0 kind=map parts=3 outer=[] after_barrier
            [] (%k0.counter0) -> (%k0.counter0)
            [] (%k0.counter1) -> (%k0.counter1)
            [] (%k0.counter2) -> (%k0.counter2)
        kernel %k0.body.last0.k0 kind=contract outer=[64,256] after_barrier
          [64,256] (%k0.row0.0, w) -> (%k0.row0.1)
        kernel %k0.body.last1.k0 kind=contract outer=[64,256] after_barrier
          [64,256] (%k0.row0.1, w) -> (%r0)
        kernel %k0.end1 kind=map outer=[] after_barrier
          [] (n) -> (%r1)
    """).strip()
    )


def warmed(x: Any) -> Any:
    """Heat that flows for 19 turns, and what each turn began with along one row."""

    def turn(x: Any, _: Any) -> Any:
        around = lnp.pad(x, 1)
        return x + 0.1 * (around[2:, 1:-1] + around[:-2, 1:-1] + around[1:-1, 2:] + around[1:-1, :-2] - 4 * x), x[5]

    return lx.scan(turn, x, None, length=19)


@pytest.mark.parametrize("extent, recorded", [(128, True), (64, False)])
def test_turns_are_recorded_on_cpu_drivers_where_arrays_are_large(extent: int, recorded: bool) -> None:
    """The others are a workgroup's loop, in which as many turns would be as many kernels."""
    target = target_of(CPU_DRIVER, 1 << 34, 1 << 32)
    graph = prepare(simplify(lx.trace(warmed)(lx.ShapeDtype((extent, extent), "float32"))), target)
    assert ("body.turn1." in str(schedule(graph, target=target))) == recorded


def test_recorded_turns_on_the_device_of_cpu_drivers() -> None:
    x = random.normal(size=(128, 128)).astype("f")
    graph = simplify(lx.trace(warmed)(x))
    for found, wanted in zip(run(graph, [x], device=backend_with(kind="cpu")), interpret(graph, x), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
