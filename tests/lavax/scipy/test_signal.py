"""Convolutions, trends, samples between elements, interpolation on grids, cosine transforms: against SciPy and JAX."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.interpolate
import scipy.ndimage
import scipy.signal

import lavax as lx
import lavax.numpy as lnp
from lavax.scipy import cluster, fft, integrate, interpolate, ndimage, signal
from lavax.test_util import check_grads
from tests.closeness import close

pytestmark = pytest.mark.usefixtures("reference_backend")

GENERATOR = np.random.default_rng(0)
LINE, SHORT = GENERATOR.normal(size=7).astype("f"), GENERATOR.normal(size=4).astype("f")
PLANE, PATCH = GENERATOR.normal(size=(5, 6)).astype("f"), GENERATOR.normal(size=(3, 2)).astype("f")
BLOCK = GENERATOR.normal(size=(3, 4, 2)).astype("f")


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(
    ("first", "second"), [(LINE, SHORT), (SHORT, LINE), (PLANE, PATCH), (BLOCK, BLOCK[:2, :2, :1])], ids=str
)
def test_convolutions(mode: Any, first: np.ndarray, second: np.ndarray) -> None:
    for name in ("convolve", "correlate"):
        found, wanted = (getattr(each, name)(first, second, mode) for each in (signal, scipy.signal))
        close(found, wanted)
    close(signal.fftconvolve(first, second, mode), scipy.signal.fftconvolve(first, second, mode))
    if first.ndim == 2:
        for boundary, fill in (("fill", 0), ("fill", 1.5), ("wrap", 0), ("symm", 0)):
            for name in ("convolve2d", "correlate2d"):
                arguments = (first, second, mode, boundary, fill)
                close(getattr(signal, name)(*arguments), getattr(scipy.signal, name)(*arguments))


def test_convolution_along_some_axes() -> None:
    wanted = scipy.signal.fftconvolve(PLANE, PATCH[:1], axes=1)
    close(signal.fftconvolve(PLANE, PATCH[:1], axes=1), wanted)
    close(signal.fftconvolve(PLANE.T.copy(), PATCH[:1].T.copy(), axes=[0]), wanted.T)
    assert np.asarray(signal.convolve(np.array([1, 2, 3]), np.array([0, 1]))).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("arguments", [{}, {"type": "constant"}, {"axis": 0}, {"bp": [2, 4]}], ids=str)
def test_trends(arguments: dict[str, Any]) -> None:
    close(signal.detrend(PLANE, **arguments), scipy.signal.detrend(PLANE, **arguments))


@pytest.mark.parametrize("breaks", [0, [1, 2, 2000]])
def test_trends_of_long_lines(breaks: Any) -> None:
    """As precise as the numbers, of which trends are many times as large as what is left."""
    noise = np.random.default_rng(0).normal(size=(3, 4096))
    lines = (noise + np.linspace(-20, 90, 4096) + [[0], [3], [50]]).astype(np.float32)
    found = lx.compile(lambda x: signal.detrend(x, bp=breaks))(lines)
    expected = scipy.signal.detrend(lines.astype(np.float64), bp=breaks)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=0, atol=2 * np.spacing(np.float32(140)))


PLACES = [np.array([[-1.7, 0.0, 2.3], [4.0, 5.2, 9.1]], "f"), np.array([[0.5, 5.0, 3.7], [-0.4, 1.25, 2.5]], "f")]


@pytest.mark.parametrize("mode", ["constant", "nearest", "mirror", "reflect", "wrap"])
@pytest.mark.parametrize("order", [0, 1])
def test_samples_between_elements(mode: str, order: int) -> None:
    reference = "grid-wrap" if mode == "wrap" else "grid-constant" if mode == "constant" else mode
    wanted = scipy.ndimage.map_coordinates(PLANE, PLACES, order=order, mode=reference, cval=0.5)
    if order == 1 or mode not in ("mirror",):
        close(ndimage.map_coordinates(PLANE, PLACES, order, mode, 0.5), wanted)
    whole = np.arange(30).reshape(5, 6)
    assert ndimage.map_coordinates(whole, PLACES, order, mode).dtype == np.int32


def test_samples_agree_with_jax() -> None:
    jax = pytest.importorskip("jax", reason="compares with JAX")
    for mode in ("constant", "nearest", "mirror", "reflect", "wrap"):
        for order in (0, 1):
            wanted = jax.scipy.ndimage.map_coordinates(PLANE, PLACES, order, mode, 0.5)
            close(ndimage.map_coordinates(PLANE, PLACES, order, mode, 0.5), wanted)

    def loss(module: Any, numpy: Any, x: Any, y: Any) -> Any:
        made = module.scipy.ndimage.map_coordinates(x, [y, y + 1.3], 1, "reflect")
        return 2 * numpy.sum(made**2) + numpy.sum(module.scipy.signal.convolve(x, x, "same") ** 2)

    y = np.array([0.3, 1.6, 2.2], "f")
    found = lx.grad(lambda x, y: loss(lx, lnp, x, y), (0, 1))(PLANE, y)
    wanted = jax.grad(lambda x, y: loss(jax, jax.numpy, x, y), (0, 1))(PLANE, y)
    for one, other in zip(found, wanted, strict=True):
        close(one, other, 1e-4)


def test_grids() -> None:
    x, y = np.array([0.0, 1.0, 2.5, 3.0, 5.0]), np.linspace(-1, 1, 6)
    places = np.array([[0.3, 0.1], [4.9, -0.95], [2.5, 0.2], [6.0, 0.0], [5.0, 1.0], [0.0, -1.0]])
    for method in ("linear", "nearest"):
        for fill in (np.nan, None, 7.0):
            arguments = {"method": method, "bounds_error": False, "fill_value": fill}
            ours = interpolate.RegularGridInterpolator((x, y), PLANE, **arguments)
            theirs = scipy.interpolate.RegularGridInterpolator((x, y), PLANE.astype(float), **arguments)
            close(lx.jit(lambda grid, p: grid(p))(ours, places), theirs(places))
    close(ours((places[:, 0], places[:, 1]), "linear"), theirs(places, "linear"))
    vectors = interpolate.RegularGridInterpolator((x,), PLANE)
    close(vectors(np.array([0.5, 2.0])), scipy.interpolate.RegularGridInterpolator((x,), PLANE)([0.5, 2.0]))
    with lx.enable_x64():
        arguments = (PLANE.astype(float), places[:2])
        check_grads(lambda v, p: interpolate.RegularGridInterpolator((x, y), v)(p), arguments, 1)
    with pytest.raises(lx.ShapeError, match="do not fit"):
        interpolate.RegularGridInterpolator((y, x), PLANE)


def test_clusters_and_integrals() -> None:
    codes, distances = cluster.vq.vq(PLANE, PLANE[[3, 0]] + 0.1)
    assert np.asarray(codes)[[0, 3]].tolist() == [1, 0]
    close(np.asarray(distances)[3], 0.1 * np.sqrt(6))
    assert np.asarray(cluster.vq.vq(np.array([0.1, 5.0]), np.array([4.0, 0.0]))[0]).tolist() == [1, 0]
    close(integrate.trapezoid(LINE, dx=0.5), np.trapezoid(LINE, dx=0.5))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: signal.convolve(LINE, PLANE), lx.ShapeError, "convolve takes two arrays of one rank"),
        (lambda: signal.convolve(LINE, SHORT, "some"), ValueError, "mode must be one of full, same, valid"),
        (lambda: signal.convolve2d(PLANE, PATCH, boundary="far"), ValueError, "boundary must be one of"),
        (lambda: signal.detrend(LINE, type="cubic"), ValueError, "detrend: type"),
        (lambda: ndimage.map_coordinates(PLANE, [LINE], 1), lx.ShapeError, "needs 2 coordinates"),
        (lambda: ndimage.map_coordinates(PLANE, [LINE, LINE], 3), ValueError, "order must be 0 or 1"),
        (lambda: fft.dct(LINE, type="2"), ValueError, "type must be 1, 2, 3 or 4.*got '2'"),
        (lambda: fft.dct(LINE[:1], type=1), lx.ShapeError, "type 1 takes at least two numbers"),
        (lambda: cluster.vq.vq(LINE, PLANE), lx.ShapeError, "vq takes"),
    ],
)
def test_wrong_arguments(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions_of_long_lines_are_in_blocks(mode: Any) -> None:
    random = np.random.default_rng(3)
    line, short = random.normal(size=4000).astype(np.float32), random.normal(size=150).astype(np.float32)
    for first, second in ((line, short), (short, line)):
        convolved = lx.compile(lambda a, b: signal.convolve(a, b, mode))
        assert "rfft" in convolved.lower(first, second).as_text()
        found = np.asarray(convolved(first, second))
        expected = scipy.signal.convolve(first.astype(np.float64), second.astype(np.float64), mode)
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())
    turned = random.normal(size=4000).astype(np.float32) * np.complex64(1 + 2j)
    found = np.asarray(lx.jit(lambda a, b: signal.convolve(a, b, mode))(turned, short.astype(np.complex64)))
    expected = scipy.signal.convolve(turned.astype(np.complex128), short.astype(np.complex128), mode)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())
    counts = random.integers(-9, 9, size=4000), random.integers(-9, 9, size=150)
    found = np.asarray(signal.convolve(*(x.astype(np.int32) for x in counts), mode, "fft"))
    np.testing.assert_array_equal(found, scipy.signal.convolve(*counts, mode, "direct"))


@pytest.mark.parametrize("name", ["fftconvolve", "oaconvolve"])
@pytest.mark.parametrize(("first", "second"), [((1, 3), (4, 3)), ((1,), (47,)), ((3, 1, 5), (3, 4, 2)), ((5,), (1,))])
def test_results_of_the_extents_of_the_first(name: str, first: Any, second: Any) -> None:
    random = np.random.default_rng(5)
    a, b = random.normal(size=first).astype(np.float32), random.normal(size=second).astype(np.float32)
    for axes in (None, len(first) - 1):
        expected = getattr(scipy.signal, name)(a, b, "same", axes=axes)
        np.testing.assert_allclose(getattr(signal, name)(a, b, "same", axes=axes), expected, atol=1e-5)
