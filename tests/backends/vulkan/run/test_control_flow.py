"""Branches and loops: what they compute, traced and run on the device, against the same thing in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.device.commands import COUNTED, PLAIN, Recorder
from lavax.backends.vulkan.plan.profile import CPU_DRIVER
from lavax.backends.vulkan.target import target_of
from lavax.base.errors import ConcretizationError, ControlFlowTypeError, ReverseModeError, ShapeError
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import simplify
from tests.backends.vulkan.run.execution import backend

random = np.random.default_rng(7)
X = random.normal(size=5).astype("f")
W = (random.normal(size=(5, 5)) * 0.5).astype("f")


@pytest.mark.parametrize("is_counted", [False, True])
def test_only_programs_with_numbers_of_workgroups_in_memory_wait_for_who_reads_them(
    is_counted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[Any] = []
    recorded = Recorder.wait

    def wait(self: Recorder, dependency: Any) -> None:
        waits.append(dependency)
        recorded(self, dependency)

    def f(n: Any, x: Any) -> Any:
        total = lnp.sum(x)
        if not is_counted:
            return lnp.cumsum(x - total)
        return lx.cond(n > 0, lambda x: x * total, lambda x: x - total, x)

    program = backend().lower(simplify(lx.trace(f)(np.int32(1), X))).compile
    monkeypatch.setattr(Recorder, "wait", wait)
    program()
    chosen = COUNTED if is_counted else PLAIN
    assert {id(dependency) for dependency in waits} == {id(chosen.between), id(chosen.after)}


def collatz(n: Any) -> Any:
    """How many steps to 1."""

    def body(state: Any) -> Any:
        n, steps = state
        return lnp.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

    return lx.while_loop(lambda state: state[0] != 1, body, (n, lnp.int32(0)))[1]


def recurrence(w: Any, h: Any, length: int = 6, reverse: bool = False) -> Any:
    def body(h: Any, x: Any) -> Any:
        h = lnp.tanh(w @ h + x)
        return h, {"sum": lnp.sum(h), "state": h}

    xs = lnp.arange(length * 5, dtype=lnp.float32).reshape(length, 5) / 10
    return lx.scan(body, h, xs, reverse=reverse)


def expected_recurrence(w: Any, h: Any, reverse: bool = False) -> Any:
    xs = np.arange(30).reshape(6, 5) / 10
    states = []
    for x in xs[::-1] if reverse else xs:
        h = np.tanh(w @ h + x)
        states.append(h)
    states = np.array(states[::-1] if reverse else states)
    return h, {"sum": states.sum(1), "state": states}


@pytest.mark.parametrize("run", [lambda f: f, lx.compile], ids=["outside compile", "compiled"])
@pytest.mark.parametrize("n", [1, 27, 97])
def test_while_runs_as_often_as_the_data_say(run: Callable[..., Any], n: int) -> None:
    steps, m = 0, n
    while m != 1:
        m, steps = (m // 2 if m % 2 == 0 else 3 * m + 1), steps + 1
    assert int(run(collatz)(n)) == steps


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("run", [lambda f, **_: f, lx.compile], ids=["outside compile", "compiled"])
def test_scan_stacks_what_each_step_gives(run: Callable[..., Any], reverse: bool) -> None:
    last, stacked = run(recurrence, static_argnames=("length", "reverse"))(W, X, reverse=reverse)
    expected_last, expected = expected_recurrence(W, X, reverse=reverse)
    np.testing.assert_allclose(last, expected_last, rtol=1e-5)
    np.testing.assert_allclose(stacked["sum"], expected["sum"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(stacked["state"], expected["state"], rtol=1e-5, atol=1e-6)


def test_unrolled_scan_gives_the_same() -> None:
    def cumulative(unroll: int) -> Any:
        step = lambda total, x: (total + x["a"], (total, x["a"] * 2))  # noqa: E731
        return lx.scan(step, 0.0, {"a": lnp.arange(12.0)}, unroll=unroll)

    for plain, unrolled in zip(lx.tree.leaves(cumulative(1)), lx.tree.leaves(cumulative(4)), strict=True):
        np.testing.assert_array_equal(plain, unrolled)


def test_a_loop_may_swap_what_it_carries() -> None:
    swapped = lx.fori_loop(0, 3, lambda i, pair: (pair[1], pair[0]), (lnp.asarray(X), lnp.asarray(2 * X)))
    np.testing.assert_array_equal(swapped[0], 2 * X)
    np.testing.assert_array_equal(swapped[1], X)


@pytest.mark.usefixtures("no_register_loops")
def test_scan_compiles_its_body_once() -> None:
    def kernels(length: int) -> str:
        def scanned(w: Any, h: Any) -> Any:
            return lx.scan(lambda h, _: (lnp.tanh(w @ h), None), h, None, length=length)[0]

        target = target_of(CPU_DRIVER, 1 << 34, 1 << 32)  # others record several turns at once
        return str(schedule(prepare(lx.trace(scanned)(W, X), target), target=target))

    assert kernels(10).replace("repeat 10", "repeat 10000") == kernels(10_000)


@pytest.mark.parametrize("taken", [False, True])
def test_cond_takes_one_branch(taken: bool) -> None:
    compiled = lx.compile(lambda p, x: lx.cond(p, lambda x: x * 2, lambda x: -x, x))
    np.testing.assert_array_equal(compiled(taken, X), 2 * X if taken else -X)
    np.testing.assert_array_equal(lx.cond(taken, lambda x: x * 2, lambda x: -x, X), 2 * X if taken else -X)


@pytest.mark.parametrize("index", [-3, 0, 1, 2, 9])
def test_switch_moves_its_index_into_the_range(index: int) -> None:
    branches = [lambda x: x, lambda x: x + 1, lambda x: lnp.sin(x)]
    expected = [X, X + 1, np.sin(X)][min(max(index, 0), 2)]
    np.testing.assert_allclose(lx.compile(lambda i, x: lx.switch(i, branches, x))(index, X), expected, rtol=1e-6)


def nested(x: Any, n: Any) -> Any:
    """A while around a scan around a cond; the while's count depends on data."""

    def step(total: Any, value: Any) -> Any:
        total = lx.cond(value > 0, lambda t: t + value, lambda t: t * 0.5, total)
        return total, total

    def turn(state: Any) -> Any:
        count, total, _ = state
        total, all_totals = lx.scan(step, total, x)
        return count + 1, total, all_totals

    return lx.while_loop(lambda state: state[0] < n, turn, (0, lnp.float32(1.0), lnp.zeros(5, lnp.float32)))


