"""Numbers, dtypes and shapes of the standard's functions for complex dtypes, against NumPy's.

The special values of elementwise functions are in test_complex_special_cases.py, Fourier transforms in
tests/lavax/numpy/fft.
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

DTYPES = ["complex64", "complex128"]
REAL = {"complex64": "float32", "complex128": "float64"}
_UNARY = """
abs acos acosh asin asinh atan atanh conj cos cosh exp expm1 imag isfinite isinf isnan log log1p log2 log10
logical_not negative positive real reciprocal round sign sin sinh square sqrt tan tanh
"""
UNARY = _UNARY.split()
BINARY = ["add", "subtract", "multiply", "divide", "pow", "equal", "not_equal"]
_OF_TWO_REAL_NUMBERS = """
floor_divide remainder hypot copysign nextafter bitwise_and bitwise_left_shift
"""
OF_REAL_NUMBERS = {1: ["floor", "ceil", "trunc", "signbit"], 2: _OF_TWO_REAL_NUMBERS.split()}


@pytest.fixture(autouse=True)
def with_64_bits() -> Iterator[None]:
    with lx.enable_x64():
        yield


def sample(dtype: str, *shape: int) -> np.ndarray:
    draw = np.random.default_rng(sum(shape))
    return (draw.normal(size=shape) + 1j * draw.normal(size=shape)).astype(dtype)


def assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
        return
    got, right = np.asarray(found), np.asarray(expected)
    narrow = {np.dtype("i8"): np.dtype("i4")}.get(right.dtype)
    assert got.dtype in (right.dtype, narrow), f"{right.dtype} became {got.dtype}"
    assert got.shape == right.shape
    if right.dtype.kind in "fc":
        rtol = 1e-4 if right.dtype in (np.float32, np.complex64) else 1e-10
        scale = float(np.abs(right[np.isfinite(right)]).max(initial=1))
        np.testing.assert_allclose(got, right, rtol=rtol, atol=rtol * scale)
    else:
        np.testing.assert_array_equal(got, right)


def check(function: Callable[..., Any], *arrays: np.ndarray) -> None:
    """`function` of a namespace and arrays gives the same with NumPy and with lavax."""
    assert_same(function(lnp, *map(lnp.asarray, arrays)), function(np, *[array.copy() for array in arrays]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_argument(name: str, dtype: str) -> None:
    check(lambda xp, z: getattr(xp, name)(z), sample(dtype, 3, 4))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_arguments(name: str, dtype: str) -> None:
    z, other = sample(dtype, 3, 4), sample(dtype, 4)
    for second in (other, other.real.copy(), sample("complex128", 4), other.astype("complex64")):
        check(lambda xp, a, b: (getattr(xp, name)(a, b), getattr(xp, name)(b, a)), z, second)
    for scalar in (2, 2.5, 1j, True):
        check(lambda xp, a: (getattr(xp, name)(a, scalar), getattr(xp, name)(scalar, a)), z)


@pytest.mark.parametrize("arity", OF_REAL_NUMBERS)
def test_functions_of_real_numbers_refuse_complex_ones(arity: int) -> None:
    z = lnp.asarray(sample("complex64", 3))
    for name in OF_REAL_NUMBERS[arity]:
        with pytest.raises(lx.DtypeError, match="c64"):
            getattr(lnp, name)(*[z] * arity)
    for function in (operator.floordiv, operator.mod, operator.rshift, operator.xor):
        with pytest.raises(lx.DtypeError):
            function(z, z)


@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_and_python_scalars(dtype: str) -> None:
    z, x = sample(dtype, 3, 4), sample(dtype, 3, 4).real.copy()
    for function in (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.eq):
        for scalar in (2, 0.5, 1 + 1j):
            check(lambda xp, a: (function(a, scalar), function(scalar, a), function(a, a)), z)
        check(lambda xp, a: (function(a, 1j), function(1j, a)), x)
    written = lnp.asarray(z, copy=True)
    written *= 1j
    written[0] = 2
    assert_same(written, np.concatenate([np.full((1, 4), 2, dtype), z[1:] * np.asarray(1j, dtype)]))
    real = lnp.asarray(x)
    with pytest.raises(lx.DtypeError):
        real[0] = 1j


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "std", "var", "all", "any", "count_nonzero"])
def test_reductions(name: str, dtype: str) -> None:
    for axis in (None, 0, -1, (0, 1), ()):
        for keepdims in (False, True):
            check(lambda xp, z: getattr(xp, name)(z, axis=axis, keepdims=keepdims), sample(dtype, 3, 4))


@pytest.mark.parametrize("dtype", DTYPES)
def test_further_functions(dtype: str) -> None:
    z, w, row = sample(dtype, 3, 4), sample(dtype, 3, 4)[::-1].copy(), sample(dtype, 5)
    for initial in (False, True):
        check(lambda xp, a: xp.cumulative_sum(a, axis=1, include_initial=initial), z)
        check(lambda xp, a: xp.cumulative_prod(a, axis=0, include_initial=initial), z)
    check(lambda xp, a: (xp.sum(a, dtype=getattr(xp, dtype)), xp.prod(a, dtype=getattr(xp, dtype))), z.real.copy())
    check(lambda xp, a: (xp.std(a, correction=1), xp.var(a, correction=1.5, axis=0)), z)
    check(lambda xp, a: (xp.diff(a), xp.diff(a, n=2), xp.diff(a, axis=0, prepend=a[:1], append=a[:1])), z)
    check(lambda xp, a: (xp.sort(a), xp.argsort(a), xp.unique_values(xp.concat([a, a])).shape[0]), row)
    check(lambda xp, a: xp.searchsorted(xp.sort(a), a), row)
    check(lambda xp, a: xp.nonzero(a), np.array([1 + 1j, 0, 1j, 0], dtype))
    check(lambda xp, a: (xp.take(a, xp.asarray([2, 0]), axis=1), xp.where(xp.real(a) > 0, a, xp.imag(a))), z)
    check(lambda xp, a: xp.take_along_axis(a, xp.asarray([[0, 1], [2, 1], [3, 0]]), axis=1), z)
    check(lambda xp, a: (xp.flip(a), xp.roll(a, 1), xp.repeat(a, 2), xp.tile(a, (2, 1)), *xp.unstack(a)), z)
    check(lambda xp, a: (xp.concat([a, a]), xp.stack([a, a]), xp.tril(a), xp.triu(a), *xp.meshgrid(a[0], a[1])), z)
    check(lambda xp, a: (a[::-1, ::-2], a[..., None], a[xp.real(a) > 0], a[1, 2], a[xp.asarray([0, 2])], a.mT), z)
    check(lambda xp, a, b: (xp.vecdot(a, b), xp.vecdot(a, b, axis=0), xp.tensordot(a, b, axes=2), a @ b.T), z, w)
    check(lambda xp, a, b: (xp.vecdot(a, b), xp.vecdot(b, a), xp.matmul(a, b.mT)), z, w.real.copy())


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_are_made(dtype: str) -> None:
    def make(xp: Any) -> list[Any]:
        held = getattr(xp, dtype)
        made = [xp.zeros((2,), dtype=held), xp.ones(2, dtype=held), xp.full(2, 1j, dtype=held), xp.eye(3, dtype=held)]
        made += [xp.linspace(0, 1 + 1j, 4, dtype=held), xp.linspace(0, 1, 4, dtype=held, endpoint=False)]
        return [*made, xp.full((2, 2), 2, dtype=held), xp.asarray([1, 2.5, 3j], dtype=held)]

    check(make)
    z, x = sample(dtype, 2, 3), sample(dtype, 2, 3).real.copy()
    check(lambda xp, a: (xp.zeros_like(a), xp.ones_like(a), xp.full_like(a, 1j), xp.empty_like(a).shape[0]), z)
    check(lambda xp, a: (xp.zeros_like(a, dtype=getattr(xp, dtype)), xp.astype(a, getattr(xp, dtype))), x)
    check(lambda xp, a: (xp.astype(a, xp.complex64), xp.astype(a, xp.complex128), xp.astype(a, xp.bool)), z)


@pytest.mark.parametrize("dtype", DTYPES)
def test_matrices(dtype: str) -> None:
    z = sample(dtype, 2, 3, 3)
    positive = z @ z.conj().swapaxes(1, 2) + np.eye(3, dtype=dtype)
    for order in ("fro", "nuc", 1, -1, 2, -2, float("inf"), -float("inf")):
        check(lambda xp, a: xp.linalg.matrix_norm(a, ord=order, keepdims=True), z)
    for order in (0, 1, 2, 3.5, float("inf"), -float("inf"), -1):
        for axis in (None, 0, (0, 1)):
            check(lambda xp, a: xp.linalg.vector_norm(a, ord=order, axis=axis), z)
    check(lambda xp, a: (xp.linalg.det(a), *xp.linalg.slogdet(a), xp.linalg.inv(a), xp.linalg.solve(a, a)), z)
    check(lambda xp, a: (xp.linalg.cholesky(a), xp.linalg.cholesky(a, upper=True), xp.linalg.eigvalsh(a)), positive)
    check(lambda xp, a: (xp.linalg.svdvals(a), xp.linalg.pinv(a), xp.linalg.matrix_rank(a)), sample(dtype, 3, 4))
    check(lambda xp, a: [xp.linalg.matrix_power(a, n) for n in (-2, 0, 1, 3)], z)
    check(lambda xp, a: (xp.linalg.trace(a, offset=1), xp.linalg.diagonal(a), xp.linalg.outer(a[0, 0], a[0, 1])), z)
    check(lambda xp, a: xp.linalg.cross(a[0], a[1]), z)


KINDS = ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric")


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_known_of_dtypes(dtype: str) -> None:
    held = getattr(lnp, dtype)
    assert [kind for kind in KINDS if lnp.isdtype(held, kind)] == ["complex floating", "numeric"]
    assert lnp.isdtype(held, ("bool", "complex floating")) and lnp.isdtype(held, held)
    assert dtype in lnp.__array_namespace_info__().dtypes(kind="complex floating")
    limits, of_part = lnp.finfo(held), np.finfo(REAL[dtype])
    assert (limits.eps, limits.max, limits.smallest_normal) == (of_part.eps, of_part.max, of_part.tiny)
    assert limits.dtype == REAL[dtype] and limits.bits == 8 * of_part.dtype.itemsize
    assert lnp.can_cast(lnp.float32, held) and not lnp.can_cast(held, lnp.float64)
    assert lnp.result_type(held, lnp.float64) == np.complex128 and lnp.result_type(held, 1j) == held
    assert lnp.result_type(lnp.float32, 1j) == np.complex64


@pytest.mark.parametrize("dtype", DTYPES)
def test_exchange_and_python_numbers(dtype: str) -> None:
    z = sample(dtype, 3)
    np.testing.assert_array_equal(np.from_dlpack(lnp.asarray(z)), z)
    np.testing.assert_array_equal(np.asarray(lnp.from_dlpack(z)), z)
    one = lnp.asarray(z)[0]
    assert complex(one) == complex(z[0]) and bool(one) and not bool(lnp.zeros((), dtype=dtype))
    for convert in (float, int, operator.index):
        with pytest.raises(TypeError):
            convert(one)
    assert all(complex(lnp.ones((), dtype=held)) == 1 for held in ("bool", "int8", "uint64", "float32"))
