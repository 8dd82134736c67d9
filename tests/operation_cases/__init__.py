"""Samples of every operation: one-node graphs with arrays to run them on.

The tests of the interpreter, of gradients and of the backend all run the same cases. Each case is made of the same
numbers on every run. Values lie where the operation is smooth and well conditioned, except in cases marked
`special`: infinities, NaN, signed zeros, ties, positions outside the range, integers that overflow.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

from lavax.ir import OPERATIONS
from tests.operation_cases import (
    attention,
    contraction,
    elementwise,
    indexing,
    matrices,
    movement,
    reductions,
    routines,
    runs,
    sources,
)
from tests.operation_cases.case import THOROUGH, Case

# Those that hold graphs, mean nothing outside vmap, or are about complex numbers, have tests of their own.
WITHOUT_CASES = frozenset(name for name, operation in OPERATIONS.items() if operation.family in ("region", "axis")) | {
    "complex", "conjugate", "fft", "imag", "irfft", "real", "rfft", "unit_root", "wavefront",
}  # fmt: skip

_FAMILIES = (
    elementwise, reductions, movement, indexing, routines, runs, contraction, matrices, attention, sources,
)  # fmt: skip
_MAKERS = {op: maker for family in _FAMILIES for op, maker in family.MAKERS.items()}

# How many cases are kept of dtypes that are not all tried thoroughly.
_FEW = 2

OPERATIONS_WITH_CASES = frozenset(_MAKERS)


@cache
def cases_of(op: str) -> tuple[Case, ...]:
    """The cases of one operation."""
    return () if op in WITHOUT_CASES else tuple(_thinned(_MAKERS[op]()))


def covering_cases(op: str) -> list[Case]:
    """Few of them, in which every operand's dtype occurs, and every shape with every value of every attribute.

    All cases of special values are among them where these decide what is read or written. What an elementwise operation
    makes of one does not hang on sizes.
    """
    cases = cases_of(op)
    traits = [_traits(case) for case in cases]
    missing = set().union(*traits)
    chosen = set()
    while missing:
        best = max(range(len(cases)), key=lambda place: len(traits[place] & missing))
        chosen.add(best)
        missing -= traits[best]
    whole = OPERATIONS[op].family != "elementwise"
    return [case for place, case in enumerate(cases) if place in chosen or (case.special and whole)]


def _traits(case: Case) -> frozenset[tuple[Any, ...]]:
    nodes = (*case.graph.inputs, case.node)
    shapes = {("shape", place, node.shape) for place, node in enumerate(nodes)}
    dtypes = {("dtype", place, node.dtype) for place, node in enumerate(nodes)}
    attributes = {("attribute", name, repr(value)) for name, value in case.node.attrs.items()}
    together = set(product(shapes, attributes))  # whose rules hang on both, as those of an axis do
    return frozenset({("special", case.special)} | shapes | dtypes | attributes | together)


def _thinned(cases: Iterator[Case]) -> Iterator[Case]:
    """All cases of some dtypes, and of the others a few, with values that are special."""
    kept: Counter[tuple[Any, ...]] = Counter()
    for case in cases:
        dtypes = tuple(node.dtype for node in (*case.graph.inputs, case.node))
        if THOROUGH.issuperset(dtypes):
            yield case
            continue
        if case.special or all(node.type.size > 1 for node in (*case.graph.inputs, case.node)):
            kept[case.special, dtypes] += 1
            few = 1 if case.special or (case.op == "cast" and not THOROUGH.intersection(dtypes)) else _FEW
            if kept[case.special, dtypes] <= few:
                yield case


@cache
def all_cases() -> tuple[Case, ...]:
    return tuple(case for op in _MAKERS for case in cases_of(op))
