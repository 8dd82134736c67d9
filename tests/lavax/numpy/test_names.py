"""Functions of dtypes, shapes, text and bytes, and the errors of the newer names."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import ArrayIndexError, ConcretizationError, DtypeError, ShapeError

pytestmark = pytest.mark.usefixtures("reference_backend")

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_what_an_argument_is() -> None:
    assert (lnp.ndim(X), lnp.shape([[1, 2]]), lnp.size(3.0)) == (2, (1, 2), 1)
    assert (lnp.size(X, 1), lnp.size(X, (0, -1))) == (3, 6)
    assert lnp.isscalar(3) and lnp.isscalar(lnp.asarray(3.0)) and lnp.isscalar(np.float32(1)) and not lnp.isscalar([3])
    assert lnp.iterable(X) and lnp.iterable([1]) and not lnp.iterable(lnp.asarray(1.0)) and not lnp.iterable(3)
    assert lnp.isrealobj(X) and not lnp.iscomplexobj(lnp.asarray(X))
    assert lx.compile(lambda x: x * lnp.ndim(x) * lnp.size(x))(X)[0, 1] == 12


@pytest.mark.parametrize("name", ["int8", "uint16", "int64", "float16", "float32", "float64", "bool_"])
def test_the_class_of_a_dtype_is_numpys(name: str) -> None:
    for kind in ("generic", "number", "integer", "signedinteger", "unsignedinteger", "inexact", "floating",
                 "complexfloating", "flexible", "character"):  # fmt: skip
        expected = np.issubdtype(getattr(np, name), getattr(np, kind))
        assert lnp.issubdtype(getattr(lnp, name), getattr(lnp, kind)) == expected
        assert lnp.issubdtype(lnp.zeros(2, getattr(lnp, name)).dtype, getattr(lnp, kind)) == expected


def test_the_class_of_bfloat16_is_floating() -> None:
    dtype = lnp.zeros(2, lnp.bfloat16).dtype
    assert lnp.issubdtype(dtype, lnp.floating) and lnp.issubdtype(dtype, lnp.number)
    assert lnp.issubdtype(dtype, lnp.bfloat16) and not lnp.issubdtype(lnp.float32, lnp.bfloat16)
    assert not lnp.issubdtype(dtype, lnp.integer) and not lnp.issubdtype(dtype, lnp.float32)


def test_second_names_of_dtypes() -> None:
    assert (lnp.single, lnp.double, lnp.float_, lnp.int_, lnp.uint) == (
        lnp.float32, lnp.float64, lnp.float32, lnp.int32, lnp.uint32
    )  # fmt: skip
    assert lnp.dtype("float32") == lnp.float32
    assert lnp.euler_gamma == np.euler_gamma


def test_arrays_from_bytes_text_and_iterators() -> None:
    numbers = np.array([1, -2, 3], np.int16)
    found = lnp.frombuffer(numbers.tobytes(), lnp.int16)
    assert found.dtype == np.int16
    np.testing.assert_array_equal(np.asarray(found), numbers)
    np.testing.assert_array_equal(np.asarray(lnp.frombuffer(numbers.tobytes(), np.int16, 1, 2)), [-2])
    halves = lnp.asarray([1.5, -2.0], lnp.bfloat16)
    again = lnp.frombuffer(np.asarray(halves).tobytes(), lnp.bfloat16)
    assert again.dtype == lnp.bfloat16
    np.testing.assert_array_equal(np.asarray(again), np.asarray(halves))
    assert lnp.fromstring("1.5, 2,3", sep=",").tolist() == [1.5, 2, 3]
    assert lnp.fromstring("1 2  3", int, 2, sep=" ").tolist() == [1, 2]
    assert lnp.fromiter((n * n for n in range(4)), "uint8").tolist() == [0, 1, 4, 9]


def test_an_array_from_a_function_of_positions() -> None:
    found = lnp.fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(np.asarray(found), np.fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int))
    assert lnp.fromfunction(lambda i: lnp.asarray([1.0, 2.0]), (3,)).shape == (3, 2)
    assert lnp.fromfunction(lambda i, by: i * by, 3, by=2).tolist() == [0, 2, 4]


def test_the_path_of_einsum_is_followed() -> None:
    a, b, c = np.ones((2, 30), np.float32), np.ones((30, 40), np.float32), np.ones((40, 3), np.float32)
    path, text = lnp.einsum_path("ij,jk,kl->il", a, b, c)
    assert path == ["einsum_path", (0, 1), (0, 1)] or path == ["einsum_path", (1, 2), (0, 1)]
    assert "6 elements" in text
    expected = a @ b @ c
    for optimize in (True, False, "greedy", path, ["einsum_path", (0, 2), (0, 1)]):
        found = lnp.einsum("ij,jk,kl->il", a, b, c, optimize=optimize)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)
    assert lnp.einsum_path("ii", np.eye(2))[0] == ["einsum_path", (0,)]


def test_vectorize_without_a_signature_and_with_settings() -> None:
    @lnp.vectorize
    def larger(x: Any, y: Any) -> Any:
        return lnp.where(x > y, x, y)

    np.testing.assert_array_equal(np.asarray(larger(X, np.ones(3, np.float32))), np.maximum(X, 1))
    scaled = lnp.vectorize(lambda x, how, by=1: x * len(how) * by, excluded={1})
    np.testing.assert_array_equal(np.asarray(scaled(X, "abc", by=2)), X * 6)
    both = lnp.vectorize(lambda line: (line.sum(), line[::-1]), signature="(n)->(),(n)")
    total, turned = both(X)
    assert total.shape == (2,) and turned.shape == (2, 3)
    slope = lx.grad(lambda x: larger(x, 2.0).sum())(X)
    np.testing.assert_array_equal(np.asarray(slope), X > 2)


def test_polyfit_gives_what_is_asked_besides() -> None:
    x = np.linspace(-1, 1, 9).astype(np.float32)
    y = (x**2 - x + 0.1 * np.cos(9 * x)).astype(np.float32)
    exact = x.astype(np.float64), y.astype(np.float64)
    for cov in (True, "unscaled"):
        expected, spread = np.polyfit(*exact, 2, cov=cov)
        found, ours = lnp.polyfit(x, y, 2, cov=cov)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(np.asarray(ours), spread, rtol=1e-3, atol=1e-6)
    _, residuals, rank, singular, _ = np.polyfit(*exact, 2, full=True)
    fit = lnp.polyfit(x, y, 2, full=True)
    np.testing.assert_allclose(np.asarray(fit.residuals), residuals, rtol=1e-4)
    np.testing.assert_allclose(np.asarray(fit.singular_values), singular, rtol=1e-4)
    assert int(fit.rank) == rank


def test_trim_zeros_of_products() -> None:
    assert lnp.polymul(np.array([0, 1, 2]), np.array([0, 3]), trim_leading_zeros=True).tolist() == [3, 6]
    quotient, rest = lnp.polydiv(np.array([1.0, 3, 2]), np.array([1.0, 1]), trim_leading_zeros=True)
    assert (quotient.tolist(), rest.tolist()) == ([1, 2], [0])


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: lnp.put(X, [0], 1.0), ValueError, "inplace=False"),
    (lambda: lnp.put(X, [9], 1.0, inplace=False), ArrayIndexError, "index 9 is outside axis 0"),
    (lambda: lnp.place(X, X[0] > 1, [1.0], inplace=False), ShapeError, "place: the mask has 3 elements, the array 6"),
    (lambda: lnp.fill_diagonal(X[0], 1.0, inplace=False), ShapeError, "fill_diagonal: f32[3] must have at least two"),
    (lambda: lnp.insert(X, 4, 1.0, 1), ArrayIndexError, "insert: the position 4 is outside an axis of extent 3"),
    (lambda: lnp.insert(X, 0.5, 1.0), ShapeError, "insert: positions must be integers"),
    (lambda: lnp.trim_zeros(X[0], "x"), ValueError, "trim is made of 'f' and 'b', got 'x'"),
    (lambda: lx.compile(lnp.trim_zeros)(X[0]), ConcretizationError, "inside compile, keep the zeros"),
    (lambda: lnp.unravel_index(6, (2, 3)), ArrayIndexError, "outside the 6 elements of (2, 3)"),
    (lambda: lnp.ravel_multi_index([[2], [0]], (2, 3)), ArrayIndexError, "outside an axis of extent 2"),
    (lambda: lnp.ravel_multi_index([[0]], (2, 3)), ShapeError, "1 positions for the 2 axes of (2, 3)"),
    (lambda: lnp.packbits(X), DtypeError, "packbits is not defined for f32[2,3]"),
    (lambda: lnp.packbits([1j]), DtypeError, "packbits is not defined for c64[1]"),
    (lambda: lnp.unpackbits(np.ones(2, np.int32)), DtypeError, "uint8 only"),
    (lambda: lnp.packbits([1], bitorder="middle"), ValueError, "bitorder is 'big' or 'little', got 'middle'"),
    (lambda: lnp.gcd(X, 2), DtypeError, "gcd is not defined for f32[2,3]: integers only"),
    (lambda: lnp.hanning(-1), ShapeError, "hanning: -1 is not a number of points"),
    (lambda: lnp.kaiser(3, X), ShapeError, "kaiser: beta must be one number"),
    (lambda: lnp.tril_indices_from(X[0]), ShapeError, "tril_indices_from: f32[3] must have two axes"),
    (lambda: lnp.diag_indices_from(X), ShapeError, "diag_indices_from: f32[2,3] must have at least two axes"),
    (lambda: lnp.ix_(X), ShapeError, "ix_: the positions along an axis must have one axis"),
    (lambda: lnp.mgrid[:], ShapeError, "a grid needs an end"),
    (lambda: lnp.r_["x", X], ValueError, "up to three integers as a string"),
    (lambda: lnp.matvec(X, X[:, 0]), ShapeError, "matvec: a matrix f32[2,3] and a vector f32[2] have no product"),
    (lambda: lnp.polyval(X, 1.0), ShapeError, "polyval: the coefficients must have one axis"),
    (lambda: lnp.polyder(X[0], -1), ValueError, "m=-1"),
    (lambda: lnp.polyint(X[0], 2, k=[1.0, 2, 3]), ShapeError, "2 integrations take one constant or 2, got 3"),
    (lambda: lnp.polyfit(X, X, 1), ShapeError, "polyfit: needs a degree from 0 and points along one axis"),
    (lambda: lnp.poly(X), ShapeError, "zeros along one axis or a square matrix"),
    (lambda: lnp.vectorize(lnp.sin, signature="n->n")(X), ValueError, "a signature is written like"),
    (lambda: lnp.vectorize(lnp.sum, signature="(n)->(n)")(X), ShapeError, "does not have the axes (n)"),
    (lambda: lnp.einsum("i,i", X[0], X[0], optimize=[(0, 5)]), ValueError, "is not a path through 2 operands"),
    (lambda: lnp.max(X, where=X > 1), ValueError, "max: with where, initial is needed too"),
    (lambda: lnp.min(X, initial=X), ShapeError, "min: initial must be one number, got f32[2,3]"),
    (lambda: lnp.mean(X, where=np.ones((4, 2, 3), bool)), ShapeError, "mean: where bool[4,2,3] does not broadcast"),
    (lambda: lnp.sum(X, where=np.ones(2, bool)), ShapeError, "sum: shapes"),
    (lambda: lnp.frombuffer(b"abc", np.int16), ValueError, "buffer size must be a multiple"),
    (lambda: lnp.fromstring("1", sep=",", count=2), ValueError, "2 numbers asked for, but the text has 1"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_what_is_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as found:
        call()
    assert message in str(found.value)


def test_methods_of_arrays() -> None:
    x = lnp.asarray(X)
    assert (x.nbytes, x.itemsize, x.astype(lnp.bfloat16).nbytes) == (24, 4, 12)
    assert x.devices() == {x.device} and x.tobytes() == X.tobytes() and not x.weak_type
    assert lnp.asarray(1.5).weak_type and lx.eval_shape(lambda x: x * x.weak_type, x).shape == x.shape
    x.copy_to_host_async()
    given = lx.device_put(X)
    assert not given.is_deleted()
    lx.jit(lambda x: x + 1, donate_argnums=0)(given)
    assert given.is_deleted()
    for same in (x.copy(), x.clone(), x.conj(), x.conjugate(), x.real):
        np.testing.assert_array_equal(np.asarray(same), X)
    assert not np.asarray(x.imag).any()
    np.testing.assert_array_equal(np.asarray(x.view(np.int32)), X.view(np.int32))
    np.testing.assert_array_equal(np.asarray(lnp.asarray([1, 0]).choose([x[0, :2], x[1, :2]])), [3, 1])
    assert x[0].argpartition(1).shape == (3,)
    np.testing.assert_array_equal(np.asarray(x.view(np.int16)), X.view(np.int16))
    np.testing.assert_array_equal(np.asarray(x.view(bool)), X.view(np.uint8) != 0)
    truth = np.array([True, False, True, False])
    for dtype in ("uint8", "int8", "int16", "int32"):
        np.testing.assert_array_equal(np.asarray(lnp.asarray(truth).view(dtype)), truth.view(dtype))


def test_bits_of_brain_floats() -> None:
    import ml_dtypes

    narrow = np.array([1, -2.5, 0, -0.0, np.inf, np.nan, 1e-40, 3e38], ml_dtypes.bfloat16)
    x = lnp.asarray(narrow)
    for dtype in ("int16", "uint16", "uint8", "uint32", "float32", "float16"):
        np.testing.assert_array_equal(np.asarray(x.view(dtype)).view("uint8"), narrow.view("uint8"))
    bits = narrow.view("uint16")
    assert np.asarray(lnp.asarray(bits).view("bfloat16")).tobytes() == narrow.tobytes()
    assert np.asarray(lnp.asarray(narrow.view("uint8")).view("bfloat16")).tobytes() == narrow.tobytes()


def test_options_that_numpy_has() -> None:
    assert lnp.array(3.0, ndmin=2).shape == (1, 1) and lnp.array(X, ndmin=1).shape == (2, 3)
    for endpoint in (True, False):
        numbers, step = lnp.linspace(1.0, 3.0, 5, endpoint, retstep=True)
        expected, theirs = np.linspace(1.0, 3.0, 5, endpoint, retstep=True)
        np.testing.assert_allclose(np.asarray(numbers), expected, rtol=1e-6)
        assert float(step) == pytest.approx(theirs)
    assert np.isnan(float(lnp.linspace(1.0, 3.0, 1, retstep=True)[1]))
