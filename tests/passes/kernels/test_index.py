"""Index expressions against plain integer arithmetic."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lavax.ir.graph import input_node
from lavax.ir.types import TensorType, int32
from lavax.passes.kernels import index as index_tables
from lavax.passes.kernels.index import (
    ZERO,
    Index,
    add,
    clamp,
    constant,
    flatten,
    linear,
    lookup,
    near,
    quotient,
    remainder,
    strides_of,
    substitute,
    unflatten,
    variable,
)
from tests.passes.kernels.index_numbers import evaluate

EXTENTS = {"a": 3, "b": 4, "c": 6, "d": 1}
POINTS = [dict(zip(EXTENTS, point, strict=True)) for point in product(*map(range, EXTENTS.values()))]
Values = Mapping[str, int]

fuzz = settings(max_examples=400, derandomize=True)


@dataclass(frozen=True)
class Expression:
    """An index, and what it must be."""

    index: Index
    value: Callable[[Values], int]

    def __repr__(self) -> str:
        return repr(self.index)


def _sum(parts: list[tuple[Expression, int]], offset: int) -> Expression:
    index = linear([(part.index, factor) for part, factor in parts], offset)
    return Expression(index, lambda values: offset + sum(factor * part.value(values) for part, factor in parts))


def _not_negative(part: Expression) -> Expression:
    shift = max(0, -part.index.low)
    return Expression(add(part.index, shift), lambda values: part.value(values) + shift)


def _quotient(part: Expression, divisor: int) -> Expression:
    part = _not_negative(part)
    return Expression(quotient(part.index, divisor), lambda values: part.value(values) // divisor)


def _remainder(part: Expression, divisor: int) -> Expression:
    part = _not_negative(part)
    return Expression(remainder(part.index, divisor), lambda values: part.value(values) % divisor)


def _clamped(part: Expression, low: int, length: int) -> Expression:
    high = low + length
    return Expression(clamp(part.index, low, high), lambda values: min(max(part.value(values), low), high))


def _of(name: str) -> Expression:
    return Expression(variable(name, EXTENTS[name]), lambda values: values[name])


def _grown(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    factor, offset, divisor = st.integers(-7, 7), st.integers(-9, 20), st.integers(1, 12)
    return st.one_of(
        st.builds(_sum, st.lists(st.tuples(parts, factor), min_size=1, max_size=3), offset),
        st.builds(_quotient, parts, divisor),
        st.builds(_remainder, parts, divisor),
        st.builds(_clamped, parts, st.integers(-5, 10), st.integers(0, 12)),
    )


expressions = st.recursive(st.sampled_from([_of(name) for name in EXTENTS]), _grown, max_leaves=8)


@fuzz
@given(expressions)
def test_an_expression_has_the_value_of_plain_arithmetic(expression: Expression) -> None:
    for values in POINTS:
        assert evaluate(expression.index, values) == expression.value(values)


@fuzz
@given(expressions)
def test_bounds_hold(expression: Expression) -> None:
    found = [expression.value(values) for values in POINTS]
    assert expression.index.low <= min(found) and max(found) <= expression.index.high


@fuzz
@given(expressions, st.fixed_dictionaries(dict.fromkeys("abc", expressions)))
def test_substitution_has_the_value_of_plain_arithmetic(
    expression: Expression, replacements: dict[str, Expression]
) -> None:
    held = {name: _clamped(part, 0, EXTENTS[name] - 1) for name, part in replacements.items()}
    substituted = substitute(expression.index, {name: part.index for name, part in held.items()})
    for values in POINTS:
        inner = dict(values) | {name: part.value(values) for name, part in held.items()}
        assert evaluate(substituted, values) == expression.value(inner)


@fuzz
@given(expressions, expressions)
def test_equal_keys_are_equal_numbers(left: Expression, right: Expression) -> None:
    """The difference of an index with itself is nothing; two with one key cannot differ anywhere."""
    assert linear([(left.index, 1), (left.index, -1)]) == ZERO
    if left.index == right.index:
        assert all(left.value(values) == right.value(values) for values in POINTS)


@fuzz
@given(expressions, st.integers(-5, 10), st.integers(0, 12))
def test_near_is_the_number_where_it_is_within(expression: Expression, low: int, length: int) -> None:
    found = near(expression.index, low, low + length)
    assert low <= found.low and found.high <= low + length
    for values in POINTS:
        number, value = evaluate(found, values), expression.value(values)
        assert low <= number <= low + length
        assert number == value or not low <= value <= low + length


def test_neighbours_near_bounds_stay_neighbours() -> None:
    """Four of them are one vector if the bounds are multiples of four."""
    four = linear([(variable("a", 8), 4), (variable("lane", 4), 1)])
    second = substitute(near(add(variable("r", 32), -16), 0, 15), {"r": four})
    expected = linear([(near(add(variable("a", 8), -4), 0, 3), 4), (variable("lane", 4), 1)])
    assert second == expected


shapes = st.lists(st.integers(1, 6), max_size=5).map(tuple)


def _coordinates(shape: tuple[int, ...]) -> tuple[Index, ...]:
    return tuple(variable(f"i{axis}", extent) for axis, extent in enumerate(shape))


@fuzz
@given(shapes)
def test_flattened_coordinates_come_apart_as_they_were(shape: tuple[int, ...]) -> None:
    at = _coordinates(shape)
    assert unflatten(flatten(at, shape), shape) == at


@fuzz
@given(shapes)
def test_a_position_taken_apart_comes_together_as_it_was(shape: tuple[int, ...]) -> None:
    position = variable("i", prod(shape))
    assert flatten(unflatten(position, shape), shape) == position


@st.composite
def reshapes(draw: st.DrawFn) -> list[tuple[int, ...]]:
    """Shapes of the same number of elements."""
    factors = draw(st.lists(st.sampled_from([2, 2, 3, 5]), max_size=5))
    found = []
    for _ in range(draw(st.integers(2, 4))):
        order = draw(st.permutations(factors))
        cuts = draw(st.sets(st.integers(0, len(factors)), max_size=3)) | {0, len(factors)}
        bounds = sorted(cuts)
        found.append(tuple(prod(order[low:high]) for low, high in pairwise(bounds)))
    return found


@fuzz
@given(reshapes())
def test_a_chain_of_reshapes_finds_the_same_element(chain: list[tuple[int, ...]]) -> None:
    at, shape = _coordinates(chain[0]), chain[0]
    for following in chain[1:]:
        at, shape = unflatten(flatten(at, shape), following), following
    for point in product(*map(range, chain[0])):
        values = {f"i{axis}": number for axis, number in enumerate(point)}
        start = sum(a * stride for a, stride in zip(point, strides_of(chain[0]), strict=True))
        found = [evaluate(index, values) for index in at]
        assert sum(a * stride for a, stride in zip(found, strides_of(shape), strict=True)) == start
        assert all(0 <= number < extent for number, extent in zip(found, shape, strict=True))


@fuzz
@given(reshapes())
def test_a_reshape_and_its_inverse_leave_no_trace(chain: list[tuple[int, ...]]) -> None:
    at = _coordinates(chain[0])
    there = unflatten(flatten(at, chain[0]), chain[1])
    assert unflatten(flatten(there, chain[1]), chain[0]) == at


@pytest.mark.parametrize(
    ("index", "key"),
    [
        (quotient(linear([(variable("i", 8), 4), (variable("j", 4), 1)]), 4), "i"),
        (remainder(linear([(variable("i", 8), 4), (variable("j", 4), 1)]), 4), "j"),
        (quotient(linear([(variable("i", 8), 4), (variable("j", 8), 1)]), 4), "(j)/4+i"),
        (quotient(linear([(variable("i", 8), 4), (variable("j", 2), 2)]), 8), "(i)/2"),
        (remainder(variable("i", 8), 1), "0"),
        (quotient(quotient(variable("i", 100), 3), 5), "(i)/15"),
        (linear([(quotient(variable("i", 12), 5), 5), (remainder(variable("i", 12), 5), 1)]), "i"),
        (clamp(variable("i", 4), 0, 3), "i"),
        (clamp(add(variable("i", 4), -1), 0, 3), "clamp(i+-1,0,3)"),
        (clamp(constant(9), 0, 3), "3"),
        (variable("i", 1), "0"),
    ],
)
def test_normal_forms(index: Index, key: str) -> None:
    assert repr(index) == key


def test_shapes_without_elements_have_positions_all_the_same() -> None:
    assert unflatten(ZERO, (0, 3)) == (ZERO, ZERO)
    assert unflatten(ZERO, (3, 0)) == (ZERO, ZERO)
    assert flatten(_coordinates((2, 0)), (2, 0)) == ZERO


def test_a_single_atom_is_substituted_in_normal_form() -> None:
    i, o = variable("i", 12), variable("o", 3)
    replaced = substitute(quotient(i, 4), {"i": linear([(o, 4)], 3)})
    assert replaced == o
    assert substitute(i, {"i": add(o, 2)}) == add(o, 2)


def _halved(extent: int) -> Index:
    """(i * 3 + j) / 2, whose variables have the same names whatever the extent."""
    return quotient(linear([(variable("i", extent), 3), (variable("j", 3), 1)]), 2)


def test_results_are_kept_by_bounds_too() -> None:
    """The same text over other extents is another question."""
    for extent, rest, whole in ((5, "i+4", "0"), (500, "(i+4)%9", "(i+4)/9"), (5, "i+4", "0")):
        i = variable("i", extent)
        assert remainder(add(i, 4), 9).key == rest
        assert quotient(add(i, 4), 9).key == whole
        assert substitute(quotient(add(variable("j", 999), 4), 9), {"j": i}).key == whole
        halved = substitute(_halved(extent), {"j": i})
        assert (halved.low, halved.high) == (0, 2 * (extent - 1))


def test_what_is_put_in_stands_under_its_own_name() -> None:
    both = quotient(linear([(variable("i", 9), 5), (variable("j", 9), 3)]), 2)
    first = {"i": variable("x", 9), "j": variable("y", 9)}
    second = {"i": variable("y", 9), "j": variable("x", 9)}
    assert substitute(both, first).key == "(5*x+3*y)/2"
    assert substitute(both, second).key == "(3*x+5*y)/2"
    assert substitute(both, {"i": variable("x", 9)}).key == "(3*j+5*x)/2"
    assert substitute(both, {"j": variable("x", 9)}).key == "(5*i+3*x)/2"


def test_tables_that_are_emptied_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [substitute(_halved(extent), {"i": variable("x", extent)}) for extent in range(2, 12)]
    monkeypatch.setattr(index_tables, "_MOST_ENTRIES", 2)
    for name in ("_SUBSTITUTED", "_QUOTIENTS", "_INDICES", "_FLATTENED", "_NUMBERS"):
        monkeypatch.setattr(index_tables, name, {})
    for _ in range(2):
        again = [substitute(_halved(extent), {"i": variable("x", extent)}) for extent in range(2, 12)]
        assert [(one.key, one.high) for one in again] == [(one.key, one.high) for one in made]
    emptied = (index_tables._SUBSTITUTED, index_tables._QUOTIENTS, index_tables._INDICES, index_tables._NUMBERS)
    tables = (*emptied, index_tables._FLATTENED)
    assert all(len(table) <= 2 for table in tables)


def test_indices_of_the_same_terms_are_one() -> None:
    i, j = variable("i", 9), variable("j", 7)
    assert linear([(i, 3), (j, 2)], 4) is add(linear([(j, 2), (i, 3)]), 4)
    assert constant(12345) is add(constant(12340), 5)
    assert linear([(i, 3)]) is not linear([(variable("i", 10), 3)])  # equal, but its bounds differ


def test_positions_are_kept_by_bounds_too() -> None:
    """The coordinates of the same text over other extents, and those in another shape, are other questions."""
    for extent, text in ((4, "i"), (400, "(i)%5"), (4, "i")):
        i = variable("i", extent)
        assert unflatten(i, (100, 5))[1].key == text
        position = flatten((i, variable("j", 5)), (extent, 5))
        assert (position.key, position.high) == ("5*i+j", 5 * extent - 1)
        assert flatten((i, variable("j", 5)), (extent, 7)).key == "7*i+j"
        assert unflatten(i, (80, 5))[1].key == text
        assert unflatten(i, (200, 2))[1].key == "(i)%2"


def test_no_table_keeps_an_array() -> None:
    array = input_node("a", TensorType((9,), int32))
    read = lookup(array, (variable("i", 9),), 7)
    around = linear([(read, 3), (variable("i", 9), 1)])
    asked = [
        lambda: quotient(around, 2),
        lambda: remainder(around, 2),
        lambda: substitute(around, {"i": variable("x", 9)}),
        lambda: substitute(_halved(9), {"i": read}),
        lambda: flatten((variable("i", 9), read), (9, 7)),
        lambda: unflatten(around, (9, 7))[1],
    ]
    for ask in asked:
        assert ask().reads_array
    tables = (
        index_tables._SUBSTITUTED,
        index_tables._QUOTIENTS,
        index_tables._REMAINDERS,
        index_tables._INDICES,
        index_tables._FLATTENED,
    )
    assert not any(found.reads_array for table in tables for found in table.values())
    assert not any(place.reads_array for found in index_tables._UNFLATTENED.values() for place in found)
