"""Numbers, dtypes and shapes of the standard's functions for all its real dtypes, against NumPy's.

NumPy's default integers have 64 bits: where a result has the default dtype or holds positions, lavax's have 32.
"""
# ruff: noqa: B023  # functions are called within the loop that makes them
from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp

pytestmark = pytest.mark.usefixtures("reference_backend")

BOOL = ["bool"]
SIGNED, UNSIGNED = ["int8", "int16", "int32", "int64"], ["uint8", "uint16", "uint32", "uint64"]
INTEGERS, FLOATS = SIGNED + UNSIGNED, ["float32", "float64"]
NUMBERS, DISCRETE = INTEGERS + FLOATS, BOOL + INTEGERS
ALL = BOOL + NUMBERS

_UNARY: list[tuple[str, list[str]]] = [
    ("abs negative positive sign square ceil floor trunc round isfinite isinf isnan real", NUMBERS),
    ("asinh atan cos cosh exp expm1 reciprocal sin sinh sqrt tan tanh signbit", FLOATS),
    ("acos asin atanh log log1p log2 log10", FLOATS),
    ("bitwise_invert", DISCRETE),
    ("logical_not", BOOL),
]
_BINARY: list[tuple[str, list[str]]] = [
    ("add subtract multiply maximum minimum less less_equal greater greater_equal", NUMBERS),
    ("floor_divide remainder pow", NUMBERS),
    ("atan2 copysign divide hypot logaddexp nextafter", FLOATS),
    ("equal not_equal", ALL),
    ("bitwise_and bitwise_or bitwise_xor", DISCRETE),
    ("bitwise_left_shift bitwise_right_shift", INTEGERS),
    ("logical_and logical_or logical_xor", BOOL),
]
OF_POSITIVE = {"acos", "asin", "atanh", "log", "log1p", "log2", "log10", "sqrt"}
ALL_UNARY = {name: dtypes for names, dtypes in _UNARY for name in names.split()}
ALL_BINARY = {name: dtypes for names, dtypes in _BINARY for name in names.split()}
OPERATORS = {
    **dict.fromkeys((operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.pow), NUMBERS),
    **dict.fromkeys((operator.lt, operator.le, operator.gt, operator.ge), NUMBERS),
    **dict.fromkeys((operator.eq, operator.ne), ALL),
    **dict.fromkeys((operator.and_, operator.or_, operator.xor), DISCRETE),
    **dict.fromkeys((operator.lshift, operator.rshift), INTEGERS),
    operator.truediv: FLOATS,
}
_INPLACE = {
    "add": operator.iadd, "sub": operator.isub, "mul": operator.imul, "truediv": operator.itruediv,
    "pow": operator.ipow, "floordiv": operator.ifloordiv, "mod": operator.imod, "and_": operator.iand,
    "or_": operator.ior, "xor": operator.ixor, "lshift": operator.ilshift, "rshift": operator.irshift,
}  # fmt: skip


@pytest.fixture(autouse=True)
def with_64_bits(request: pytest.FixtureRequest) -> Iterator[None]:
    with lx.enable_x64(request.function is not test_defaults):
        yield


def numbers(dtype: str, shape: tuple[int, ...] = (3, 4, 2), least: int = -5) -> np.ndarray:
    """Numbers of both signs, or from `least` on; floats in (0.05, 0.95) for a `least` of 0."""
    draw = np.random.default_rng(sum(shape))
    if dtype in FLOATS:
        return (draw.uniform(0.05, 0.95, shape) if least == 0 else 2 * draw.normal(size=shape)).astype(dtype)
    return draw.integers(max(least, 0) if dtype[0] in "ub" else least, 2 if dtype == "bool" else 7, shape).astype(dtype)


def together(first: str, second: str) -> bool:
    """Whether the standard defines the promotion of two dtypes."""
    return any(first in kind and second in kind for kind in (BOOL, INTEGERS, FLOATS)) and not (
        "uint64" in (first, second) and {first, second} & {*SIGNED}
    )


def assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
        return
    got, right = np.asarray(found), np.asarray(expected)
    narrow = {np.dtype("i8"): np.dtype("i4"), np.dtype("u8"): np.dtype("u4")}.get(right.dtype)
    assert got.dtype in (right.dtype, narrow), f"{right.dtype} became {got.dtype}"
    assert got.shape == right.shape
    if right.dtype.kind == "f":
        rtol = 1e-5 if right.dtype == np.float32 else 1e-12
        scale = float(np.abs(right, where=np.isfinite(right), out=np.zeros(right.shape)).max(initial=0))
        np.testing.assert_allclose(got, right, rtol=rtol, atol=rtol * scale)
    else:
        np.testing.assert_array_equal(got, right)


def check(function: Callable[..., Any], *arrays: np.ndarray) -> None:
    """`function` of a namespace and arrays gives the same with NumPy and with lavax."""
    expected = function(np, *[array.copy() for array in arrays])
    found = function(lnp, *map(lnp.asarray, arrays))
    assert_same(found, expected)


@pytest.mark.parametrize("name", ALL_UNARY)
def test_functions_of_one_argument(name: str) -> None:
    for dtype in ALL_UNARY[name]:
        x = numbers(dtype, least=0 if name in OF_POSITIVE else -5)
        check(lambda xp, a: getattr(xp, name)(a), x)
        found = getattr(lnp, name)(lnp.asarray(x))
        assert found.dtype == (bool if name.startswith("is") or name in ("logical_not", "signbit") else x.dtype)
    with np.errstate(invalid="ignore"):
        check(lambda xp, a: xp.acosh(a), 1 + numbers("float32", least=0))


@pytest.mark.parametrize("name", ALL_BINARY)
def test_functions_of_two_arguments(name: str) -> None:
    for first in ALL_BINARY[name]:
        for second in filter(lambda dtype: together(first, dtype), ALL_BINARY[name]):
            least = 1 if name in ("floor_divide", "remainder", "pow", "divide") or "shift" in name else -5
            x, y = numbers(first), np.abs(numbers(second, (4, 2), least=least))
            if least == 1:
                y = np.maximum(np.round(y) if name == "pow" else y, 1).astype(second)
            check(lambda xp, a, b: getattr(xp, name)(a, b), x, y)
            assert getattr(lnp, name)(lnp.asarray(x), lnp.asarray(y)).dtype == getattr(np, name)(x, y).dtype


@pytest.mark.parametrize("function", OPERATORS, ids=lambda function: function.__name__)
def test_operators_and_python_scalars(function: Any) -> None:
    for dtype in OPERATORS[function]:
        x = numbers(dtype, least=1)
        if dtype != "bool":
            x = np.maximum(np.abs(x), 1).astype(dtype)
        for scalar in [True] if dtype == "bool" else [2] if dtype in INTEGERS else [2, 2.5]:
            check(lambda xp, a: (function(a, scalar), function(scalar, a), function(a, a)), x)
            assert function(lnp.asarray(x), scalar).dtype == function(x, scalar).dtype
            if function.__name__ in _INPLACE:
                check(lambda xp, a: _INPLACE[function.__name__](a, scalar), x)
                check(lambda xp, a, b: _INPLACE[function.__name__](a, b), x, x[:1])


AXES: list[Any] = [None, 0, -1, (0, 2), (-1, 1), ()]
REDUCTIONS = {
    "sum": NUMBERS, "prod": NUMBERS, "max": NUMBERS, "min": NUMBERS, "mean": FLOATS, "std": FLOATS, "var": FLOATS,
    "all": ALL, "any": ALL, "count_nonzero": ALL,
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str) -> None:
    for dtype in REDUCTIONS[name]:
        x = numbers(dtype)
        for axis in AXES:
            for keepdims in (False, True):
                check(lambda xp, a: getattr(xp, name)(a, axis=axis, keepdims=keepdims), x)
        if name in ("std", "var"):
            for correction in (0, 1, 0.5):
                check(lambda xp, a: getattr(xp, name)(a, axis=1, correction=correction), x)
        if name in ("sum", "prod"):
            wide = x.dtype if x.dtype.kind not in "iu" else f"{x.dtype.kind}8"  # the default of that kind
            assert getattr(lnp, name)(lnp.asarray(x)).dtype == wide
            for wanted in ("int8", "uint64", "float32", "float64"):
                check(lambda xp, a: getattr(xp, name)(a, axis=0, dtype=getattr(xp, wanted)), np.abs(x))
        if name not in ("mean", "std", "var"):
            check(lambda xp, a: getattr(xp, name)(a), numbers(dtype, ()))
        if name not in ("mean", "std", "var", "max", "min"):
            check(lambda xp, a: (getattr(xp, name)(a), getattr(xp, name)(a, axis=0)), numbers(dtype, (0, 3)))


