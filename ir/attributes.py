"""What each attribute may be, as a table: rules of operations rely on it, and check only how attributes fit operands.

Nodes that the tracer makes keep to it by construction; those of a text or a file are checked.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.batching_function import BatchingFunction
from lavax.ir.graph import Graph, LaterGraph
from lavax.ir.host_function import HostFunction
from lavax.ir.limits import MOST_ELEMENTS


@dataclass(frozen=True)
class Domain:
    """A set of values, and its name in messages."""

    name: str
    holds: Callable[[Any], bool]


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -MOST_ELEMENTS <= value <= MOST_ELEMENTS


def _is_count(value: Any) -> bool:
    return _is_integer(value) and value >= 0


def _is_list(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, tuple) and all(map(holds, value))


_is_axes = _is_list(_is_count)

FLAG = Domain("true or false", lambda value: isinstance(value, bool))
INTEGER = Domain("an integer", _is_integer)
COUNT = Domain("an integer of at least 0", _is_count)
POSITIVE = Domain("an integer of at least 1", lambda value: _is_count(value) and value > 0)
REAL = Domain("a float", lambda value: isinstance(value, float))
NUMBER = Domain("a number", lambda value: isinstance(value, (bool, int, float, complex)))
TEXT = Domain("a text", lambda value: isinstance(value, str))
INTEGERS = Domain("a list of integers", _is_list(_is_integer))
COUNTS = Domain("a list of integers of at least 0", _is_axes)
TWO_LISTS = Domain("axes of two operands", lambda value: _is_list(_is_axes)(value) and len(value) == 2)
GRAPH = Domain("a graph", lambda value: isinstance(value, Graph))
RULE = Domain("a graph", lambda value: isinstance(value, (Graph, LaterGraph)))
GRAPHS = Domain("a list of graphs", _is_list(lambda value: isinstance(value, Graph)))
FUNCTION = Domain("a function on the host", lambda value: isinstance(value, HostFunction))
BATCHING = Domain("a batching function", lambda value: isinstance(value, BatchingFunction))

# By the name of the attribute, which means one thing in all operations but those in the next table.
DOMAINS: dict[str, Domain] = {
    **dict.fromkeys(("across", "biased", "by_place", "complete", "empty", "lower", "masked"), FLAG),
    **dict.fromkeys(("narrow", "nonpositive", "real", "tied", "unit_diagonal", "vectors"), FLAG),
    **dict.fromkeys(("relative", "reverse", "right", "rounded", "signed_zeros", "sines", "transposed"), FLAG),
    **dict.fromkeys(("cosines", "folded", "highest", "lowest", "only"), INTEGER),
    **dict.fromkeys(("arguments", "axis", "carries", "count", "index", "length", "named", "sequences", "shift"), COUNT),
    **dict.fromkeys(("size", "word"), COUNT),
    **dict.fromkeys(("beside", "bits", "block", "chunk", "columns", "extent", "lists", "points", "rest"), POSITIVE),
    **dict.fromkeys(("run", "sweeps", "tile"), POSITIVE),
    **dict.fromkeys(("fill", "first", "scale"), REAL),
    "value": NUMBER,
    **dict.fromkeys(("fold", "join", "keep", "name", "precision", "backward"), TEXT),
    **dict.fromkeys(("low", "high"), INTEGERS),
    **dict.fromkeys(("along", "axes", "dilation", "interior", "limit", "opposite", "start", "stride"), COUNTS),
    **dict.fromkeys(("batch", "contract", "window"), TWO_LISTS),
    **dict.fromkeys(("body", "condition"), GRAPH),
    **dict.fromkeys(("forward", "rule"), RULE),
    "branches": GRAPHS,
    "function": FUNCTION,
    "batching": BATCHING,
}

# (operation, attribute) -> its domain there.
EXCEPTIONS: dict[tuple[str, str], Domain] = {("custom_vjp", "backward"): RULE}


def domain_of(op: str, name: str) -> Domain:
    return EXCEPTIONS.get((op, name)) or DOMAINS[name]


def fault_of_attribute(op: str, name: str, value: Any) -> str | None:
    """Why an operation's attribute cannot be this; None if it can."""
    domain = domain_of(op, name)
    return None if domain.holds(value) else f"{op}: {name} must be {domain.name}, got {value!r:.80}"
