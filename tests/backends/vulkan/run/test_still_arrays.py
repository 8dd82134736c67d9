"""What no turn of a workgroup's loop writes is read through texels, and rows share what they are multiplied by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from tests.backends.vulkan.run.loop_agreement import agree

pytestmark = pytest.mark.usefixtures("no_register_loops")
RANDOM = np.random.default_rng(5)
TEXELS = "texelFetch(vectors"


def _matrix(rows: int, columns: int) -> np.ndarray:
    return RANDOM.normal(size=(rows, columns), scale=0.05).astype("f")


def _vector(size: int) -> np.ndarray:
    return RANDOM.normal(size=size).astype("f")


def iterated(a: Any, b: Any) -> Any:
    return lx.fori_loop(0, 20, lambda i, x: (b - a @ x) / 3, b)


def by_columns(a: Any, b: Any) -> Any:
    return lx.fori_loop(0, 20, lambda i, x: (b - a.T @ x) / 3, b)


def two_matrices(a: Any, b: Any) -> Any:
    return lx.fori_loop(0, 20, lambda i, s: (lnp.tanh(a @ s[1]), a.T @ s[0] + b), (b, b))


def until_small(a: Any, b: Any) -> Any:
    return lx.while_loop(lambda s: (s[1] < 9) & (lnp.sum(s[0]) < 1e6), lambda s: (b - a @ s[0], s[1] + 1), (b, 0))[0]


def scanned(a: Any, rows: Any) -> Any:
    return lx.scan(lambda x, row: ((row - a @ x) / 2, x), rows[0], rows)[1]


def carried_matrix(a: Any, b: Any) -> Any:
    """The matrix is written in each turn, so it is no still array."""
    return lx.fori_loop(0, 5, lambda i, s: (s[0] * 0.9 + 0.001 * s[1][:, None], lnp.tanh(s[0] @ s[1])), (a, b))[1]


def regression(a: Any, b: Any) -> Any:
    """Rows of few elements that all read what is carried, and columns of many that all read what those gave."""
    return lx.fori_loop(0, 9, lambda i, w: w - a.T @ (lnp.tanh(a @ w) - b) / b.size, lnp.ones(a.shape[1]))


def places_of_columns(a: Any, b: Any) -> Any:
    """Where columns are greatest, with sums of them, times what is carried."""

    def turn(i: Any, x: Any) -> Any:
        scaled = a * x[:, None]
        return lnp.cos(x + lnp.argmax(scaled, axis=0) * 0.1) + lnp.min(scaled, axis=0)

    return lx.fori_loop(0, 9, turn, b)


def stacked(a: Any, b: Any) -> Any:
    return lx.scan(lambda x, _: (x * 0.9, a @ x), b, length=5)[1]


def places_of_rows(a: Any, b: Any) -> Any:
    def turn(i: Any, x: Any) -> Any:
        return lnp.cos(x + lnp.argmax(a * x, axis=1) * 0.1)

    return lx.fori_loop(0, 9, turn, b)


def counted_columns(a: Any, b: Any) -> Any:
    """In integers."""
    whole = (a * 100).astype("int32")
    return lx.fori_loop(0, 5, lambda i, x: lnp.sum(whole * (x % 7)[:, None], axis=0) % 1000, b.astype("int32"))


def best_of_actions(a: Any, b: Any) -> Any:
    """Four matrices, one above the other, times what is carried, and the greatest for each of its elements."""
    actions = a.reshape(4, -1, b.size)
    return lx.fori_loop(0, 9, lambda i, v: b + 0.5 * lnp.max(lnp.einsum("ast,t->as", actions, v), axis=0), b)


def separated(a: Any, b: Any) -> Any:
    """A support vector machine's subgradients: rows that count are added up."""

    def turn(i: Any, w: Any) -> Any:
        counts = b * (a @ w) < 1
        return w - 0.1 * lnp.mean(lnp.where(counts[:, None], -b[:, None] * a, 0), axis=0)

    return lx.fori_loop(0, 9, turn, lnp.zeros(a.shape[1]))


