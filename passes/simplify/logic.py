"""Identities of truth values, comparisons, selection and conversion.

A comparison of a float with itself stays, because it tests for NaN.
"""
from __future__ import annotations

from lavax.ir.graph import Node
from lavax.ir.types import DTYPES
from lavax.passes.build.builder import build, cast, logical_not, splat, where, zeros
from lavax.passes.build.matching import is_splat, is_value, splat_value
from lavax.passes.simplify.arithmetic import equal_operands, splat_to_the_right
from lavax.passes.simplify.bounds import bounds
from lavax.passes.simplify.rewriting import RewriteRule

_MIRRORED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
    "equal": "equal",
    "not_equal": "not_equal",
}
_OPPOSITE = {
    "less": "greater_equal",
    "less_equal": "greater",
    "greater": "less_equal",
    "greater_equal": "less",
    "equal": "not_equal",
    "not_equal": "equal",
}
_TRUE_OF_EQUALS = frozenset({"equal", "less_equal", "greater_equal"})
# (from, through, to) for which cast(cast(x)) is cast(x), because the first cast loses nothing that the second keeps.
_INTEGERS = ("i32", "u32")
_SHORT_CASTS = (
    {("bool", via, to) for via in DTYPES for to in DTYPES}
    | {(source, via, to) for source in _INTEGERS for via in _INTEGERS for to in (*_INTEGERS, "bool")}
    | {(source, "f32", "bool") for source in _INTEGERS}
)


def _compare_mirrored(node: Node) -> Node | None:
    """splat < x -> x > splat."""
    x, y = node.operands
    return build(_MIRRORED[node.op], y, x) if is_splat(x) and not is_splat(y) else None


def _compare_with_itself(node: Node) -> Node | None:
    """x == x -> true, except for floats."""
    x, y = node.operands
    return splat(node.op in _TRUE_OF_EQUALS, node.type) if x is y and not x.dtype.is_inexact else None


def _compare_with_truth(node: Node) -> Node | None:
    """x == true -> x; x == false -> not x; the opposite for !=."""
    x, y = node.operands
    if not is_splat(y) or x.dtype.kind != "bool":
        return None
    return x if splat_value(y) == (node.op == "equal") else logical_not(x)


def _compare_within_bounds(node: Node) -> Node | None:
    """A comparison of integers that their bounds decide -> true or false."""
    x, y = node.operands
    of_x, of_y = bounds(x), bounds(y)
    if of_x is None or of_y is None:
        return None
    (x_low, x_high), (y_low, y_high) = of_x, of_y
    always = {
        "less": x_high < y_low,
        "less_equal": x_high <= y_low,
        "greater": x_low > y_high,
        "greater_equal": x_low >= y_high,
        "equal": False,
        "not_equal": x_high < y_low or x_low > y_high,
    }
    if always[node.op]:
        return splat(True, node.type)
    return splat(False, node.type) if always[_OPPOSITE[node.op]] else None


def _compare_before_widening(node: Node) -> Node | None:
    """cast(x) < splat -> x < splat for a signed integer x of a narrower dtype, which has the number.

    Drivers are known that compare such a cast to 64 bits as if x were unsigned, and 64 bits cost more on most devices.
    """
    wide, y = node.operands
    if wide.op != "cast" or not is_splat(y):
        return None
    (x,) = wide.operands
    if not x.dtype.kind == wide.dtype.kind == "int" or x.dtype.bits >= wide.dtype.bits:
        return None
    number = splat_value(y)  # another one has been decided by bounds
    return build(node.op, x, splat(number, x.type)) if x.dtype.lowest <= number <= x.dtype.highest else None


def _and(node: Node) -> Node | None:
    """x & 0 -> 0; x & all ones -> x."""
    x, y = node.operands
    if is_value(y, 0):
        return y
    return x if is_splat(y) and _is_all_ones(y) else None


def _or(node: Node) -> Node | None:
    """x | 0 -> x; x | all ones -> all ones."""
    x, y = node.operands
    if is_value(y, 0):
        return x
    return y if is_splat(y) and _is_all_ones(y) else None


