"""Loops that run lane by lane, on the device, against the interpreter: one kernel, or that kernel repeated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.ir.interpreter import interpret
from lavax.ir.parser import parse
from lavax.passes.fuse import lane_loops

random = np.random.default_rng(7)
X, Y = random.normal(size=(2, 6)).astype("f")
GRID = random.normal(size=(6, 3)).astype("f")
TABLE, ROWS = random.normal(size=20).astype("f"), random.normal(size=(23, 6)).astype("f")


def growth(x: Any) -> Any:
    return lx.while_loop(lambda c: c[0] < 37, lambda c: (c[0] * 1.1 + 1, c[1] + 1), (x, 0))


def filtered(c: Any, rows: Any, reverse: bool = False) -> Any:
    """With a scalar beside the lanes."""
    return lx.scan(lambda c, x: ((c[0] * 0.9 + x, c[1] + 1), (c[0] * x, c[1])), (c, 0), rows, reverse=reverse)


def walk(table: Any) -> Any:
    """Reads where a carried number says."""
    return lx.fori_loop(0, 20, lambda i, c: ((c[0] * 5 + 3) % 20, c[1] + table[c[0]]), (0, np.float32(0)))


def chosen(x: Any) -> Any:
    branches = [lambda v: v * 1.1, lnp.sin, lambda v: v - 1]
    return lx.fori_loop(0, 9, lambda i, s: lx.switch(i % 3, branches, s), x)


def nested(x: Any) -> Any:
    return lx.fori_loop(0, 7, lambda i, s: lx.fori_loop(0, 5, lambda j, t: t * 0.9 + i - j, s) + 1, x)


def long(x: Any) -> Any:
    return lx.fori_loop(0, 23, lambda j, s: s * 0.9 + j, x)


def loss(x: Any) -> Any:
    return lnp.sum(lnp.arange(6.0) * lx.scan(lambda c, _: (lnp.sin(c) * 1.1, None), x, None, length=12)[0])


def rolled(c: Any, rows: Any, reverse: bool = False) -> Any:
    """From rows whose parts are one read at a computed place."""
    return lx.scan(lambda c, x: (c * 0.5 + lnp.roll(x, 2), c + x[1]), c, rows, reverse=reverse)[0]


def decaying(steps: Any, rates: Any, inputs: Any, reverse: bool = False) -> Any:
    """A state of each channel and number, from rows that have channels, numbers or neither."""

    def turn(state: Any, given: Any) -> Any:
        step, row, scale = given
        state = lnp.exp(-step[:, None] * rates) * state + scale * row[::-1]
        return state, (state, step[0])

    return lx.scan(turn, lnp.zeros_like(rates), (steps, inputs, steps[:, 1]), reverse=reverse)


def escape(c: Any) -> Any:
    """A batch of these carries flags, as kernels may round the condition in different ways."""
    goes_on = lambda s: (s[0] * s[0] + s[1] < 9.0) & (s[1] < 20)  # noqa: E731
    return lx.while_loop(goes_on, lambda s: (s[0] * s[0] + c, s[1] + 1), (c, 0))


def kept(x: Any, by: str) -> Any:
    """A batch written out: each lane keeps what it has once it has ended, by its values or by one of two flags."""
    is_open = {"values": lambda x, _: x < 37, "open": lambda _, flag: flag, "done": lambda _, flag: ~flag}[by]

    def turn(state: Any) -> Any:
        x, flag = state
        grown = lnp.where(is_open(x, flag), x * 1.1 + 1, x)
        return grown, {"values": flag, "open": flag & (grown < 37), "done": flag | (grown >= 37)}[by]

    return lx.while_loop(lambda state: lnp.any(is_open(*state)), turn, (x, x < 37 if by == "open" else x >= 37))


def counting(x: Any, most: Any) -> Any:
    """A batch written out with a number of turns that all lanes have in common, and that each counts for itself."""

    def turn(state: Any) -> Any:
        number, x, taken = state
        return number + 1, lnp.where(x < 37, x * 1.1 + number, x), taken + (x < 37)

    return lx.while_loop(lambda s: (s[0] < most) & lnp.any(s[1] < 37), turn, (0, x, lnp.zeros(x.shape, "int32")))


LOOPS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "swapped": (lambda a, b: lx.fori_loop(0, 11, lambda i, c: (c[1], c[0] + c[1]), (a, b)), (X, Y)),
    "counted": (lambda x: lx.fori_loop(0, 50, lambda i, s: s * 0.9 + i, x), (GRID,)),
    "sequences": (filtered, (X, ROWS)),
    "reverse": (lambda c, rows: filtered(c, rows, reverse=True), (X, ROWS)),
    "one turn": (filtered, (X, ROWS[:1])),
    "rows of other shapes": (decaying, (np.abs(ROWS[:, :4]), GRID[:4], ROWS[:, 3:])),
    "rows of other shapes, backwards": (
        lambda *given: decaying(*given, reverse=True),
        (np.abs(ROWS[:20, :4]), GRID[:4], ROWS[:20, 3:]),
    ),
    "rows that are turned": (rolled, (X, ROWS)),
    "rows that are turned, backwards": (lambda c, rows: rolled(c, rows, reverse=True), (X, ROWS[:7])),
    "rows that are left": (filtered, (X, np.tile(ROWS, (2, 1))[:37])),
    "rows that are left, backwards": (
        lambda c, rows: filtered(c, rows, reverse=True), (X, np.tile(ROWS, (2, 1))[:37]),
    ),
    "rows in a loop within": (
        lambda x, rows: lx.scan(lambda c, r: (lx.fori_loop(0, 3, lambda i, t: t * 0.5 + r * i, c), c), x, rows),
        (X, ROWS),
    ),
    "rows of other lanes": (lambda x, rows: lx.scan(lambda c, r: (c * 0.5 + r[::-1], c), x, rows), (X, ROWS[:16])),
    "gathers": (walk, (TABLE,)),
    "nested": (nested, (X,)),
    "branches": (chosen, (X,)),
    "lanes of two batches end apart": (lx.vmap(lx.vmap(growth)), (GRID,)),
    "scalar condition": (
        lambda x: lx.while_loop(lambda c: c[1] < 37, lambda c: (c[0] * 0.9 + 1, c[1] + 1), (x, 0)),
        (X,),
    ),
    "lanes end apart": (lx.vmap(growth), (X,)),
    "lanes end apart by flags": (lx.vmap(escape), (X,)),
    "lanes of two batches end apart by flags": (lx.vmap(lx.vmap(escape)), (GRID,)),
    "lanes keep what they have by values": (lambda x: kept(x, "values"), (X * 5,)),
    "lanes keep what they have while open": (lambda x: kept(x, "open"), (X * 5,)),
    "lanes keep what they have once done": (lambda x: kept(x, "done"), (X * 5,)),
    "lanes go on while not all are done": (
        lambda x: lx.while_loop(
            lambda c: ~lnp.all(c[1]), lambda c: (lnp.where(c[1], c[0], c[0] * 1.1 + 1), c[1] | (c[0] > 37)), (x, x > 37)
        ),
        (X * 5,),
    ),
    "lanes go on while not all are close": (
        lambda x: lx.while_loop(lambda c: ~lnp.all(c < 1.0), lambda c: lnp.where(c < 1.0, c, c * 0.75), x * x),
        (X * 5,),
    ),
    "more lanes than a row has": (lambda x: kept(x, "open"), (np.linspace(-3, 40, 70_001, dtype="f"),)),
    "lanes and turns are counted": (counting, (np.linspace(-3, 40, 4099, dtype="f"), np.int32(7))),
    "neighbours that do not change": (
        lambda x, w: lx.fori_loop(0, 12, lambda i, c: lnp.sin(c) * w + w[::-1], x),
        (X, Y),
    ),
    "gradient": (lx.grad(loss), (X,)),
    "tangent": (lambda x: lx.jvp(loss, (x,), (x * x,)), (X,)),
    "integers": (
        lambda x: lx.fori_loop(0, 12, lambda i, c: (c * 1103515245 + 12345) & 0x7FFFFFFF, x),
        (np.arange(7, dtype="i"),),
    ),
    "truth values": (
        lambda x: lx.fori_loop(0, 12, lambda i, c: (~c[0], c[1] + lnp.where(c[0], 1, 0)), (x > 0, x.astype("int32"))),
        (X,),
    ),
    "another shape that nobody reads": (
        lambda x: lx.fori_loop(0, 12, lambda i, c: (c[0] * 0.5, c[1] + 1), (x, lnp.zeros(3)))[0],
        (X,),
    ),
    "under a branch": (lambda x: lx.cond(x[0] > 100, lambda v: v, long, x), (X,)),
    "in a loop whose lanes meet": (lambda x: lx.fori_loop(0, 3, lambda i, c: long(c)[::-1] * 1.5, x), (X,)),
    "in a loop that ends by all lanes": (
        lambda x: lx.while_loop(lambda c: lnp.sum(c) < 1e3, lambda c: lx.vmap(growth)(c)[0][::-1] * 3.0 + 10.0, x),
        (X,),
    ),
}
MEETING: dict[str, Callable[[Any], Any]] = {
    "neighbours": lambda x: lx.fori_loop(0, 12, lambda i, c: c[::-1] * 0.5 + c, x),
    "sums": lambda x: lx.fori_loop(0, 12, lambda i, c: c * 0.5 + lnp.sum(c), x),
    "other shapes": lambda x: lx.fori_loop(0, 12, lambda i, c: (c[0] * 0.5, c[1] + 1), (x, lnp.zeros(3))),
    "lanes go on while any is open": lambda x: lx.while_loop(
        lambda c: lnp.any(c[0] < 37), lambda c: (c[0] * 1.1 + 1, c[1] | (c[0] > 9)), (x, x > 9)
    ),
    "lanes keep what they have by another flag": lambda x: lx.while_loop(
        lambda c: lnp.any(c[1]),
        lambda c: (lnp.where(c[2], c[0] * 1.1 + 1, c[0]), c[1] & (c[0] < 37), c[2] & (c[0] < 60)),
        (x, x < 37, x < 60),
    ),
    "lanes keep what they have where another flag is set": lambda x: lx.while_loop(
        lambda c: lnp.any(~c[1]),
        lambda c: (lnp.where(c[2], c[0], c[0] * 1.1 + 1), c[1] | (c[0] > 37), c[2]),
        (x * 5, x < 0, x < 0),
    ),
    "lanes open again": lambda x: lx.while_loop(
        lambda c: lnp.any(c[1]),
        lambda c: (lnp.where(c[1], c[0] * 1.1 + 1, c[0]), (c[0] < 30) & (c[0] > -100)),
        (x * 5, x > 0),
    ),
    "a flag that lanes do not ask changes behind their end": lambda x: lx.while_loop(
        lambda c: lnp.any(c[1]),
        lambda c: (lnp.where(c[1], c[0] * 1.1 + 1, c[0]), c[1] & (c[0] < 37), c[2] & (c[0] < 40)),
        (x * 5, x < 37, x < 60),
    ),
    "rows where an array says": lambda x: lx.scan(
        lambda c, r: (c * 0.5 + r[(c > 9).astype("int32")], None), x, lnp.outer(lnp.arange(4.0), x)
    )[0],
}


def agree(function: Callable[..., Any], *arguments: Any) -> str:
    """Checks the results, and gives the kernels."""
    compiled = lx.compile(function)
    lowered = compiled.lower(*arguments)
    expected = interpret(parse(lowered.as_text("ir")), *arguments)
    for found, wanted in zip(lx.tree.leaves(compiled(*arguments)), expected, strict=True):
        scale = max(float(np.max(np.abs(wanted))), 1.0)
        np.testing.assert_allclose(np.asarray(found, "d"), wanted, rtol=0, atol=1e-5 * scale)
    return str(lowered.as_text("kernels"))


@pytest.mark.usefixtures("no_register_loops")
@pytest.mark.parametrize("name", LOOPS)
def test_loops_whose_lanes_never_meet_are_one_kernel(name: str) -> None:
    function, arguments = LOOPS[name]
    assert "kind=loop" in agree(function, *arguments)


@pytest.mark.parametrize(
    "name",
    ["sequences", "reverse", "rows of other shapes", "counted", "lanes end apart", "under a branch", "nested"],
)
@pytest.mark.parametrize("turns", [1, 4, 5])
def test_long_loops_are_cut_in_turns(name: str, turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lavax.passes.schedule.control_flow.most_turns", lambda node, lanes: turns)
    function, arguments = LOOPS[name]
    kernels = agree(function, *arguments)
    assert "while" in kernels or "repeat" in kernels


def test_each_element_of_two_batches_ends_by_itself() -> None:
    """Also where an element carries a vector; the condition is asked of all elements at once."""

    def one(bound: Any, start: Any) -> Any:
        turn = lambda c: (c[0] + c[1][0] + 1, c[1][::-1] * 1.25)  # noqa: E731
        return lx.while_loop(lambda c: c[0] < bound, turn, (bound * 0, start))

    bounds, starts = GRID * 9, lnp.asarray(np.abs(random.normal(size=(6, 3, 2))).astype("f"))
    sums, vectors = lx.compile(lx.vmap(lx.vmap(one)))(bounds, starts)
    for place in np.ndindex(bounds.shape):
        total, vector = 0.0, np.asarray(starts[place], "d")
        while total < bounds[place]:
            total, vector = total + vector[0] + 1, vector[::-1] * 1.25
        np.testing.assert_allclose(sums[place], total, rtol=1e-5)
        np.testing.assert_allclose(vectors[place], vector, rtol=1e-5)


@pytest.mark.parametrize("name", MEETING)
def test_loops_whose_lanes_meet_are_dispatches(name: str) -> None:
    assert "kind=loop" not in agree(MEETING[name], X)


def test_a_while_that_is_cut_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lavax.backends.vulkan.emit.loop.lanes.most_turns", lambda node, lanes: 3)
    agree(lx.vmap(lambda x: growth(x * 0.5)), X)


def test_the_turns_of_a_dispatch_are_bounded() -> None:
    (node,) = (node for node in lx.trace(long)(X).nodes if node.op == "scan")
    most = lane_loops.most_turns(node, (6,))
    assert 23 < most <= lane_loops.MAX_LOOP_ITERATIONS
    assert lane_loops.most_turns(node, (1 << 24,)) < most


def _turns_written_out(length: int, rows: int, operations: int = 1) -> int:
    def turn(carried: Any, given: Any) -> Any:
        for row in given:
            for _ in range(operations):
                carried = lnp.sin(carried * row)
        return carried, carried

    sequences = tuple(lnp.ones((length, 6)) for _ in range(rows))
    shader = lx.compile(lambda x, *given: lx.scan(turn, x, given)).lower(X, *sequences).as_text("glsl")
    head, *rest = (line for line in shader.splitlines() if "for (int" in line and "+=" in line)
    assert len(rest) == bool(length % int(head.partition("+= ")[2].partition(")")[0]))
    return int(head.partition("+= ")[2].partition(")")[0])


@pytest.mark.usefixtures("no_register_loops")
@pytest.mark.parametrize(
    ("length", "rows", "operations", "turns"),
    [(64, 1, 1, 16), (40, 1, 1, 10), (64, 4, 1, 8), (13, 1, 1, 13), (64, 1, 20, 4), (341, 3, 1, 10), (37, 1, 1, 16)],
)
def test_rows_of_several_turns_are_loaded_at_once(length: int, rows: int, operations: int, turns: int) -> None:
    """As many as registers and compilers bear; what is left of the turns is a loop of its own."""
    assert _turns_written_out(length, rows, operations) == turns