def fitted(a: Any, b: Any) -> Any:
    """Products of 128,000 operations, which are no more than a workgroup does."""
    return lx.fori_loop(0, 3, lambda i, x: lnp.tanh(x @ a + b), lnp.ones((b.size // 8, b.size)) * b)


SQUARES = {rows: (_matrix(rows, rows), _vector(rows)) for rows in (200, 128, 100, 68, 66, 71)}
LOOPS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...], bool]] = {
    "eight rows together": (iterated, SQUARES[128], True),
    "rows of more work than other kernels may have": (iterated, SQUARES[200], True),
    "four rows together": (iterated, SQUARES[100], True),
    "four rows of few": (iterated, SQUARES[68], True),
    "two rows together, of which one begins between vectors": (iterated, SQUARES[66], True),
    "rows of odd lengths": (iterated, SQUARES[71], True),
    "places of rows": (places_of_rows, SQUARES[128], True),
    "four rows of a stack": (stacked, (_matrix(132, 128), _vector(128)), True),
    "eight rows for each lane": (best_of_actions, (_matrix(400, 100), _vector(100)), True),
    "five rows for each lane": (best_of_actions, (_matrix(240, 60), _vector(60)), True),
    "rows that are added up if they count": (separated, (_matrix(400, 20), np.sign(_vector(400))), True),
    "a product of more work than maps may have": (fitted, SQUARES[68], True),
    "columns": (by_columns, SQUARES[128], True),
    "rows and columns": (two_matrices, SQUARES[100], True),
    "short rows, and columns": (regression, (_matrix(500, 20), _vector(500)), True),
    "the same, three and six together": (regression, (_matrix(99, 24), _vector(99)), True),
    "the same, none together": (regression, (_matrix(101, 4), _vector(101)), True),
    "the same, of an odd length": (regression, (_matrix(120, 11), _vector(120)), False),
    "places of columns": (places_of_columns, SQUARES[68], True),
    "columns of integers": (counted_columns, SQUARES[100], True),
    "a loop that may stop": (until_small, SQUARES[128], True),
    "beside rows that move": (scanned, (_matrix(64, 64), _matrix(17, 64)), True),
    "nothing but what is written": (carried_matrix, SQUARES[68], False),
}


