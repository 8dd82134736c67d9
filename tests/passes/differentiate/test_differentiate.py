"""Gradients: against central differences in the middle of a graph, against tables, and of what has none."""
from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pytest

from lavax.base.errors import DtypeError, NonScalarGradError
from lavax.ir import OPERATIONS, Graph, Node, TensorType, float32, interpret, parse, verify
from lavax.ir.graph import graph_of, input_node, substitute
from lavax.passes.build.builder import add, build, dot, multiply, scale, splat, sum_over
from lavax.passes.differentiate import NOT_DIFFERENTIABLE, RULES, differentiate, vjp
from lavax.passes.differentiate.rules import HAS_CONTROL_FLOW_RULE
from lavax.passes.simplify import simplify
from lavax.tracer.compiled.collection import without_collection
from tests.operation_cases import Case, all_cases
from tests.random_graphs import random_graph, scalar_of

STEP = 1e-5
# A central difference of a function of size f errs by about f'''·STEP²/6 + f·2⁻⁵³/STEP: below 1e-9 for the
# functions here, which are of size 1 with derivatives up to some hundreds.
TOLERANCE = 1e-7

DIFFERENTIABLE = [
    case
    for case in all_cases()
    if case.op in RULES
    and not case.special
    and case.node.dtype.is_float
    and case.only_float32
    and any(node.dtype.is_float for node in case.graph.inputs)
]


def floats_of(graph: Graph) -> list[int]:
    return [position for position, node in enumerate(graph.inputs) if node.dtype.is_float]


def total(x: Node) -> Node:
    return sum_over(x, range(x.type.rank))


def in_the_middle(case: Case) -> tuple[Graph, list[np.ndarray]]:
    """loss = 1.7·Σ(w ⊙ op(x / 2)), so that neither the cotangent nor what comes before is 1."""
    inputs = [input_node(node.name, node.type) for node in case.graph.inputs]
    halves = {
        old: scale(new, 0.5) if new.dtype.is_float else new for old, new in zip(case.graph.inputs, inputs, strict=True)
    }
    value = substitute(case.graph, halves)[case.node]
    weights = input_node("w", value.type)
    loss = scale(total(multiply(value, weights)), 1.7)
    arrays = [2 * a.astype(np.float64) if a.dtype == np.float32 else a for a in case.arrays]
    arrays.append(np.random.default_rng(0).uniform(0.5, 1.5, value.shape))
    return graph_of([*inputs, weights], [loss]), arrays


def check_gradient(graph: Graph, arrays: Sequence[np.ndarray], wrt: Sequence[int], gradient: Graph) -> None:
    """`gradient`'s last outputs are those of graph's first: compared along random directions."""
    random = np.random.default_rng(1)
    gradients = interpret(gradient, *arrays)[-len(wrt) :]
    for _ in range(2):
        directions = [random.normal(size=arrays[position].shape) for position in wrt]
        ends = []
        for sign in (1, -1):
            moved = list(arrays)
            for position, direction in zip(wrt, directions, strict=True):
                moved[position] = moved[position] + sign * STEP * direction
            ends.append(interpret(graph, *moved)[0])
        terms = [np.sum(g * d) for g, d in zip(gradients, directions, strict=True)]
        size = 1 + sum(np.sum(np.abs(g * d)) for g, d in zip(gradients, directions, strict=True))
        np.testing.assert_allclose(sum(terms), (ends[0] - ends[1]) / (2 * STEP), rtol=0, atol=TOLERANCE * size)


def mixed_gradients(graph: Graph, wrt: Sequence[int]) -> Graph:
    """Σ of the gradients, each element multiplied by another number: a scalar to differentiate again."""
    first = differentiate(graph, wrt)
    parts = []
    for gradient in first.outputs[1:]:
        ramp = build("iota", type=gradient.type.with_shape((max(gradient.type.size, 1),)), axis=0)
        if gradient.type.size:
            numbers = build("reshape", build("sin", add(ramp, splat(1, ramp.type))), type=gradient.type)
            parts.append(total(multiply(numbers, gradient)))
    loss = splat(0, TensorType((), float32))
    for part in parts:
        loss = add(loss, part)
    return graph_of(graph.inputs, [loss])


