from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import DtypeError, NonScalarGradError
from tests.closeness import close
from tests.numpy_backend import NumpyBackend

X = np.array([0.5, -1.0, 2.0], "f")
WRAPPERS: list[Callable[[Any], Any]] = [lambda f: f, lx.compile]


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_arguments_by_number(wrap: Callable[[Any], Any]) -> None:
    def f(x, y, z=1.0):
        return x * y * y * z
    close(wrap(lx.grad(f))(2.0, 3.0), 9)
    close(wrap(lx.grad(f, argnums=1))(2.0, 3.0), 12)
    close(wrap(lx.grad(f, argnums=-1))(2.0, 3.0, 5.0), 18)
    for found, expected in zip(wrap(lx.grad(f, argnums=(1, 0)))(2.0, 3.0), (12, 9), strict=True):
        close(found, expected)
    assert isinstance(lx.grad(f, argnums=[0])(2.0, 3.0), tuple)
    close(wrap(lx.grad(f))(2.0, 3.0, z=2.0), 18)


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_value_and_auxiliary_results(wrap: Callable[[Any], Any]) -> None:
    def f(p: dict[str, Any], x: Any) -> Any:
        scaled = p["w"] * x
        return lnp.sum(scaled**2), {"scaled": scaled, "count": 3}

    p = {"w": X, "b": np.float32(0)}
    (value, aux), gradient = wrap(lx.value_and_grad(f, has_aux=True))(p, X)
    close(value, np.sum(X**4))
    close(aux["scaled"], X * X)
    assert int(aux["count"]) == 3
    close(gradient["w"], 2 * X**3)
    close(gradient["b"], 0)
    gradient, _ = wrap(lx.grad(f, has_aux=True))(p, X)
    close(gradient["w"], 2 * X**3)


def test_auxiliary_results_may_be_anything_outside_compile() -> None:
    _, aux = lx.grad(lambda x: (x * x, {"name": "square", "x": x}), has_aux=True)(3.0)
    assert aux["name"] == "square"
    close(aux["x"], 3)


def test_arguments_that_are_no_numbers_pass_through() -> None:
    def f(x, mode, function):
        return function(x) if mode == "call" else x
    close(lx.grad(f)(2.0, "call", lambda x: x * x), 4)


def test_structure_and_weakness_of_the_gradient() -> None:
    p = {"layers": [(X, None), {"w": 2.0}]}
    gradient = lx.grad(lambda p: lnp.sum(p["layers"][0][0]) * p["layers"][1]["w"])(p)
    assert lx.tree.structure(gradient) is lx.tree.structure(p)
    assert gradient["layers"][1]["w"].weak and not gradient["layers"][0][0].weak


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_higher_orders(wrap: Callable[[Any], Any]) -> None:
    def f(x):
        return lnp.exp(2 * x)
    for order in range(1, 5):
        f = lx.grad(f)
        close(wrap(f)(0.5), 2**order * np.exp(1.0), 1e-4)


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_hessian_vector_product(wrap: Callable[[Any], Any]) -> None:
    def g(x):
        return lnp.sum(lnp.sin(x) ** 3)
    hvp = wrap(lambda x, v: lx.grad(lambda x: lnp.sum(lx.grad(g)(x) * v))(x))
    s, c = np.sin(X), np.cos(X)
    close(hvp(X, np.ones(3, "f")), 6 * s * c * c - 3 * s**3, 1e-4)


def test_perturbations_are_not_confused() -> None:
    """d/dx [x · d/dy (x + y)] is 1: the inner derivative must not see that x is perturbed too."""
    close(lx.grad(lambda x: x * lx.grad(lambda y: x + y)(1.0))(1.0), 1)
    close(lx.grad(lambda x: x * lx.grad(lambda y: x * y)(x))(3.0), 6)
    close(lx.grad(lambda x: lx.grad(lambda y: lx.grad(lambda z: x * y * z * z)(y))(x))(2.0), 16)


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_closures_over_outer_values(wrap: Callable[[Any], Any]) -> None:
    def outer(a):
        return lx.grad(lambda b: lnp.sum(a * b * b))(a)
    close(wrap(lx.grad(lambda a: lnp.sum(outer(a))))(X), 4 * X)
    weights = lx.device_put(X)
    close(wrap(lx.grad(lambda x: lnp.sum(weights * x * weights)))(X), X * X)
    close(wrap(lambda a: lx.grad(lx.compile(lambda b: lnp.sum(a * b)))(a))(X), X)


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_a_value_two_traces_out(wrap: Callable[[Any], Any]) -> None:
    def f(x):
        return lx.grad(lambda y: lx.grad(lambda z: x * z * z * y)(y))(x)  # d/dy 2xy·y = 4xy at y = x
    close(wrap(f)(3.0), 36)
    close(wrap(lx.grad(f))(3.0), 24)


def test_stop_gradient() -> None:
    close(lx.grad(lambda x: x * lx.stop_gradient(x))(3.0), 3)
    close(lx.grad(lx.grad(lambda x: x * x * lx.stop_gradient(x)))(3.0), 6)
    stopped = lx.stop_gradient({"a": (X, 2.0)})
    close(stopped["a"][0], X)
    assert "stop_gradient" not in lx.compile(lambda x: lx.stop_gradient(x) + 1).lower(X).as_text("optimized")


def test_an_argument_that_does_not_matter() -> None:
    close(lx.grad(lambda x, y: y, argnums=0)(X, 2.0), np.zeros(3))
    close(lx.grad(lambda x: 3.0)(2.0), 0)


