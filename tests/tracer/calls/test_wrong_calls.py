"""Invalid arguments of transformations: the message names the transformation and the argument."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import ControlFlowTypeError, DtypeError, NonFloatArgumentError, NonScalarGradError, ShapeError

X = np.ones(3, "f")

NO_FUNCTION: dict[str, Callable[[Any], Any]] = {
    "associative_scan takes": lambda f: lx.associative_scan(f, X),
    "checkpoint takes": lambda f: lx.checkpoint(f),
    "closure_convert takes": lambda f: lx.closure_convert(f, X),
    "compile takes": lambda f: lx.compile(f),
    "cond branch 0 must be": lambda f: lx.cond(True, lambda x: x, f, X),
    "cond branch 1 must be": lambda f: lx.cond(True, f, lambda x: x, X),
    "custom_jvp takes": lambda f: lx.custom_jvp(f),
    "custom_vjp takes": lambda f: lx.custom_vjp(f),
    "debug.callback takes": lambda f: lx.debug.callback(f, X),
    "debug.nans takes": lambda f: lx.debug.nans(f),
    "eval_shape takes": lambda f: lx.eval_shape(f, X),
    "fori_loop body must be": lambda f: lx.fori_loop(0, 3, f, X),
    "grad takes": lambda f: lx.grad(f),
    "hessian takes": lambda f: lx.hessian(f),
    "jacfwd takes": lambda f: lx.jacfwd(f),
    "jvp takes": lambda f: lx.jvp(f, (X,), (X,)),
    "linear_transpose takes": lambda f: lx.linear_transpose(f, X),
    "linearize takes": lambda f: lx.linearize(f, X),
    "map takes": lambda f: lx.map(f, X),
    "scan body must be": lambda f: lx.scan(f, X, X),
    "trace takes": lambda f: lx.trace(f)(X),
    "value_and_grad takes": lambda f: lx.value_and_grad(f),
    "vjp takes": lambda f: lx.vjp(f, X),
    "vmap takes": lambda f: lx.vmap(f),
    "while_loop condition must be": lambda f: lx.while_loop(f, lambda x: x, X),
}


@pytest.mark.parametrize("words", NO_FUNCTION)
def test_what_is_no_function(words: str) -> None:
    with pytest.raises(TypeError, match=rf"{words} a function, got 3\n  at .*test_wrong_calls\.py"):
        NO_FUNCTION[words](3)


def test_functions_that_yield() -> None:
    def each(x: Any) -> Any:
        yield x

    for transformation in (lx.jit, lx.grad, lx.vmap, lx.jacfwd, lx.custom_vjp):
        with pytest.raises(TypeError, match=r"takes a function that returns; <function .*each.* yields"):
            transformation(each)


def identity(x: Any) -> Any:
    return x


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: lx.compile(identity, static_argnums="x"), TypeError, "static_argnums must be an integer or a tuple"),
        (lambda: lx.compile(identity, donate_argnums=0.5), TypeError, "donate_argnums .* got 0.5"),
        (lambda: lx.ShapeDtype((2,), "complex32"), DtypeError, "ShapeDtype: 'complex32' is not a dtype of lavax"),
        (lambda: lx.ShapeDtype((2,), "some"), DtypeError, "ShapeDtype: 'some' is not a dtype of lavax"),
        (lambda: lx.ShapeDtype("23", "float32"), DtypeError, "ShapeDtype: the shape must be a tuple of integers"),
        (lambda: lx.ShapeDtype((2, -1), "float32"), ShapeError, r"ShapeDtype: .* negative extents, got \(2, -1\)"),
        (lambda: lx.grad(identity, argnums="x")(1.0), TypeError, "grad of identity: argnums .* got 'x'"),
        (lambda: lx.value_and_grad(identity)(X), NonScalarGradError, "value_and_grad of identity"),
        (lambda: lx.hessian(identity)(3), NonFloatArgumentError, "hessian of identity by x"),
        (lambda: lx.vmap(identity, axis_size="x")(X), lx.VmapAxisError, "axis_size must be an integer, got 'x'"),
        (lambda: lx.vmap(identity, axis_name=3), lx.VmapAxisError, "axis_name must be a word .* got 3"),
        (lambda: lx.ir.verify(3), TypeError, "verify takes a Graph"),
        (lambda: lx.ir.interpret(3), TypeError, "interpret takes a Graph"),
        (lambda: lx.ir.parse(3), TypeError, "parse takes the text of a graph"),
        (lambda: lx.switch(0, 3, X), TypeError, "branches must be a sequence of functions, got 3"),
        (lambda: lx.scan(lambda c, x: (c, x), X, None, length="x"), DtypeError, "scan: length .* got 'x'"),
        (lambda: lx.fori_loop(0, 2.5, lambda i, x: x, X), DtypeError, r"fori_loop: upper .* got f32\[\]"),
        (lambda: lx.fori_loop(X, 2, lambda i, x: x, X), DtypeError, r"fori_loop: lower .* got f32\[3\]"),
        (lambda: lx.fori_loop(0, 3, lambda i, x: x[:2], X), ControlFlowTypeError, r"fori_loop: .* gives f32\[2\]"),
        (lambda: lx.fori_loop(0, lnp.int32(3), lambda i, x: x[:2], X), ControlFlowTypeError, "fori_loop: "),
        (lambda: lx.map(identity, 3.0), ShapeError, "map: xs must have a leading axis"),
        (lambda: lx.psum(X, 3), TypeError, "axis_name must be a name or a tuple of names, got 3"),
        (lambda: lx.vmap(lambda x: lx.all_gather(x, "i", 2), axis_name="i")(X), ShapeError, "all_gather: axis 2"),
        (lambda: lx.associative_scan(lnp.add, X, axis="x"), DtypeError, "associative_scan: axis .* got 'x'"),
    ],
)
def test_what_the_message_says(call: Callable[[], Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call()
