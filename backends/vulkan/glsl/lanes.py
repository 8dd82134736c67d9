"""Values of one lane or of four, and indices that grow from lane to lane.

An index may contain the variable "lane", which stands for 0, 1, 2 and 3 at once: the value there is a vector of four.
"""
from __future__ import annotations

from lavax.backends.vulkan.glsl.expressions import VECTOR, type_name
from lavax.base.often_made import often_made
from lavax.ir.types import DType
from lavax.passes.kernels.index import Index, Variable, index_of, variable

LANE_NAME = "lane"
LANE = variable(LANE_NAME, VECTOR)


@often_made(eq=True)
class GlslValue:
    """A GLSL expression without side effects, usually a name, and its width."""

    text: str
    width: int


def widen(text: str, width: int, wanted: int, vector: str) -> str:
    return text if width == wanted else f"{vector}({text})"


def widened(value: GlslValue, width: int, dtype: DType) -> str:
    """The value's text at a width: a scalar stands for four equal components."""
    return widen(value.text, value.width, width, type_name(dtype, VECTOR))


def lane_step(index: Index) -> int | None:
    """The index's growth from lane to lane; None if it varies."""
    step = 0
    for atom, coefficient in index.terms:
        if isinstance(atom, Variable) and atom.name == LANE_NAME:
            step = coefficient
        elif LANE_NAME in atom.variables:
            return None
    return step


def is_multiple(index: Index, divisor: int) -> bool:
    """Whether the index is certainly a multiple."""
    return index.constant % divisor == 0 and all(coefficient % divisor == 0 for _, coefficient in index.terms)


def quotient_exact(index: Index, divisor: int) -> Index:
    """index / divisor, for a multiple of the divisor."""
    terms = tuple((atom, coefficient // divisor) for atom, coefficient in index.terms)
    return index_of(terms, index.constant // divisor)
