"""Derivatives compared with differences, for tests: `check_grads(f, args, order=2)`."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from lavax.base.errors import DtypeError
from lavax.tracer.pytrees.pytree import flatten, leaves, map, unflatten
from lavax.tracer.tracing.convert import dtype_of
from lavax.tracer.transforms.jvp import jvp
from lavax.tracer.transforms.vjp import vjp

__all__ = ["check_grads", "check_jvp", "check_vjp"]

# By the bits of a float: the step of differences, near the cube root of its precision, where the errors of rounding and
# of the third derivative balance; and the tolerance of what they give.
_STEPS = {16: 6e-2, 32: 5e-3, 64: 6e-6}
_TOLERANCES = {16: 1e-1, 32: 2e-3, 64: 1e-6}


def _array(leaf: Any) -> np.ndarray:
    array = np.asarray(leaf)
    if array.dtype.kind not in "fV":
        raise DtypeError(f"check_grads: derivatives are taken by floats, and an argument is {array.dtype}")
    return array.astype(dtype_of(array.dtype).user) if isinstance(leaf, float) else array


def _bits(args: Any) -> int:
    return min(8 * _array(leaf).dtype.itemsize for leaf in leaves(args))


def _directions(tree: Any, generator: np.random.Generator) -> Any:
    """Normal numbers in place of the leaves."""
    found, treedef = flatten(tree)
    drawn = []
    for leaf in found:
        array = _array(leaf)
        drawn.append(generator.normal(size=array.shape).astype(array.dtype))
    return unflatten(treedef, drawn)


def _moved(args: Any, directions: Any, step: float) -> Any:
    def along(leaf: Any, direction: Any) -> np.ndarray:
        array = _array(leaf)
        return (array.astype(np.float64) + step * np.asarray(direction, np.float64)).astype(array.dtype)

    return map(along, args, directions)


def _slopes(function: Callable[..., Any], args: Any, directions: Any, step: float) -> list[np.ndarray]:
    """Central differences of the leaves of the result along `directions`, in float64."""
    after = leaves(function(*_moved(args, directions, step)))
    before = leaves(function(*_moved(args, directions, -step)))
    pairs = zip(after, before, strict=True)
    return [(np.asarray(a, np.float64) - np.asarray(b, np.float64)) / (2 * step) for a, b in pairs]


def _inner(left: Sequence[Any], right: Sequence[Any]) -> float:
    pairs = zip(left, right, strict=True)
    return sum(float(np.vdot(np.asarray(a, np.float64), np.asarray(b, np.float64))) for a, b in pairs)


def _compare(found: Any, wanted: Any, bits: int, atol: float | None, rtol: float | None, message: str) -> None:
    tolerance = _TOLERANCES[bits]
    np.testing.assert_allclose(
        np.asarray(found, np.float64),
        np.asarray(wanted, np.float64),
        atol=tolerance if atol is None else atol,
        rtol=tolerance if rtol is None else rtol,
        err_msg=message,
    )


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compares `f_jvp(args, tangents)`, such as `partial(lx.jvp, f)`, with differences along one random direction.

    `args` are pytrees of floats. `eps` is the step, by default near the cube root of the dtype's precision. Raises
    AssertionError where they differ by more than `atol` + `rtol`·|difference|, by default 2e-3 for float32 and 1e-6 for
    float64, and DtypeError for arguments that are not floats.
    """
    bits = _bits(args)
    directions = _directions(tuple(args), np.random.default_rng(0))
    values, tangents = f_jvp(tuple(args), directions)
    for found, wanted in zip(leaves(values), leaves(f(*args)), strict=True):
        _compare(found, wanted, bits, atol, rtol, f"{err_msg} value of the JVP".strip())
    slopes = _slopes(f, tuple(args), directions, _STEPS[bits] if eps is None else eps)
    for found, wanted in zip(leaves(tangents), slopes, strict=True):
        _compare(found, wanted, bits, atol, rtol, f"{err_msg} tangent of the JVP".strip())


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compares `f_vjp(*args)`, such as `partial(lx.vjp, f)`, with differences, by one random product from both sides.

    Arguments and errors are those of `check_jvp`.
    """
    bits, generator = _bits(args), np.random.default_rng(0)
    directions = _directions(tuple(args), generator)
    values, pull = f_vjp(*args)
    for found, wanted in zip(leaves(values), leaves(f(*args)), strict=True):
        _compare(found, wanted, bits, atol, rtol, f"{err_msg} value of the VJP".strip())
    weights = _directions(values, generator)
    slopes = _slopes(f, tuple(args), directions, _STEPS[bits] if eps is None else eps)
    wanted = _inner(leaves(weights), slopes)
    found = _inner(leaves(pull(weights)), leaves(directions))
    _compare(found, wanted, bits, atol, rtol, f"{err_msg} cotangents of the VJP".strip())


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: str | Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Compares derivatives of `f` at `args` up to `order` with differences, in forward and reverse mode.

    `modes` is "fwd", "rev" or both; beyond the first order, all their combinations. Other arguments and errors are
    those of `check_jvp`; ValueError for another mode.
    """
    chosen = (modes,) if isinstance(modes, str) else tuple(modes)
    if not chosen or not {"fwd", "rev"}.issuperset(chosen):
        raise ValueError(f"check_grads: modes are 'fwd' and 'rev', got {modes!r}")
    _check_order(f, tuple(args), order, chosen, atol, rtol, eps, "")


def _check_order(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    order: int,
    modes: Sequence[str],
    atol: float | None,
    rtol: float | None,
    eps: float | None,
    message: str,
) -> None:
    generator = np.random.default_rng(1)
    if "fwd" in modes:
        check_jvp(f, partial(jvp, f), args, atol, rtol, eps, f"{message} fwd".strip())
        if order > 1:
            directions = _directions(args, generator)
            _check_order(
                lambda *given: jvp(f, given, directions)[1], args, order - 1, modes, atol, rtol, eps, f"{message} fwd"
            )
    if "rev" in modes:
        check_vjp(f, partial(vjp, f), args, atol, rtol, eps, f"{message} rev".strip())
        if order > 1:
            weights = _directions(f(*args), generator)
            _check_order(
                lambda *given: vjp(f, *given)[1](weights), args, order - 1, modes, atol, rtol, eps, f"{message} rev"
            )