def test_running_sums_and_products() -> None:
    for dtype in NUMBERS:
        x, line = numbers(dtype), numbers(dtype, (5,))
        for name in ("cumulative_sum", "cumulative_prod"):
            for initial in (False, True):
                check(lambda xp, a: getattr(xp, name)(a, axis=1, include_initial=initial), x)
                check(lambda xp, a: getattr(xp, name)(a, include_initial=initial), line)
                check(lambda xp, a: getattr(xp, name)(a, include_initial=initial), line[:0])
            check(lambda xp, a: getattr(xp, name)(a, axis=-1, dtype=xp.float64), x)
        for options in ({}, {"axis": 0}, {"n": 2}, {"n": 0, "axis": 1}, {"n": 9}):
            check(lambda xp, a: xp.diff(a, **options), x)
        check(lambda xp, a, b: xp.diff(a, axis=0, prepend=b, append=b), x, x[:1])


def test_orders_and_places() -> None:
    for dtype in ALL:
        x, line = numbers(dtype), numbers(dtype, (6,))
        for axis in (0, 1, -1):
            check(lambda xp, a: (xp.sort(a, axis=axis), xp.argsort(a, axis=axis, stable=True)), x)
            falling = np.flip(np.sort(x, axis=axis), axis)
            assert_same(lnp.sort(lnp.asarray(x), axis=axis, descending=True), falling)
            places = lnp.argsort(lnp.asarray(x), axis=axis, descending=True)
            assert_same(lnp.take_along_axis(lnp.asarray(x), places, axis=axis), falling)
        tied = lnp.asarray([2, 1, 2, 1])
        assert lnp.argsort(tied, descending=True).tolist() == [0, 2, 1, 3], "equal numbers keep their order"
        for name in ("argmax", "argmin"):
            for axis in (None, 0, -1):
                check(lambda xp, a: getattr(xp, name)(a, axis=axis, keepdims=True), x)
        for side in ("left", "right"):
            check(lambda xp, a, b: xp.searchsorted(a, b, side=side), np.sort(line), x)
            check(lambda xp, a, b: xp.searchsorted(a, b, side=side, sorter=xp.argsort(a)), line, x)
        check(lambda xp, a: xp.nonzero(a), x)
        check(lambda xp, a: xp.where(a == a, a, xp.flip(a)), x)
        for shape in ((3, 4, 2), (0,), ()):
            given = numbers(dtype, shape)
            check(lambda xp, a: tuple(xp.unique_all(a)), given)
            values, places, inverse, counts = lnp.unique_all(lnp.asarray(given))
            assert_same(lnp.unique_values(lnp.asarray(given)), values)
            assert_same(tuple(lnp.unique_counts(lnp.asarray(given))), (values, counts))
            assert_same(tuple(lnp.unique_inverse(lnp.asarray(given))), (values, inverse))


