"""Loops over little data that one workgroup runs, on the device, against the interpreter and the loop of dispatches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit import small_runs
from lavax.backends.vulkan.emit.loop import stopping, workgroup
from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.plan.plan import Dispatch, RepeatDispatches, UntilFlag
from lavax.backends.vulkan.plan.profile import CPU_DRIVER
from lavax.backends.vulkan.target import target_of
from lavax.ir.interpreter import interpret
from lavax.ir.parser import parse
from lavax.passes.kernels.commands import Repeat, steps_of
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from tests.backends.vulkan.run.execution import backend

# Loops over as little data as here are written out for one subgroup otherwise (test_register_loops.py).
pytestmark = pytest.mark.usefixtures("no_register_loops")
random = np.random.default_rng(3)
X = random.normal(size=6).astype("f")
H, W = random.normal(size=(3, 5)).astype("f"), random.normal(size=(5, 5), scale=0.3).astype("f")
ROWS = random.normal(size=(13, 3, 5)).astype("f")
SQUARE = np.random.default_rng(4).normal(size=(8, 8)).astype("f")
LARGE = np.random.default_rng(5).normal(size=(200, 200)).astype("f")
BATCH = random.normal(size=(2, 3, 5)).astype("f")


def rnn(h: Any, w: Any, rows: Any, reverse: bool = False) -> Any:
    return lx.scan(lambda h, x: (lnp.tanh(h @ w + x), h * 2), h, rows, reverse=reverse)


def loss(w: Any, h: Any, rows: Any) -> Any:
    return lnp.sum(rnn(h, w, rows)[1] * rows)


def conjugate(a: Any) -> Any:
    """Steps of conjugate gradients."""

    def step(state: Any) -> Any:
        x, rest, along, size, turn = state
        image = a @ along
        factor = size / (along @ image)
        rest = rest - factor * image
        following = rest @ rest
        return x + factor * along, rest, rest + following / size * along, following, turn + 1

    start = lnp.ones(200)
    return lx.while_loop(lambda s: (s[3] > 1e-3) & (s[4] < 9), step, (start * 0, start, start, start @ start, 0))[0]


def nested(x: Any) -> Any:
    def inner(i: Any, c: Any) -> Any:
        return c * 0.5 + lnp.sum(c) / 12

    return lx.fori_loop(0, 4, lambda i, c: lnp.sin(lx.fori_loop(0, 11, inner, c) * 0.9 + i), x)


def lanes_inside(x: Any) -> Any:
    def inner(c: Any) -> Any:
        return lx.fori_loop(0, 5, lambda j, t: t * 0.9 + j * 0.01, c)

    return lx.fori_loop(0, 9, lambda i, c: lnp.tanh(inner(c)) - lnp.mean(c), x)


def products(turns: int) -> Callable[..., Any]:
    """What is carried is written aside, and handed on."""
    return lambda x, w: lx.fori_loop(0, turns, lambda i, c: lnp.sin(c @ w), x)


def stacked(h: Any, w: Any, rows: Any, reverse: bool = False) -> Any:
    """Each turn stacks what it was given: rows of 16 bytes or a multiple."""

    def turn(carry: Any, row: Any) -> Any:
        h, c = carry
        return (lnp.tanh(h @ w + row), c @ w), (h, c * 2, c)

    return lx.scan(turn, (h, h * 2), rows, reverse=reverse)


def exchanged(a: Any, w: Any) -> Any:
    return lx.fori_loop(0, 7, lambda i, c: (c[1] @ w, lnp.cos(c[0] @ w), c[1]), (a, a * 2, a))


def bytes_exchanged(a: Any) -> Any:
    """Four lie in a word, so their kernels have no index of words that could move."""
    return lx.fori_loop(0, 7, lambda i, c: (c[1] * 2, c[0] + lnp.max(c[1])), (a, a))


def products_inside(x: Any, w: Any) -> Any:
    def turn(c: Any, row: Any) -> Any:
        c = lx.fori_loop(0, 3, lambda i, t: lnp.tanh(t @ w), c) @ w
        return c, (c, row * 2)

    return lx.scan(turn, x, lnp.stack([x, x * 2, x * 3]))


def branches(x: Any, turns: Callable[[Any], Any]) -> Any:
    def turn(i: Any, c: Any) -> Any:
        c = lx.switch(i - 2, [lambda v: v[::-1] * 0.9, lambda v: v - lnp.sum(v) / 7, lnp.cos], c)
        inner = lambda v: lx.cond(v[0] > v[1], lambda u: u * 0.5, lambda u: u[::-1] + i, v)  # noqa: E731
        return lx.cond(lnp.sum(c) > 0, inner, lambda v: lx.fori_loop(0, turns(i), lambda j, u: u[::-1] + 0.5, v), c)

    return lx.fori_loop(0, 9, turn, x)


def steps_to(bound: float) -> Callable[..., Any]:
    """A loop that ends by what all lanes compute."""

    def turn(state: Any) -> Any:
        c, n = state
        return c[::-1] * 1.1 + lnp.sum(c) * 0.01, n + 1

    return lambda x: lx.while_loop(lambda s: (lnp.sum(s[0] * s[0]) < bound) & (s[1] < 700), turn, (x, 0))


def recurrence(x: Any) -> Any:
    """Each turn computes one element of a long array from those before it."""
    return lx.fori_loop(2, 40, lambda i, c: c.at[i].set(c[i - 1] * 0.5 + lnp.sin(c[i - 2])), x)


def table(x: Any) -> Any:
    """An inner loop sets elements, by those above, of an array that the outer loop hands on."""

    def row(i: Any, c: Any) -> Any:
        return lx.fori_loop(1, 4, lambda j, c: c.at[i, j].set(lnp.cos(c[i - 1, j]) + c[i, j - 1] * 0.5), c)

    return lx.fori_loop(1, 4, row, x)


def rows_from_rows(x: Any) -> Any:
    return lx.fori_loop(0, 8, lambda i, c: c.at[lnp.array([i % 3, 1])].add(c[(i + 1) % 3] * 0.5), x)


def handed_on_by_two_loops(x: Any, w: Any) -> Any:
    """The inner loop carries in the array that the outer loop's turn writes aside."""

    def turn(i: Any, carry: Any) -> Any:
        v, m = carry
        v = lx.fori_loop(0, 3, lambda j, a: lnp.cos(a @ w) + j * 0.1, v)
        return v, lnp.tanh(m @ w + v)

    return lx.fori_loop(0, 4, turn, (x[0], x))


