"""`assert_ir`, `assert_grads`, `assert_kernels`."""
from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lavax.base.errors import LavaxError
from lavax.test_util import check_grads
from lavax.testing import snapshots
from lavax.testing.difference import difference
from lavax.tracer.compiled.compile import BoundMethod, CompiledFunction, compile
from lavax.tracer.compiled.lowered import Lowered

_KERNEL = re.compile(r"^\s*kernel (\S+) kind=(\w+)", re.MULTILINE)


def assert_ir(
    function: Callable[..., Any],
    args: Sequence[Any],
    text: str | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    stage: str = "optimized",
) -> None:
    """Asserts that `function` has this text at a stage of its way to the device.

    `args` and `kwargs` are arguments of a call, arrays or `ShapeDtype`s; `function` may be compiled already. `text` is
    compared without its indentation and the lines around it that are empty. `stage` is one of `Lowered.as_text`.
    `pytest --lavax-update` writes the text into the call: there it must be a literal, or be left out.

    Nothing runs, and no device is needed; but texts from "prepare" on depend on the kind of device. Raises
    AssertionError, which shows the lines that differ.
    """
    __tracebackhide__ = True
    found = _lowered("assert_ir", function, args, kwargs).as_text(stage).strip()
    if snapshots.is_updating():
        snapshots.record(sys._getframe(1), found, text)
        return
    name = _name(function)
    if text is None:
        raise AssertionError(
            f"assert_ir: there is no text for {name} yet. Run pytest with --lavax-update to write it. It is\n\n{found}"
        )
    wanted = snapshots.normal(text)
    if found != wanted:
        raise AssertionError(
            f"assert_ir: {name} at the stage {stage!r} is not what the test says (-), but (+)\n\n"
            f"{difference(wanted, found)}\n\nIf this is right, pytest --lavax-update writes it into the test."
        )


def assert_kernels(
    function: Callable[..., Any],
    args: Sequence[Any],
    *,
    at_most: int,
    kwargs: Mapping[str, Any] | None = None,
) -> None:
    """Asserts that `function` runs as `at_most` kernels; those in loops and branches count once each.

    Arguments are those of `assert_ir`. Raises AssertionError, which says why each kernel ends where it does.
    """
    __tracebackhide__ = True
    lowered = _lowered("assert_kernels", function, args, kwargs)
    kernels = _KERNEL.findall(lowered.as_text("kernels"))
    if len(kernels) > at_most:
        named = ", ".join(f"{name} ({kind})" for name, kind in kernels)
        raise AssertionError(
            f"assert_kernels: {_name(function)} runs as {len(kernels)} kernels, more than {at_most}: {named}\n\n"
            f"{lowered.as_text('fusion')}"
        )


def assert_grads(
    function: Callable[..., Any],
    args: Sequence[Any],
    order: int = 1,
    *,
    modes: str | Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Asserts that the derivatives of `function` up to `order` are the limits of differences, in both modes.

    `args` are pytrees of floats, away from kinks. Tolerances and the step `eps` are those of
    `lavax.test_util.check_grads`, by default 2e-3 and 5e-3 for float32. Raises AssertionError, which names the mode
    ("fwd rev" is reverse over forward mode) and shows both values; DtypeError for arguments that are not floats;
    ValueError for an order below 1.
    """
    __tracebackhide__ = True
    if order < 1:
        raise ValueError(f"assert_grads: the order of a derivative is 1 or more, got {order}")
    try:
        check_grads(function, args, order, modes, atol, rtol, eps)
    except AssertionError as error:
        raise AssertionError(
            f"assert_grads: derivatives of {_name(function)} up to order {order} differ from differences:\n{error}"
        ) from None


def _lowered(
    asserting: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any] | None
) -> Lowered:
    if not isinstance(args, (tuple, list)):
        raise TypeError(f"{asserting}: args must be a tuple or list of arguments, got {args!r:.80}")
    compiled = function if isinstance(function, (CompiledFunction, BoundMethod)) else compile(function)
    try:
        return compiled.lower(*args, **(kwargs or {}))
    except LavaxError as error:
        error.add_note(f"{asserting} traced {_name(function)}")
        raise


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or repr(function))