def _xor(node: Node) -> Node | None:
    """x ^ x -> 0; x ^ 0 -> x; x ^ all ones -> not x."""
    x, y = node.operands
    if x is y:
        return zeros(node.type)
    if is_value(y, 0):
        return x
    return logical_not(x) if is_splat(y) and _is_all_ones(y) else None


def _is_all_ones(node: Node) -> bool:
    ones = -1 if node.dtype.kind == "int" else node.dtype.highest
    return bool(splat_value(node) == ones)


def _not(node: Node) -> Node | None:
    """not not x -> x; not (x < y) -> x >= y, but for floats only for equality, because NaN is not ordered."""
    (x,) = node.operands
    if x.op == "not":
        return x.operands[0]
    if x.op not in _OPPOSITE or (x.operands[0].dtype.is_inexact and x.op not in ("equal", "not_equal")):
        return None
    return build(_OPPOSITE[x.op], *x.operands)


def _not_all(node: Node) -> Node | None:
    """Not all x -> any (not x), as loops ask that go on while an element is open (passes/build/ended_lanes.py)."""
    (x,) = node.operands
    if x.op != "min" or x.dtype.kind != "bool":
        return None
    return build("max", logical_not(x.operands[0]), **x.attrs)


def _where_known(node: Node) -> Node | None:
    """where(true, x, y) -> x; where(false, x, y) -> y; where(c, x, x) -> x."""
    condition, chosen, other = node.operands
    if is_splat(condition):
        return chosen if splat_value(condition) else other
    return chosen if chosen is other else None


def _where_not(node: Node) -> Node | None:
    """where(not c, x, y) -> where(c, y, x)."""
    condition, chosen, other = node.operands
    return where(condition.operands[0], other, chosen) if condition.op == "not" else None


def _where_truth(node: Node) -> Node | None:
    """where(c, true, false) -> c; where(c, false, true) -> not c."""
    condition, chosen, other = node.operands
    if node.dtype.kind != "bool" or not is_splat(chosen) or not is_splat(other):
        return None
    return condition if splat_value(chosen) else logical_not(condition)


def _where_again(node: Node) -> Node | None:
    """where(c, where(c, x, y), z) -> where(c, x, z); the same for the other choice."""
    condition, chosen, other = node.operands
    if chosen.op == "where" and chosen.operands[0] is condition:
        return where(condition, chosen.operands[1], other)
    if other.op == "where" and other.operands[0] is condition:
        return where(condition, chosen, other.operands[2])
    return None


def _cast_to_same(node: Node) -> Node | None:
    (x,) = node.operands
    return x if x.dtype == node.dtype else None


def _cast_of_cast(node: Node) -> Node | None:
    """cast(cast(x)) -> cast(x) if the first loses nothing that the second keeps."""
    (via,) = node.operands
    if via.op != "cast":
        return None
    (x,) = via.operands
    return cast(x, node.dtype) if (x.dtype.name, via.dtype.name, node.dtype.name) in _SHORT_CASTS else None


_EQUALITY: tuple[RewriteRule, ...] = (
    splat_to_the_right,
    _compare_with_itself,
    _compare_with_truth,
    _compare_within_bounds,
    _compare_before_widening,
)
_ORDER: tuple[RewriteRule, ...] = (
    _compare_mirrored,
    _compare_with_itself,
    _compare_within_bounds,
    _compare_before_widening,
)

RULES: dict[str, tuple[RewriteRule, ...]] = {
    "equal": _EQUALITY,
    "not_equal": _EQUALITY,
    "less": _ORDER,
    "less_equal": _ORDER,
    "greater": _ORDER,
    "greater_equal": _ORDER,
    "and": (splat_to_the_right, equal_operands, _and),
    "or": (splat_to_the_right, equal_operands, _or),
    "xor": (splat_to_the_right, _xor),
    "not": (_not, _not_all),
    "where": (_where_known, _where_not, _where_truth, _where_again),
    "cast": (_cast_to_same, _cast_of_cast),
}
