"""custom_vjp, custom_jvp and closure_convert: in every mode, nested, with settings, trees and integers, and errors."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import CustomRuleError, TreeMismatchError
from tests.closeness import close

X = np.array([0.5, -1.0, 2.0], "f")
T = np.array([1.0, 0.5, -2.0], "f")


@lx.custom_vjp
def tripled(x: Any, y: Any) -> Any:
    """x·y, whose rule gives three times its gradients, so that tests see that the rule was used."""
    return x * y


tripled.defvjp(lambda x, y: (x * y, (x, y)), lambda kept, g: (3 * g * kept[1], 3 * g * kept[0]))


@lx.custom_jvp
def doubled(x: Any, y: Any) -> Any:
    """x·y, whose rule gives twice its tangents."""
    return x * y


@doubled.defjvp
def doubled_rule(primals: Any, tangents: Any) -> Any:
    (x, y), (dx, dy) = primals, tangents
    return x * y, 2 * (dx * y + x * dy)


BOTH = pytest.mark.parametrize(("function", "factor"), [(tripled, 3), (doubled, 2)], ids=["vjp", "jvp"])


@BOTH
def test_the_rule_is_used_in_every_mode(function: Any, factor: float) -> None:
    close(function(X, T), X * T)
    close(lx.compile(function)(X, T), X * T)
    close(lx.grad(lambda x: lnp.sum(function(x, T)))(X), factor * T)
    close(lx.grad(lambda x: lnp.sum(function(x, x)))(X), factor * 2 * X)
    close(lx.jvp(lambda x: function(x, T), (X,), (T,))[1], factor * T * T)
    close(lx.vjp(function, X, T)[1](T)[1], factor * T * X)
    close(lx.jacrev(lambda x: function(x, T))(X), factor * np.diag(T))
    close(lx.jacfwd(lambda x: function(x, T))(X), factor * np.diag(T))
    close(lx.linearize(lambda x: function(x, T), X)[1](X), factor * T * X)
    close(lx.compile(lx.grad(lambda x: lnp.sum(function(x, T))))(X), factor * T)


@BOTH
def test_mapped(function: Any, factor: float) -> None:
    batch = np.stack([X, T])
    close(lx.vmap(function)(batch, batch), batch * batch)
    each = lx.vmap(lx.grad(lambda x, y: lnp.sum(function(x, y)), argnums=(0, 1)), in_axes=(0, None))(batch, X)
    close(each[0], factor * np.stack([X, X]))
    close(each[1], factor * batch)
    shared = lx.grad(lambda y: lnp.sum(lx.vmap(function, in_axes=(0, None))(batch, y)))(X)
    close(shared, factor * batch.sum(0))
    close(lx.jvp(lambda y: lx.vmap(function, in_axes=(0, None))(batch, y), (X,), (T,))[1], factor * batch * T)


@BOTH
def test_what_is_the_same_for_all_elements_is_not_repeated(function: Any, factor: float) -> None:
    batch = np.stack([X, T])
    graph = lx.trace(lx.vmap(function, in_axes=(0, None)))(batch, X)
    (node,) = [node for node in graph.nodes if node.op.startswith("custom")]
    assert [operand.shape for operand in node.operands] == [(2, 3), (3,)]
    rule = node.attrs["forward" if node.op == "custom_vjp" else "rule"]
    kept = rule.outputs[1:] if node.op == "custom_vjp" else rule.inputs[2:]
    assert [value.shape for value in kept] == [(2, 3), (3,)]
    deep = lx.vmap(lx.vmap(function, in_axes=(None, 0)), in_axes=(0, None))  # no operand has both axes
    by = lx.grad(lambda x, y: lnp.sum(deep(x, y) ** 2), argnums=(0, 1))
    rows = np.stack([X, T, X + T])
    close(by(batch, rows)[0], factor * 2 * batch * (rows**2).sum(0))
    close(by(batch, rows)[1], factor * 2 * rows * (batch**2).sum(0))
    shared = lx.hessian(lambda y: lnp.sum(lx.vmap(function, in_axes=(0, None))(batch, y) ** 2))(X)
    close(shared, np.diag(factor * 2 * (batch**2).sum(0)), 1e-4)  # the value's derivative is that of the rule's value


def test_rules_that_leave_something_out_in_a_batch() -> None:
    """Residuals that are the same for all elements, an argument without gradient, and a cotangent that is not used."""

    @lx.custom_vjp
    def f(x: Any, w: Any, n: Any) -> Any:
        return x * w * n, w + 1

    f.defvjp(lambda x, w, n: ((x * w * n, w + 1), (w, n)), lambda kept, g: (None, 3 * g[0] + kept[0], None))

    def loss(w: Any) -> Any:
        products, sums = lx.vmap(f, in_axes=(0, None, None))(np.stack([X, T]), w, 2)
        return lnp.sum(products * np.stack([T, X])) + lnp.sum(sums)

    close(lx.grad(loss)(X), 3 * (T + X) + 2 * X)
    close(lx.compile(lx.grad(loss))(X), 3 * (T + X) + 2 * X)


@BOTH
def test_differentiated_twice(function: Any, factor: float) -> None:
    """The rules are ordinary functions, and are differentiated as they stand, with the rule for the value in them."""

    def loss(x: Any) -> Any:
        return lnp.sum(function(x, x))

    for hessian in (lx.hessian(loss), lx.jacrev(lx.grad(loss)), lx.jacfwd(lx.grad(loss))):
        close(hessian(X), 2 * factor * np.eye(3))


@BOTH
def test_a_value_whose_derivative_was_taken_is_what_the_rule_computed(function: Any, factor: float) -> None:
    """As in JAX, the next derivative is that of the rule's product, also third ones, and through a scan."""

    def loss(y: Any) -> Any:
        return lnp.sum(function(y, y) ** 2)

    for hessian in (lx.hessian(loss), lx.jacrev(lx.grad(loss)), lx.jacfwd(lx.jacfwd(loss))):
        close(hessian(T), np.diag(factor * 12 * T**2), 1e-4)
    square = lambda y: function(y, y) ** 2  # noqa: E731
    close(lx.grad(lx.grad(lx.grad(square)))(np.float32(0.7)), factor * 24 * 0.7, 1e-4)

    def turns(y: Any) -> Any:
        return lnp.sum(lx.scan(lambda carried, _: (function(carried, y), None), y, None, length=2)[0] ** 2)

    of_turns = {3: (210, 13.125, 3360), 2: (100, 6.25, 1600)}[int(factor)]  # JAX 0.10
    close(lx.jacrev(lx.grad(turns))(T), np.diag(of_turns), 1e-4)
    again = lx.checkpoint(lambda y: function(y, y))
    close(lx.hessian(lambda y: lnp.sum(again(y) ** 2))(T), np.diag(factor * 12 * T**2), 1e-4)