def turned(v: Any, turns: Any) -> Any:
    """Turns of which nobody knows the number, in which lanes meet."""
    return lx.while_loop(lambda s: s[1] < turns, lambda s: (s[0][::-1] * 0.9 + lnp.sum(s[0]) / 50, s[1] + 1), (v, 0))[0]


def while_in_scan(x: Any, turns: Any) -> Any:
    def turn(c: Any, n: Any) -> Any:
        c = turned(c + 0.1, n)
        return lnp.sin(c) + lnp.max(c), (c[::-1], n * 2)

    return lx.scan(turn, x, turns)


def while_in_while(x: Any) -> Any:
    """Three deep, with turns before, between and behind, and lanes that loop by themselves."""

    def middle(s: Any) -> Any:
        c, n = s
        c = turned(c * 1.1, n % 3)
        c = c * 0.3 + lx.while_loop(lambda t: t < 2, lambda t: t * 0.9 + 0.3, c[0])
        return turned(c - lnp.mean(c), n % 2) + 0.25, n + 1

    def outer(s: Any) -> Any:
        c, n = s
        c, _ = lx.while_loop(lambda t: t[1] < n, middle, (c, n // 2))
        return lnp.cos(c[::-1]) + lnp.min(c) / 3, n + 1

    return lx.while_loop(lambda s: s[1] < 7, outer, (x, 0))


def while_in_branch(x: Any) -> Any:
    def turn(i: Any, c: Any) -> Any:
        rare = lambda v: lx.fori_loop(0, 2, lambda j, u: turned(u, i % 5) + j, v)  # noqa: E731
        c = lx.switch(i % 3, [lambda v: turned(v, i + 1) * 2, lambda v: -v[::-1], rare], c)
        return turned(c, 2) - lnp.sum(c) / 9

    return lx.fori_loop(0, 11, turn, x)


def solving(rows: int) -> Callable[[Any], Any]:
    """Elimination, a root and both substitutions in each turn."""

    def turn(i: Any, c: Any) -> Any:
        positive = c @ c.T * 0.1 + lnp.eye(rows)
        root = lnp.linalg.cholesky(positive)
        return lnp.linalg.solve(root + c * 0.3 + 2 * lnp.eye(rows)[::-1], c) + root * 0.5 - c[::-1] * 0.2

    return lambda x: lx.fori_loop(0, 5, turn, x)


def resampled(x: Any) -> Any:
    """Places in cumulative sums, as a particle filter looks for them."""

    def turn(i: Any, c: Any) -> Any:
        sums = lnp.cumsum(lnp.abs(c) + 0.1)
        places = lnp.searchsorted(sums, (lnp.arange(c.size) + 0.5) * sums[-1] / c.size)
        return lnp.cos(c[lnp.minimum(places, c.size - 1)] * 1.1 + c * 0.5 + i)

    return lx.fori_loop(0, 6, turn, x)


def joined(x: Any, places: Any) -> Any:
    """Rows and numbers added at places that the loop reads, with many updates for each."""

    def turn(c: Any, row: Any) -> Any:
        sums = lnp.zeros((4, c.shape[1])).at[row].add(c)
        counts = lnp.zeros(4).at[row].add(1.0)
        return lnp.sin(c + (sums / (counts[:, None] + 1))[row]), lnp.sum(sums)

    return lx.scan(turn, x, places)


def ranked(x: Any) -> Any:
    """A sort, and its gradient's order."""
    ranks = lambda c: lnp.sum(lnp.sort(c) * lnp.linspace(0, 1, c.size))  # noqa: E731
    return lx.fori_loop(0, 3, lambda i, c: lnp.cos(c * 2 + lx.grad(ranks)(c)), x)


def beams(x: Any) -> Any:
    def turn(i: Any, c: Any) -> Any:
        best, places = lx.lax.top_k(lnp.reshape(c[:, None] + lnp.cos(lnp.arange(64) + c[:, None] * 3), -1), 5)
        return lnp.sin(best + places % 64) * 0.5 + c

    return lx.fori_loop(0, 6, turn, x)


def rows_updated(x: Any) -> Any:
    """A workgroup goes through a line's updates, not the whole array, for each line."""

    def turn(i: Any, c: Any) -> Any:
        return lx.lax.dynamic_update_slice(c, c[i][None] * 1.01 + x[:1], (i + 1, 0))

    return lx.fori_loop(0, 99, turn, x)


LOOPS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "neighbours": (lambda x: lx.fori_loop(0, 12, lambda i, c: c[::-1] * 0.5 + c, x), (X,)),
    "sums": (lambda x: lx.fori_loop(0, 12, lambda i, c: lnp.cos(c * 0.3 + lnp.sum(c) * i / 200), x), (X,)),
    "products": (rnn, (H, W, ROWS)),
    "reverse": (lambda h, w, rows: rnn(h, w, rows, reverse=True), (H, W, ROWS)),
    "one turn": (rnn, (H, W, ROWS[:1])),
    "batches": (lx.vmap(rnn, in_axes=(0, None, None)), (BATCH, W, ROWS)),
    "gradient": (lx.grad(loss), (W, H, ROWS)),
    "tangent": (lambda w, h, rows: lx.jvp(lambda w: loss(w, h, rows), (w,), (w * w,)), (W, H, ROWS)),
    "other shapes": (
        lambda x: lx.fori_loop(0, 12, lambda i, c: (c[0] * 0.5 + c[1][0], c[1] - lnp.max(c[0])), (x, lnp.zeros(3))),
        (X,),
    ),
    "an even number of products": (products(4), (H, W)),
    "an odd number of products": (products(5), (H, W)),
    "carries of two loops": (handed_on_by_two_loops, (H, W)),
    "gradient of two loops, carries": (
        lx.grad(lambda x, w: sum(lnp.sum(lnp.sin(each)) for each in handed_on_by_two_loops(x, w)), argnums=(0, 1)),
        (H, W),
    ),
    "stacked carries": (stacked, (H[:, :4], W[:4, :4], ROWS[:, :, :4])),
    "stacked in reverse": (lambda *given: stacked(*given, reverse=True), (H[:, :4], W[:4, :4], ROWS[:, :, :4])),
    "carries that are exchanged": (exchanged, (H, W)),
    "bytes that are exchanged": (bytes_exchanged, (np.arange(1, 13, dtype=np.uint8).reshape(3, 4),)),
    "products inside": (products_inside, (H, W)),
    "nested": (nested, (X,)),
    "lanes inside": (lanes_inside, (X,)),
    "gathers": (lambda x, n: lx.fori_loop(0, 12, lambda i, c: c[n] * 0.5 + c, x), (X, np.arange(6)[::-1].astype("i"))),
    "under a branch": (lambda x: lx.cond(x[0] > 100, lambda v: v, nested, x), (X,)),
    "branches": (
        lambda x: lx.fori_loop(0, 4, lambda i, c: lx.cond(lnp.sum(c) > 0, lambda v: -v, lambda v: v[::-1], c), x),
        (X,),
    ),
    "branches by a sequence": (
        lambda x, n: lx.scan(lambda c, k: (lx.switch(k, [lnp.sin, lambda v: v[::-1]], c), c[0]), x, n),
        (X, np.array([0, 1, 1, 5, -3, 0], "i")),
    ),
    "branches in branches": (lambda x: branches(x, lambda i: 2), (X,)),
    "a while in a branch": (lambda x: branches(x, lambda i: i % 3 + 1), (X,)),
    "elements from elements": (recurrence, (np.linspace(0, 1, 200, dtype="f"),)),
    "elements of a table": (table, (random.normal(size=(4, 50)).astype("f"),)),
    "transposes": (lambda x: lx.fori_loop(0, 7, lambda i, c: lnp.tanh(c.T * 0.9 + c), x), (SQUARE,)),
    "cumulative sums and searches": (resampled, (random.normal(size=24).astype("f"),)),
    "many updates": (joined, (random.normal(size=(40, 4)).astype("f"), random.integers(0, 4, (3, 40)).astype("i"))),
    "short sorts": (lambda x: lx.fori_loop(0, 5, lambda i, c: lnp.sort(lnp.cos(c * 3), axis=0), x), (SQUARE,)),
    "sorts and their gradients": (ranked, (random.normal(size=40).astype("f"),)),
    "transforms": (
        lambda x: lx.fori_loop(0, 5, lambda i, c: lnp.fft.irfft(lnp.fft.rfft(c * c) * 1j, 64) + lnp.sin(c), x),
        (random.normal(size=64).astype("f"),),
    ),
    "transforms of complex lines": (
        lambda x: lnp.abs(lx.fori_loop(0, 4, lambda i, c: lnp.fft.ifft(lnp.fft.fft(c) / (1 + lnp.abs(c))), x + 0.5j)),
        (random.normal(size=(3, 20)).astype("f"),),
    ),
    "greatest": (beams, (random.normal(size=5).astype("f"),)),
    "rows from rows": (rows_from_rows, (H,)),
    "single updates of bytes, of which an invocation has several elements": (
        lambda x, n: lx.fori_loop(0, 2, lambda i, c: c.at[n].multiply(2), x),
        (np.arange(2300).astype("uint8"), np.arange(64, dtype="i")),
    ),
    "while": (steps_to(1e3), (X,)),
    "while that never turns": (steps_to(0), (X,)),
    "a while in a scan": (while_in_scan, (X, np.array([3, 0, 1, 5, 2, 0, 0, 4], "i"))),
    "a while in a while": (while_in_while, (X,)),
    "a while in a branch of a loop": (while_in_branch, (X,)),
    "a while under a branch": (
        lambda x: [lx.cond(x[0] > bound, lambda v: v, lambda v: while_in_while(v)[0], x) for bound in (100, -100)],
        (X,),
    ),
    "small factors": (solving(4), (random.normal(size=(4, 4)).astype("f"),)),
    "small factors of odd sizes": (solving(5), (W,)),
    "larger factors": (solving(18), (random.normal(size=(18, 18), scale=0.1).astype("f"),)),
    "gradient of small factors": (lx.grad(lambda x: lnp.sum(solving(4)(x) * x)), (W[:4, :4],)),
    "in a loop that ends by all lanes": (
        lambda x: lx.while_loop(lambda c: lnp.sum(c * c) < 1e3, lambda c: nested(c) + c * 2 + 1, x),
        (X,),
    ),
    "many rows in a loop whose turns nobody knows": (conjugate, (LARGE @ LARGE.T + 200 * np.eye(200, dtype="f"),)),
    "rows updated": (rows_updated, (np.ones((100, 64), "f"),)),
}
# Eigenvalues, much data and lanes that each end by themselves are not a workgroup's work.
OTHERS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "lanes": (
        lx.vmap(lambda x: lx.while_loop(lambda c: c[0] < 100, lambda c: (c[0] * 1.1 + 1, c[1] + 1), (x, 0))),
        (X,),
    ),
    "eigenvalues": (lambda w: lx.fori_loop(0, 4, lambda i, c: lnp.linalg.eigh(c @ c.T + lnp.eye(5))[0] * c, w), (W,)),
    "much data": (
        lambda x: lx.fori_loop(0, 4, lambda i, c: c[::-1] * 0.5 + c, x),
        (random.normal(size=40_000).astype("f"),),
    ),
}


