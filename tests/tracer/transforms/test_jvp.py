"""jvp, linearize and linear_transpose: against differences and reverse mode, trees, integers, nesting, errors."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import DtypeError, LinearityError, NonFloatArgumentError, ShapeError, TreeMismatchError
from tests.closeness import close
from tests.numpy_backend import NumpyBackend

X = np.array([0.5, -1.0, 2.0], "f")
T = np.array([1.0, 0.5, -2.0], "f")


def test_derivatives_of_weak_numbers_are_weak() -> None:
    """As in JAX 0.10.2: a tangent yields to other dtypes as its result does, a cotangent as its argument."""
    strong = np.float32(0.5)
    for x, weak in ((0.5, True), (strong, False)):
        value, pushed = lx.jvp(lnp.sin, (x,), (1.0,))
        assert value.weak == pushed.weak == weak
        assert lx.linearize(lnp.sin, x)[1](1.0).weak == weak
        assert lx.vjp(lnp.sin, x)[1](1.0)[0].weak == weak
        for derivative in (lx.grad, lx.jacfwd, lx.jacrev, lx.hessian):
            assert derivative(lnp.sin)(x).weak == weak, derivative
        assert lx.jit(lambda x: lx.stop_gradient(x))(x).weak == weak
    by_both = lx.jacrev(lambda x, y: x * y, (0, 1))(0.5, strong)
    assert [each.weak for each in by_both] == [True, False]
    forward = lx.jacfwd(lambda x, y: x * y, (0, 1))(0.5, strong)
    assert [each.weak for each in forward] == [False, False]


def f(x: Any) -> Any:
    return lnp.sin(x) * lnp.sum(x**2)


def test_value_and_tangent() -> None:
    value, pushed = lx.jvp(f, (X,), (T,))
    close(value, np.sin(X) * (X**2).sum())
    close(pushed, np.cos(X) * T * (X**2).sum() + np.sin(X) * 2 * (X * T).sum())


def test_trees_and_arguments_that_do_not_change() -> None:
    def g(p: Any, n: Any, y: Any) -> Any:
        return {"a": p["w"] * y, "n": n + 1}

    value, pushed = lx.jvp(g, ({"w": X}, 3, 2.0), ({"w": T}, None, None))
    close(pushed["a"], 2 * T)
    assert pushed["n"] is None and int(value["n"]) == 4
    _, pushed = lx.jvp(g, ({"w": X}, 3, 2.0), ({"w": None}, np.zeros((), [("float0", "V")]), 1.0))
    close(pushed["a"], X)


def test_the_auxiliary_result_has_no_tangent() -> None:
    value, pushed, auxiliary = lx.jvp(lambda x: (lnp.sum(x), {"twice": 2 * x, "name": "n"}), (X,), (T,), has_aux=True)
    close(value, X.sum())
    close(pushed, T.sum())
    close(auxiliary["twice"], 2 * X)
    assert auxiliary["name"] == "n"


def test_nested_in_any_order() -> None:
    def cube(x: Any) -> Any:
        return x * x * x

    def derivative(g: Any) -> Any:
        return lambda x: lx.jvp(g, (x,), (1.0,))[1]

    close(derivative(derivative(cube))(2.0), 12)
    close(lx.grad(derivative(cube))(2.0), 12)
    close(derivative(lx.grad(cube))(2.0), 12)
    close(lx.vmap(derivative(derivative(derivative(cube))))(X), [6, 6, 6])
    close(lx.compile(derivative(lx.grad(cube)))(2.0), 12)


def test_perturbations_are_not_confused() -> None:
    """d/dx [x · d/dy (x + y)] is 1, not 2."""
    close(lx.jvp(lambda x: x * lx.jvp(lambda y: x + y, (1.0,), (1.0,))[1], (1.0,), (1.0,))[1], 1)
    close(lx.grad(lambda x: x * lx.grad(lambda y: x + y)(1.0))(1.0), 1)
    close(lx.grad(lambda x: x * lx.jvp(lambda y: x * y * y, (3.0,), (1.0,))[1])(2.0), 24)


def test_linearize_computes_the_value_once() -> None:
    value, push = lx.linearize(f, X)
    close(value, f(X))
    for tangent in (T, 2 * T, None):
        expected = 0 * X if tangent is None else lx.jvp(f, (X,), (tangent,))[1]
        close(push(tangent), expected)
    assert not any(node.op in ("sin", "cos") for node in push.rule.graph.nodes)
    value, push, auxiliary = lx.linearize(lambda x: (x * x, x + 1), X, has_aux=True)
    close(push(T), 2 * X * T)
    close(auxiliary, X + 1)


def test_a_pushforward_is_a_container_of_what_the_function_computed(backend: NumpyBackend) -> None:
    _, push = lx.linearize(lambda x, count: {"y": lnp.sin(x) * count, "n": count}, X, 3)
    apply = lx.compile(lambda push, tangent: push(tangent, None)["y"])
    for factor in (1, 2):
        close(apply(push, factor * T), factor * 3 * np.cos(X) * T)
    made = lx.compile(lambda x: lx.linearize(lnp.sin, x)[1])
    call = lx.compile(lambda push, tangent: push(tangent))
    close(call(made(X), T), np.cos(X) * T)
    count = len(backend.compiled)
    close(call(made(2 * X), T), np.cos(2 * X) * T)
    assert len(backend.compiled) == count
    stacked = lx.vmap(lambda x: lx.linearize(lambda y: y * y, x)[1])(X)
    close(lx.vmap(lambda push, tangent: push(tangent))(stacked, T), 2 * X * T)


def test_linear_transpose() -> None:
    w = np.arange(6, dtype="f").reshape(2, 3)
    transposed = lx.linear_transpose(lambda x, y: w @ x + 2 * y, X, lx.ShapeDtype((2,), np.dtype("f4")))
    left, right = transposed(np.array([1.0, 2.0], "f"))
    close(left, w.T @ [1, 2])
    close(right, [2, 4])
    close(lx.vmap(transposed)(np.eye(2, dtype="f"))[0], w)
    with pytest.raises(LinearityError, match="by way of"):
        lx.linear_transpose(lambda x: x * x, X)
    with pytest.raises(NonFloatArgumentError):
        lx.linear_transpose(lambda x: x, 3)


def test_transposes_of_loops() -> None:
    """A loop takes the arguments, and no cotangent depends on them."""
    w, x = np.diag([1.0, 2, 3]).astype("f"), np.ones(3, "f")

    def powers(x: Any) -> Any:
        return lx.scan(lambda c, _: (w @ c, c), x, None, length=3)

    (by_hand,) = lx.linear_transpose(powers, x)((x, np.ones((3, 3), "f")))
    close(by_hand, sum(np.diag(w) ** n for n in range(4)))
    _, push = lx.linearize(lambda x: lx.fori_loop(0, 3, lambda _, c: lnp.sin(c) * 2, x), X)
    (pulled,) = lx.linear_transpose(push, X)(T)
    close(pulled, push(T))
    with pytest.raises(LinearityError, match="by way of scan"):
        lx.linear_transpose(lambda x: lx.scan(lambda c, _: (c * c, None), x, None, length=3)[0], x)


def test_a_multilayer_perceptron_costs_three_times_its_dots() -> None:
    w = [np.ones((4, 4), "f")] * 4

    def loss(w: Any, x: Any) -> Any:
        for m in w:
            x = lnp.tanh(x @ m)
        return lnp.sum(x)

    def push(w: Any, t: Any, x: Any) -> Any:
        return lx.jvp(lambda w: loss(w, x), (w,), (t,))

    text = lx.compile(push).lower(w, w, np.ones((5, 4), "f")).as_text()
    assert text.count(" dot(") == 4 + 4 + 3


def test_wrong_tangents_say_what_is_wrong() -> None:
    with pytest.raises(ShapeError, match=r"the tangent of x: f32\[3\] must be like it, got f32\[2\]"):
        lx.jvp(f, (X,), (T[:2],))
    with pytest.raises(DtypeError, match="the tangent of x"):
        lx.jvp(f, (X,), (lnp.asarray([1, 2, 3]),))
    with pytest.raises(NonFloatArgumentError, match=r"the tangent of x, which is i32\[\], must be None"):
        lx.jvp(lambda x: x, (3,), (1,))
    with pytest.raises(TreeMismatchError):
        lx.jvp(f, (X,), (T, T))
    with pytest.raises(TypeError, match="two tuples"):
        lx.jvp(f, X, T)