def _loop_of(function: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    """The shader of the program's loop, which all its dispatches run."""
    shaders = lx.compile(function).lower(*map(lnp.asarray, arguments)).as_text("glsl").split("#version")
    loop, *_ = [shader for shader in shaders if "group_of_turn" in shader]
    return loop


@pytest.mark.usefixtures("on_a_cpu_driver")
@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_reads_what_it_does_not_write_by_texels(name: str) -> None:
    function, arguments, by_vectors = LOOPS[name]
    assert (TEXELS in _loop_of(function, arguments)) == by_vectors
    agree(function, *arguments)


@pytest.mark.usefixtures("on_a_cpu_driver")
def test_rows_and_columns_read_once_what_they_have_in_common() -> None:
    """A lane has five rows, for which it reads the weights once; lanes share columns, and read an error each."""
    text = _loop_of(*LOOPS["short rows, and columns"][:2])
    rows, columns = (part.partition("\n}\n")[0] for part in text.split("void kernel")[1:3])
    assert "int row4 = i * 5 + 4;" in rows and "k < 5;" in rows
    assert (rows.count("read_four("), rows.count("texelFetch(vectors")) == (1, 5)
    assert "int row4 = row + 4;" in columns and "for (int k = lane_of_row; k < 500; k += 8)" in columns
    walk = columns.partition("for (int k")[2].partition("}")[0]
    assert (walk.count("imageLoad(ones"), walk.count("texelFetch(vectors")) == (1, 5)


@pytest.mark.usefixtures("on_a_cpu_driver")
def test_lanes_have_whole_rows_where_these_are_many() -> None:
    """Each reads a vector of what is carried for eight rows; rows a power of two apart are shared by lanes."""
    text = _loop_of(*LOOPS["eight rows for each lane"][:2])
    rows = text.split("void kernel")[1].partition("\n}\n")[0]
    assert "int row7 = i * 8 + 7;" in rows and "lane_of_row" not in rows
    walk = rows.partition("for (int k")[2]
    assert (walk.count("imageLoad(fours"), walk.count("texelFetch(vectors")) == (1, 8)
    assert "lane_of_row" in _loop_of(*LOOPS["eight rows together"][:2])


@pytest.mark.usefixtures("on_a_cpu_driver")
@pytest.mark.parametrize(
    ("name", "condition"),
    [
        ("eight rows together", ""),
        ("places of rows", ""),
        ("four rows of a stack", "if (lane_of_row < 4) {"),
        ("rows of odd lengths", "if (lane_of_row < 4 && own_row < 71) {"),
    ],
)
def test_lanes_that_share_rows_each_write_one(name: str, condition: str) -> None:
    """What is computed of eight results is computed once, in a lane each, and stored at once."""
    text = _loop_of(*LOOPS[name][:2]).split("void kernel")[1].partition("\n}\n")[0]
    results = text.partition("int own_row = ")[2]
    assert results.count(".data[own_row + ") == 1 == results.count(".data[") and condition in results


@pytest.mark.usefixtures("on_a_cpu_driver")
def test_what_columns_need_of_rows_is_computed_again() -> None:
    """The rows write which of them count, not a whole array."""
    a, b = LOOPS["rows that are added up if they count"][1]
    kernels = lx.compile(separated).lower(lnp.asarray(a), lnp.asarray(b)).as_text("kernels")
    assert int(kernels.partition("arena=")[2].split()[0]) < a.nbytes


@pytest.mark.usefixtures("on_a_cpu_driver")
def test_a_while_of_larger_kernels_is_a_workgroups_too() -> None:
    """The host would have to ask after each few turns."""
    large = _matrix(256, 256), _vector(256)

    def until(a: Any, b: Any) -> Any:
        return lx.while_loop(lambda s: s[1] < 9, lambda s: (b - a.T @ s[0], s[1] + 1), (b, 0))[0]

    assert TEXELS in _loop_of(until, large)
    agree(until, *large)
    shaders = lx.compile(by_columns).lower(*map(lnp.asarray, large)).as_text("glsl")
    assert "group_of_turn" not in shaders


@pytest.mark.parametrize("name", LOOPS)
def test_dispatches_of_few_turns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lavax.backends.vulkan.emit.program.most_turns", lambda turns: 3)
    function, arguments, _ = LOOPS[name]
    agree(function, *arguments)


def test_arrays_may_lie_elsewhere_in_each_call() -> None:
    function = lx.compile(iterated)
    kept = []
    for _ in range(6):
        a, b = _matrix(128, 128), _vector(128)
        kept.append((lnp.asarray(a), lnp.asarray(b)))
        expected = b
        for _ in range(20):
            expected = (b - a @ expected) / 3
        np.testing.assert_allclose(np.asarray(function(*kept[-1])), expected, atol=1e-5)


def test_what_a_result_takes_over_is_written() -> None:
    """The result has the memory of the argument, which the first turn reads."""
    a = _matrix(64, 64)
    turn = lx.compile(lambda a: lx.fori_loop(0, 6, lambda i, c: lnp.tanh(c @ c.T + c), a), donate_argnums=0)
    expected = a
    for _ in range(6):
        expected = np.tanh(expected @ expected.T + expected)
    np.testing.assert_allclose(np.asarray(turn(lnp.asarray(a) + 0)), expected, atol=1e-4)
