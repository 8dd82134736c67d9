"""Every mistake that can be made at a line of the user's is reported with that line."""
from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base import errors

X = np.array([1.0, 2.0, 3.0], "f")


def donated_again() -> None:
    x = lnp.asarray(X) + 0
    lx.compile(lambda x: x + 1, donate_argnums=0)(x)
    x + 1


def donated_twice_over() -> None:
    x = lnp.asarray(X) + 0
    lx.compile(lambda x, y: x + y, donate_argnums=0)(x, x)


def drawn_again() -> None:
    key = lx.random.key(0)
    with lx.debug.key_reuse():
        lx.random.normal(key)
        lx.random.normal(key)


def leaked() -> None:
    kept: list[Any] = []
    lx.compile(lambda x: kept.append(x) or x)(X)
    kept[0] + 1


def printing_rule() -> None:
    f = lx.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda _, g: (lx.debug.print("{}", g), (g,))[1])
    lx.grad(f)(1.0)


def rule_of_outer_value() -> None:
    def outer(y: Any) -> Any:
        f = lx.custom_vjp(lambda x: x * y)
        f.defvjp(lambda x: (x, None), lambda _, g: (g,))
        return f(1.0)

    lx.grad(outer)(1.0)


MISTAKES: dict[str, tuple[type[Exception], Callable[[], Any]]] = {
    "bool of a traced value": (lx.ConcretizationError, lambda: lx.compile(lambda x: 1 if x[0] else 2)(X)),
    "leak": (lx.TracerLeakError, leaked),
    "grad of a vector": (lx.NonScalarGradError, lambda: lx.grad(lambda x: x)(X)),
    "grad by an integer": (lx.NonFloatArgumentError, lambda: lx.grad(lambda n: n * 2.0)(3)),
    "tangent of an integer": (lx.NonFloatArgumentError, lambda: lx.jvp(lambda n: n, (3,), (1,))),
    "transpose of a square": (lx.LinearityError, lambda: lx.linear_transpose(lambda x: x * x, X)),
    "jacobian of integers": (lx.DtypeError, lambda: lx.jacrev(lambda x: x > 0)(X)),
    "extents of vmap": (lx.VmapAxisError, lambda: lx.vmap(lambda x, y: x)(X, X[:2])),
    "an axis that is not there": (lx.VmapAxisError, lambda: lx.vmap(lambda x: x, in_axes=1)(X)),
    "in_axes of another form": (lx.VmapAxisError, lambda: lx.vmap(lambda x: x, in_axes=({"a": 0},))(X)),
    "out_axes of another form": (lx.VmapAxisError, lambda: lx.vmap(lambda x: x, out_axes=(0, 0))(X)),
    "unbound axis": (lx.UnboundAxisError, lambda: lx.psum(X, "rows")),
    "no rules": (lx.CustomRuleError, lambda: lx.grad(lx.custom_vjp(lambda x: x))(1.0)),
    "a value of which no rule knows": (lx.CustomRuleError, rule_of_outer_value),
    "print in a rule": (lx.SideEffectError, printing_rule),
    "export of a print": (lx.SideEffectError, lambda: lx.export(lambda x: lx.debug.print("{}", x), X)),
    "NaN": (lx.NaNError, lambda: lx.debug.nans(lambda x: lnp.log(x))(-1.0)),
    "branches": (lx.ControlFlowTypeError, lambda: lx.compile(lambda p: lx.cond(p, lambda: 1, lambda: X))(True)),
    "carry": (lx.ControlFlowTypeError, lambda: lx.scan(lambda c, x: (c[:2], None), lnp.asarray(X), X)),
    "reverse mode of while": (
        lx.ReverseModeError,
        lambda: lx.grad(lambda x: lx.while_loop(lambda v: v < 9, lambda v: v * 2, x))(1.0),
    ),
    "extents of scan": (lx.ShapeError, lambda: lx.scan(lambda c, x: (c, x), 0, X, length=2)),
    "static argument": (
        lx.StaticArgumentError,
        lambda: lx.compile(lambda x, sizes: x, static_argnames="sizes")(X, sizes=[1]),
    ),
    "donated array": (lx.DonatedArrayError, donated_again),
    "donated and read": (lx.DonatedArrayError, donated_twice_over),
    "key": (lx.KeyReuseError, drawn_again),
    "trees of map": (lx.TreeMismatchError, lambda: lx.tree.map(lambda a, b: a, {"a": X}, {"b": X})),
    "leaves of unflatten": (lx.TreeMismatchError, lambda: lx.tree.unflatten(lx.tree.structure((1, 2)), [1])),
    "tangents like the primals": (lx.TreeMismatchError, lambda: lx.jvp(lambda d: d["a"], ({"a": X},), ({"b": X},))),
    "arguments of Compiled": (
        lx.TreeMismatchError,
        lambda: lx.compile(lambda x: x + 1).lower(X).compile()({"x": X}),
    ),
    "shapes of Compiled": (lx.ShapeError, lambda: lx.compile(lambda x: x + 1).lower(X).compile()(X[:2])),
    "dtypes of an exported function": (lx.DtypeError, lambda: lx.export(lambda x: x + 1, X)(X.astype("i"))),
    "computed mask": (lx.NonConcreteBooleanIndexError, lambda: lx.compile(lambda x: x[x > 0])(X)),
    "shapes": (lx.ShapeError, lambda: lnp.add(X, X[:2])),
    "axis": (lx.AxisError, lambda: lnp.sum(X, axis=3)),
    "index": (lx.ArrayIndexError, lambda: lnp.asarray(X)[5]),
    "number beyond the dtype": (lx.NumberRangeError, lambda: lnp.asarray(300, "uint8")),
    "step of 0": (lx.ZeroStepError, lambda: lnp.arange(0, 5, 0)),
    "dtype": (lx.DtypeError, lambda: lnp.bitwise_and(1.5, 2)),
    "argument that is no array": (lx.DtypeError, lambda: lx.compile(lambda x: x)("text")),
    "result that is no array": (lx.DtypeError, lambda: lx.compile(lambda x: "text")(X)),
    "text as an array": (lx.DtypeError, lambda: lnp.asarray(["a"])),
    "text as an operand": (lx.DtypeError, lambda: lnp.add(X, "a")),
}
# Errors of files, texts, graphs and devices, which are not made at a line; of checks, whose text is the program's.
WITHOUT_LINES = {
    "CheckError",
    *("ExportError", "VerificationError", "ParseError", "ONNXError"),
    *("DeviceError", "ShaderCompilerError", "LavaxError"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_line_is_named(name: str) -> None:
    kind, call = MISTAKES[name]
    with pytest.raises(kind) as error:
        call()
    assert type(error.value) is kind
    lines = re.findall(rf"{re.escape(__file__)}:(\d+)", str(error.value))
    source, first = inspect.getsourcelines(call)
    assert lines, str(error.value)
    assert all(first <= int(line) < first + len(source) for line in lines), (lines, first, len(source))


def test_every_class_of_errors_is_here() -> None:
    classes = {name for name, found in vars(errors).items() if isinstance(found, type)}
    assert classes == {kind.__name__ for kind, _ in MISTAKES.values()} | WITHOUT_LINES


def test_retraces_are_reported_with_the_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("LAVAX_LOG_COMPILES", "1")
    f = lx.compile(lambda x: x + 1)
    with caplog.at_level(logging.WARNING, "lavax.trace"):
        f(X)
        f(X[:2])
    assert re.search(rf"called at {re.escape(__file__)}:\d+, is traced for the 2nd time", caplog.text)