def expected_nested(x: Any, n: int) -> Any:
    total, all_totals = np.float32(1), np.zeros(5)
    for _ in range(n):
        all_totals = []
        for value in x:
            total = total + value if value > 0 else total * 0.5
            all_totals.append(total)
    return n, total, np.array(all_totals)


def test_a_scan_goes_through_the_cases_of_a_switch() -> None:
    """In its body, in a branch that is handed the case, and in a scan within."""
    cases = np.array([0, 2, 1, 1, 5, -3], "i")

    def chosen(carry: Any, case: Any) -> Any:
        inner = [lambda c: c, lnp.sin, lnp.cos]
        return lx.switch(case, [lambda c, _: c * c, lambda c, i: lx.switch(i, inner, c)], carry, case)

    def scanned(carry: Any, cases: Any) -> Any:
        return lx.scan(lambda c, case: (chosen(c, case), None), carry, cases)[0]

    def within(carry: Any, rows: Any) -> Any:
        return lx.scan(lambda c, row: (scanned(c, row), None), carry, rows)[0]

    def expected(carry: Any) -> Any:
        for case in cases:
            carry = carry * carry if case <= 0 else [np.sin, np.cos][min(int(case), 2) - 1](carry)
        return carry

    once = expected(X.astype("f8"))
    np.testing.assert_allclose(lx.compile(scanned)(X, cases), once, rtol=1e-5)
    np.testing.assert_allclose(lx.compile(within)(X, np.stack([cases, cases])), expected(once), rtol=1e-5)


