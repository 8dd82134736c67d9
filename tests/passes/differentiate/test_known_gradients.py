"""Gradients whose values are known from plain mathematics and from other systems' tests."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from lavax.ir import Node, TensorType, float32, interpret
from lavax.ir.graph import graph_of, input_node
from lavax.passes.build.builder import add, build, dot, exp, log, multiply, scale, splat, subtract, sum_over
from lavax.passes.differentiate import differentiate
from lavax.passes.simplify import simplify


def derivatives(make: Callable[..., Node], values: Sequence[float], simplified: bool) -> tuple[float, list[float]]:
    inputs = [input_node(name, TensorType((), float32)) for name in "xyz"[: len(values)]]
    graph = differentiate(graph_of(inputs, [make(*inputs)]), range(len(inputs)))
    value, *gradients = interpret(simplify(graph) if simplified else graph, *values)
    return float(value), [float(gradient) for gradient in gradients]


def total(x: Node) -> Node:
    return sum_over(x, range(x.type.rank))


def square(x: Node) -> Node:
    return multiply(x, x)


def twos(x: Node) -> Node:
    return splat(2, x.type)


TABLE: dict[str, tuple[Callable[..., Node], tuple[float, ...], float, list[float]]] = {
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


HIGHER: dict[str, tuple[Callable[[Node], Node], float, dict[int, float]]] = {
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
