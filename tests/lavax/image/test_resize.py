"""Resizing, against jax.image and recorded values."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import image
from lavax.base.errors import ShapeError
from tests.closeness import close
from tests.lavax.nn.windows import check_derivatives
from tests.lavax.numpy.arrays import sample

pytestmark = pytest.mark.usefixtures("reference_backend")

X = sample((2, 7, 5, 3))
METHODS = ("nearest", "linear", "cubic", "lanczos3", "lanczos5", "cubic-pytorch", "area")
SHAPES = [(2, 14, 10, 3), (2, 4, 3, 3), (2, 11, 5, 3), (2, 1, 20, 6)]
# Method, antialias, shape; by jax 0.10.2: the first and the last element, and Σ weights·result.
CASES: list[tuple[str, bool, tuple[int, ...], list[float]]] = [
    ("nearest", True, (2, 14, 10, 3), [0.6413259, -1.30701, 124.9412]),
    ("nearest", True, (2, 4, 3, 3), [0.6413259, -1.30701, -27.34346]),
    ("linear", True, (2, 14, 10, 3), [0.6413259, -1.30701, 88.12024]),
    ("linear", True, (2, 4, 3, 3), [-0.3128145, -1.266508, -2.213201]),
    ("linear", False, (2, 4, 9, 3), [0.07804173, -1.222262, 4.96387]),
    ("cubic", True, (2, 14, 10, 3), [1.047668, -1.168095, 91.64823]),
    ("cubic", True, (2, 4, 3, 3), [-0.3773067, -1.454589, -1.381492]),
    ("cubic", False, (2, 4, 9, 3), [0.1143124, -1.309954, 7.935115]),
    ("lanczos3", True, (2, 14, 10, 3), [1.433612, -0.7612227, 75.97182]),
    ("lanczos3", True, (2, 4, 3, 3), [-0.4053244, -1.506802, -0.3373566]),
    ("lanczos3", False, (2, 4, 9, 3), [-0.03847642, -1.399149, 6.927778]),
    ("lanczos5", True, (2, 14, 10, 3), [1.780778, -0.2896069, 67.44314]),
    ("lanczos5", True, (2, 4, 3, 3), [-0.4491062, -1.44368, 0.810428]),
    ("lanczos5", False, (2, 4, 9, 3), [-0.2229804, -1.532879, 7.926005]),
    ("cubic-pytorch", True, (2, 14, 10, 3), [1.047668, -1.168095, 91.64823]),
    ("cubic-pytorch", True, (2, 4, 3, 3), [-0.3773067, -1.454589, -1.381492]),
    ("cubic-pytorch", False, (2, 4, 9, 3), [-0.03342002, -1.383914, 2.521819]),
    ("area", True, (2, 14, 10, 3), [0.6413259, -1.30701, 124.9412]),
    ("area", True, (2, 4, 3, 3), [-0.3267769, -1.401981, -2.062743]),
]


def summary(made: Any) -> list[float]:
    array = np.asarray(made, np.float64)
    return [array.flat[0], array.flat[-1], float((array * sample(array.shape, seed=1)).sum())]


@pytest.mark.parametrize(("method", "antialias", "shape", "recorded"), CASES, ids=str)
def test_numbers_are_those_recorded(method: str, antialias: bool, shape: Any, recorded: list[float]) -> None:
    close(summary(image.resize(X, shape, method, antialias)), recorded, 3e-5)


@pytest.mark.parametrize("method", METHODS)
def test_numbers_are_those_of_jax(method: str) -> None:
    jax = pytest.importorskip("jax", reason="jax is the oracle of image.resize")
    for shape in SHAPES:
        for antialias in (True, False):
            close(image.resize(X, shape, method, antialias), jax.image.resize(X, shape, method, antialias))


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", ["linear", "cubic", "lanczos3", "area"])
def test_scaled_and_moved_as_by_jax(method: str, antialias: bool) -> None:
    jax = pytest.importorskip("jax", reason="jax is the oracle of image.resize")
    arguments = (2, 9, 6, 3), (1, 2), np.array([1.3, 0.4], np.float32), np.array([0.7, -1.2], np.float32)
    expected = jax.image.scale_and_translate(X, *arguments, method, antialias)
    close(image.scale_and_translate(X, *arguments, method, antialias), expected)


def test_scaled_and_moved_by_hand() -> None:
    row = np.array([[1.0, 2.0, 4.0]], np.float32)
    moved = image.scale_and_translate(row, (1, 5), (1,), np.ones(1, "f"), np.ones(1, "f"), "linear")
    close(moved, [[0, 1, 2, 4, 0]])
    doubled = image.scale_and_translate(row, (1, 6), (1,), np.full(1, 2, "f"), np.zeros(1, "f"), "linear")
    close(doubled, [[1, 1.25, 1.75, 2.5, 3.5, 4]])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(1, 7, 2), (1, 3, 9)], ids=str)
def test_derivatives(method: str, shape: tuple[int, ...]) -> None:
    check_derivatives(lambda x: image.resize(lnp.sin(x), shape, method), [sample((1, 4, 4))])


def test_derivatives_by_scale_and_translation() -> None:
    def moved(x: Any, scale: Any, translation: Any) -> Any:
        return image.scale_and_translate(x, (1, 5, 6), (1, 2), scale, translation, "cubic", antialias=False)

    check_derivatives(moved, [sample((1, 4, 4)), np.array([1.31, 1.72], "f"), np.array([0.23, -0.41], "f")])


def test_whole_factors_gather_nothing() -> None:
    for shape in ((2, 14, 10, 3), (2, 7, 1, 3)):
        text = lx.compile(lambda x, shape=shape: image.resize(x, shape, "nearest")).lower(X).as_text("ir")
        assert "gather" not in text and "take" not in text


@pytest.mark.parametrize(("shape", "antialias"), [((2, 14, 10, 3), True), ((2, 4, 3, 3), False)], ids=str)
def test_lines_between_two_pixels_are_no_products(shape: Any, antialias: bool) -> None:
    text = lx.compile(lambda x: image.resize(x, shape, "bilinear", antialias)).lower(X).as_text("optimized")
    assert "dot(" not in text and text.count(" = gather(") == 4


@pytest.mark.parametrize(
    ("method", "shape", "antialias", "products"),
    [("cubic", (2, 14, 10, 3), True, 0), ("cubic", (2, 4, 3, 3), False, 0), ("cubic-pytorch", (2, 4, 3, 3), False, 0),
     ("cubic", (2, 4, 3, 3), True, 2), ("linear", (2, 4, 3, 3), True, 0), ("lanczos3", (2, 14, 10, 3), True, 2)],
    ids=str,
)  # fmt: skip
def test_four_pixels_of_a_place_are_no_products(method: str, shape: Any, antialias: bool, products: int) -> None:
    text = lx.compile(lambda x: image.resize(x, shape, method, antialias)).lower(X).as_text("optimized")
    assert text.count(" = dot(") == products


def test_infinities_stay_where_they_are() -> None:
    row = np.array([[1.0, 2.0, np.inf, 4.0]], np.float32)
    assert np.isfinite(np.asarray(image.resize(row, (1, 8), "linear"))).tolist() == [[True] * 3 + [False] * 4 + [True]]


def test_dtypes() -> None:
    whole = np.arange(12, dtype=np.int32).reshape(3, 4)
    assert image.resize(whole, (6, 2), "nearest").dtype == np.int32
    assert image.resize(whole, (6, 2), "linear").dtype == np.float32
    half = lnp.asarray(X, "bfloat16")
    found = image.resize(half, (2, 4, 9, 3), "cubic")
    assert found.dtype == half.dtype
    wide = image.resize(lnp.asarray(half, "float32"), (2, 4, 9, 3), "cubic")
    np.testing.assert_allclose(np.asarray(found, np.float32), wide, rtol=2**-8, atol=1e-6)


def test_what_does_not_fit() -> None:
    refused: list[tuple[type[Exception], str, Any]] = [
        (ShapeError, r"shape must have all 4 axes of f32\[2,7,5,3\], got \(4, 4\)", lambda: image.resize(X, (4, 4))),
        (ValueError, "the method is nearest, area, linear, .*; got 'quadratic'",
         lambda: image.resize(X, X.shape, "quadratic")),
        (ShapeError, r"f32\[0,2\] has no pixels", lambda: image.resize(X[:0, :2, 0, 0], (3, 2))),
        (ShapeError, r"scale and translation must be \[1\]", lambda: image.scale_and_translate(
            X, X.shape, (1,), np.ones(2, "f"), np.zeros(1, "f"))),
        (ValueError, "got 'nearest'", lambda: image.scale_and_translate(
            X, X.shape, (1,), np.ones(1, "f"), np.zeros(1, "f"), "nearest")),
        (ShapeError, r"axes \[0\] change", lambda: image.scale_and_translate(
            X, (3, 7, 5, 3), (1,), np.ones(1, "f"), np.zeros(1, "f"))),
    ]  # fmt: skip
    for error, message, call in refused:
        with pytest.raises(error, match=message):
            call()