def test_every_operation_has_a_rule_or_is_meant_to_have_none() -> None:
    assert set(RULES) | NOT_DIFFERENTIABLE | HAS_CONTROL_FLOW_RULE == set(OPERATIONS)
    assert not set(RULES) & NOT_DIFFERENTIABLE


def test_every_rule_is_tested() -> None:
    elsewhere = {"known_value", "axis_sum", "axis_max", "axis_min", "axis_gather"}  # tests/tracer: checkpoint, vmap
    elsewhere |= {"complex", "conjugate", "fft", "imag", "irfft", "real", "rfft"}  # tests/lavax/numpy: complex, fft
    assert {case.op for case in DIFFERENTIABLE} == set(RULES) - elsewhere


@pytest.mark.parametrize("op", sorted(RULES))
def test_first_order(op: str) -> None:
    for case in DIFFERENTIABLE:
        if case.op == op:
            graph, arrays = in_the_middle(case)
            gradient = differentiate(graph, floats_of(graph))
            verify(gradient)
            check_gradient(graph, arrays, floats_of(graph), gradient)


@pytest.mark.parametrize("op", sorted(RULES))
def test_second_order(op: str) -> None:
    for case in DIFFERENTIABLE:
        if case.op == op and case.node.type.size <= 60:
            graph, arrays = in_the_middle(case)
            once = mixed_gradients(graph, floats_of(graph))
            twice = simplify(differentiate(simplify(once), floats_of(graph)))
            verify(twice)
            check_gradient(once, arrays, floats_of(graph), twice)


