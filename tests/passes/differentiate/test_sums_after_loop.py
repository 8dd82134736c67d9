"""Sums over turns that are taken after a loop: also of products of products, and of terms that are shared."""
from __future__ import annotations

import numpy as np

from lavax.ir import interpret
from lavax.ir.graph import Node, graph_of, input_node
from lavax.ir.types import TensorType, float32
from lavax.passes.build.builder import add, dot
from lavax.passes.differentiate.turns import sums_after_loop

TURNS = 3


def _total(part: Node, rows: tuple[Node, ...], numbers: tuple[np.ndarray, ...]) -> np.ndarray:
    """The sum over all turns of what one computes from rows, whose numbers have the turns as a first axis."""
    (how,), further = sums_after_loop([part], rows, [])
    assert how is not None
    stacked = {row: input_node(f"x{n}", row.type.with_shape((TURNS, *row.shape))) for n, row in enumerate(rows)}
    of_turns = {row: np.stack([_of_turn(row, rows, [x[t] for x in numbers]) for t in range(TURNS)]) for row in further}
    given = {**stacked, **{row: input_node("further", row.type.with_shape((TURNS, *row.shape))) for row in further}}
    graph = graph_of((*stacked.values(), *(given[row] for row in further)), [how.total([given[r] for r in how.rows])])
    return np.asarray(interpret(graph, *numbers, *(of_turns[row] for row in further))[0])


def _of_turn(value: Node, rows: tuple[Node, ...], numbers: list[np.ndarray]) -> np.ndarray:
    return np.asarray(interpret(graph_of(rows, [value]), *numbers)[0])


def _rows() -> tuple[tuple[Node, ...], tuple[np.ndarray, ...]]:
    random = np.random.default_rng(0)
    rows = tuple(input_node(name, TensorType((2, 2), float32)) for name in "abc")
    return rows, tuple(random.normal(size=(TURNS, 2, 2)).astype(np.float32) for _ in rows)


def _check(part: Node, rows: tuple[Node, ...], numbers: tuple[np.ndarray, ...]) -> None:
    wanted = sum(_of_turn(part, rows, [x[turn] for x in numbers]) for turn in range(TURNS))
    np.testing.assert_allclose(_total(part, rows, numbers), wanted, rtol=1e-5, atol=1e-5)


def test_a_product_of_a_product_takes_its_rows() -> None:
    rows, numbers = _rows()
    a, b, c = rows
    inner = dot(a, b, ((1,), (0,)))
    _check(add(inner, dot(inner, c, ((1,), (0,)))), rows, numbers)


def test_terms_that_are_shared_are_visited_once() -> None:
    rows, numbers = _rows()
    part = dot(rows[0], rows[1], ((1,), (0,)))
    for _ in range(40):
        part = add(part, part)
    _check(part, rows, numbers)