def test_clipped_gradients() -> None:
    @lx.custom_vjp
    def clipped(x: Any) -> Any:
        return x

    clipped.defvjp(lambda x: (x, None), lambda _, g: (lnp.clip(g, -1, 1),))
    close(lx.grad(lambda x: lnp.sum(5 * clipped(x)))(X), np.ones(3))
    # 3 x^2 clipped(x) + clip(x^3): the first term's factor is x, and the second is flat where it is clipped.
    close(lx.hessian(lambda x: lnp.sum(x**3 * clipped(x)))(np.array([0.5, 2.0], "f")), np.diag([3.0, 36.0]), 1e-4)


def test_settings_trees_integers_and_keywords() -> None:
    def body(how: str, p: Any, n: Any, power: float = 2.0) -> Any:
        assert how == "up"
        return {"u": p["a"] * n, "count": n + 1}

    scaled = lx.custom_vjp(body, nondiff_argnums=(0,))

    def backward(how: str, residuals: Any, g: Any) -> Any:
        assert how == "up" and g["count"] is None
        return {"a": g["u"] * 10, "b": None}, None, None

    scaled.defvjp(lambda how, p, n, power: (body(how, p, n), None), backward)
    p = {"a": X, "b": T}
    close(scaled("up", p, n=3)["u"], 3 * X)
    gradient = lx.grad(lambda p: lnp.sum(scaled("up", p, n=3)["u"]))(p)
    close(gradient["a"], 10 * np.ones(3))
    close(gradient["b"], np.zeros(3))


