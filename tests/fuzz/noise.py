"""How far roundings can move the values of a graph, by Monte Carlo arithmetic (Parker 1997).

A graph is interpreted in float64 several times, and every value that a device may round is moved at random by a few
units in the last place of its own dtype, operands of sums and products before they are added too, and then rounded, so
that values which a device may find equal are equal in some runs. What the runs differ by is the condition of the graph.
Where a truth value or a whole number differs between runs, the graph stands at a discontinuity, and says nothing about
a device.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

from lavax.ir import DType, Graph, Node, interpret
from lavax.ir import interpreter as interpreter_of_graphs
from lavax.ir.operation import OPERATIONS
from lavax.ir.types import DTYPES, TupleType

RUNS = 4
RUNS_TO_CONFIRM = 16  # few runs may all stand on one side of a discontinuity


@dataclass(frozen=True)
class Precision:
    """Of a float dtype: its unit at 1, the least number with all bits, how many units noise has, and which numbers are
    so short (multiples of `grain` up to `most`) that sums and products of a few of them are exact. Beyond `largest`
    there are infinities, which float64 does not show."""

    unit: float
    least: float
    amplitude: float
    grain: float
    most: float
    largest: float

    def short(self, x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray((np.abs(x) <= self.most) & (x / self.grain == np.rint(x / self.grain)))


PRECISIONS: dict[str, Precision] = {
    "f16": Precision(2.0**-10, 2.0**-14, 4, 2.0**-3, 2.0**6, 65504.0),
    "bf16": Precision(2.0**-7, 2.0**-126, 2, 2.0**-2, 2.0**4, 2.0**127),
    "f32": Precision(2.0**-23, 2.0**-126, 16, 2.0**-8, 2.0**11, 2.0**127),
    "f64": Precision(2.0**-52, 2.0**-1022, 16, 2.0**-16, 2.0**20, 2.0**1023),
}
PRECISIONS |= {"c64": PRECISIONS["f32"], "c128": PRECISIONS["f64"]}  # of the parts

# Their results are elements of their operands, or exact: nothing is rounded.
_EXACT_FAMILIES = frozenset(("movement", "source", "axis"))
_EXACT = frozenset(
    (
        *("complex", "conjugate", "imag", "real"),
        *("negate", "abs", "sign", "floor", "ceil", "round", "truncate", "stop_gradient", "maximum", "minimum"),
        "where",
        *("bitcast", "barrier", "known_value", "max", "min", "sort", "unsort", "gather", "cumulative_max"),
        *("cumulative_min", "scatter_set", "scatter_maximum", "scatter_minimum", "item"),
    )
)
# Exact on short numbers.
_EXACT_ON_SHORT = frozenset(
    ("add", "subtract", "multiply", "sum", "dot", "conv", "cumulative_sum", "scatter_add", "cast")
)
_FAMILIES_THAT_ADD = frozenset(("reduction", "contraction", "routine", "indexing"))


class _Noise:
    """`evaluate_node` of the interpreter, with noise: of units of the values' own dtypes, or of float64's."""

    def __init__(self, seed: int, in_doubles: bool) -> None:
        self.random = np.random.default_rng(seed)
        self.evaluate = interpreter_of_graphs.evaluate_node
        self.in_doubles = in_doubles

    def precision_of(self, dtype: DType) -> Precision:
        return PRECISIONS["f64" if self.in_doubles else dtype.name]

    def moved(self, x: np.ndarray, dtype: DType, keep_short: bool) -> np.ndarray:
        if dtype.is_complex:
            return self._moved_parts(x, dtype)
        precision = self.precision_of(dtype)
        if (np.isfinite(x) & (np.abs(x) > precision.largest)).any():
            raise IllConditionedError(f"a value is too large for {dtype}")
        signs = self.random.uniform(-1, 1, x.shape)
        with np.errstate(all="ignore"):
            step = precision.amplitude * precision.unit * np.abs(x) + np.where(x == 0, 0, precision.least)
            moved = x + signs * step
        kept = (x == 0) | ~np.isfinite(x)
        if keep_short:
            kept |= precision.short(x)
        moved = np.where(kept, x, moved)
        return np.asarray(moved if self.in_doubles else dtype.rounded(moved), np.float64)

    def _moved_parts(self, z: np.ndarray, dtype: DType) -> np.ndarray:
        """Both parts, by units of the length: a part may be a small difference of large numbers."""
        precision = self.precision_of(dtype)
        size = precision.amplitude * precision.unit * np.abs(z) + np.where(z == 0, 0, precision.least)
        signs = self.random.uniform(-1, 1, (2, *z.shape))
        with np.errstate(all="ignore"):
            return np.asarray(z + size * (signs[0] + 1j * signs[1]))

    def __call__(self, node: Node, operands: list[Any], floating: np.dtype) -> Any:
        family = OPERATIONS[node.op].family
        is_length = node.op == "abs" and node.operands[0].dtype.is_complex
        exact = (node.op in _EXACT and not is_length) or family in _EXACT_FAMILIES or family == "region"
        on_short = node.op in _EXACT_ON_SHORT
        if family in _FAMILIES_THAT_ADD and not exact:
            rounded = node.attrs.get("precision")
            operands = [
                self.moved(array, DTYPES[rounded] if rounded else operand.dtype, on_short)
                if operand.dtype.is_inexact
                else array
                for array, operand in zip(operands, node.operands, strict=True)
            ]
        found = self.evaluate(node, operands, floating)
        if exact or isinstance(node.type, TupleType) or not node.dtype.is_inexact:
            return found
        return self.moved(found, node.dtype, on_short)


@contextmanager
def noise(seed: int, in_doubles: bool = False) -> Iterator[_Noise]:
    """The interpreter, also within loops and branches, moves what it computes."""
    found = _Noise(seed, in_doubles)
    with mock.patch.object(interpreter_of_graphs, "evaluate_node", found):
        yield found


class IllConditionedError(ValueError):
    """The graph stands at a discontinuity, is not finite, or amplifies roundings so much that it says little."""


# The largest spread, as a part of the largest value, that still says something.
_MOST_SPREAD = {"f16": 0.2, "bf16": 0.3, "f32": 1e-2, "f64": 1e-6, "c64": 1e-2, "c128": 1e-6}


def tolerance(dtype: DType, runs: Sequence[np.ndarray], in_doubles: bool = False) -> np.ndarray | None:
    """How far each element may be from `runs`[0], which has no noise; None if it must be equal.

    Raises IllConditionedError.
    """
    exact, *noisy = runs
    if not dtype.is_inexact:
        if any(not np.array_equal(exact, other) for other in noisy):
            raise IllConditionedError(f"a value of {dtype} differs between runs")
        return None
    if not all(np.isfinite(run).all() for run in runs):
        raise IllConditionedError(f"a value of {dtype} is not finite")
    precision = PRECISIONS["f64" if in_doubles else dtype.name]
    spread = np.max([np.abs(other - exact) for other in noisy], axis=0)
    largest = np.abs(exact).max(initial=0.0)
    if spread.max(initial=0.0) > _MOST_SPREAD[dtype.name] * max(largest, 1e-3):
        raise IllConditionedError(f"a value of {dtype} amplifies roundings")
    typical = spread.mean() if spread.size else 0.0
    return np.asarray(4 * spread + 2 * typical + 8 * precision.unit * np.abs(exact) + 2 * precision.least)


@dataclass(frozen=True)
class Expected:
    """What a graph gives, and how far each element may be from it; None where results are exact.

    `of_doubles`: how far where all is computed in float64, if that was asked for. Where a function has no derivative,
    such as `asin` at 1, that is much more than the same part of the unit.
    """

    values: tuple[np.ndarray, ...]
    tolerances: tuple[np.ndarray | None, ...]
    of_doubles: tuple[np.ndarray | None, ...] | None = None


def expected(
    graph: Graph, arrays: Sequence[np.ndarray], seed: int = 0, runs: int = RUNS, in_doubles: bool = False
) -> Expected:
    """The graph's results in float64, with tolerances from its condition. Raises IllConditionedError."""
    exact = interpret(graph, *arrays)
    bounds = _tolerances(graph, arrays, exact, range(seed + 1, seed + runs), in_doubles=False)
    if not in_doubles:
        return Expected(tuple(exact), bounds)
    return Expected(tuple(exact), bounds, _tolerances(graph, arrays, exact, range(seed + 1, seed + runs), True))


def _tolerances(
    graph: Graph, arrays: Sequence[np.ndarray], exact: Sequence[np.ndarray], seeds: range, in_doubles: bool
) -> tuple[np.ndarray | None, ...]:
    found = [exact]
    for seed in seeds:
        with noise(seed, in_doubles):
            found.append(interpret(graph, *arrays))
    columns = zip(*found, strict=True)
    return tuple(tolerance(node.dtype, column, in_doubles) for node, column in zip(graph.outputs, columns, strict=True))
