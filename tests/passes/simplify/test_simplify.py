"""Simplification: each rewrite as text, equal nodes, dead nodes, values that must not change, and time."""
from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from lavax.ir import OPERATIONS, Graph, TensorType, float16, float32, interpret, parse, verify
from lavax.ir.graph import Node, graph_of, input_node, make_node
from lavax.passes.build.builder import add, build, multiply, splat, sum_over
from lavax.passes.simplify import MERGING, RULES, remove_stop_gradient, simplify
from lavax.passes.simplify.rewriting import RewriteRule, rewrite
from lavax.tracer.compiled.collection import without_collection
from tests.operation_cases import Case, all_cases
from tests.random_graphs import random_graph


class Rewrite(NamedTuple):
    rules: tuple[str, ...]  # those it is about; none where nothing may happen
    before: str
    after: str


def rewrites() -> list[Rewrite]:
    text = (Path(__file__).parent / "rewrites.txt").read_text(encoding="utf-8")
    found = []
    for section in text.split("\n# ")[1:]:
        title, graphs = section.split("\n", 1)
        before, after = graphs.split("\n=>\n")
        found.append(Rewrite(() if title == "stays as it is" else tuple(title.split()), before, after.strip()))
    return found


def name_of(rule: RewriteRule) -> str:
    return f"{rule.__module__.rpartition('.')[2]}.{rule.__name__.strip('_')}"


def all_rules() -> set[str]:
    return {name_of(rule) for rules in (*RULES.values(), *MERGING.values()) for rule in rules}


def values_for(graph: Graph) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    arrays = []
    for node in graph.inputs:
        drawn = random.integers(0, 4, node.shape) if node.dtype.is_integer else random.normal(size=node.shape)
        arrays.append(np.asarray(drawn > 0 if node.dtype.kind == "bool" else drawn))
    return arrays