def test_shapes_and_parts() -> None:
    for dtype in ALL:
        x = numbers(dtype)
        for axis in (None, 0, 2, -1):
            check(lambda xp, a: (xp.flip(a, axis=axis), xp.roll(a, 3, axis=axis), xp.repeat(a, 2, axis=axis)), x)
        check(lambda xp, a: (xp.roll(a, (1, -2), axis=(0, 1)), xp.flip(a, axis=(0, -1))), x)
        check(lambda xp, a: xp.repeat(a, xp.asarray([1, 0, 2, 3]), axis=1), x)
        check(lambda xp, a: (xp.tile(a, (2, 1, 3)), xp.tile(a, (2,)), xp.tile(a, (2, 1, 1, 1))), x)
        check(lambda xp, a: (xp.moveaxis(a, (0, 1), (2, 0)), xp.permute_dims(a, (2, 0, 1)), a.mT), x)
        check(lambda xp, a: (xp.expand_dims(a, axis=0), xp.expand_dims(a, axis=-1), xp.squeeze(a[:1], axis=0)), x)
        check(lambda xp, a: (xp.concat([a, a]), xp.concat((a, a), axis=None), xp.concat([a, a], axis=-1)), x)
        check(lambda xp, a: (xp.stack([a, a]), xp.stack((a, a), axis=-1), xp.unstack(a, axis=1)), x)
        check(lambda xp, a: (xp.reshape(a, (4, -1)), xp.reshape(a, (24,), copy=True)), x)
        check(lambda xp, a: (xp.broadcast_to(a, (2, 3, 4, 2)), *xp.broadcast_arrays(a, a[:1])), x)
        check(lambda xp, a: (xp.tril(a), xp.triu(a, k=1), xp.tril(a, k=-1)), x)
        check(lambda xp, a: (xp.take(a, xp.asarray([2, 0]), axis=1), xp.take(a[0, :, 0], xp.asarray([[3, 0]]))), x)
        check(lambda xp, a: (a[0], a[..., 0], a[None], a[1:, ::-1], a[xp.asarray([1, 0]), xp.asarray([3, 0]), 1]), x)
        check(lambda xp, a: (a[xp.asarray(x) == a], a[a[:, 0, 0] == a[:, 0, 0]], a[-1, ..., None]), x)
        check(lambda xp, a: (xp.meshgrid(a[0, 0], a[0]), xp.meshgrid(a[0, 0], a[0, 0], indexing="ij")), x[:, :1])
        for wanted in ALL:
            check(lambda xp, a: xp.astype(a, getattr(xp, wanted)), np.abs(x))
            check(lambda xp, a: (xp.zeros_like(a, dtype=getattr(xp, wanted)), xp.full_like(a, 1)), x)
            if together(dtype, wanted):
                check(lambda xp, a, b: (xp.concat([a, b]), xp.where(a == a, a, b)), x, numbers(wanted))
                assert lnp.result_type(getattr(lnp, dtype), getattr(lnp, wanted)) == np.result_type(dtype, wanted)


def test_products() -> None:
    for first in NUMBERS:
        for second in filter(lambda dtype: together(first, dtype), NUMBERS):
            a, b = numbers(first, (2, 3, 4)), numbers(second, (4, 3))
            check(lambda xp, a, b: (xp.matmul(a, b), a @ b, a @ b[:, 0], a[0, 0] @ b, a[0, 0] @ b[:, 0]), a, b)
            check(lambda xp, a, b: (xp.tensordot(a, b, axes=1), xp.tensordot(a, b, axes=((1, 2), (1, 0)))), a, b)
            check(lambda xp, a, b: xp.vecdot(a, b, axis=-2), a, numbers(second, (3, 4)))
            check(lambda xp, a, b: (xp.linalg.outer(a[0, 0], b[0]), xp.linalg.cross(a[..., :3], b[0])), a, b)
        square = numbers(first, (2, 3, 3))
        check(lambda xp, a: (xp.linalg.diagonal(a, offset=1), xp.linalg.trace(a, offset=-1)), square)


@pytest.mark.parametrize("dtype", FLOATS)
def test_matrices(dtype: str) -> None:
    x = numbers(dtype, (2, 3, 3))
    positive = (x @ x.swapaxes(1, 2) + np.eye(3)).astype(dtype)
    orders = ("fro", "nuc", 1, -1, 2, -2, float("inf"), -float("inf"))
    for keepdims in (False, True):
        check(lambda xp, a: [xp.linalg.matrix_norm(a, ord=order, keepdims=keepdims) for order in orders], positive)
        for axis in (None, 0, (0, 1)):
            for order in (0, 1, 2, 3.5, float("inf"), -float("inf")):
                check(lambda xp, a: xp.linalg.vector_norm(a, axis=axis, ord=order, keepdims=keepdims), x)
    check(lambda xp, a: [xp.linalg.matrix_power(a, n) for n in (-2, 0, 1, 3)], positive)
    check(lambda xp, a: (xp.linalg.cholesky(a), xp.linalg.cholesky(a, upper=True), xp.linalg.det(a)), positive)
    check(lambda xp, a: (xp.linalg.eigvalsh(a), xp.linalg.svdvals(a), xp.linalg.matrix_rank(a)), positive)
    check(lambda xp, a: (*xp.linalg.slogdet(a), xp.linalg.eigh(a).eigenvalues, xp.linalg.svd(a).S), positive)
    check(lambda xp, a: (xp.abs(xp.linalg.qr(a).Q), xp.abs(xp.linalg.qr(a, mode="complete").R)), positive)


