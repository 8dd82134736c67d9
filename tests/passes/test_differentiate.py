"""Gradients: against central differences in the middle of a graph, against tables, and of what has none."""
from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pytest

from lavax.errors import DtypeError, NonScalarGradError
from lavax.ir import OPERATIONS, Graph, Node, TensorType, float32, interpret, parse, verify
from lavax.ir.graph import graph_of, input_node, substitute
from lavax.passes.builder import add, build, dot, exp, log, multiply, scale, splat, subtract, sum_over
from lavax.passes.differentiate import NOT_DIFFERENTIABLE, RULES, differentiate, vjp
from lavax.passes.simplify import simplify
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
    assert set(RULES) | NOT_DIFFERENTIABLE == set(OPERATIONS)
    assert not set(RULES) & NOT_DIFFERENTIABLE


def test_every_rule_is_tested() -> None:
    assert {case.op for case in DIFFERENTIABLE} == set(RULES)


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
    gradient = interpret(simplify(differentiate(read, [0])), [1.0, 2.0, 3.0], [-5, 1, 9, 2], [1.0, 10.0, 100.0, 1000.0])[1]
    np.testing.assert_array_equal(gradient, [1, 10, 1100])
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


# Known values (plain mathematics and other systems' tests)


def derivatives(make: object, values: Sequence[float], simplified: bool) -> tuple[float, list[float]]:
    inputs = [input_node(name, TensorType((), float32)) for name in "xyz"[: len(values)]]
    graph = differentiate(graph_of(inputs, [make(*inputs)]), range(len(inputs)))  # type: ignore[operator]
    value, *gradients = interpret(simplify(graph) if simplified else graph, *values)
    return float(value), [float(gradient) for gradient in gradients]


def square(x: Node) -> Node:
    return multiply(x, x)


def twos(x: Node) -> Node:
    return splat(2, x.type)


TABLE = {
    "x·y + sin x": (
        lambda x, y: add(multiply(x, y), build("sin", x)),
        (2, 3),
        6.909297426825682,
        [2.5838531634528574, 2],
    ),
    "(x·y + sin x)/(y + 2)": (
        lambda x, y: build("divide", add(multiply(x, y), build("sin", x)), add(y, twos(y))),
        (1.5, 2.5),
        1.054998885912012,
        [0.571274933703934, 0.0988891364639973],
    ),
    "eˣ·ln y + cos(x·y)": (
        lambda x, y: add(multiply(exp(x), log(y)), build("cos", multiply(x, y))),
        (0.5, 2),
        1.6831088061831438,
        [-0.5401354693007889, 0.40362514294611584],
    ),
    "sin(x²)": (lambda x: build("sin", square(x)), (2,), np.sin(4), [-2.6145744834544478]),
    "exp(sin x)·cos(ln y)": (
        lambda x, y: multiply(exp(build("sin", x)), build("cos", log(y))),
        (0.5, 2),
        np.exp(np.sin(0.5)) * np.cos(np.log(2)),
        [1.09033785334367, -0.516007969503937],
    ),
    "(x + y)(x − y)": (lambda x, y: multiply(add(x, y), subtract(x, y)), (3, 2), 5, [6, -4]),
    "x·x": (square, (3,), 9, [6]),
    "(exp(x²))²": (lambda x: square(exp(square(x))), (0.5,), np.exp(0.5), [3.297442541400256]),
    "y = x², y² + y²": (lambda x: add(square(square(x)), square(square(x))), (2,), 32, [64]),
    "Rosenbrock": (
        lambda x, y: add(
            scale(square(subtract(y, square(x))), 100), square(subtract(x, splat(1, x.type)))
        ),
        (0, 2),
        401,
        [-2, 400],
    ),
    "tanh(x)·stop_gradient(x)": (
        lambda x: multiply(build("tanh", x), build("stop_gradient", x)),
        (0.7,),
        np.tanh(0.7) * 0.7,
        [(1 - np.tanh(0.7) ** 2) * 0.7],
    ),
}


@pytest.mark.parametrize("simplified", [False, True])
@pytest.mark.parametrize("name", TABLE)
def test_known_gradients(name: str, simplified: bool) -> None:
    make, values, value, gradients = TABLE[name]
    found, slopes = derivatives(make, values, simplified)
    np.testing.assert_allclose(found, value, rtol=1e-14)
    np.testing.assert_allclose(slopes, gradients, rtol=1e-13)