def agree(function: Callable[..., Any], *arguments: Any) -> tuple[list[np.ndarray], str]:
    """Checks the results against the interpreter's, and gives them and the shaders."""
    compiled = lx.compile(function)
    lowered = compiled.lower(*arguments)
    expected = interpret(parse(lowered.as_text("ir")), *arguments)
    results = [np.asarray(found) for found in lx.tree.leaves(compiled(*arguments))]
    for found, wanted in zip(results, expected, strict=True):
        scale = max(float(np.max(np.abs(wanted))), 1.0)
        np.testing.assert_allclose(found.astype("d"), wanted, rtol=0, atol=2e-5 * scale)
    return results, lowered.as_text("glsl")


def is_by_workgroup(shaders: str) -> bool:
    return "kernel0(uint group_of_turn)" in shaders


@pytest.mark.usefixtures("on_a_cpu_driver")
@pytest.mark.parametrize("name", LOOPS)
def test_one_workgroup_runs_a_loop_over_little_data(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, arguments = LOOPS[name]
    found, shaders = agree(function, *arguments)
    assert is_by_workgroup(shaders)
    monkeypatch.setattr(workgroup, "WORKGROUP_LOOPS", replace(workgroup.WORKGROUP_LOOPS, kernels=0))
    for limits in ("SMALL_RUNS", "RUNS_IN_TURNS"):
        monkeypatch.setattr(small_runs, limits, replace(small_runs.SMALL_RUNS, kernels=0))
    lx.clear_caches()  # the program would be the one that was compiled before
    dispatched, shaders = agree(lambda *given: function(*given), *arguments)
    lx.clear_caches()
    assert not is_by_workgroup(shaders)
    for one, other in zip(found, dispatched, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", OTHERS)
def test_other_loops_are_dispatches(name: str) -> None:
    function, arguments = OTHERS[name]
    _, shaders = agree(function, *arguments)
    assert not is_by_workgroup(shaders)


@pytest.mark.usefixtures("on_a_cpu_driver")
@pytest.mark.parametrize(
    "name",
    ["sums", "products", "reverse", "gradient", "stacked carries", "stacked in reverse", "gradient of small factors"],
)
@pytest.mark.parametrize("turns", [1, 4, 5])
def test_long_loops_are_cut_after_any_turn(name: str, turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    function, arguments = LOOPS[name]
    whole, _ = agree(function, *arguments)
    monkeypatch.setattr("lavax.backends.vulkan.emit.program.most_turns", lambda loop: turns)
    cut, shaders = agree(lambda *given: function(*given), *arguments)
    assert is_by_workgroup(shaders)
    for one, other in zip(whole, cut, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_carried_array_is_updated_where_it_is() -> None:
    """The element is computed first, so that no turn copies the array."""
    kernels = schedule(prepare(lx.trace(recurrence)(np.zeros(200, "f"))))
    (loop,) = (command for command in kernels.steps if isinstance(command, Repeat))
    steps = list(steps_of(loop.commands))
    assert [str(node.type) for step in steps for node in step.kernel.graph.outputs if node.shape] == ["f32[200]"]
    (update,) = (step for step in steps if step.kernel.kind == "routine")
    assert update.writes[0][0] in update.reads[0]


@pytest.mark.usefixtures("on_a_cpu_driver")
@pytest.mark.parametrize(
    "name",
    ["while", "a while in a scan", "a while in a while", "a while in a branch of a loop", "a while under a branch"],
)
def test_a_dispatch_stops_and_the_next_one_goes_on_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, arguments = LOOPS[name]
    whole, _ = agree(function, *arguments)
    most = 4000  # little more than the dearest turn takes
    for emitting in (workgroup, stopping):
        monkeypatch.setattr(emitting, "MOST_OF_TURNS", 2 * most)
    monkeypatch.setattr("lavax.backends.vulkan.emit.loop.writing.MOST_SPENT", most)
    cut, shaders = agree(lambda *given: function(*given), *arguments)
    assert is_by_workgroup(shaders) and f"> {most}) {{" in shaders
    for one, other in zip(whole, cut, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.usefixtures("on_a_cpu_driver")
def test_a_while_is_dispatched_once_if_its_turns_are_few() -> None:
    plan = backend().lower(lx.trace(while_in_while)(X)).plan
    (loop,) = (command for command in plan.commands if isinstance(command, UntilFlag))
    assert len(loop.commands) == 1


@pytest.mark.usefixtures("on_a_cpu_driver")
@pytest.mark.parametrize("name", ["products", "an odd number of products", "products inside", "stacked in reverse"])
def test_carries_far_apart_are_copied(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, arguments = LOOPS[name]
    near, shaders = agree(function, *arguments)
    assert "abs(bytes) < 4294967296l" in shaders
    monkeypatch.setattr("lavax.backends.vulkan.emit.loop.writing.FARTHEST", 0)
    far, shaders = agree(lambda *given: function(*given), *arguments)
    assert "abs(bytes) < 0l" in shaders
    for one, other in zip(near, far, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.usefixtures("on_a_cpu_driver")
def test_carries_go_from_row_to_row() -> None:
    """Only the first turn copies what it was given to its row."""
    _, shaders = agree(*LOOPS["stacked carries"][:1], *LOOPS["stacked carries"][1])
    assert " == 0 || turn0 == 0) {" in shaders and "turn0 + 1 < int(words[" in shaders


def test_no_turns() -> None:
    found, _ = agree(lambda x: lx.fori_loop(3, 3, lambda i, c: c[::-1] * 0.5 + lnp.sum(c), x), X)
    np.testing.assert_array_equal(found[0], X)


def test_the_shader_calls_kernels_turn_by_turn() -> None:
    graph = lx.trace(lambda x: lx.fori_loop(0, 12, lambda i, c: lnp.cos(c + lnp.sum(c)), x))(X)
    *_, loop = emit_program(schedule(prepare(graph)), CPU_DRIVER).dispatches
    assert loop.groups == (1, 1, 1) and loop.words[0] == 12
    assert (
        loop.shader.source.partition("uint64_t address0;")[2]
        == """
void kernel0(uint group_of_turn) {
    uint64_t p0 = address0;
    uint64_t p1 = address0;
    int i = int((group_of_turn) * 8u + gl_LocalInvocationID.x);
    if (i >= 1) return;
    float v1 = float(float(0));
    for (int k = 0; k < 6; k += 1) {
        float v2 = F32(p0).data[k + low_bits(p0)];
        v1 = (v1 + v2);
    }
    for (int k = 0; k < 6; k += 1) {
        float v3 = F32(p0).data[k + low_bits(p0)];
        float v4 = (v3 + v1);
        float v5 = lx_cos(v4);
        F32(p1).data[k + low_bits(p1)] = v5;
    }
}
void main() {
    address0 = table.address[words[0]];
    for (int turn0 = 0; turn0 < int(words[1]); ++turn0) {
        subgroupBarrier();
        kernel0(0u);
    }
}
"""
    )


def test_a_workgroup_of_several_subgroups_waits_by_barriers() -> None:
    graph = lx.trace(lambda x: lx.fori_loop(0, 12, lambda i, c: lnp.cos(c + lnp.sum(c)), x))(X)
    *_, loop = emit_program(
        schedule(prepare(graph)), replace(CPU_DRIVER, min_subgroup_size=4, names_subgroup_size=False)
    ).dispatches
    assert loop.shader.source.count("memoryBarrier();\n        barrier();") == 1
    assert "subgroupBarrier" not in loop.shader.source


def test_rows_that_nobody_reads_are_not_stacked() -> None:
    def last(h: Any, w: Any, rows: Any) -> Any:
        return lx.scan(lambda h, x: (lnp.tanh(h @ w + x), (h * 2, h * 3)), h, rows)[1][1]

    agree(last, H, W, ROWS)
    target = target_of(CPU_DRIVER, 1 << 34, 1 << 32)
    kernels = str(schedule(prepare(lx.trace(last)(H, W, ROWS), target), target=target))
    assert "row0" in kernels and "row1" not in kernels and "2.0" not in kernels


def test_a_dispatch_takes_a_bounded_number_of_turns() -> None:
    """An invocation makes fewer iterations than drivers end loops after, and a dispatch ends in time."""
    graph = lx.trace(rnn)(H, W, np.zeros((100000, 3, 5), "f"))
    plan = emit_program(schedule(prepare(graph)), CPU_DRIVER)
    (loop,) = (command for command in plan.commands if isinstance(command, RepeatDispatches))
    (dispatch,) = loop.commands
    assert isinstance(dispatch, Dispatch)
    turns = dispatch.words[0]
    assert 8 <= turns < 40000 // 5
    rest = plan.commands[-1]
    assert isinstance(rest, Dispatch) and loop.count * turns + rest.words[0] == 100000


def test_the_last_look_of_each_loop_counts() -> None:
    """Rows whose walks end at their first element: half of all iterations only end loops."""

    def greatest(x: Any, walks: int) -> Any:
        found = lnp.max(x, -1, keepdims=True)
        for _ in range(walks):
            found = lnp.max(lnp.abs(x + found) - x, -1, keepdims=True)
        return found + 1 + 0 * x

    def turn(x: Any) -> Any:
        return greatest(lnp.cumsum(0 * greatest(x, 22), 0) + x.T + 1, 22)

    def turns(x: Any) -> Any:
        return lx.fori_loop(0, 500, lambda i, c: (turn(c[0]), c[1] + 1), (x, lnp.int32(0)))

    x, count = lx.compile(turns)(np.zeros((8, 8), "f"))
    assert int(count) == 500 and (np.asarray(x) == 1000).all()
