"""The coordinates at which operands are read, element by element, against the operations' own evaluation."""
from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from lavax.ir import OPERATIONS, Node, TensorType, float32, interpret
from lavax.ir.graph import INPUT, input_node
from lavax.ir.interpreter import evaluate_node
from lavax.ir.operation import names_of_family
from lavax.passes.build import builder
from lavax.passes.kernels.index import Clamped, Index, Lookup, Quotient, Remainder, Variable, constant, variable
from lavax.passes.kernels.reads import (
    READS,
    Coordinates,
    Within,
    concatenate_starts,
    counted,
    inside_pad,
    inside_unshear,
)
from tests.operation_cases import cases_of


class Reader:
    """Computes single elements of nodes, at coordinates in loop variables, as a kernel does."""

    def __init__(self, arrays: dict[Node, np.ndarray], values: dict[str, int]) -> None:
        self.arrays = arrays
        self.values = values

    def number(self, index: Index) -> int:
        return index.constant + sum(coefficient * self._atom(atom) for atom, coefficient in index.terms)

    def _atom(self, atom: Any) -> int:
        match atom:
            case Variable(name=name):
                return self.values[name]
            case Quotient(dividend=dividend, divisor=divisor):
                assert self.number(dividend) >= 0
                return self.number(dividend) // divisor
            case Remainder(dividend=dividend, divisor=divisor):
                assert self.number(dividend) >= 0
                return self.number(dividend) % divisor
            case Clamped(index=index, low=low, high=high):
                return min(max(self.number(index), low), high)
            case Lookup(array=array, coordinates=coordinates, high=high):
                return min(max(int(self.element(array, coordinates)), 0), high)
        raise AssertionError(atom)

    def holds(self, condition: Within) -> bool:
        number = self.number(condition.index)
        return condition.low <= number <= condition.high and (number - condition.low) % condition.step == 0

    def element(self, node: Node, at: Coordinates) -> Any:
        if node.op == INPUT:
            place = tuple(map(self.number, at))
            assert all(0 <= a < extent for a, extent in zip(place, node.shape, strict=True)), "outside the array"
            return self.arrays[node][place]
        if node.op == "constant":
            return node.attrs["value"]
        if node.op == "iota":
            return self.number(at[node.attrs["axis"]])
        values = [self.element(read, where) for read, where in READS[node.op](node, at)]
        if node.op == "pad":
            inside = all(self.holds(condition) for condition in inside_pad(node, at))
            return values[0] if inside else node.attrs["value"]
        if node.op == "unshear":
            inside = all(self.holds(condition) for condition in inside_unshear(node, at))
            return values[0] if inside else type(values[0])(0)
        if node.op == "concatenate":
            along = self.number(at[node.attrs["axis"]])
            return values[sum(along >= start for start in concatenate_starts(node)) - 1]
        if OPERATIONS[node.op].family == "elementwise":
            single = Node(node.op, node.operands, node.attrs, node.type.with_shape(()))
            return evaluate_node(single, [np.asarray(value) for value in values], np.dtype(np.float64))
        return values[-1]


MOVED = sorted(name for name in READS if OPERATIONS[name].family != "elementwise")


@pytest.mark.parametrize("op", MOVED)
def test_every_element_is_read_from_where_the_operation_takes_it(op: str) -> None:
    for case in cases_of(op):
        arrays = dict(zip(case.graph.inputs, case.arrays, strict=True))
        for output, expected in zip(case.graph.outputs, interpret(case.graph, *case.arrays), strict=True):
            if not all(node.type.size for node in (output, *output.operands)):
                continue  # `prepare` leaves nothing to read from arrays without elements
            at = tuple(variable(f"o{axis}", extent) for axis, extent in enumerate(output.shape))
            for point in product(*map(range, output.shape)):
                reader = Reader(arrays, {f"o{axis}": number for axis, number in enumerate(point)})
                assert reader.element(output, at) == pytest.approx(expected[point], nan_ok=True), f"{case} at {point}"


def test_elementwise_operations_read_where_they_write() -> None:
    x = input_node("x", TensorType((3, 4), float32))
    at = (variable("o0", 3), variable("o1", 4))
    for op in names_of_family("elementwise"):
        node = Node(op, (x, x), {}, x.type)
        assert READS[op](node, at) == ((x, at), (x, at))


def test_what_a_kernel_needs_whole_is_not_read_element_by_element() -> None:
    for family in ("reduction", "contraction"):
        assert names_of_family(family).isdisjoint(READS)


def test_indices_that_count_or_are_constant_need_no_memory() -> None:
    at = (variable("o0", 3), variable("o1", 4))
    rising = builder.iota(builder.index_type((4,)), 0)
    assert counted(builder.broadcast(rising, (3, 4), (1,)), at) == at[1]
    assert counted(builder.flip(rising, (0,)), at[1:]) == Index(((at[1].terms[0][0], -1),), 3)
    assert counted(builder.splat(2, builder.index_type((3, 4))), at) == constant(2)
    assert counted(input_node("i", builder.index_type((3, 4))), at) is None