@pytest.mark.parametrize("by", [{"nondiff_argnames": "power"}, {"nondiff_argnames": ["power"], "nondiff_argnums": 1}])
def test_settings_by_name(by: dict[str, Any]) -> None:
    raised = lx.custom_vjp(lambda x, power: x**power, **by)
    raised.defvjp(lambda x, power: (x**power, x), lambda power, x, g: (g * x * 10 * power,))
    close(lx.grad(lambda x: lnp.sum(raised(x, power=3)))(X), 30 * X)
    pushed = lx.custom_jvp(lambda x, power: x**power, **by)
    pushed.defjvp(lambda power, primals, tangents: (primals[0] ** power, tangents[0] * 10 * power))
    close(lx.jvp(lambda x: pushed(x, 3), (X,), (T,))[1], 30 * T)


def test_rules_by_argument() -> None:
    @lx.custom_jvp
    def product(x: Any, y: Any) -> Any:
        return x * y

    product.defjvps(lambda t, result, x, y: 5 * t * y, None)
    close(lx.grad(lambda x, y: lnp.sum(product(x, y)), argnums=(0, 1))(X, T)[0], 5 * T)
    close(lx.grad(lambda x, y: lnp.sum(product(x, y)), argnums=(0, 1))(X, T)[1], np.zeros(3))
    close(lx.jvp(product, (X, T), (T, T))[1], 5 * T * T)


def test_a_stable_logarithm() -> None:
    """The classic: log(1 + e^x), whose derivative as written is NaN for large x."""

    @lx.custom_jvp
    def log1pexp(x: Any) -> Any:
        return lnp.log(1 + lnp.exp(x))

    log1pexp.defjvp(lambda primals, tangents: (log1pexp(*primals), tangents[0] * (1 - 1 / (1 + lnp.exp(primals[0])))))
    close(lx.grad(log1pexp)(100.0), 1)
    close(lx.grad(lx.grad(log1pexp))(0.0), 0.25)


def test_methods() -> None:
    @lx.tree.register_dataclass
    @__import__("dataclasses").dataclass
    class Layer:
        w: Any

        @lx.custom_vjp
        def apply(self, x: Any) -> Any:
            return self.w * x

    Layer.apply.defvjp(lambda self, x: (self.w * x, x), lambda x, g: (Layer(7 * x * g), None))
    close(lx.grad(lambda layer: lnp.sum(layer.apply(X)))(Layer(T)).w, 7 * X)


def test_values_from_outside() -> None:
    """A rule may read values from outside, but not values by which a derivative is taken."""

    def outer(x: Any, y: Any) -> Any:
        @lx.custom_vjp
        def inner(x: Any) -> Any:
            return x * y

        inner.defvjp(lambda x: (x * y, None), lambda _, g: (g * y * 2,))
        return lnp.sum(inner(x))

    close(lx.grad(outer)(X, T), 2 * T)
    close(lx.vmap(lx.grad(outer), in_axes=(0, None))(np.stack([X, T]), T), 2 * np.stack([T, T]))
    with pytest.raises(CustomRuleError, match="closure_convert"):
        lx.grad(outer, argnums=1)(X, T)


def test_closure_convert() -> None:
    def outer(y: Any) -> Any:
        converted, values = lx.closure_convert(lambda x: x * y, X)

        @lx.custom_vjp
        def inner(x: Any, *values: Any) -> Any:
            return converted(x, *values)

        inner.defvjp(
            lambda x, *values: (converted(x, *values), x),
            lambda x, g: (None, *(g * x * 4 for _ in values)),
        )
        return lnp.sum(inner(X, *values))

    close(lx.grad(outer)(T), 4 * X)
    converted, values = lx.closure_convert(lambda x: x + lnp.asarray(T), X)
    close(converted(X, *values), X + T)
    with pytest.raises(TreeMismatchError):
        converted(X, X, *values, 1.0)


