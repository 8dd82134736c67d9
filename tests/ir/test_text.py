"""The text form: print -> parse -> print is the identity, and texts that are not graphs are refused."""
from __future__ import annotations

import numpy as np
import pytest

from lavax.base.errors import ParseError
from lavax.ir import Graph, TensorType, float32, interpret, parse, verify
from lavax.ir.parser import parse_type
from lavax.ir.printer import format_attribute, print_graph
from tests.operation_cases import Case, all_cases, cases_of
from tests.random_graphs import random_graph

TEXT = """graph (x: f32[128,64], w: f32[64,10], labels: i32[128], flag.0: bool[]) {
  %0 = dot(x, w) contract=[1]x[0] : f32[128,10]
  %1 = constant() value=1e-05 : f32[128,10]
  %2 = add(%0, %1) : f32[128,10]
  %3 = pad(%2) low=[0,1] high=[2,0] interior=[0,3] value=-inf : f32[130,38]
  %4 = dot(x, x) contract=[]x[] batch=[0,1]x[0,1] : f32[128,64]
  %5 = gather(%0, labels) axes=[1] : f32[128,128]
  %6 = constant() value=true : bool[]
  %7 = and(flag.0, %6) : bool[]
  %8 = sum(%5) axes=[] : f32[128,128]
  %9 = constant() value=nan : f32[2]
  %10 = constant() value=-nan : f32[2]
  return %3, %4, %7, %8, %9, %10, x
}"""


def test_a_text_is_read_and_printed_again() -> None:
    graph = parse(TEXT)
    verify(graph)
    assert str(graph) == TEXT


@pytest.mark.parametrize("op", sorted({case.op for case in all_cases()}))
def test_every_operation_round_trips(op: str) -> None:
    for case in cases_of(op):
        text = str(case.graph)
        graph = parse(text)
        verify(graph)
        assert str(graph) == text
        assert attributes_of(graph) == attributes_of(case.graph)


def attributes_of(graph: Graph) -> list[str]:
    """The attributes with their Python types, which the text must not lose."""
    return [repr({key: node.attrs[key] for key in sorted(node.attrs)}) for node in graph.nodes]


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_round_trip(seed: int) -> None:
    graph, _ = random_graph(seed)
    assert str(parse(str(graph))) == str(graph)


def test_a_graph_of_nothing() -> None:
    graph = parse("graph () {\n  return\n}")
    assert (graph.inputs, graph.nodes, graph.outputs) == ((), (), ())
    assert str(graph) == "graph () {\n  return\n}"


def test_blank_lines_and_indentation_do_not_matter() -> None:
    assert str(parse("\n\n graph (x: f32[]) {\n\n%0 = sin(x) : f32[]\n   return %0\n}\n")) == (
        "graph (x: f32[]) {\n  %0 = sin(x) : f32[]\n  return %0\n}"
    )


def test_values_may_have_any_number() -> None:
    graph = parse("graph (x: f32[]) {\n  %7 = sin(x) : f32[]\n  %3 = cos(%7) : f32[]\n  return %3\n}")
    assert str(graph).splitlines()[1:3] == ["  %0 = sin(x) : f32[]", "  %1 = cos(%0) : f32[]"]


def test_the_text_can_be_indented() -> None:
    graph = parse("graph (x: f32[]) {\n  return x\n}")
    assert print_graph(graph, indent="  ") == "  graph (x: f32[]) {\n    return x\n  }"


def test_types() -> None:
    assert parse_type("f32[]") == TensorType((), float32)
    assert parse_type("f32[2,0,3]") == TensorType((2, 0, 3), float32)
    assert str(TensorType((2, 0, 3), float32)) == "f32[2,0,3]"
    for wrong in ("c32[2]", "f32", "f32[-1]", "f32[2"):
        with pytest.raises(ParseError, match="is not a type"):
            parse_type(wrong)


def _call_of(function: str, types: str) -> str:
    return f'graph (x: c64[3,3]) {{\n  %0 = host_call(x) function="{function}" : {types}\n  return %0\n}}'


