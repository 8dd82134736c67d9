"""Tables of loops in registers, which stay in memory: on the device, against NumPy in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.loop.registers import kernel
from lavax.passes.fuse import register_tables
from tests.backends.vulkan.run.loop_agreement import agree

pytestmark = pytest.mark.usefixtures("on_a_cpu_driver")  # loops run in registers there alone

random = np.random.default_rng(8)
LINE, GRID = random.normal(size=150).astype("f"), random.normal(size=(13, 11)).astype("f")
NUMBERS = random.integers(0, 150, 40).astype("i")


def recurrence(x: Any) -> Any:
    return lx.fori_loop(2, 140, lambda i, c: c.at[i].set(c[i - 1] * 0.5 + lnp.sin(c[i - 2])), x)


def before_and_after(x: Any, numbers: Any) -> Any:
    """A place is read as it was, whatever its update computes, and as it is from then on."""

    def turn(c: Any, n: Any) -> Any:
        changed = c.at[n].add(0.25)
        again = changed.at[(n * 7) % 150].multiply(changed[n])
        return again, (c[n], changed[n], c[(n * 7) % 150] - again[(n * 7) % 150])

    return lx.scan(turn, x, numbers)


def windows(x: Any) -> Any:
    """Rows, columns and elements; some lie outside, some meet."""

    def turn(i: Any, c: Any) -> Any:
        c = c.at[i].set(c[(i * 5) % 13] * 0.5 + 1).at[:, (i * 3) % 11].add(c[:, i])
        return c.at[lnp.array([1, 2, 1]), lnp.array([i, 3, i])].max(c[i, 2] * 2).at[i + 11, 4].set(9.0)

    return lx.fori_loop(0, 9, turn, x)


def several(x: Any, grid: Any) -> Any:
    """Two tables, one of whole numbers, beside an array in registers."""

    def turn(i: Any, state: Any) -> Any:
        table, counts, c = state
        place = lnp.argmax(c) * 7 + i
        c = lnp.cos(c * 0.5 + lnp.arange(9.0) + table[place] + counts[i % 13, lnp.argmin(c) % 11])
        return table.at[place].set(c[0]), counts.at[i % 13, place % 11].add(1), c

    return lx.fori_loop(0, 20, turn, (x, (grid * 5).astype("int32"), x[:9]))


def edits(x: Any) -> Any:
    """A loop inside carries the table on."""

    def row(i: Any, d: Any) -> Any:
        cell = lambda j, d: d.at[i, j].set(lnp.minimum(d[i - 1, j], d[i, j - 1]) + lnp.abs(d[i, j]))  # noqa: E731
        return lx.fori_loop(1, 11, cell, d).at[i, 0].add(1.0)

    return lx.fori_loop(1, 13, row, x)[12]


def without_order(x: Any) -> Any:
    """A loop inside reads an element as it was, where one that has been set says."""

    def cell(j: Any, c: Any) -> Any:
        changed = c.at[j].set(c[j + 1] * 0.5 + 3)
        return changed.at[j + 2].add(c[lnp.where(changed[j] > 3, j, j + 3)] * 0.5)

    return lx.fori_loop(0, 20, lambda i, c: lx.fori_loop(0, 5, cell, c), x)


def until(x: Any) -> Any:
    def turn(state: Any) -> Any:
        c, n = state
        return c.at[n].set(-c[n]), n + 1

    return lx.while_loop(lambda s: (s[0][s[1]] < 1.2) & (s[1] < 140), turn, (x, 0))


def marked(x: Any) -> Any:
    """Truth values, of which nobody reads the last ones."""

    def turn(state: Any, n: Any) -> Any:
        seen, found = state
        return (seen.at[n].set(~seen[n]), found + lnp.where(seen[n], x[n], 1.0)), None

    return lx.scan(turn, (x > 0, np.float32(0)), NUMBERS)[0][1]


LOOPS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "recurrence": (recurrence, (LINE,)),
    "before and after": (before_and_after, (LINE, NUMBERS)),
    "windows": (windows, (GRID,)),
    "several": (several, (LINE, GRID)),
    "edits": (edits, (GRID,)),
    "until": (until, (LINE,)),
    "marked": (marked, (LINE,)),
    "gradient": (lx.grad(lambda x: lnp.sum(recurrence(x) * lnp.cos(x))), (LINE,)),
}


@pytest.mark.parametrize("name", LOOPS)
def test_tables_are_read_and_updated_in_memory(name: str) -> None:
    function, arguments = LOOPS[name]
    assert "kind=registers" in agree(function, *arguments)


@pytest.mark.parametrize("name", ["recurrence", "before and after", "several", "until"])
def test_tables_go_on_after_any_turn(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lavax.passes.schedule.control_flow.most_turns_in_registers", lambda loop: 3)
    monkeypatch.setattr(kernel, "most_turns_in_registers", lambda loop: 3)
    function, arguments = LOOPS[name]
    assert "kind=registers" in agree(function, *arguments)


def test_a_table_in_a_loop_of_a_workgroup() -> None:
    """The table moves with the outer loop's rows; a sort keeps that from registers."""

    def turn(c: Any, row: Any) -> Any:
        c = lnp.sort(recurrence(row) + c)
        return c * 0.5, c

    agree(lambda x, rows: lx.scan(turn, x, rows)[1], LINE, np.stack([LINE[::-1], LINE, LINE * 2]))


def _tables(function: Callable[..., Any], *arguments: Any) -> frozenset[int]:
    graph = lx.compile(function).lower(*arguments).traced.graph
    (loop,) = (node for node in graph.nodes if node.op in ("scan", "while"))
    return register_tables.tables_of(loop)


@pytest.mark.parametrize(
    "body",
    [
        lambda i, c: c.at[i].set(lnp.sum(c)),
        lambda i, c: c.at[i].set(1.0) * 0.5,
        lambda i, c: c[::-1].at[i].set(1.0),
        lambda i, c: lnp.where(i > 3, c.at[i].set(1.0), c),
        lambda i, c: lx.cond(c[i] > 0, lambda c: c.at[i].set(0.0), lambda c: c, c),
        lambda i, c: c.at[lnp.arange(20) + i].set(1.0),
    ],
)
def test_arrays_that_are_needed_whole_are_no_tables(body: Callable[[Any, Any], Any]) -> None:
    function = lambda x: lx.fori_loop(0, 20, body, x)  # noqa: E731
    agree(function, LINE)
    assert not _tables(function, LINE)


def test_a_table_of_which_a_loop_inside_needs_two_versions_is_none() -> None:
    agree(without_order, LINE)
    assert not _tables(without_order, LINE)


def test_what_is_updated_by_places_is_a_table() -> None:
    assert len(_tables(recurrence, LINE)) == 1
    assert len(_tables(several, LINE, GRID)) == 2
    assert not _tables(lambda x: lx.fori_loop(2, 20, lambda i, c: c.at[i].set(c[i - 1] * 0.5), x), LINE[:90])
