"""Resized pictures: bit for bit those of Pillow, and recorded ones."""
from __future__ import annotations

import numpy as np
import pytest

from lavax.models.vision.resampling import resize

METHODS = ["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]
SIZES = [((37, 52), (20, 28)), ((9, 14), (24, 20)), ((60, 41), (60, 7)), ((5, 3), (1, 1)), ((1, 1), (3, 2))]
draw = np.random.default_rng(3)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("given, wanted", SIZES)
def test_pixels_are_those_of_pillow(given: tuple[int, int], wanted: tuple[int, int], method: str) -> None:
    """Also of black and white, which kernels overshoot. Some versions of Pillow change the height first."""
    image = pytest.importorskip("PIL.Image", reason="compares with Pillow")
    kind = image.Resampling[method.upper()]
    grey = draw.integers(0, 256, (*given, 3)).astype(np.uint8)
    for pixels in (grey, np.where(grey < 128, 0, 255).astype(np.uint8)):
        wide = image.fromarray(pixels).resize((wanted[1], given[0]), kind)
        assert np.array_equal(resize(pixels, *wanted, method), np.asarray(wide.resize(wanted[::-1], kind)))


# Of the picture below, by Pillow 13, the width first.
RECORDED: dict[str, list[int]] = {
    "nearest": [125, 87, 217, 9, 227, 69],
    "box": [85, 84, 131, 84, 126, 105],
    "bilinear": [97, 90, 128, 76, 125, 121],
    "hamming": [109, 94, 135, 71, 131, 109],
    "bicubic": [97, 85, 130, 73, 129, 123],
    "lanczos": [96, 82, 131, 71, 133, 127],
}


@pytest.mark.parametrize("method", METHODS)
def test_pixels_are_the_recorded_ones(method: str) -> None:
    pixels = (np.arange(7 * 5, dtype=np.int64) ** 3 % 256).astype(np.uint8).reshape(7, 5, 1)
    assert resize(pixels, 2, 3, method).ravel().tolist() == RECORDED[method]