@pytest.mark.parametrize("wrap", WRAPPERS)
@pytest.mark.parametrize(
    ("result", "words"),
    [
        (lambda x: x, "sum"),
        (lambda x: x[:1], "sum"),
        (lambda x: lnp.argmax(x), "integers"),
        (lambda x: (lnp.sum(x), x), "has_aux"),
        (lambda x: None, "loss"),
    ],
)
def test_results_that_are_no_scalar(wrap: Callable[[Any], Any], result: Callable[[Any], Any], words: str) -> None:
    with pytest.raises(NonScalarGradError, match=f"scalar.*{words}") as caught:
        wrap(lx.grad(result))(X)
    assert len(str(caught.value)) > 80


def test_the_shape_that_is_no_scalar_is_named() -> None:
    with pytest.raises(NonScalarGradError, match=rf"f32\[3\](.|\n)*{re.escape(__file__)}"):
        lx.grad(lambda x: x)(X)


@pytest.mark.parametrize("argument", [3, np.arange(3), True, {"a": 1.0, "step": 1}, "text", [1.0, None, "text"]])
def test_only_floats_have_gradients(argument: Any) -> None:
    with pytest.raises(DtypeError, match=r"by argument.*floats"):
        lx.grad(lambda argument: 1.0)(argument)


@pytest.mark.parametrize("argnums", [1, -2, (0, 0), ()])
def test_wrong_argnums(argnums: Any) -> None:
    with pytest.raises(TypeError, match="argnums"):
        lx.grad(lambda x: x, argnums=argnums)(1.0)


def test_a_result_that_is_no_pair() -> None:
    with pytest.raises(TypeError, match="has_aux"):
        lx.grad(lambda x: x, has_aux=True)(1.0)


def test_outside_compile_it_traces_again_and_compiles_nothing_new(backend: NumpyBackend) -> None:
    for value in (1.0, 1.0, 2.0, 2.0):
        scaled = partial(lambda value, x: lnp.sum(lnp.sin(x) * float(value)), value)
        close(lx.grad(scaled)(X), value * np.cos(X))
    assert len(backend.compiled) == 2
    for rate in (1.0, 2.0, 3.0):
        lx.grad(lambda x, rate: lnp.sum(x * rate))(X, rate)
    assert len(backend.compiled) == 3


def test_the_gradient_is_a_function_of_the_same_name() -> None:
    def loss(x: Any) -> Any:
        """A loss."""
        return x

    assert (lx.grad(loss).__name__, lx.grad(loss).__doc__) == ("loss", "A loss.")


def test_by_attribute_of_a_registered_class_under_compile() -> None:
    f = lx.compile(lx.value_and_grad(lambda p, x: lnp.sum(p[0] @ x) + p[1]))
    value, (by_matrix, by_bias) = f((np.eye(3, dtype="f"), 1.0), X)
    close(value, X.sum() + 1)
    close(by_matrix, np.broadcast_to(X, (3, 3)))
    close(by_bias, 1)


def _power(x: Any, n: Any) -> Any:
    assert isinstance(n, (int, float)), "a static argument stays a Python number"
    return x**n


POWER = lx.compile(_power, static_argnums=1)


@pytest.mark.parametrize(
    "cubic",
    [
        lx.grad(POWER),
        lx.grad(lx.checkpoint(POWER)),
        lx.compile(lx.grad(POWER), static_argnums=1),
        lx.compile(lx.grad(lx.checkpoint(POWER)), static_argnums=1),
        lx.jacrev(POWER),
        lx.jacfwd(POWER),
        lx.vmap(lx.grad(POWER), in_axes=(None, None), axis_size=2),
        lambda x, n: lx.grad(POWER)(x, n=n),
        lambda x, n: lx.grad(lambda x: POWER(x, n=n))(x),
        lambda x, n: lx.jvp(lambda x: POWER(x, n), (x,), (1.0,))[1],
        lambda x, n: lx.vjp(lambda x: POWER(x, n), x)[1](1.0)[0],
        lambda x, n: lx.grad(lambda x, n: lx.scan(lambda carry, _: (POWER(carry, n), None), x, length=1)[0])(x, n),
    ],
)
@pytest.mark.parametrize("n", [3, 3.0])
def test_static_arguments_that_are_not_differentiated(cubic: Callable[[Any, Any], Any], n: float) -> None:
    close(cubic(2.0, n), 12 * np.ones(np.shape(cubic(2.0, n))))


def test_a_static_argument_cannot_be_differentiated() -> None:
    with pytest.raises(lx.StaticArgumentError, match="the static argument n of _power"):
        lx.grad(POWER, argnums=1)(2.0, 3.0)


def test_integers_that_are_not_differentiated_stay_python_integers() -> None:
    def f(x: Any, n: int, flag: bool, *, k: int) -> Any:
        assert type(n) is int and flag is True and type(k) is int
        return x * [1.0, 2.0, 4.0][n] * k

    close(lx.grad(f)(1.0, 2, True, k=3), 12)
    close(lx.jacrev(f)(1.0, 2, True, k=3), 12)
    close(lx.vmap(lambda x, n: f(x, n, True, k=3), in_axes=(0, None))(X, 2), 12 * X)
    close(lx.compile(lambda x: lx.grad(lx.checkpoint(f))(x, 2, True, k=3))(1.0), 12)