def test_routines_of_the_host_are_read_by_their_names() -> None:
    text = """graph (x: c64[2,3,3]) {
  %0 = host_call(x) function="eigh" : (f32[2,3], c64[2,3,3])
  %1 = item(%0) index=0 : f32[2,3]
  %2 = host_call(x, x, x) function="solve_sylvester" : (c64[2,3,3])
  %3 = item(%2) index=0 : c64[2,3,3]
  return %1, %3
}"""
    graph = parse(text)
    assert str(graph) == text
    x = np.array([[[2, 1j, 0], [-1j, 3, 1], [0, 1, 5]], np.diag([3, 1, 2])], complex)
    values, solution = interpret(graph, x)
    np.testing.assert_allclose(values[1], [1, 2, 3])
    np.testing.assert_allclose(x @ solution + solution @ x, x, atol=1e-14)


def test_an_attribute_of_no_known_kind_is_refused() -> None:
    with pytest.raises(TypeError, match="an attribute cannot be"):
        format_attribute({"not": "an attribute"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: a graph begins with"),
        ("graph (x: f32[]) {\n  return x", "a graph begins with"),
        ("graph (x: f32[]) {\n  sin(x)\n  return x\n}", "line 2: not of the form"),
        ("graph (x: f32[]) {\n  %0 = sine(x) : f32[]\n  return %0\n}", "line 2: unknown operation 'sine'"),
        ("graph (x: f32[]) {\n  %0 = sin(y) : f32[]\n  return %0\n}", "line 2: y is not defined before its use"),
        ("graph (x: f32[]) {\n  %0 = sin(x) : c32[]\n  return %0\n}", "line 2: 'c32\\[\\]' is not a type"),
        ("graph (x: f32[]) {\n  %0 = sin(x) : f32[2]\n  return %0\n}", r"line 2: the type must be f32\[\]"),
        ("graph (x: f32[2]) {\n  %0 = sum(x) : f32[]\n  return %0\n}", r"takes the attributes \['axes'\], got \[\]"),
        ("graph (x: f32[2]) {\n  %0 = sum(x) axes=[1] : f32[]\n  return %0\n}", r"axes \[1\] must be distinct axes"),
        ("graph (x: i32[2]) {\n  %0 = sin(x) : i32[2]\n  return %0\n}", "sin is not defined for"),
        ("graph (x: f32[]) {\n  %0 = sin(x) : f32[]\n}", "line 2: the last line but one is 'return …'"),
        ("graph (x: f32[]) {\n  return %0\n}", "line 2: %0 is not defined"),
        ("graph () {\n  %0 = constant() value=1 : f32[]\n  return %0\n}", r"1 is not a Python number that f32\[\]"),
        ("graph () {\n  %0 = constant() value=-1 : u32[]\n  return %0\n}", "-1 is not a Python number"),
        (_call_of("eigh", "(f32[2], c64[2,2])"), r"line 2: the type must be \(f32\[3\], c64\[3,3\]\)"),
        (_call_of("solve_sylvester", "(c64[3,3])"), "its operands and attributes do not fit together"),
        (_call_of("pure_callback of f#2", "(c64[3])"), '"pure_callback of f#2" is a Python function'),
    ],
)
def test_what_is_not_a_graph(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse(text)


def test_cases_print_alike_on_every_run() -> None:
    """A sample of the stable text, so that a change of the form is seen."""

    def line(case: Case) -> str:
        return str(case.graph).splitlines()[1]

    assert [line(cases_of(op)[-1]) for op in ("slice", "concatenate", "scatter_add")] == [
        "  %0 = slice(x0) start=[0,1] limit=[0,2] stride=[1,1] : bool[0,1]",
        "  %0 = concatenate(x0, x1, x2) axis=1 : f64[2,8,2]",
        "  %0 = scatter_add(x0, x1, x2) axes=[0] : f32[0,3]",
    ]