@pytest.mark.parametrize("op", sorted(RULES))
def test_simplified_gradients_are_the_same(op: str) -> None:
    for case in DIFFERENTIABLE:
        if case.op == op:
            graph, arrays = in_the_middle(case)
            gradient = differentiate(graph, floats_of(graph))
            for plain, simple in zip(interpret(gradient, *arrays), interpret(simplify(gradient), *arrays), strict=True):
                np.testing.assert_allclose(simple, plain, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("op", ["floor", "sign", "stop_gradient"])
def test_no_gradient_passes(op: str) -> None:
    graph = parse(f"graph (x: f32[3]) {{\n %0 = {op}(x) : f32[3]\n %1 = sum(%0) axes=[0] : f32[]\n return %1\n}}")
    assert str(simplify(differentiate(graph, [0]))).splitlines()[-3:] == [
        "  %2 = constant() value=0.0 : f32[3]",
        "  return %1, %2",
        "}",
    ]


# The operations at the places where the plain formula fails


def gradient_of(op: str, *values: object, attrs: dict[str, object] | None = None) -> list[np.ndarray]:
    """The gradients of the sum of op(values…)."""
    arrays = [np.asarray(value, np.float64) for value in values]
    inputs = [input_node(f"x{number}", TensorType(array.shape, float32)) for number, array in enumerate(arrays)]
    value = build(op, *inputs, **(attrs or {}))
    graph = graph_of(inputs, [total(value)])
    gradient = differentiate(graph, range(len(inputs)))
    results = interpret(gradient, *arrays)[1:]
    for plain, simple in zip(results, interpret(simplify(gradient), *arrays)[1:], strict=True):
        np.testing.assert_array_equal(plain, simple)
    return results


def test_equal_operands_share_the_gradient() -> None:
    for op in ("maximum", "minimum"):
        x, y = gradient_of(op, [1.0, 2.0, 3.0], [1.0, 5.0, 0.0])
        first = [0.5, 0.0, 1.0] if op == "maximum" else [0.5, 1.0, 0.0]
        np.testing.assert_array_equal(x, first)
        np.testing.assert_array_equal(y, 1 - np.array(first))


def test_tied_extrema_share_the_gradient() -> None:
    rows = [[3.0, 1.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0], [1.0, 2.0, 3.0, 4.0]]
    (x,) = gradient_of("max", rows, attrs=dict(axes=(1,)))
    np.testing.assert_array_equal(x, [[0.5, 0, 0.5, 0], [0.25] * 4, [0, 0, 0, 1]])
    (x,) = gradient_of("min", rows, attrs=dict(axes=(1,)))
    np.testing.assert_array_equal(x, [[0, 0, 0, 1], [0.25] * 4, [1, 0, 0, 0]])


def test_abs_at_zero() -> None:
    np.testing.assert_array_equal(gradient_of("abs", [0.0, -2.0, 3.0])[0], [0, -1, 1])


def test_power_at_its_corners() -> None:
    base, exponent = gradient_of("power", [0.0, 0.0, 0.0, 2.0, 3.0], [0.0, 1.0, 2.0, 0.0, 1.0])
    np.testing.assert_allclose(base, [0, 1, 0, 0, 1], rtol=1e-15)
    np.testing.assert_allclose(exponent, [0, 0, 0, np.log(2), 3 * np.log(3)], rtol=1e-15)


def test_power_of_a_negative_base_by_a_constant() -> None:
    x = input_node("x", TensorType((2,), float32))
    graph = graph_of([x], [total(build("power", x, splat(3, x.type)))])
    np.testing.assert_allclose(interpret(differentiate(graph, [0]), [-2.0, 0.0])[1], [12, 0], rtol=1e-15)


def test_mixed_second_derivative_of_power_at_exponent_zero() -> None:
    """∂²(x^y)/∂x∂y is 1/x at y = 0."""
    x, y = (input_node(name, TensorType((), float32)) for name in "xy")
    first = differentiate(graph_of([x, y], [build("power", x, y)]), [0])
    mixed = differentiate(graph_of(first.inputs, first.outputs[1:]), [1])
    np.testing.assert_allclose(interpret(mixed, 4.0, 0.0)[1], 0.25, rtol=1e-15)


@pytest.mark.parametrize("zeros", [[], [1], [1, 4], [0, 1, 2]])
@pytest.mark.parametrize("length", [1, 2, 3, 5, 8])
def test_prod_with_zeros(zeros: list[int], length: int) -> None:
    values = np.arange(2.0, 2 + length)
    values[[place for place in zeros if place < length]] = 0
    expected = [np.prod(np.delete(values, place)) for place in range(length)]
    np.testing.assert_allclose(gradient_of("prod", values, attrs=dict(axes=(0,)))[0], expected, rtol=1e-14)


def test_second_derivative_of_prod_with_two_zeros() -> None:
    x = input_node("x", TensorType((4,), float32))
    first = differentiate(graph_of([x], [build("prod", x, axes=(0,))]), [0])
    values = np.array([0.0, 3.0, 0.0, 5.0])
    hessian = []
    for row in range(4):
        element = build("slice", first.outputs[1], start=(row,), limit=(row + 1,), stride=(1,))
        second = simplify(differentiate(graph_of([x], [total(element)]), [0]))
        hessian.append(interpret(second, values)[1])
    others = [[0 if a == b else np.prod(np.delete(values, [a, b])) for b in range(4)] for a in range(4)]
    np.testing.assert_allclose(hessian, others, rtol=1e-14)


def test_a_branch_that_is_not_taken_gives_its_cotangent_nothing() -> None:
    """The other branch's cotangent is selected away, so a NaN that arrives on one side stays there."""
    text = """graph (c: bool[2], x: f32[2], y: f32[2], w: f32[2]) {
  %0 = where(c, x, y) : f32[2]
  %1 = multiply(%0, w) : f32[2]
  %2 = sum(%1) axes=[0] : f32[]
  return %2
}"""
    gradient = differentiate(parse(text), [1, 2])
    _, x, y = interpret(gradient, [True, False], [1.0, 1.0], [np.nan, 1.0], [np.nan, 2.0])
    np.testing.assert_array_equal(x, [np.nan, 0])
    np.testing.assert_array_equal(y, [0, 2])


def test_positions_outside_the_range() -> None:
    """A gather reads the nearest element, which gets the gradient; a dropped update gets none."""
    read = parse("""graph (x: f32[3], i: i32[4], w: f32[4]) {
  %0 = gather(x, i) axes=[0] : f32[4]
  %1 = multiply(%0, w) : f32[4]
  %2 = sum(%1) axes=[0] : f32[]
  return %2
}""")
    arrays = [1.0, 2.0, 3.0], [-5, 1, 9, 2], [1.0, 10.0, 100.0, 1000.0]
    np.testing.assert_array_equal(interpret(simplify(differentiate(read, [0])), *arrays)[1], [1, 10, 1100])
    written = parse("""graph (x: f32[3], u: f32[4], i: i32[4], w: f32[3]) {
  %0 = scatter_add(x, u, i) axes=[0] : f32[3]
  %1 = multiply(%0, w) : f32[3]
  %2 = sum(%1) axes=[0] : f32[]
  return %2
}""")
    arrays = [1.0, 2.0, 3.0], [1.0, 1.0, 1.0, 1.0], [-5, 1, 9, 2], [1.0, 10.0, 100.0]
    np.testing.assert_array_equal(interpret(simplify(differentiate(written, [1])), *arrays)[1], [0, 10, 0, 100])


# The interface


def test_the_gradient_of_an_input_that_does_not_matter_is_zero() -> None:
    graph = parse("graph (x: f32[2], y: f32[3]) {\n %0 = sum(x) axes=[0] : f32[]\n return %0\n}")
    assert str(simplify(differentiate(graph, [1, 0]))) == """graph (x: f32[2], y: f32[3]) {
  %0 = sum(x) axes=[0] : f32[]
  %1 = constant() value=0.0 : f32[3]
  %2 = constant() value=1.0 : f32[2]
  return %0, %1, %2
}"""


def test_derivatives_that_are_zero_are_not_added() -> None:
    """The second operand of known_value gets none: x has that of its square alone."""
    graph = parse("""graph (x: f32[3]) {
  %0 = multiply(x, x) : f32[3]
  %1 = exp(x) : f32[3]
  %2 = known_value(%0, %1) : f32[3]
  %3 = sum(%2) axes=[0] : f32[]
  return %3
}""")
    gradient = differentiate(graph, [0])
    assert str(simplify(graph_of(graph.inputs, gradient.outputs[1:]))) == """graph (x: f32[3]) {
  %0 = add(x, x) : f32[3]
  return %0
}"""


def test_gradients_that_nobody_needs_are_not_built() -> None:
    graph = parse("""graph (x: f32[4,3], w: f32[3,2]) {
  %0 = sin(x) : f32[4,3]
  %1 = dot(%0, w) contract=[1]x[0] : f32[4,2]
  %2 = sum(%1) axes=[0,1] : f32[]
  return %2
}""")
    gradient = differentiate(graph, [1])
    assert [node.op for node in gradient.nodes].count("dot") == 2
    assert "cos" not in {node.op for node in gradient.nodes}


def test_the_gradient_reuses_forward_values() -> None:
    graph = parse("graph (x: f32[]) {\n %0 = tanh(x) : f32[]\n return %0\n}")
    assert str(simplify(differentiate(graph, [0]))) == """graph (x: f32[]) {
  %0 = tanh(x) : f32[]
  %1 = constant() value=1.0 : f32[]
  %2 = multiply(%0, %0) : f32[]
  %3 = subtract(%1, %2) : f32[]
  return %0, %3
}"""


def test_a_backward_dot_needs_no_transpose() -> None:
    graph = parse("""graph (x: f32[8,4], w: f32[4,2], y: f32[8,2]) {
  %0 = dot(x, w) contract=[1]x[0] : f32[8,2]
  %1 = multiply(%0, y) : f32[8,2]
  %2 = sum(%1) axes=[0,1] : f32[]
  return %2
}""")
    lines = str(simplify(differentiate(graph, [0, 1]))).splitlines()
    assert lines[4:] == [
        "  %3 = dot(y, w) contract=[1]x[1] : f32[8,4]",
        "  %4 = dot(x, y) contract=[0]x[0] : f32[4,2]",
        "  return %2, %3, %4",
        "}",
    ]


def test_vjp_takes_a_cotangent_for_each_float_output() -> None:
    graph = parse("""graph (x: f32[3], cotangent1: f32[3]) {
  %0 = multiply(x, cotangent1) : f32[3]
  %1 = greater(x, cotangent1) : bool[3]
  %2 = sum(x) axes=[0] : f32[]
  return %0, %1, %2
}""")
    gradient = simplify(vjp(graph, [0]))
    verify(gradient)
    assert str(gradient) == """graph (x: f32[3], cotangent1: f32[3], cotangent0: f32[3], cotangent2: f32[]) {
  %0 = multiply(x, cotangent1) : f32[3]
  %1 = greater(x, cotangent1) : bool[3]
  %2 = sum(x) axes=[0] : f32[]
  %3 = broadcast(cotangent2) axes=[] : f32[3]
  %4 = multiply(cotangent0, cotangent1) : f32[3]
  %5 = add(%3, %4) : f32[3]
  return %0, %1, %2, %5
}"""


def test_vjp_of_a_value_returned_twice_and_of_an_input() -> None:
    graph = parse("graph (x: f32[2]) {\n %0 = sin(x) : f32[2]\n return %0, %0, x\n}")
    results = interpret(vjp(graph, [0]), [0.1, 0.2], [1.0, 2.0], [3.0, 4.0], [5.0, 6.0])
    np.testing.assert_allclose(results[3], [4 * np.cos(0.1) + 5, 6 * np.cos(0.2) + 6], rtol=1e-15)


def test_the_vjp_is_linear_in_its_cotangents() -> None:
    graph = parse("""graph (x: f32[4], w: f32[4,3]) {
  %0 = dot(x, w) contract=[0]x[0] : f32[3]
  %1 = tanh(%0) : f32[3]
  return %1
}""")
    random = np.random.default_rng(0)
    x, w, a, b = (random.normal(size=shape) for shape in ((4,), (4, 3), (3,), (3,)))
    gradients = [interpret(vjp(graph, [0, 1]), x, w, c)[1:] for c in (a, b, 2 * a + 3 * b)]
    for first, second, mixed in zip(*gradients, strict=True):
        np.testing.assert_allclose(mixed, 2 * first + 3 * second, rtol=1e-13)


def test_wrong_requests() -> None:
    graph = parse("graph (x: f32[2], i: i32[2]) {\n %0 = sin(x) : f32[2]\n return %0, i\n}")
    with pytest.raises(NonScalarGradError, match=r"output 0 is f32\[2\]"):
        differentiate(graph, [0])
    with pytest.raises(NonScalarGradError, match=r"output 1 is i32\[2\]"):
        differentiate(graph, [0], output=1)
    with pytest.raises(DtypeError, match=r"input i is i32\[2\]"):
        vjp(graph, [1])
    with pytest.raises(IndexError, match="no input 2"):
        vjp(graph, [2])


def test_gradient_nodes_know_the_line_they_come_from() -> None:
    x = input_node("x", TensorType((), float32))
    plain = build("sin", x)
    from_line = Node(plain.op, plain.operands, plain.attrs, plain.type, "", "model.py:7")
    gradient = differentiate(graph_of([x], [from_line]), [0])
    assert {node.op: node.location for node in gradient.nodes if node.op != "constant"} == {
        "sin": "model.py:7",
        "cos": "model.py:7",
        "multiply": "model.py:7",
    }


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs(seed: int) -> None:
    """The gradient is well formed, and simplification does not change it. Only gradients of ties round."""
    graph, arrays = random_graph(seed)
    loss = scalar_of(graph, seed)
    if loss is None:
        return
    gradient = differentiate(loss, [0, 1])
    verify(gradient)
    plain, simple = interpret(gradient, *arrays), interpret(simplify(gradient), *arrays)
    for one, other in zip(plain, simple, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-13, atol=1e-13 * np.max(np.abs(one), initial=0))


def layers(count: int) -> Graph:
    """A residual network of `count` layers of five operations."""
    x, w, b = (
        input_node(name, TensorType(shape, float32)) for name, shape in (("x", (4, 8)), ("w", (8, 8)), ("b", (8,)))
    )
    h = x
    for _ in range(count):
        h = add(h, build("tanh", add(dot(h, w, ([1], [0])), build("broadcast", b, type=h.type, axes=(1,)))))
    return graph_of([x, w, b], [total(h)])


def test_two_thousand_layers() -> None:
    """No recursion, and time in proportion to the graph: eight times the layers in less than 24 times the time."""
    best = []
    for count in (250, 2000):
        graph, seconds = layers(count), []
        for _ in range(3):
            begin = time.process_time()
            with without_collection:  # as when a program is made: it would go over all that other tests have left
                simple = simplify(differentiate(simplify(graph), [0, 1, 2]))
            seconds.append(time.process_time() - begin)
        best.append(min(seconds))
        assert len(simple.nodes) < 20 * count
    assert best[1] < 24 * best[0]
