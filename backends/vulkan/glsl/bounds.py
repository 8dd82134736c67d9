"""Whether a shader's accesses stay inside their arrays: what intervals over the iteration space say of each.

A position is an `Index`, whose bounds follow from those of the loop variables and of the clamps within it. Where they
are not inside the array, the position is clamped, so no load or store of `Body` can leave its array. This relies on the
bounds that emitters give to loop variables and to numbers that a shader computes (`RoutineShader.position`). Positions
that depend on data and are written as text are clamped (`RoutineShader.element`). Tiles, and the matrices of linear
algebra, are walked by loops over their own extents, as texts that are not looked at here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

from lavax.passes.kernels.index import Index, clamp

# proved: the intervals of loop variables are inside; clamped: they are because of a clamp within the position, such as
# that of a gather; held: they were not, and the position was clamped; neither: outside, and left so.
Proof = Literal["proved", "clamped", "held", "neither"]

_counts: ContextVar[Counter[Proof] | None] = ContextVar("counts", default=None)


@contextmanager
def counting_accesses() -> Iterator[Counter[Proof]]:
    """Counts the accesses of the shaders that are written within the context, by their proofs."""
    found: Counter[Proof] = Counter()
    token = _counts.set(found)
    try:
        yield found
    finally:
        _counts.reset(token)


def is_inside(position: Index, size: int) -> bool:
    """Whether an array of `size` elements has this position, whatever the loop variables and looked-up numbers are."""
    return position.low >= 0 and position.high < size


def _has_clamp(position: Index) -> bool:
    return position.reads_array or "clamp(" in position.key or "near(" in position.key


def inside(position: Index, size: int) -> Index:
    """The position, clamped to the array if it is not certain to be inside. Of no elements there is no position."""
    if is_inside(position, size):
        note("clamped" if _counts.get() is not None and _has_clamp(position) else "proved")
        return position
    if size == 0:
        return position  # nothing is dispatched
    held = clamp(position, 0, size - 1)
    note("held" if is_inside(held, size) else "neither")
    return held


def note(proof: Proof) -> None:
    """Counts an access, where any are counted."""
    found = _counts.get()
    if found is not None:
        found[proof] += 1