def same(graph: Graph, simple: Graph, arrays: Sequence[np.ndarray], tolerance: float = 0.0) -> None:
    for one, other in zip(interpret(graph, *arrays), interpret(simple, *arrays), strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("rewrite", rewrites(), ids=lambda rewrite: "-".join(rewrite.rules) or "stays")
def test_rewrites(rewrite: Rewrite) -> None:
    graph = parse(rewrite.before)
    simple = simplify(graph)
    verify(graph)
    verify(simple)
    assert str(simple) == rewrite.after
    assert str(simplify(simple)) == rewrite.after
    same(graph, simple, values_for(graph), tolerance=1e-14)


@pytest.mark.parametrize("example", [r for r in rewrites() if r.rules], ids=lambda r: "-".join(r.rules))
def test_rewrites_are_done_by_the_rules_they_name(example: Rewrite) -> None:
    fired = set()

    def watched(rule: RewriteRule) -> RewriteRule:
        def watching(node: Node) -> Node | None:
            simpler = rule(node)
            if simpler is not None:
                fired.add(name_of(rule))
            return simpler

        return watching

    rules, merging = ({op: tuple(map(watched, table[op])) for op in table} for table in (RULES, MERGING))
    rewrite(parse(example.before), rules, merging)
    assert set(example.rules) <= fired


def test_every_rule_is_shown() -> None:
    assert {rule for rewrite in rewrites() for rule in rewrite.rules} == all_rules()


def test_every_operation_has_an_entry() -> None:
    assert set(RULES) == set(OPERATIONS)


# Equal nodes and dead nodes


def simplified(text: str) -> str:
    graph = parse(text)
    simple = simplify(graph)
    verify(simple)
    assert str(simplify(simple)) == str(simple)
    return str(simple)


def test_equal_nodes_are_one() -> None:
    assert simplified("""graph (x: f32[3], y: f32[3]) {
  %0 = add(x, y) : f32[3]
  %1 = add(y, x) : f32[3]
  %2 = sin(%0) : f32[3]
  %3 = sin(%1) : f32[3]
  %4 = subtract(x, y) : f32[3]
  %5 = subtract(y, x) : f32[3]
  %6 = cast(x) : i32[3]
  %7 = cast(x) : bool[3]
  %8 = sum(x) axes=[0] : f32[]
  %9 = max(x) axes=[0] : f32[]
  return %2, %3, %4, %5, %6, %7, %8, %9
}""") == """graph (x: f32[3], y: f32[3]) {
  %0 = add(x, y) : f32[3]
  %1 = sin(%0) : f32[3]
  %2 = subtract(x, y) : f32[3]
  %3 = subtract(y, x) : f32[3]
  %4 = cast(x) : i32[3]
  %5 = cast(x) : bool[3]
  %6 = sum(x) axes=[0] : f32[]
  %7 = max(x) axes=[0] : f32[]
  return %1, %1, %2, %3, %4, %5, %6, %7
}"""


def test_constants_that_only_compare_equal_stay_apart() -> None:
    assert simplified("""graph (x: f32[3]) {
  %0 = constant() value=0.0 : f32[]
  %1 = constant() value=-0.0 : f32[]
  %2 = constant() value=1 : i32[]
  %3 = constant() value=1 : u32[]
  %4 = constant() value=true : bool[]
  %5 = constant() value=1.0 : f32[]
  %6 = constant() value=1.0 : f32[1]
  %7 = constant() value=nan : f32[]
  %8 = constant() value=nan : f32[]
  return %0, %1, %2, %3, %4, %5, %6, %7, %8
}""") == """graph (x: f32[3]) {
  %0 = constant() value=0.0 : f32[]
  %1 = constant() value=-0.0 : f32[]
  %2 = constant() value=1 : i32[]
  %3 = constant() value=1 : u32[]
  %4 = constant() value=true : bool[]
  %5 = constant() value=1.0 : f32[]
  %6 = constant() value=1.0 : f32[1]
  %7 = constant() value=nan : f32[]
  return %0, %1, %2, %3, %4, %5, %6, %7, %7
}"""


def test_dead_nodes_go_and_inputs_stay() -> None:
    assert simplified("""graph (x: f32[3], unused: i32[2]) {
  %0 = exp(x) : f32[3]
  %1 = sin(x) : f32[3]
  %2 = add(%0, %0) : f32[3]
  return %1, x
}""") == """graph (x: f32[3], unused: i32[2]) {
  %0 = sin(x) : f32[3]
  return %0, x
}"""


def test_stop_gradient_stays_until_it_is_removed() -> None:
    text = """graph (x: f32[3]) {
  %0 = stop_gradient(x) : f32[3]
  %1 = negate(%0) : f32[3]
  %2 = add(x, %1) : f32[3]
  return %2
}"""
    assert simplified(text) == """graph (x: f32[3]) {
  %0 = stop_gradient(x) : f32[3]
  %1 = subtract(x, %0) : f32[3]
  return %1
}"""
    assert str(remove_stop_gradient(parse(text))) == """graph (x: f32[3]) {
  %0 = subtract(x, x) : f32[3]
  return %0
}"""


def test_what_is_merged_when_it_has_one_use_is_found_behind_other_rewrites() -> None:
    """The dot is used twice before its dead use is gone."""
    assert simplified("""graph (x: f32[4,3], y: f32[3,5]) {
  %0 = dot(x, y) contract=[1]x[0] : f32[4,5]
  %1 = transpose(%0) axes=[1,0] : f32[5,4]
  %2 = exp(%0) : f32[4,5]
  %3 = sum(%1) axes=[0] : f32[4]
  %4 = sum(%3) axes=[0] : f32[]
  return %1, %4
}""") == """graph (x: f32[4,3], y: f32[3,5]) {
  %0 = dot(x, y) contract=[1]x[0] : f32[4,5]
  %1 = transpose(%0) axes=[1,0] : f32[5,4]
  %2 = sum(%0) axes=[0,1] : f32[]
  return %1, %2
}"""


def test_rewritten_nodes_keep_the_line_they_come_from() -> None:
    x = input_node("x", TensorType((4, 3), float32))
    two = make_node("constant", (), dict(value=2.0), x.type, "model.py:1")
    product = make_node("multiply", (two, x), type=x.type, location="model.py:2")
    turned = make_node("transpose", (product,), dict(axes=(1, 0)), location="model.py:3")
    folded = make_node("sum", (turned,), dict(axes=(0,)), location="model.py:4")
    simple = simplify(graph_of([x], [folded]))
    assert [(node.op, node.location) for node in simple.nodes] == [
        ("constant", "model.py:1"),
        ("multiply", "model.py:2"),
        ("sum", "model.py:4"),
    ]


# Values that must not change


@pytest.mark.parametrize("op", sorted(OPERATIONS))
def test_single_operations_keep_their_values(op: str) -> None:
    for case in all_cases():
        if case.op == op:
            simple = simplify(case.graph)
            verify(simple)
            assert str(simplify(simple)) == str(simple)
            same(case.graph, simple, case.arrays, tolerance=1e-14 if op in ("sum", "prod", "dot") else 0)


def with_splats(case: Case, known: Sequence[int], element: int) -> Graph:
    """The case's graph with the operands at `known` replaced by splats of one of their elements."""
    inputs = list(case.graph.inputs)
    operands = [
        splat(case.arrays[number].ravel()[element].item(), node.type) if number in known else node
        for number, node in enumerate(inputs)
    ]
    node = make_node(case.op, operands, case.node.attrs, case.node.type)
    return graph_of(inputs, [node])


def values_with_splats(case: Case, known: Sequence[int], elements: Sequence[int], dtype: type) -> np.ndarray:
    """The values of `with_splats` for several elements, computed at once: a row per element."""
    columns = 1 if len(known) == len(case.arrays) else case.arrays[0].size
    shape = (len(elements), columns)
    rows = [
        np.broadcast_to(array[elements, None] if number in known else array, shape)
        for number, array in enumerate(case.arrays)
    ]
    inputs = [input_node(node.name, node.type.with_shape(shape)) for node in case.graph.inputs]
    node = make_node(case.op, inputs, case.node.attrs, case.node.type.with_shape(shape))
    (values,) = interpret(graph_of(inputs, [node]), *rows, dtype=dtype)
    return values


def special_elementwise() -> list[Case]:
    return [c for c in all_cases() if c.special and OPERATIONS[c.op].family == "elementwise" and c.op != "where"]


def elements_of(case: Case, known: Sequence[int]) -> list[int]:
    """Positions of different values of these operands: of two operands each pair, of three each pair with one third."""
    columns = np.stack([case.arrays[number] for number in known]).astype(np.float64)
    found = np.sort(np.unique(columns, axis=1, return_index=True)[1])
    if len(known) < 3:
        return found.tolist()
    count = round(case.arrays[0].size ** (1 / 3))
    first, second, third = np.unravel_index(found, (count, count, count))
    return found[(first + second + third) % count == 0].tolist()


@pytest.mark.parametrize("case", special_elementwise(), ids=str)
def test_infinities_zeros_and_nan_survive(case: Case) -> None:
    """With one operand known, and with all: in float64 and in float32 nothing finite, infinite or NaN changes."""
    count = len(case.graph.inputs)
    others = {node.dtype for node in (*case.graph.inputs, case.node) if node.dtype.is_float} - {float32}
    dtypes = (np.float64,) if others else (np.float64, np.float32)
    for known in {(0,), (count - 1,), tuple(range(count))}:
        changed: dict[int, Graph] = {}
        for element in elements_of(case, known):
            graph = with_splats(case, known, element)
            simple = simplify(graph)
            verify(simple)
            if str(simple) != str(graph):
                changed[element] = simple
        if not changed:
            continue
        expected = {dtype: values_with_splats(case, known, list(changed), dtype) for dtype in dtypes}
        for row, simple in enumerate(changed.values()):
            for dtype in dtypes:
                (found,), plain = interpret(simple, *case.arrays, dtype=dtype), expected[dtype][row]
                if float16 in others:  # a splat is rounded
                    plain, found = case.node.dtype.rounded(plain), case.node.dtype.rounded(found)
                tolerance = 1e-6 if dtype == np.float32 else 2e-3 if float16 in others else 1e-14
                np.testing.assert_allclose(found, np.broadcast_to(plain, found.shape), rtol=tolerance, atol=0)


def test_results_beyond_float32_are_left_to_the_device() -> None:
    text = """graph (x: f32[]) {
  %0 = constant() value=100.0 : f32[]
  %1 = exp(%0) : f32[]
  %2 = constant() value=1e-30 : f32[]
  %3 = multiply(%2, %2) : f32[]
  %4 = constant() value=1.000000001 : f32[]
  %5 = constant() value=1.0 : f32[]
  %6 = equal(%4, %5) : bool[]
  return %1, %3, %6
}"""
    assert simplified(text) == text


def test_a_value_equal_to_itself_may_be_nan() -> None:
    graph = parse("graph (x: f32[2]) {\n  %0 = not_equal(x, x) : bool[2]\n  return %0\n}")
    assert interpret(simplify(graph), [np.nan, 1.0])[0].tolist() == [True, False]


@pytest.mark.parametrize("seed", range(150))
def test_random_graphs(seed: int) -> None:
    """Whole numbers, so the values agree to the bit; the text is the same when simplified again and when read back."""
    graph, arrays = random_graph(seed, steps=40)
    verify(graph)
    for function in (simplify, remove_stop_gradient):
        simple = function(graph)
        verify(simple)
        assert str(function(simple)) == str(simple)
        assert str(function(parse(str(simple)))) == str(simple)
        same(graph, simple, arrays)


def layers(count: int) -> Graph:
    x, b = (input_node(name, TensorType(shape, float32)) for name, shape in (("x", (4, 8)), ("b", (8,))))
    h = x
    for number in range(count):
        scaled = multiply(h, splat(1 + number, h.type))
        h = add(build("tanh", scaled), build("broadcast", b, type=h.type, axes=(1,)))
    return graph_of([x, b], [sum_over(h, (0, 1))])


def test_two_thousand_layers() -> None:
    """No recursion, and time in proportion to the graph: eight times the layers in less than 24 times the time."""
    best = []
    for count in (250, 2000):
        graph, seconds = layers(count), []
        for _ in range(3):
            begin = time.process_time()
            with without_collection:  # as when a program is made: it would go over all that other tests have left
                simple = simplify(graph)
            seconds.append(time.process_time() - begin)
        best.append(min(seconds))
        assert len(simple.nodes) == 4 * count  # one broadcast serves all layers, and the first multiplies by 1
    assert best[1] < 24 * best[0]


def test_a_concatenation_that_grows_part_by_part() -> None:
    """Opened up at every step it would have two million operands."""
    x = input_node("x", TensorType((1,), float32))
    grown = x
    for number in range(2000):
        grown = build("concatenate", grown, build("sin", multiply(x, splat(number + 2, x.type))), axis=0)
    simple = simplify(graph_of([x], [grown]))
    assert sum(len(node.operands) for node in simple.nodes) < 20_000
    same(graph_of([x], [grown]), simple, [np.array([0.1])])


def test_equal_loops_are_one() -> None:
    """Bodies of equal texts are equal; others, and what may have effects, stay."""
    turn = "body=graph (c: f32[3]) {\n%0 = VALUE(c) : f32[3]\nreturn %0\n} carries=1 length=4 reverse=false sequences=0"
    lines = [f"%{n} = scan(x) {turn} : (f32[3])" for n in range(3)]
    lines += [f"%{n + 3} = item(%{n}) index=0 : f32[3]" for n in range(3)]
    text = "graph (x: f32[3]) {\n" + "\n".join(lines) + "\nreturn %3, %4, %5\n}"
    graph = parse(text.replace("VALUE", "sin", 2).replace("VALUE", "cos"))
    simple = simplify(graph)
    assert sum(node.op == "scan" for node in simple.nodes) == 2
    assert simple.outputs[0] is simple.outputs[1] is not simple.outputs[2]
    same(graph, simple, values_for(graph))
