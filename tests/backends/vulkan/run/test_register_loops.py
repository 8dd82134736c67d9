"""Loops whose arrays stay in the registers of one subgroup, on the device, against the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.loop.registers import choose, held, kernel
from tests.backends.vulkan.run.loop_agreement import agree

pytestmark = pytest.mark.usefixtures("on_a_cpu_driver")  # loops run in registers there alone

random = np.random.default_rng(5)
X, LONG = random.normal(size=6).astype("f"), random.normal(size=21).astype("f")
TABLE = random.normal(size=(5, 9)).astype("f")
A, B = random.normal(size=(3, 8, 4)).astype("f"), random.normal(size=(3, 4, 5)).astype("f")


def turns(body: Callable[[Any, Any], Any], count: int = 5) -> Callable[..., Any]:
    return lambda *given: lx.fori_loop(0, count, lambda i, c: body(i, c), given[0] if len(given) == 1 else given)


def moved(i: Any, c: Any) -> Any:
    """Each way of moving elements, between registers and within them."""
    turned = lnp.roll(c.T, 3, axis=0)[::-1, 1:4]
    wide = lnp.pad(turned, ((0, 0), (1, 1)), constant_values=0.5)
    return lnp.cos(wide.T * 0.7 + c * 0.3 + lnp.arange(45.0).reshape(5, 9) / 50 + lnp.concatenate([c[2:], c[:2]]))


def folded(i: Any, c: Any) -> Any:
    """Sums and extrema along either axis and both, of odd and even extents."""
    along = lnp.sum(c, axis=0) * 0.1 + lnp.max(c, axis=0)
    across = lnp.min(c, axis=1) - lnp.prod(c[:, :3], axis=1)
    return lnp.sin(c + along + across[:, None]) * 0.9 + lnp.mean(c)


def placed(i: Any, c: Any) -> Any:
    """Positions of extrema, with equals and NaN, and elements and rows by them."""
    rounded = lnp.round(c * 2)
    best, least = lnp.argmax(rounded, axis=1), lnp.argmin(lnp.where(c > 1, lnp.nan, rounded), axis=0)
    across, down = c[i % 5, least], c[best % 5, i] + best
    return lnp.cos(c + across * 0.3 + down[:, None] + c[least[0] % 5, :5][:, None])


def picked(i: Any, c: Any) -> Any:
    column = c[:, (i * 4) % 9][:, None]
    outside = c[lnp.array([7, -9, 2]), lnp.array([i, i + 20, 3])]
    return lnp.tanh(c * 0.5 + column + lnp.sum(outside) + c[i])


def updated(i: Any, c: Any) -> Any:
    """Elements, rows and columns; one update lies outside, and two meet."""
    c = c.at[i, (i * 5) % 9].set(c[0, 0] + 1).at[i].add(c[(i + 2) % 5] * 0.5).at[:, i + 6].multiply(0.5)
    return c.at[lnp.array([1, 1, 4]), lnp.array([2, 2, i])].add(lnp.array([0.5, 0.25, 1])).at[0, 3].max(0.1)


def joined(x: Any, places: Any, y: Any) -> Any:
    """More updates than elements, of which several meet and some lie outside; the last of these is set."""

    def turn(i: Any, c: Any) -> Any:
        c = c.at[places].min(c[places[::-1]] * 0.9 + y)
        return c.at[places + i].set(y).at[places].add(c[0] * y)

    return lx.fori_loop(0, 3, turn, x)


def from_texels(c: Any, table: Any, rows: Any, truths: Any, numbers: Any) -> Any:
    """Arrays that are long enough for texels: whole, by rows, and by computed places."""

    def turn(c: Any, row: Any) -> Any:
        x, n, holds = row
        c = lnp.tanh(table @ c + x * 0.1) + lnp.where(holds, numbers[n % 200], 0.5)
        return c, c[0]

    return lx.scan(turn, c, (rows, lnp.arange(40) * 7, truths))


def whole_numbers(i: Any, c: Any) -> Any:
    n, truths, u = c
    n = lnp.where(truths, n * 3 + i, n // 2) ^ lnp.max(n)
    u = (u << 3) ^ (u >> 5) ^ n[::-1].astype("uint32")
    return n % 1000, (n % 2 == 0) != lnp.any(truths[:3]), u


def products(i: Any, c: Any) -> Any:
    """By steps of the sum and as one, with batches."""
    a, b = c
    both = a @ b
    small = lnp.einsum("bij,bkj->bik", both[:, :3], both[:, 4:7]) * 0.1
    vectors = lnp.einsum("bij,bj->bi", small, a[:, 0, :3])
    return lnp.tanh(lnp.einsum("bik,bjk->bij", both, b)), lnp.cos(b + vectors.sum())


def nested(x: Any) -> Any:
    inner = lambda j, t: lnp.sin(t + lnp.roll(t, 1) * 0.3 + j)  # noqa: E731

    def turn(i: Any, c: Any) -> Any:
        c = lx.fori_loop(0, 3, inner, c)
        return lx.switch(i, [lnp.cos, lambda v: lx.cond(v[0] > 0, lambda u: u[::-1], lambda u: u * 0.5, v)], c)

    return lx.fori_loop(0, 5, turn, x)


def exchanged(i: Any, c: Any) -> Any:
    return c[1], c[0] + c[1], c[2] * 0.5, c[0]


def stacked(reverse: bool) -> Callable[..., Any]:
    def turn(c: Any, row: Any) -> Any:
        table, n, k = row
        c = lnp.cos(c + table[:, ::-1] * 0.2 + n) + k
        return c, (c * 2, lnp.sum(c), c[0, :3] > 0, table)

    return lambda c, *rows: lx.scan(turn, c, rows, reverse=reverse)


def until(bound: float) -> Callable[..., Any]:
    def turn(state: Any) -> Any:
        c, n = state
        return c[::-1] * 1.1 + lnp.sum(c) * 0.01, n + 1

    return lambda x: lx.while_loop(lambda s: (lnp.sum(s[0] * s[0]) < bound) & (s[1] < 300), turn, (x, 0))


def seen(c: Any, table: Any, numbers: Any) -> Any:
    """Rows and elements of arrays that are read where they are, and one that is also needed whole."""

    def turn(c: Any, n: Any) -> Any:
        return lnp.tanh(c + table[n] + table[lnp.argmax(c) % 5, 2]) + numbers[n] + lnp.sum(numbers), c[0]

    return lx.scan(turn, c, lnp.arange(4))


def keys(key: Any, c: Any) -> Any:
    def turn(state: Any, _: Any) -> Any:
        key, c = state
        key, own = lx.random.split(key)
        return (key, c * 0.5 + lx.random.normal(own, c.shape) + lx.random.uniform(own)), c[0]

    return lx.scan(turn, (key, c), None, length=4)[1]


ROWS = (
    random.normal(size=(7, 5, 9)).astype("f"),
    random.normal(size=7).astype("f"),
    random.integers(0, 3, 7).astype("i"),
)
LOOPS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "moves": (turns(moved), (TABLE,)),
    "folds": (turns(folded), (TABLE,)),
    "places": (turns(placed), (TABLE,)),
    "gathers": (turns(picked), (TABLE,)),
    "updates": (turns(updated, 3), (TABLE,)),
    "many updates": (joined, (LONG, random.integers(-25, 25, 70).astype("i"), random.normal(size=70).astype("f"))),
    "texels": (
        from_texels,
        (
            random.normal(size=12).astype("f"),
            random.normal(size=(12, 12)).astype("f"),
            random.normal(size=(40, 12)).astype("f"),
            random.normal(size=(40, 12)) > 0,
            random.normal(size=200).astype("f"),
        ),
    ),
    "whole numbers": (
        turns(whole_numbers),
        (np.arange(-9, 12, dtype="i"), LONG > 0, np.arange(21, dtype="u4") * 123457),
    ),
    "products": (turns(products, 3), (A, B)),
    "nested": (nested, (LONG,)),
    "exchanged": (turns(exchanged), (LONG, LONG * 2, LONG[:3], LONG * 3)),
    "rows": (stacked(reverse=False), (TABLE, *ROWS)),
    "rows in reverse": (stacked(reverse=True), (TABLE, *ROWS)),
    "while": (until(1e3), (X,)),
    "while that never turns": (until(0), (X,)),
    "read where they are": (seen, (random.normal(size=9).astype("f"), TABLE, LONG[:4])),
    "random keys": (keys, (np.array([3, 7], "u4"), LONG)),
    "lanes": (lx.vmap(lambda x: lx.fori_loop(0, 9, lambda i, c: lnp.tanh(c) - lnp.mean(c), x)), (TABLE,)),
    "gradient": (
        lx.grad(
            lambda x, w: lnp.sum(lx.scan(lambda c, _: (lnp.sin(w @ c), c), x, None, length=6)[1] * x), argnums=(0, 1)
        ),
        (X, random.normal(size=(6, 6)).astype("f")),
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_one_subgroup_runs_a_loop_over_few_elements(name: str) -> None:
    assert "kind=registers" in agree(LOOPS[name][0], *LOOPS[name][1])


@pytest.mark.parametrize("name", ["rows", "rows in reverse", "while"])
def test_long_loops_are_cut_after_any_turn(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lavax.passes.schedule.control_flow.most_turns_in_registers", lambda loop: 3)
    monkeypatch.setattr(kernel, "most_turns_in_registers", lambda loop: 3)
    assert "kind=registers" in agree(LOOPS[name][0], *LOOPS[name][1])


@pytest.mark.parametrize(
    "body",
    [
        lambda i, c: lnp.sort(c),
        lambda i, c: lnp.mean(lnp.sin(lnp.outer(c, c) + lnp.arange(500)[:, None, None] * i), axis=(0, 1)),
        lambda i, c: lx.while_loop(lambda v: v[0] < 5, lambda v: v + 1, c),
    ],
)
def test_other_loops_are_not_written_out(body: Callable[[Any, Any], Any]) -> None:
    """They are dispatches, which are repeated, or recorded one turn after the other."""
    text = agree(turns(body), X)
    assert "repeat 5" in text or "kind=registers" not in text


def test_what_is_written_out_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "REGISTER_LOOPS", choose.RegisterLoops(statements=20))
    assert "kind=registers" not in agree(LOOPS["folds"][0], *LOOPS["folds"][1])


def test_equal_loops_are_asked_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Any] = []
    emit = choose.emit_register_loop
    monkeypatch.setattr(choose, "emit_register_loop", lambda *given, **named: written.append(emit(*given, **named)))
    choose._is_short.cache_clear()

    def thrice(c: Any) -> Any:
        for _ in range(3):
            c = turns(picked)(c * 2) + lnp.sort(c, axis=0)
        return c

    assert agree(thrice, TABLE).count("kind=registers") == 3
    assert len(written) == 1


def test_where_the_elements_of_a_register_come_from() -> None:
    parts = held.parts_of((9, 8, held.FILLED, 3, 3, held.UNUSED, 2, held.UNUSED))
    (first, of_first), (filler, nothing), (second, of_second) = ((part.register, part.lanes) for part in parts)
    assert (first, filler, second) == (1, held.FILLED, 0)
    assert of_first is not None and of_second is not None and nothing is None
    assert of_first[:2] == (1, 0)
    assert (*of_second[3:5], of_second[6]) == (3, 3, 2)
    assert [part.own.count(True) for part in parts] == [2, 1, 3]
    (own,) = held.parts_of((16, 17, held.UNUSED, *range(19, 24)))
    assert own.lanes is None
