"""Prints and callbacks in branches, loops and functions with custom rules: which, in what order, how often."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.tracer.control_flow import loop_log

X = np.array([1.0, 2.0, 3.0], "f")


class Seen:
    """What callbacks were called with."""

    def __init__(self) -> None:
        self.all: list[Any] = []

    def __call__(self, label: str, value: Any) -> None:
        lx.debug.callback(lambda array: self.all.append((label, np.asarray(array).tolist())), value)

    def by(self, call: Callable[[], Any]) -> list[Any]:
        """What `call` shows, which is the same when it is called again."""
        call()
        first = self.all[:]
        self.all.clear()
        return first


def in_every_way(function: Callable[[Seen], Callable[..., Any]], *args: Any) -> list[Any]:
    """What a function of one `Seen` shows, compiled and not, and called a second time."""
    seen = Seen()
    plain, compiled = function(seen), lx.compile(function(seen))
    ways = [seen.by(lambda f=f: f(*args)) for f in (compiled, compiled, plain)]
    assert ways[0] == ways[1] == ways[2]
    return ways[0]


@pytest.mark.parametrize("index", [-1, 0, 1, 5])
def test_only_the_branch_that_is_taken(index: int) -> None:
    def function(seen: Seen) -> Any:
        def one(x: Any) -> Any:
            seen("one", x)
            return x

        def two(x: Any) -> Any:
            seen("two", lnp.sum(x) > 3)
            seen("two", x[0])
            return x * 2

        def f(number: Any, x: Any) -> Any:
            seen("before", number)
            y = lx.switch(number, [one, two, lambda x: x - 1], x)
            seen("after", y[2])
            return y

        return f

    shown = {0: [("one", [1.0, 2.0, 3.0])], 1: [("two", True), ("two", 1.0)], 2: []}[min(max(index, 0), 2)]
    after = {0: 3.0, 1: 6.0, 2: 2.0}[min(max(index, 0), 2)]
    assert in_every_way(function, np.int32(index), X) == [("before", index), *shown, ("after", after)]


def test_a_batch_takes_each_element_its_own_branch() -> None:
    def function(seen: Seen) -> Any:
        def shown(x: Any) -> Any:
            seen("taken", x)
            return x

        return lx.vmap(lambda p, x: lx.cond(p, shown, lambda x: -x, x))

    assert in_every_way(function, np.array([True, False, True]), X) == [("taken", 1.0), ("taken", 3.0)]


def counting(seen: Seen) -> Any:
    """A loop of which the condition and the body show their numbers."""

    def running(state: Any) -> Any:
        seen("asked", state[0])
        return state[0] < state[1]

    def body(state: Any) -> Any:
        after = state[0] + 1
        seen("made", after)
        return after, state[1]

    def f(limit: Any) -> Any:
        last, _ = lx.while_loop(running, body, (lnp.int32(0), limit))
        seen("last", last)
        return last

    return f


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_every_iteration_of_a_while_loop(limit: int) -> None:
    iterations = [each for number in range(limit) for each in (("asked", number), ("made", number + 1))]
    assert in_every_way(counting, np.int32(limit)) == [*iterations, ("asked", limit), ("last", limit)]


def test_while_loops_of_a_batch_show_the_iterations_of_each_element() -> None:
    """First the iterations of all elements, then the condition that ends each, then what follows the loop."""
    iterations = [("asked", 0), ("made", 1), ("asked", 1), ("made", 2), ("asked", 0), ("made", 1)]
    shown = in_every_way(lambda seen: lx.vmap(counting(seen)), np.array([2, 1], "i"))
    assert sorted(shown) == sorted([*iterations, ("asked", 2), ("asked", 1), ("last", 2), ("last", 1)])
    assert [pair for pair in shown if pair[0] == "made"] == [pair for pair in iterations if pair[0] == "made"]


def test_more_iterations_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_log, "MAX_LOOP_ITERATIONS", 3)
    seen = Seen()

    def body(x: Any) -> Any:
        seen("number", x)
        return x + 1

    with pytest.warns(RuntimeWarning, match="ran 10 iterations.*the first 3 of them"):
        assert int(lx.compile(lambda x: lx.while_loop(lambda x: x < 10, body, x))(0)) == 10
    assert seen.all == [("number", 0), ("number", 1), ("number", 2)]


def test_how_many_iterations_are_kept() -> None:
    scalar, large = (lx.ir.TensorType(shape, lx.ir.float32) for shape in ((), (1 << 20,)))
    assert loop_log.capacity_for([scalar, scalar]) == loop_log.MAX_LOOP_ITERATIONS == 1024
    assert loop_log.capacity_for([large]) == 1
    assert loop_log.capacity_for([lx.ir.TensorType((1024, 2), lx.ir.float32)]) == 512


def test_loops_and_branches_within_one_another() -> None:
    def function(seen: Seen) -> Any:
        def odd(x: Any) -> Any:
            seen("odd", x)
            return x + 1

        def grown(x: Any) -> Any:
            def body(v: Any) -> Any:
                seen("grown", v)
                return v * 2

            return lx.while_loop(lambda v: v < 8, body, x)

        def step(carry: Any, x: Any) -> Any:
            carry = lx.cond(x % 2 == 1, odd, grown, carry)
            seen("carry", carry)
            return carry, lx.fori_loop(0, x, body_of(seen), 0)

        def body_of(seen: Seen) -> Any:
            def body(number: Any, total: Any) -> Any:
                seen("number", number)
                return total + number

            return body

        return lambda xs: lx.scan(step, lnp.int32(1), xs)

    expected = []
    carry = 1
    for x in (1, 2, 3):
        if x % 2:
            expected.append(("odd", carry))
            carry += 1
        else:
            while carry < 8:
                expected.append(("grown", carry))
                carry *= 2
        expected += [("carry", carry), *(("number", number) for number in range(x))]
    assert in_every_way(function, np.array([1, 2, 3], "i")) == expected


def test_unrolled_scans() -> None:
    def function(seen: Seen, reverse: bool) -> Any:
        def step(carry: Any, x: Any) -> Any:
            seen("x", x)
            return carry + x, None

        return lambda xs: lx.scan(step, 0, xs, unroll=2, reverse=reverse)[0]

    xs = np.arange(4, dtype="i")
    for reverse in (False, True):
        order = xs[::-1] if reverse else xs
        assert in_every_way(lambda seen, r=reverse: function(seen, r), xs) == [("x", int(x)) for x in order]


def custom_functions(seen: Seen) -> list[Any]:
    @lx.custom_vjp
    def f(x: Any) -> Any:
        seen("value", x)
        return x * x

    @lx.custom_jvp
    def g(x: Any) -> Any:
        seen("value", x)
        return x * x

    f.defvjp(lambda x: (f(x), x), lambda x, t: (7 * x * t,))
    g.defjvp(lambda primals, tangents: (g(*primals), 7 * primals[0] * tangents[0]))
    return [f, g]


@pytest.mark.parametrize("kind", [0, 1], ids=["vjp", "jvp"])
def test_functions_with_rules_show_their_values_once(kind: int) -> None:
    once = [("value", 2.0)]
    for transform in (
        lambda f: f,
        lx.grad,
        lx.hessian,
        lambda f: lambda x: lx.jvp(f, (x,), (x,)),
        lambda f: lambda x: lx.checkpoint(f)(x),
    ):
        assert in_every_way(lambda seen, t=transform: t(custom_functions(seen)[kind]), np.float32(2)) == once
    gradient = lx.grad(custom_functions(Seen())[kind])
    assert float(gradient(2.0)) == 14
    mapped = in_every_way(lambda seen: lx.vmap(custom_functions(seen)[kind]), X)
    assert mapped == [("value", 1.0), ("value", 2.0), ("value", 3.0)]
    looped = in_every_way(
        lambda seen: lambda x: lx.while_loop(lambda v: v < 20, custom_functions(seen)[kind], x), np.float32(2)
    )
    assert looped == [("value", 2.0), ("value", 4.0), ("value", 16.0)]


def test_derivatives_through_branches_and_loops_show_the_values_once() -> None:
    def function(seen: Seen, derivative: Any) -> Any:
        def shown(x: Any) -> Any:
            seen("x", x)
            return x * x

        def loss(x: Any) -> Any:
            return lx.scan(lambda c, _: (lx.cond(c > 1, shown, lambda c: c + 1, c), None), x, None, length=3)[0]

        return derivative(loss)

    expected = [("x", 1.5), ("x", 2.25)]
    for derivative in (lx.grad, lx.hessian, lambda f: lambda x: lx.jvp(f, (x,), (x,))[1]):
        assert in_every_way(lambda seen, d=derivative: function(seen, d), np.float32(0.5)) == expected

    def forward(seen: Seen) -> Any:
        def body(x: Any) -> Any:
            seen("x", x)
            return x * x

        return lambda x: lx.jvp(lambda x: lx.while_loop(lambda v: v < 4, body, x), (x,), (x,))[1]

    assert in_every_way(forward, np.float32(1.5)) == expected


def test_no_traced_values_are_kept() -> None:
    seen = Seen()
    with lx.check_leaks():
        lx.compile(counting(seen))(np.int32(2))
        lx.compile(lx.grad(custom_functions(seen)[0]))(2.0)
