"""Runs a program on an engine and compares with what is expected."""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lavax.ir import Graph, Node
from tests.fuzz.engines import ENGINES, INTERPRETERS, applies
from tests.fuzz.noise import PRECISIONS, Expected

# Operands of products of few bits are rounded by casts, which are exact in float64.
_ROUNDS = re.compile(r'precision="\w|\bb?f16\[')


# Longer rows are sorted as their bits, which are those of the dtype itself.
_SORTED_AS_BITS = 512


def _graphs_within(graph: Graph) -> Iterator[Graph]:
    """The graph, and all graphs that its operations hold."""
    yield graph
    for node in graph.nodes:
        for value in node.attrs.values():
            for held in value if isinstance(value, tuple) else (value,):
                if isinstance(held, Graph):
                    yield from _graphs_within(held)


def _rounds(graph: Graph) -> bool:
    """Whether kernels round in float64 what the graph does not."""
    nodes = (node for each in _graphs_within(graph) for node in each.nodes)
    return bool(_ROUNDS.search(str(graph))) or any(_is_ordered_by_bits(node) for node in nodes)


def _is_ordered_by_bits(node: Node) -> bool:
    """Whether a kernel orders numbers by the bits of their own dtype: those that are one there are two in float64."""
    if node.op == "top_order":
        return bool(node.attrs["signed_zeros"]) and node.operands[0].dtype.is_float
    if node.op.startswith("scatter_"):  # GPUs join the bits of however few updates
        return node.dtype.is_float
    return node.op.startswith("sort") and any(operand.type.size > _SORTED_AS_BITS for operand in node.operands)


@dataclass(frozen=True)
class Difference:
    """What an engine gave that it should not have. `kind` stays the same while a program is made smaller."""

    engine: str
    kind: str
    text: str


def _bounds(engine: str, graph: Graph, wanted: Expected) -> list[np.ndarray | None]:
    """The tolerances; in float64, where interpreters compute, as much less as the units are."""
    if engine not in INTERPRETERS or _rounds(graph):
        return list(wanted.tolerances)
    if wanted.of_doubles is not None:
        return list(wanted.of_doubles)
    found: list[np.ndarray | None] = []
    for node, value, bound in zip(graph.outputs, wanted.values, wanted.tolerances, strict=True):
        if bound is None:
            found.append(None)
        else:
            shrunk = PRECISIONS["f64"].unit / PRECISIONS[node.dtype.name].unit * 64
            found.append(shrunk * bound + 1e-12 * np.abs(value))
    return found


def difference(engine: str, graph: Graph, arrays: Sequence[np.ndarray], wanted: Expected) -> Difference | None:
    """How the engine's results differ from those wanted, or how it failed; None if all is well."""
    try:
        found = ENGINES[engine](graph, arrays)
    except Exception as error:  # whatever it is, it is a finding
        return Difference(engine, type(error).__name__, f"{type(error).__name__}: {error}"[:2000])
    bounds = _bounds(engine, graph, wanted)
    for number, (got, want, bound) in enumerate(zip(found, wanted.values, bounds, strict=True)):
        if got.shape != want.shape:
            return Difference(engine, "shape", f"output {number} has the shape {got.shape}, not {want.shape}")
        if bound is None:
            wrong = got != want
        else:
            with np.errstate(all="ignore"):
                wrong = ~(np.abs(got.astype(want.dtype) - want) <= bound)
        if wrong.any():
            return Difference(engine, "value", _text(number, got, want, bound, wrong))
    return None


def _text(number: int, got: np.ndarray, want: np.ndarray, bound: np.ndarray | None, wrong: np.ndarray) -> str:
    at = tuple(int(k) for k in np.argwhere(wrong)[0])
    allowed = "" if bound is None else f", which may differ by {bound[at]:.3g}"
    return (
        f"output {number}{list(at)} is {got[at]!r}, not {want[at]!r}{allowed}; "
        f"{int(wrong.sum())} of {wrong.size} elements differ"
    )


def differences(
    engines: Sequence[str], graph: Graph, arrays: Sequence[np.ndarray], wanted: Expected
) -> list[Difference]:
    found = (difference(engine, graph, arrays, wanted) for engine in engines if applies(engine, graph))
    return [each for each in found if each is not None]