def test_rules_that_are_not_linear_work_in_their_own_mode_alone() -> None:
    def clip(t: Any) -> Any:
        return lnp.clip(t, -1, 1)

    backwards, forwards = lx.custom_vjp(lambda x: x * 5), lx.custom_jvp(lambda x: x * 5)
    backwards.defvjp(lambda x: (x * 5, None), lambda _, g: (clip(5 * g),))
    forwards.defjvp(lambda primals, tangents: (primals[0] * 5, clip(5 * tangents[0])))
    assert float(lx.grad(backwards)(2.0)) == 1
    assert float(lx.jvp(forwards, (2.0,), (2.0,))[1]) == 1
    with pytest.raises(CustomRuleError, match=r"forward mode .* linear in its cotangents, and is not") as error:
        lx.jvp(backwards, (2.0,), (2.0,))
    with pytest.raises(CustomRuleError, match=r"reverse mode .* linear in its tangents, and is not"):
        lx.grad(forwards)(2.0)
    assert "custom_jvp" in str(error.value)
    with pytest.raises(CustomRuleError, match="forward mode"):
        lx.compile(lambda x: lx.jvp(lambda x: lx.cond(x > 0, backwards, lnp.sin, x), (x,), (x,))[1])(2.0)


def broken(forward: Any, backward: Any) -> Any:
    function = lx.custom_vjp(lambda x: x * 2)
    function.defvjp(forward, backward)
    return lambda: lx.grad(lambda x: lnp.sum(function(x)))(X)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lx.grad(lx.custom_vjp(lambda x: x))(1.0), "no rules are given yet"),
        (lambda: lx.grad(lx.custom_jvp(lambda x: x))(1.0), "no rule is given yet"),
        (broken(lambda x: x * 2, lambda r, g: (g,)), r"must give \(result, residuals\)"),
        (broken(lambda x: (x[0], None), lambda r, g: (g,)), r"its result is f32\[\], but the function's is f32\[3\]"),
        (broken(lambda x: ((x, x), None), lambda r, g: (g,)), "its result is tuple"),
        (broken(lambda x: (x * 2, None), lambda r, g: g), "must give a tuple with one entry per argument"),
        (broken(lambda x: (x * 2, None), lambda r, g: (g, g)), "must give one entry per argument"),
        (broken(lambda x: (x * 2, None), lambda r, g: (g[0],)), r"its cotangent for x: f32\[3\] must be like it"),
    ],
)
def test_rules_that_do_not_fit_say_why(call: Any, message: str) -> None:
    with pytest.raises(CustomRuleError, match=message):
        call()


def test_rules_that_refuse_derivatives_let_the_function_run() -> None:
    @lx.custom_jvp
    def sine(x: Any) -> Any:
        return lnp.sin(x)

    @lx.custom_vjp
    def doubled(x: Any) -> Any:
        return x * 2

    def refuse(*_: Any) -> Any:
        raise NotImplementedError("no derivative")

    sine.defjvp(refuse)
    doubled.defvjp(lambda x: (x * 2, None), refuse)
    for function, wanted in ((sine, np.sin(2)), (doubled, 4)):
        assert np.allclose(lx.jit(function)(2.0), wanted)
        assert np.allclose(lx.jit(lx.vmap(function))(np.full(3, 2, "f")), wanted)
        assert np.allclose(lx.grad(lambda x: function(lx.stop_gradient(x)) * x)(2.0), wanted)  # noqa: B023
        assert np.allclose(lx.export(function, 1.0)(2.0), wanted)
        for derivative in (lx.grad(function), lx.jit(lx.grad(lambda x: lx.vmap(function)(lnp.stack([x, x])).sum()))):  # noqa: B023
            with pytest.raises(NotImplementedError, match="no derivative"):
                derivative(1.0)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_real_cotangent_of_a_complex_argument_is_its_real_part(dtype: str) -> None:
    """As in JAX, whose derivative has the real dtype, however."""
    squared = lx.custom_vjp(lambda z: (z * z).real)
    squared.defvjp(lambda z: (squared(z), z), lambda z, g: ((g * z.imag).astype(dtype),))
    z = np.complex64([1 + 2j, 3 - 1j])
    for call in (lx.grad(lambda z: squared(z).sum()), lx.jit(lx.vmap(lx.grad(squared)))):
        found = call(z)
        assert found.dtype == np.complex64
        np.testing.assert_array_equal(found, [2, -1])
    np.testing.assert_array_equal(lx.jvp(squared, (z,), (np.complex64([1, 1j]),))[1], [2, 0])