def test_arrays_are_made() -> None:
    for dtype in NUMBERS:
        for bounds in ((3,), (1, 7, 2), (5, 0, 1), (0,)):
            check(lambda xp: xp.arange(*bounds, dtype=getattr(xp, dtype)))
        check(lambda xp: (xp.eye(2, 3, k=1, dtype=getattr(xp, dtype)), xp.full((2,), 1, dtype=getattr(xp, dtype))))
        check(lambda xp: (xp.zeros((0, 2), dtype=getattr(xp, dtype)), xp.ones(3, dtype=getattr(xp, dtype))))
    for dtype in FLOATS:
        for ends in ((0.0, 1.0, 5), (0, 1, 1), (2.0, -1.0, 4), (0, 1, 0)):
            for endpoint in (True, False):
                check(lambda xp: xp.linspace(*ends, dtype=getattr(xp, dtype), endpoint=endpoint))
        check(lambda xp: xp.arange(0.0, 2.0, 0.3, dtype=getattr(xp, dtype)))


def test_defaults() -> None:
    """Of the default dtypes: the namespace says which they are."""
    default = lnp.__array_namespace_info__().default_dtypes()
    for made, kind in (
        (lnp.arange(3), "integral"), (lnp.arange(3.0), "real floating"), (lnp.zeros(2), "real floating"),
        (lnp.full(2, 3), "integral"), (lnp.full(2, 3.0), "real floating"), (lnp.asarray([1, 2]), "integral"),
        (lnp.linspace(0, 1, 3), "real floating"), (lnp.eye(2), "real floating"), (lnp.asarray(2.5), "real floating"),
        (lnp.asarray([1, 2.5]), "real floating"), (lnp.argmax(lnp.arange(3)), "indexing"),
        (lnp.nonzero(lnp.arange(3))[0], "indexing"), (lnp.argsort(lnp.arange(3)), "indexing"),
        (lnp.searchsorted(lnp.arange(3), lnp.arange(3)), "indexing"), (lnp.sum(lnp.ones(3, "int8")), "integral"),
        (lnp.unique_all(lnp.arange(3)).counts, "indexing"), (lnp.count_nonzero(lnp.arange(3)), "indexing"),
    ):  # fmt: skip
        assert made.dtype == default[kind]
    assert lnp.full(2, True).dtype == lnp.asarray([True]).dtype == bool


def test_ends_of_ranges() -> None:
    """Distances beyond the floats between ends that are not, and diagonals beyond a matrix."""
    for ends in ((3e38, -3e38), (-3.4e38, 1e38)):
        expected = np.linspace(*ends, 7).astype("f4")
        for endpoint in (True, False):
            held = lnp.linspace(*ends, 7 if endpoint else 6, endpoint=endpoint, dtype=lnp.float32)
            assert held[0] == np.float32(ends[0]) and (not endpoint or held[-1] == np.float32(ends[1]))
            assert np.isfinite(np.asarray(held)).all()
        found = np.asarray(lnp.linspace(*ends, 7, dtype=lnp.float32))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e32)
    for k in (-(10**20), -(2**31), -3, -2, 2, 3, 2**31, 10**20):
        near = max(min(k, 9), -9)
        check(lambda xp: xp.eye(2, 3, k=k if xp is lnp else near, dtype=xp.float32))
        for cut in ("tril", "triu"):
            check(lambda xp, a: getattr(xp, cut)(a, k=k if xp is lnp else near), np.ones((2, 3)))
