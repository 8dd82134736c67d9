"""Convolution, against its definition in NumPy; gradients against differences in float64."""
from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.nn as nn
import lavax.numpy as lnp
from lavax.base.errors import DtypeError, ShapeError
from tests.lavax.nn.windows import check_derivatives, convolved
from tests.lavax.numpy.arrays import BOOL, F32, I32, U32, check, sample

pytestmark = pytest.mark.usefixtures("reference_backend")

LAYOUTS = (("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC"), ("NHWC", "OIHW", "NCHW"), ("CHWN", "IHWO", "NHWC"))


def moved(x: np.ndarray, before: str, after: str) -> np.ndarray:
    return x.transpose([before.index(letter) for letter in after])


def single(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda *arrays: function(*arrays).astype(F32)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_numbers_of_every_kind_in_one_to_three_dimensions(count: int) -> None:
    extents = (6, 5, 4)[:count]
    window = (3, 2, 2)[:count]
    x, w = sample((2, 4, *extents)), sample((6, 2, *window), seed=1)
    grid = product((1, 2), ((0, 0), (1, 2), (-1, 2)), (1, 2), (1, 2))
    for stride, pad, spread_by, dilation in grid:
        def ours(x: Any, w: Any) -> Any:
            return nn.conv(x, w, stride, [pad] * count, spread_by, dilation, feature_group_count=2)  # noqa: B023

        def theirs(x: np.ndarray, w: np.ndarray) -> np.ndarray:
            numbers = [(number,) * count for number in (stride, pad, spread_by, dilation)]  # noqa: B023
            return convolved(x, w, *numbers, groups=2)  # type: ignore[arg-type]

        check(ours, single(theirs), x, w, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("layout", LAYOUTS, ids="-".join)
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_layouts_and_groups(layout: tuple[str, str, str], groups: int) -> None:
    x, w = sample((2, 4, 6, 5)), sample((8, 4 // groups, 3, 2), seed=1)

    def ours(x: Any, w: Any) -> Any:
        return nn.conv(x, w, (2, 1), [(1, 0), (0, 2)], 1, (1, 2), layout, groups)

    def theirs(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        inputs = moved(x, layout[0], "NCHW"), moved(w, layout[1], "OIHW")
        return moved(convolved(*inputs, (2, 1), [(1, 0), (0, 2)], (1, 1), (1, 2), groups), "NCHW", layout[2])

    arrays = moved(x, "NCHW", layout[0]), moved(w, "OIHW", layout[1])
    check(ours, single(theirs), *map(np.ascontiguousarray, arrays), rtol=1e-4, atol=1e-4)


def test_axes_of_numbers_are_those_of_the_kernel() -> None:
    x, w = sample((1, 5, 7, 1)), sample((3, 2, 1, 1), seed=1)
    found = nn.conv(x.transpose(0, 2, 1, 3), w, (2, 1), dimension_numbers=("NWHC", "HWIO", "NHWC"))
    expected = nn.conv(x, w, (2, 1), dimension_numbers=("NHWC", "HWIO", "NHWC"))
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


def test_ones() -> None:
    x, w = lnp.ones((1, 1, 4, 4)), lnp.ones((1, 1, 3, 3))
    np.testing.assert_array_equal(np.asarray(nn.conv(x, w)), np.full((1, 1, 2, 2), 9))
    expected = [[4, 6, 6, 4], [6, 9, 9, 6], [6, 9, 9, 6], [4, 6, 6, 4]]
    np.testing.assert_array_equal(np.asarray(nn.conv(x, w, padding=1))[0, 0], expected)


def test_named_padding() -> None:
    for extent, window, stride, dilation in product((1, 4, 5, 8), (1, 2, 3), (1, 2, 3), (1, 2)):
        x, w = sample((1, 1, extent)), sample((1, 1, window), seed=1)
        span = (window - 1) * dilation + 1
        count = -(-extent // stride)
        total = max((count - 1) * stride + span - extent, 0)
        for name, before in (("SAME", total // 2), ("SAME_LOWER", total - total // 2)):
            found = nn.conv(x, w, stride, name, rhs_dilation=dilation)  # type: ignore[arg-type]
            assert found.shape == (1, 1, count)
            expected = convolved(x, w, (stride,), [(before, total - before)], (1,), (dilation,))
            np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [I32, U32], ids=str)
def test_whole_numbers(dtype: np.dtype) -> None:
    x, w = sample((2, 3, 5), dtype), sample((4, 3, 2), dtype, seed=1)
    numbers = (1,), [(0, 0)], (1,), (1,)
    check(nn.conv, lambda x, w: convolved(x.astype(np.int64), w.astype(np.int64), *numbers).astype(dtype), x, w)


def test_nothing_to_do() -> None:
    check(nn.conv, lambda x, w: np.zeros((0, 4, 3), F32), sample((0, 3, 5)), sample((4, 3, 3)))
    check(nn.conv, lambda x, w: np.zeros((2, 4, 3), F32), sample((2, 0, 5)), sample((4, 0, 3)))
    check(nn.conv, lambda x, w: np.zeros((2, 4, 0), F32), sample((2, 3, 2)), sample((4, 3, 3)))
    nothing = sample((2, 3, 0)), sample((4, 3, 2))
    check(lambda x, w: nn.conv(x, w, padding=1), lambda x, w: np.zeros((2, 4, 1), F32), *nothing)


@pytest.mark.parametrize("layout", LAYOUTS[:2], ids="-".join)
@pytest.mark.parametrize("numbers", [
    ((1, 1), "SAME", 1, 1, 1), ((2, 1), [(1, 0), (2, 1)], 1, 1, 1), ((3, 2), "VALID", 1, (1, 2), 2),
    ((1, 2), [(2, 1), (0, -1)], (2, 3), (2, 1), 1), (1, "VALID", 1, 1, 4), (2, [(-1, 0), (0, -2)], 1, 1, 1),
], ids=str)  # fmt: skip
def test_derivatives(layout: tuple[str, str, str], numbers: Any) -> None:
    strides, padding, spread_by, dilation, groups = numbers
    x = np.ascontiguousarray(moved(sample((2, 4, 6, 5)), "NCHW", layout[0]))
    w = np.ascontiguousarray(moved(sample((4, 4 // groups, 3, 2), seed=1), "OIHW", layout[1]))
    check_derivatives(lambda x, w: nn.conv(x, w, strides, padding, spread_by, dilation, layout, groups), [x, w])


def test_derivatives_forward_and_batched() -> None:
    x, w = sample((3, 2, 4, 6)), sample((3, 5, 4, 3), seed=1)
    tangents = sample(x.shape, seed=2), sample(w.shape, seed=3)
    for in_axes in ((0, 0), (0, None), (None, 0)):
        arrays = [array if axis == 0 else array[0] for array, axis in zip((x, w), in_axes, strict=True)]
        found = np.asarray(lx.vmap(nn.conv, in_axes)(*arrays))
        each = [[a[k] if axis == 0 else a for a, axis in zip(arrays, in_axes, strict=True)] for k in range(3)]
        expected = [np.asarray(nn.conv(*pair)) for pair in each]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    _, pushed = lx.jvp(lx.vmap(nn.conv), (x, w), tangents)
    both = np.asarray(lx.vmap(nn.conv)(tangents[0], w)) + np.asarray(lx.vmap(nn.conv)(x, tangents[1]))
    np.testing.assert_allclose(np.asarray(pushed), both, rtol=1e-5, atol=1e-4)


def test_transposed_is_the_gradient_of_convolution() -> None:
    for extent, window, stride in product((3, 4), (1, 2, 3, 5), (1, 2, 3)):
        x, w = sample((2, 3, extent)), sample((4, 3, window), seed=1)
        big = sample((2, 4, extent * stride), seed=2)
        kernel = sample((3, 4, window), seed=3)
        found = nn.conv_transpose(x, kernel, stride, "SAME", transpose_kernel=True)
        assert found.shape == (2, 4, extent * stride)
        _, pull = lx.vjp(lambda big: nn.conv(big, kernel, stride, "SAME"), big)  # noqa: B023
        np.testing.assert_allclose(np.asarray(found), np.asarray(pull(lnp.asarray(x))[0]), rtol=1e-5, atol=1e-5)
        longest = nn.conv_transpose(x, w, stride, "VALID")
        assert longest.shape == (2, 4, (extent - 1) * stride + max(window, stride))


@pytest.mark.parametrize("padding", ["SAME", "VALID", [(1, 2), (0, 1)]], ids=str)
def test_transposed_is_a_convolution_of_the_spread_input(padding: Any) -> None:
    x, w = sample((2, 3, 4, 5)), sample((6, 3, 3, 2), seed=1)
    pads = {"SAME": [(2, 1), (1, 2)], "VALID": [(2, 2), (1, 2)]}.get(str(padding), padding)
    expected = convolved(x, w, (1, 1), pads, (2, 3), (1, 1))
    found = nn.conv_transpose(x, w, (2, 3), padding)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5, atol=1e-4)


def test_what_does_not_fit() -> None:
    x, w = lnp.ones((1, 4, 5, 5)), lnp.ones((6, 4, 3, 3))
    refused: list[tuple[type[Exception], str, Callable[[], Any]]] = [
        (ShapeError, r"f32\[1,4,5,5\] has 2 channels a group, the kernel f32\[6,4,3,3\] 4",
         lambda: nn.conv(x, w, feature_group_count=2)),
        (ShapeError, "3 groups must divide the 4 channels", lambda: nn.conv(x, w, feature_group_count=3)),
        (ShapeError, "window_strides must be a positive number, or one for each of 2 axes, got 0",
         lambda: nn.conv(x, w, 0)),
        (ShapeError, r"rhs_dilation must be .* got \(1, 2, 3\)", lambda: nn.conv(x, w, rhs_dilation=(1, 2, 3))),
        (ShapeError, r"padding must be a pair for each of 2 axes, got \[\(1, 1\)\]",
         lambda: nn.conv(x, w, 1, [(1, 1)])),
        (ValueError, "padding is 'VALID', 'SAME', 'SAME_LOWER' or numbers, got 'FULL'",
         lambda: nn.conv(x, w, 1, "FULL")),  # type: ignore[arg-type]
        (ValueError, "with lhs_dilation give padding as numbers", lambda: nn.conv(x, w, 1, "SAME", 2)),
        (ShapeError, r"f32\[4,5,5\] does not have the 4 axes NCHW",
         lambda: nn.conv(lnp.ones((4, 5, 5)), w, dimension_numbers=("NCHW", "OIHW", "NCHW"))),
        (ShapeError, r"without dimension_numbers the input has 2 to 5 axes, got f32\[3\]",
         lambda: nn.conv(lnp.ones(3), w)),
        (ValueError, "must have N, C, O, I and the same window axes",
         lambda: nn.conv(x, w, dimension_numbers=("NCHW", "OIHD", "NCHW"))),
        (ValueError, "are three strings", lambda: nn.conv(x, w, dimension_numbers=("NCHW", "OIHW"))),
        (DtypeError, "not defined for truth values",
         lambda: nn.conv(np.ones((1, 1, 2), BOOL), np.ones((1, 1, 1), BOOL))),
        (ShapeError, "has windows of no elements", lambda: nn.conv(x, lnp.ones((6, 4, 0, 3)))),
        (ValueError, "conv_transpose: padding is 'VALID', 'SAME' or numbers", lambda: nn.conv_transpose(
            x, w, 1, "SAME_LOWER")),  # type: ignore[arg-type]
    ]  # fmt: skip
    for error, message, call in refused:
        with pytest.raises(error, match=message):
            call()
