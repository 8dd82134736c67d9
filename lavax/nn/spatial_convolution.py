"""Convolution of [N, C, spatial axes] with PyTorch's names, arguments and sizes."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import lavax.numpy as lnp
from lavax.nn.convolution import conv, conv_transpose
from lavax.nn.windows import Padding, PerAxis, paddings, per_axis, span_of
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.values.value import Value

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
]

PaddingMode = Literal["zeros", "reflect", "replicate", "circular"]

# PyTorch's names of what stands around an array -> those of NumPy's `pad`.
PADDING_MODES: dict[str, Literal["constant", "reflect", "edge", "wrap"]] = {
    "zeros": "constant",
    "reflect": "reflect",
    "replicate": "edge",
    "circular": "wrap",
}


def _operands(name: str, count: int, x: ArrayLike, weight: ArrayLike) -> tuple[Value, Value]:
    value, kernel = as_value(x), as_value(weight)
    if value.ndim != count + 2 or kernel.ndim != count + 2:
        raise shape_error(
            f"{name}: x is [N, C, ...] and weight [out, in, ...] with {count} spatial axes, "
            f"got {value.type} and {kernel.type}"
        )
    return value, kernel


def _with_bias(made: Value, bias: ArrayLike | None, count: int) -> Value:
    return made if bias is None else made + lnp.reshape(bias, (-1, *(1 for _ in range(count))))


def convolved(
    name: str,
    count: int,
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None,
    stride: PerAxis,
    padding: Padding,
    dilation: PerAxis,
    groups: int,
    padding_mode: PaddingMode = "zeros",
) -> Value:
    """`conv2d` along `count` axes; `padding_mode` says what stands around `x`."""
    value, kernel = _operands(name, count, x, weight)
    if padding_mode not in PADDING_MODES:
        raise ValueError(f"{name}: padding_mode is one of {', '.join(PADDING_MODES)}; got {padding_mode!r}")
    if padding_mode != "zeros":
        steps, strides = per_axis(name, "dilation", dilation, count), per_axis(name, "stride", stride, count)
        spans = [span_of(window, step) for window, step in zip(kernel.shape[2:], steps, strict=True)]
        pads = paddings(name, padding, value.shape[2:], spans, strides)
        value, padding = lnp.pad(value, [(0, 0), (0, 0), *pads], mode=PADDING_MODES[padding_mode]), 0
    made = conv(value, kernel, stride, padding, rhs_dilation=dilation, feature_group_count=groups)
    return _with_bias(made, bias, count)


def spread_convolved(
    name: str,
    count: int,
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None,
    stride: PerAxis,
    padding: PerAxis,
    output_padding: PerAxis,
    groups: int,
    dilation: PerAxis,
) -> Value:
    """`conv_transpose2d` along `count` axes."""
    value, kernel = _operands(name, count, x, weight)
    steps, spread = per_axis(name, "dilation", dilation, count), per_axis(name, "stride", stride, count)
    cut = from_zero(name, "padding", padding, count)
    more = from_zero(name, "output_padding", output_padding, count)
    check_output_padding(name, more, spread, steps)
    pads = []
    for window, step, own, after in zip(kernel.shape[2:], steps, cut, more, strict=True):
        before = step * (window - 1) - own
        pads.append((before, before + after))
    made = conv_transpose(value, kernel, spread, pads, steps, transpose_kernel=True, feature_group_count=groups)
    return _with_bias(made, bias, count)


def from_zero(name: str, what: str, given: PerAxis, count: int) -> tuple[int, ...]:
    """`given` for each of `count` axes. Raises ValueError for other numbers of them, or negative ones."""
    entries = tuple(given) if isinstance(given, Sequence) else (given,) * count
    if len(entries) != count or min(entries) < 0:
        raise ValueError(f"{name}: {what} must be a number from 0 on, or one for each of {count} axes, got {given}")
    return entries


def check_output_padding(name: str, given: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> None:
    """Raises ValueError if more is added than the stride leaves open."""
    for more, *steps in zip(given, stride, dilation, strict=True):
        if more >= max(steps):
            raise ValueError(f"{name}: output_padding={more} must be less than the stride or the dilation")


def conv1d(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: PerAxis = 1,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
) -> Value:
    """`conv2d` of [N, in, L] with `weight` [out, in / groups, k]."""
    return convolved("conv1d", 1, x, weight, bias, stride, padding, dilation, groups)


def conv2d(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: PerAxis = 1,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
) -> Value:
    """The convolution of `x` [N, in, H, W] with `weight` [out, in / groups, h, w], plus `bias` [out].

    Windows move by `stride`; their elements are `dilation` apart. `padding` is a number of zeros on both sides, per
    axis or for all, or "same" or "valid". `nn.conv` knows other orders of axes. Raises ShapeError if shapes do not fit.
    """
    return convolved("conv2d", 2, x, weight, bias, stride, padding, dilation, groups)


def conv3d(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: PerAxis = 1,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
) -> Value:
    """`conv2d` of [N, in, D, H, W] with `weight` [out, in / groups, d, h, w]."""
    return convolved("conv3d", 3, x, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: PerAxis = 1,
    padding: PerAxis = 0,
    output_padding: PerAxis = 0,
    groups: int = 1,
    dilation: PerAxis = 1,
) -> Value:
    """`conv_transpose2d` of [N, in, L] with `weight` [in, out / groups, k]."""
    return spread_convolved(
        "conv_transpose1d", 1, x, weight, bias, stride, padding, output_padding, groups, dilation
    )


def conv_transpose2d(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: PerAxis = 1,
    padding: PerAxis = 0,
    output_padding: PerAxis = 0,
    groups: int = 1,
    dilation: PerAxis = 1,
) -> Value:
    """The gradient of `conv2d` by its input: `x` [N, in, H, W] with `weight` [in, out / groups, h, w], plus `bias`.

    An axis of extent n becomes (n - 1)·stride - 2·padding + dilation·(k - 1) + output_padding + 1. Raises ShapeError
    if shapes do not fit, ValueError for an output_padding that the stride does not leave open.
    """
    return spread_convolved(
        "conv_transpose2d", 2, x, weight, bias, stride, padding, output_padding, groups, dilation
    )


def conv_transpose3d(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: PerAxis = 1,
    padding: PerAxis = 0,
    output_padding: PerAxis = 0,
    groups: int = 1,
    dilation: PerAxis = 1,
) -> Value:
    """`conv_transpose2d` of [N, in, D, H, W] with `weight` [in, out / groups, d, h, w]."""
    return spread_convolved(
        "conv_transpose3d", 3, x, weight, bias, stride, padding, output_padding, groups, dilation
    )