@pytest.mark.parametrize("n", [0, 1, 7])
def test_regions_nest_to_any_depth(n: int) -> None:
    for got, want in zip(lx.compile(nested)(X, n), expected_nested(X, n), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_a_loop_inside_a_branch_not_taken_does_nothing() -> None:
    def doubled(x: Any) -> Any:
        return lx.while_loop(lambda x: lnp.sum(x) < 100, lambda x: 2 * x, x)

    compiled = lx.compile(lambda p, x: lx.cond(p, doubled, lambda x: x - 1, x))
    x = np.full(3, 0.5, "f")
    np.testing.assert_array_equal(compiled(False, x), x - 1)
    np.testing.assert_array_equal(compiled(True, x), np.full(3, 64.0))
    np.testing.assert_array_equal(compiled(False, x), x - 1)


def test_gradients_go_through_loops_and_branches() -> None:
    def loss(w: Any) -> Any:
        return lnp.sum(recurrence(w, X)[0] ** 2)

    def reference(w: Any) -> Any:
        return (expected_recurrence(w, X.astype("f8"))[0] ** 2).sum()

    gradient = np.asarray(lx.grad(loss)(W))
    compiled = np.asarray(lx.compile(lx.grad(loss))(W))
    for place in [(0, 0), (1, 2), (4, 3)]:
        step = np.zeros((5, 5))
        step[place] = 1e-6
        slope = (reference(W + step) - reference(W - step)) / 2e-6
        np.testing.assert_allclose([gradient[place], compiled[place]], slope, rtol=2e-4, atol=1e-5)
    np.testing.assert_allclose(lx.grad(lambda x: lx.cond(x > 0, lambda x: x**2, lambda x: x**3, x))(-2.0), 12.0)


def test_kernel_interpreter_runs_regions() -> None:
    for function, arguments in [
        (collatz, (27,)),
        (recurrence, (W, X)),
        (nested, (X, 3)),
        (lx.grad(lambda w: lnp.sum(recurrence(w, X)[0])), (W,)),
    ]:
        graph = simplify(lx.trace(function)(*arguments))
        leaves = [np.asarray(leaf) for leaf in lx.tree.leaves(arguments)]
        arrays = leaves + [X] * (len(graph.inputs) - len(leaves))
        expected = lx.ir.interpret(graph, *arrays)
        for got, want in zip(interpret_kernels(schedule(prepare(graph)), *arrays), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9)


def test_mistakes_name_the_leaf_and_the_types() -> None:
    with pytest.raises(ControlFlowTypeError, match=r"branch 1 gives f32\[3\].*f32\[5\]"):
        lx.cond(True, lambda x: x[:3], lambda x: x, lnp.asarray(X))
    with pytest.raises(ControlFlowTypeError, match="structure"):
        lx.cond(True, lambda x: (x, x), lambda x: x, lnp.asarray(X))
    with pytest.raises(ControlFlowTypeError, match=r"gives f32\[5\].*has i32\[5\]"):
        lx.scan(lambda c, _: (c * 0.5, None), lnp.arange(5), None, length=3)
    with pytest.raises(ControlFlowTypeError, match="scalar bool"):
        lx.while_loop(lambda x: x, lambda x: x, lnp.asarray(X))
    with pytest.raises(ShapeError, match="leading extents"):
        lx.scan(lambda c, x: (c, x), 0, (lnp.zeros(3), lnp.zeros(4)))
    with pytest.raises(ShapeError, match="scalar"):
        lx.cond(lnp.asarray(X) > 0, lambda x: x, lambda x: x, X)
    with pytest.raises(ReverseModeError, match="while_loop"):
        lx.compile(lx.grad(lambda x: lx.while_loop(lambda x: x < 9, lambda x: 2 * x, x)))(1.0)
    with pytest.raises(ConcretizationError):
        lx.compile(lambda n: lx.scan(lambda c, _: (c, None), 0, None, length=int(n)))(3)


def test_forward_mode_goes_through_all_of_them() -> None:
    def doubling(x: Any) -> Any:
        return lx.while_loop(lambda x: lnp.sum(x) < 100, lambda x: x * x * 1.5 + 1, x)

    def reference(x: Any) -> Any:
        while x.sum() < 100:
            x = x * x * 1.5 + 1
        return x

    x, t = np.array([0.5, 1.0, 0.2]), np.array([1.0, -1.0, 0.5])
    value, tangent = lx.jvp(doubling, (x.astype("f"),), (t.astype("f"),))
    np.testing.assert_allclose(value, reference(x), rtol=1e-5)
    np.testing.assert_allclose(tangent, (reference(x + 1e-7 * t) - reference(x - 1e-7 * t)) / 2e-7, rtol=1e-4)
    last, pushed = lx.jvp(lambda w: recurrence(w, X), (W,), (np.ones((5, 5), "f"),))
    ends = [expected_recurrence(W.astype("f8") + step, X.astype("f8")) for step in (1e-6, -1e-6)]
    np.testing.assert_allclose(pushed[0], (ends[0][0] - ends[1][0]) / 2e-6, rtol=1e-3, atol=1e-5)
    slope = (ends[0][1]["state"] - ends[1][1]["state"]) / 2e-6
    np.testing.assert_allclose(pushed[1]["state"], slope, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(last[0], expected_recurrence(W, X)[0], rtol=1e-5)
    branch = lambda x: lx.cond(x > 0, lambda x: x**2, lambda x: x**3, x)  # noqa: E731
    assert float(lx.jvp(lx.compile(branch), (-2.0,), (1.0,))[1]) == 12.0


def test_vmap_goes_through_all_of_them() -> None:
    ns = np.array([1, 27, 6, 97], np.int32)
    np.testing.assert_array_equal(lx.compile(lx.vmap(collatz))(ns), [int(collatz(int(n))) for n in ns])
    xs = np.stack([X, 2 * X, -X])
    last, stacked = lx.vmap(lambda h: recurrence(W, h))(xs)
    for row, h in enumerate(xs):
        expected_last, expected = expected_recurrence(W, h)
        np.testing.assert_allclose(last[row], expected_last, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(stacked["state"][row], expected["state"], rtol=1e-4, atol=1e-5)
    branch = lambda p, x: lx.cond(p, lambda x: x * 2, lambda x: lnp.sin(x), x)  # noqa: E731
    taken = np.array([True, False, True])
    expected_rows = np.where(taken[:, None], xs * 2, np.sin(xs))
    np.testing.assert_allclose(lx.compile(lx.vmap(branch))(taken, xs), expected_rows, rtol=1e-6)
    np.testing.assert_allclose(lx.vmap(branch, in_axes=(None, 0))(True, xs), xs * 2)
    gradients = lx.vmap(lx.grad(lambda h: lnp.sum(recurrence(W, h)[0])))(xs)
    one = lx.grad(lambda h: lnp.sum(recurrence(W, h)[0]))(xs[1])
    np.testing.assert_allclose(gradients[1], one, rtol=1e-4, atol=1e-5)


def test_hessian_through_a_scan() -> None:
    loss = lambda h: lnp.sum(recurrence(W, h, 3)[0])  # noqa: E731
    hessian = np.asarray(lx.compile(lx.hessian(loss))(X))
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-3, atol=1e-4)
    gradient = lx.grad(loss)
    column = (
        np.asarray(gradient(X + 1e-2 * np.eye(5, dtype="f")[2]))
        - np.asarray(gradient(X - 1e-2 * np.eye(5, dtype="f")[2]))
    ) / 2e-2
    np.testing.assert_allclose(hessian[:, 2], column, rtol=3e-2, atol=1e-2)


def test_bounds_from_numpy_are_static() -> None:
    """So the loop has reverse mode, as with Python's integers."""
    power = lambda x: lx.fori_loop(np.int32(0), np.asarray([3])[0], lambda i, value: value * x, 1.0)  # noqa: E731
    assert float(lx.grad(power)(2.0)) == 12
    assert float(lx.compile(lx.grad(power))(2.0)) == 12


def test_a_loop_may_begin_with_the_array_it_goes_through() -> None:
    """The copy of what it begins with is of the size of that, not of what the loop stacks."""

    def f(x: Any) -> Any:
        return lx.scan(lambda c, e: (c + e, c * e), x, x)

    graph = lx.trace(f)(X)
    last, stacked = interpret_kernels(schedule(prepare(simplify(graph)), ()), X)
    for found in ((last, stacked), lx.compile(f)(X)):
        np.testing.assert_allclose(found[0], X + X.sum(), rtol=1e-5)
        np.testing.assert_allclose(found[1], (X + (np.cumsum(X) - X)[:, None]) * X[:, None], rtol=1e-4, atol=1e-5)
