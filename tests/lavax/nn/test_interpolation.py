"""Interpolation with PyTorch's conventions, against PyTorch and recorded values."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.base.errors import ShapeError
from tests.closeness import close
from tests.lavax.nn.windows import check_derivatives
from tests.lavax.numpy.arrays import sample

pytestmark = pytest.mark.usefixtures("reference_backend")

X = sample((2, 3, 7, 5))
PLAIN, SMOOTH = ("nearest", "nearest-exact", "area"), ("bilinear", "bicubic")
SIZES: list[dict[str, Any]] = [
    {"size": (14, 10)}, {"size": (4, 9)}, {"size": 1}, {"scale_factor": 2}, {"scale_factor": 1.3},
    {"scale_factor": (0.6, 2.5)},
]  # fmt: skip
OPTIONS: list[dict[str, Any]] = [{}, {"align_corners": True}, {"antialias": True}]
# By torch 2.13: the first and the last element, and Σ weights·result.
CASES: list[tuple[dict[str, Any], list[float]]] = [
    ({"size": (4, 9), "mode": "nearest"}, [-1.399225, 0.07011873, 8.006336]),
    ({"scale_factor": 1.3, "mode": "nearest-exact"}, [-1.399225, -2.830932, 7.71016]),
    ({"size": (4, 9), "mode": "area"}, [-1.069286, -1.380406, -5.746813]),
    ({"size": (4, 9), "mode": "bilinear"}, [-1.151771, -1.743038, 9.715835]),
    ({"size": (4, 9), "mode": "bilinear", "align_corners": True}, [-1.399225, -2.830932, 7.7296]),
    ({"size": (4, 9), "mode": "bilinear", "antialias": True}, [-0.9432957, -1.516635, 1.239849]),
    ({"size": (4, 9), "mode": "bicubic"}, [-1.745903, -1.868988, 15.74103]),
    ({"size": (4, 9), "mode": "bicubic", "align_corners": True}, [-1.399225, -2.830932, 4.868018]),
    ({"size": (4, 9), "mode": "bicubic", "antialias": True}, [-1.353161, -1.758855, 6.139474]),
]


def summary(made: Any) -> list[float]:
    array = np.asarray(made, np.float64)
    return [array.flat[0], array.flat[-1], float((array * sample(array.shape, seed=1)).sum())]


@pytest.mark.parametrize(("arguments", "recorded"), CASES, ids=str)
def test_numbers_are_those_recorded(arguments: dict[str, Any], recorded: list[float]) -> None:
    close(summary(nn.interpolate(X, **arguments)), recorded, 3e-5)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_numbers_are_those_of_pytorch(size: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch", reason="torch is the oracle of interpolation")
    calls = [{"mode": mode} for mode in PLAIN] + [{"mode": mode, **more} for mode in SMOOTH for more in OPTIONS]
    for arguments in calls:
        expected = torch.nn.functional.interpolate(torch.tensor(X), **size, **arguments)
        close(nn.interpolate(X, **size, **arguments), expected.numpy())


@pytest.mark.parametrize("aligned", [False, True])
def test_places_of_doubles_are_doubles(aligned: bool) -> None:
    """A line stays one, between its pixels."""
    with lx.enable_x64():
        line = np.linspace(1, 2, 7)[None, None]
        found = np.asarray(nn.interpolate(line, 11, mode="linear", align_corners=aligned))[0, 0]
    places = np.arange(11) / 10 if aligned else np.clip((np.arange(11) + 0.5) * (7 / 11) - 0.5, 0, 6) / 6
    np.testing.assert_allclose(found, 1 + places, rtol=1e-14)


@pytest.mark.parametrize(("mode", "shape"), [("linear", (2, 3, 7)), ("trilinear", (1, 2, 3, 4, 5))])
def test_one_and_three_axes(mode: str, shape: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch", reason="torch is the oracle of interpolation")
    x = sample(shape)
    for arguments in ({"size": 6}, {"scale_factor": 2, "align_corners": True}):
        expected = torch.nn.functional.interpolate(torch.tensor(x), **arguments, mode=mode)
        close(nn.interpolate(x, **arguments, mode=mode), expected.numpy())


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic", "area"])
def test_derivatives(mode: str) -> None:
    check_derivatives(lambda x: nn.interpolate(lnp.sin(x), (6, 3), mode=mode), [sample((1, 2, 3, 4))])


def test_layers_are_the_functions() -> None:
    close(nn.Upsample(scale_factor=2)(X), np.repeat(np.repeat(X, 2, 2), 2, 3))
    close(nn.Upsample((3, 4), mode="bilinear", align_corners=True)(X),
          nn.interpolate(X, (3, 4), mode="bilinear", align_corners=True))
    assert "gather" not in lx.compile(nn.Upsample(scale_factor=2)).lower(X).as_text("ir")


def test_channels_become_pixels() -> None:
    x = np.arange(2 * 4 * 2 * 3, dtype=np.float32).reshape(2, 4, 2, 3)
    shuffled = np.asarray(nn.PixelShuffle(2)(x))
    assert shuffled.shape == (2, 1, 4, 6)
    np.testing.assert_array_equal(shuffled[1, 0, 2:, 4:], x[1, :, 1, 2].reshape(2, 2))
    np.testing.assert_array_equal(nn.PixelUnshuffle(2)(shuffled), x)


def test_what_does_not_fit() -> None:
    refused: list[tuple[type[Exception], str, Any]] = [
        (ValueError, "give either size or scale_factor", lambda: nn.interpolate(X)),
        (ValueError, "give either size or scale_factor", lambda: nn.interpolate(X, 3, 2)),
        (ValueError, "the mode is one of nearest, .*; got 'cubic'", lambda: nn.interpolate(X, 3, mode="cubic")),
        (ValueError, "mode 'linear' is for 1 spatial axes", lambda: nn.interpolate(X, 3, mode="linear")),
        (ValueError, "exclude each other", lambda: nn.interpolate(
            X, 3, mode="bilinear", align_corners=True, antialias=True)),
        (ValueError, "one number, or one for each of 2 spatial axes", lambda: nn.interpolate(X, (1, 2, 3))),
        (ShapeError, r"cannot become \[0, 0\]", lambda: nn.interpolate(X, scale_factor=0.1)),
        (ShapeError, r"x is \[N, C, ...\]", lambda: nn.interpolate(X[0, 0], 3)),
        (ShapeError, r"pixel_shuffle: x is \[..., C·2², H, W\]", lambda: nn.pixel_shuffle(X, 2)),
        (ShapeError, r"pixel_unshuffle: x is \[..., C, H·2, W·2\]", lambda: nn.pixel_unshuffle(X, 2)),
    ]  # fmt: skip
    for error, message, call in refused:
        with pytest.raises(error, match=message):
            call()
