"""Programs as users write them: rows, their reductions, places that these give, gathers there, and scans over such.

What single operations do not show is between them: an element of what a function gives, at a place that a reduction
finds, in the kernel of that reduction. So a few arrays of one shape go through functions of two of them, one after the
other, of which many give or take whole numbers of rows.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import lavax as lx
import lavax.numpy as lnp
from lavax import lax, nn
from lavax.ir import Graph
from tests.fuzz.library import FUNCTIONS

_ROWS = (1, 2, 3, 5, 8, 17, 33, 64)
_COLUMNS = (1, 2, 3, 4, 7, 8, 16, 31, 48, 130)
_STEPS = (2, 8, 9, 13)  # of scans; short ones are not taken by workgroups
_PICKED = (2, 3, 5, 9)  # rows of a table


@dataclass
class _Given:
    """What a function is applied to: two of the arrays so far, a row of integers, and what is drawn for it."""

    a: Any
    b: Any
    rows: Any  # an integer for each row, less than their number
    weights: Any
    table: Any
    number: int
    factor: float
    found: list[Any] = field(default_factory=list)  # integers for later functions

    @property
    def axis(self) -> int:
        return self.number % 2

    @property
    def row(self) -> int:
        return self.number % int(self.a.shape[0])

    @property
    def column(self) -> int:
        return self.number % int(self.a.shape[1])


def _found(given: _Given, integers: Any) -> Any:
    """Keeps integers for rows for later functions."""
    given.found.append((integers.astype("int32") + given.number % 5) % given.a.shape[0])
    return given.a


def _of_both_rows(given: _Given) -> Any:
    return lnp.concatenate([given.a, given.b])


_FUNCTIONS: dict[str, Callable[[_Given], Any]] = {
    "gate": lambda g: nn.sigmoid(g.a + g.b),
    "tanh": lambda g: lnp.tanh(g.a * g.factor),
    "softmax": lambda g: nn.softmax(g.a, axis=g.axis),
    "less the mean": lambda g: g.a - lnp.mean(g.a, axis=g.axis, keepdims=True),
    "at its largest": lambda g: g.a + lnp.take_along_axis(g.b, lnp.argmax(g.a, axis=1)[:, None], axis=1),
    "chosen": lambda g: lnp.where(g.a > g.b, g.a, g.b * g.factor),
    "rows picked": lambda g: g.a[g.rows] + g.b,
    "rows of a table": lambda g: g.table[g.rows % g.table.shape[0]] * g.a,
    "rolled": lambda g: lnp.roll(g.a, g.number % 7, axis=g.axis),
    "turned": lambda g: g.a[:, ::-1] * g.b,
    "joined": lambda g: lnp.concatenate([g.a[:, g.column :], g.b[:, : g.column]], axis=1),
    "running sums": lambda g: lnp.cumsum(g.a * 0.1, axis=g.axis),
    "running maxima": lambda g: lax.cummax(g.a, axis=g.axis),
    "sorted": lambda g: lnp.sort(g.a, axis=g.axis) + g.b,
    "product": lambda g: g.a @ g.weights,
    "product with a vector": lambda g: (g.a @ g.table[0])[:, None] * g.b * 0.1,
    "sums by rows": lambda g: lnp.zeros_like(g.a).at[g.rows].add(g.b)[g.rows],
    "added at rows": lambda g: g.a.at[g.rows].add(g.b),
    "a column set": lambda g: g.a.at[:, g.column].set(g.factor),
    "bell": lambda g: lnp.exp(-g.a * g.a) * g.b,
    "neighbours": lambda g: lnp.pad(g.a, ((0, 0), (1, 1)))[:, :-2] - lnp.pad(g.b, ((0, 0), (1, 1)))[:, 2:],
    "extremes": lambda g: lnp.max(g.a, axis=g.axis, keepdims=True) - g.b,
    "norm": lambda g: lnp.sqrt(lnp.sum(g.a * g.a, axis=1, keepdims=True) + 0.1) * 0.1 + g.b,
    "variance": lambda g: g.a * lnp.var(g.b, axis=g.axis, keepdims=True),
    "one hot": lambda g: nn.one_hot(lnp.argmax(g.a, axis=1), g.a.shape[1]) * g.b,
    "gelu": lambda g: nn.gelu(g.a) * g.b,
    "logarithms of sums": lambda g: nn.logsumexp(g.a, axis=1, keepdims=True) * 0.1 + g.b,
    "rows from a row on": lambda g: lax.dynamic_slice(_of_both_rows(g), (g.rows[0], 0), g.a.shape),
    "rows put in": lambda g: lax.dynamic_update_slice(g.a, g.b[:1], (g.rows[g.row], 0)),
    "shares": lambda g: lnp.einsum("ij,kj,kl->il", g.a, g.b, g.a) * (0.3 / g.a.size),
    "up to a column": lambda g: lnp.where(lnp.arange(g.a.shape[1]) < g.rows[:, None], g.a, g.b),
    "other rows": lambda g: g.a.reshape(g.a.shape[::-1]).T + g.b,
    "largest three": lambda g: lax.top_k(g.a, min(g.a.shape[1], 3))[0][:, :1] + g.b,
    "columns in order": lambda g: lnp.take(g.a, lnp.argsort(g.b[0]), axis=1),
    "outer": lambda g: g.a * lnp.sin(g.b[:, :1]) + lnp.cos(g.a[:1]),
    "differences": lambda g: lnp.diff(g.a, axis=1, prepend=0.0) + g.b,
    "triangles": lambda g: lnp.tril(g.a) + lnp.triu(g.b, 1),
    "a short loop": lambda g: lax.fori_loop(0, 3, lambda _, state: lnp.tanh(state + g.a * 0.3), g.b),
    "a branch": lambda g: lax.cond(g.rows[0] > 1, lambda x: x * 0.5, lnp.sin, g.a),
    "each from its place": lambda g: lx.vmap(
        lambda row, at: lax.dynamic_slice(lnp.concatenate([row, row]), (at % row.size,), (row.size,))
    )(g.a, g.rows),
    "largest of rows": lambda g: _found(g, lnp.argmax(g.a, axis=1)),
    "least of rows": lambda g: _found(g, lnp.argmin(g.b, axis=1)),
    "counts": lambda g: _found(g, lnp.sum(g.a > g.b, axis=1)),
    "running counts": lambda g: _found(g, lnp.cumsum(g.a[:, 0] > 0)),
    **FUNCTIONS,
}  # fmt: skip
NAMES = tuple(_FUNCTIONS)


@dataclass(frozen=True)
class _Step:
    """A function, which of the arrays and integers so far it takes, and what it draws."""

    name: str
    first: int
    second: int
    rows: int
    number: int
    factor: float


def _steps(random: np.random.Generator, most: int) -> list[_Step]:
    return [
        _Step(str(random.choice(NAMES)), *(int(n) for n in random.integers(0, 4, 3)), int(random.integers(1 << 20)),
              float(random.normal()))
        for _ in range(int(random.integers(2, most)))
    ]  # fmt: skip


def _applied(steps: list[_Step], arrays: list[Any], integers: list[Any], weights: Any, table: Any) -> tuple[Any, Any]:
    """The arrays and the integers with what the functions gave."""
    arrays, integers = list(arrays), list(integers)
    for step in steps:
        a, b = arrays[-1 - step.first % len(arrays)], arrays[-1 - step.second % len(arrays)]
        rows = integers[-1 - step.rows % len(integers)]
        given = _Given(a, b, rows, weights, table, step.number, step.factor)
        arrays.append(_FUNCTIONS[step.name](given))
        integers += given.found
    return arrays, integers


def composed(random: np.random.Generator) -> tuple[Graph, list[np.ndarray]]:
    """A program and arrays for its inputs: one after the other, or as the turns of a scan."""
    rows, columns, picked = (int(random.choice(sizes)) for sizes in (_ROWS, _COLUMNS, _PICKED))

    def normal(*shape: int) -> np.ndarray:
        return random.normal(size=shape).astype(np.float32)

    x, y, table = normal(rows, columns), normal(rows, columns), normal(picked, columns)
    weights = normal(columns, columns) / np.float32(np.sqrt(columns))
    places = random.integers(0, rows, rows).astype(np.int32)
    if random.random() < 0.3:
        turns = normal(int(random.choice(_STEPS)), min(rows, 8), min(columns, 33))
        return _scanned(random, turns, x, y, weights, table, places)
    steps = _steps(random, 9)

    def function(x: Any, y: Any, weights: Any, table: Any, places: Any) -> Any:
        arrays, integers = _applied(steps, [x, y, lnp.tanh(x)], [places], weights, table)
        return arrays[-1], lnp.sum(arrays[-2], axis=steps[0].number % 2), integers[-1]

    arguments = [x, y, weights, table, places]
    return lx.trace(function)(*arguments), arguments


def _scanned(
    random: np.random.Generator, turns: np.ndarray, x: np.ndarray, y: np.ndarray, *others: np.ndarray
) -> tuple[Graph, list[np.ndarray]]:
    steps, reverse = _steps(random, 7), bool(random.integers(2))
    rows, columns = turns.shape[1:]
    weights, table, places = others

    def function(turns: Any, x: Any, y: Any, weights: Any, table: Any, places: Any) -> Any:
        def turn(state: Any, row: Any) -> Any:
            h, c, k = state
            arrays, integers = _applied(steps, [row, c, h], [places, (places + k) % rows], weights, table)
            h, c = lnp.tanh(arrays[-1]), lnp.tanh(arrays[-2] * 0.5 + c)
            return (h, c, k + 1), (h[:, : max(1, columns // 2)], integers[-1])

        return lx.scan(turn, (x, y, lnp.int32(0)), turns, reverse=reverse)

    own = x[:rows, :columns], y[:rows, :columns]
    cut = [*own, weights[:columns, :columns], table[:, :columns], places[:rows] % rows]
    arguments = [turns, *map(np.ascontiguousarray, cut)]
    return lx.trace(function)(*arguments), arguments