def gelu(x: Node) -> Node:
    inner = scale(add(x, scale(multiply(square(x), x), 0.044715)), np.sqrt(2 / np.pi))
    return multiply(scale(x, 0.5), add(build("tanh", inner), splat(1, x.type)))


HIGHER = {
    "tanh": (
        lambda x: build("tanh", x),
        1,
        {1: 0.41997434161402614, 2: -0.6397000084492246, 3: 0.6216266807712962, 4: 0.6650910447505024},
    ),
    "x³": (lambda x: build("power", x, splat(3, x.type)), 2, {1: 12, 2: 12, 3: 6, 4: 0}),
    "logistic at -4": (lambda x: build("logistic", x), -4, {1: 0.017662706213291107, 2: 0.01702733592838912}),
    "logistic at 2": (lambda x: build("logistic", x), 2, {2: -0.07996250105615307}),
    "gelu": (gelu, 0, {2: 0.7978845608028654}),
}


@pytest.mark.parametrize("simplified", [False, True])
@pytest.mark.parametrize("name", HIGHER)
def test_known_higher_orders(name: str, simplified: bool) -> None:
    make, at, expected = HIGHER[name]
    x = input_node("x", TensorType((), float32))
    graph = graph_of([x], [make(x)])
    for order in range(1, max(expected) + 1):
        gradient = differentiate(graph, [0])
        graph = graph_of([x], gradient.outputs[1:])
        graph = simplify(graph) if simplified else graph
        if order in expected:
            np.testing.assert_allclose(interpret(graph, at)[0], expected[order], rtol=1e-13, atol=1e-14)


def test_a_gradient_inside_a_function_that_is_differentiated() -> None:
    """y = x², z = (dy/dx)³ + y: dz/dx at 2 is 100."""
    x = input_node("x", TensorType((), float32))
    inner = differentiate(graph_of([x], [square(x)]), [0])
    y, slope = inner.outputs
    outer = differentiate(graph_of([x], [add(multiply(square(slope), slope), y)]), [0])
    np.testing.assert_allclose(interpret(outer, 2.0)[1], 100, rtol=1e-15)


def test_matmul_and_variance() -> None:
    a, b = (input_node(name, TensorType(shape, float32)) for name, shape in (("a", (2, 3)), ("b", (3, 4))))
    graph = differentiate(graph_of([a, b], [total(dot(a, b, ([1], [0])))]), [0, 1])
    _, da, db = interpret(simplify(graph), np.arange(1.0, 7).reshape(2, 3), np.arange(1.0, 13).reshape(3, 4))
    np.testing.assert_array_equal(da, [[10, 26, 42]] * 2)
    np.testing.assert_array_equal(db, np.repeat([[5], [7], [9]], 4, axis=1))
    centred = subtract(a, build("broadcast", scale(sum_over(a, [0]), 0.5), type=a.type, axes=(1,)))
    variance = differentiate(graph_of([a], [total(scale(sum_over(square(centred), [0]), 0.5))]), [0])
    value, slope = interpret(simplify(variance), np.arange(1.0, 7).reshape(2, 3))
    assert value == 3 * 2.25
    np.testing.assert_array_equal(slope, [[-1.5] * 3, [1.5] * 3])


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs(seed: int) -> None:
    """The gradient is well formed, and simplification does not change it: whole numbers agree to the bit."""
    graph, arrays = random_graph(seed)
    loss = scalar_of(graph, seed)
    if loss is None:
        return
    gradient = differentiate(loss, [0, 1])
    verify(gradient)
    plain, simple = interpret(gradient, *arrays), interpret(simplify(gradient), *arrays)
    for one, other in zip(plain, simple, strict=True):
        np.testing.assert_array_equal(one, other)


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
    seconds = []
    for count in (250, 2000):
        graph = layers(count)
        begin = time.perf_counter()
        gradient = differentiate(simplify(graph), [0, 1, 2])
        simple = simplify(gradient)
        seconds.append(time.perf_counter() - begin)
        assert len(simple.nodes) < 20 * count
    assert seconds[1] < 24 * seconds[0]
