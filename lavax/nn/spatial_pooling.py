"""Pooling of the last axes of [..., C, spatial axes], with PyTorch's names, sizes and counts."""
from __future__ import annotations

from collections.abc import Sequence

import lavax.numpy as lnp
from lavax.nn.pooling import max_pool, sum_pool
from lavax.nn.windows import PerAxis, per_axis, require_window_axes, span_of
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.numpy._core.promotion import averaging
from lavax.tracer.values.value import Value

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
]

Sizes = int | None | Sequence[int | None]


class _Windows:
    """The windows of one call: as many along each axis as PyTorch has."""

    def __init__(
        self,
        name: str,
        x: Value,
        count: int,
        kernel_size: PerAxis,
        stride: PerAxis | None,
        padding: PerAxis,
        dilation: PerAxis,
        ceil_mode: bool,
    ) -> None:
        require_window_axes(name, x.type, count)
        self.extents = x.shape[x.ndim - count :]
        self.kernel = per_axis(name, "kernel_size", kernel_size, count)
        self.stride = self.kernel if stride is None else per_axis(name, "stride", stride, count)
        self.dilation = per_axis(name, "dilation", dilation, count)
        self.padding = tuple(padding) if isinstance(padding, Sequence) else (padding,) * count
        for pad, kernel in zip(self.padding, self.kernel, strict=True):
            if not 0 <= pad <= kernel // 2:
                raise ValueError(f"{name}: padding={pad} must lie between 0 and half of kernel_size={kernel}")
        self.numbers = tuple(self._number(axis, ceil_mode) for axis in range(count))
        if min(self.numbers, default=1) < 1:
            raise shape_error(f"{name}: windows of {list(self.kernel)} do not fit into {x.type}")

    def _number(self, axis: int, ceil_mode: bool) -> int:
        extent, pad, stride = self.extents[axis], self.padding[axis], self.stride[axis]
        room = extent + 2 * pad - span_of(self.kernel[axis], self.dilation[axis])
        if not ceil_mode:
            return room // stride + 1
        number = -(-room // stride) + 1
        # The last window must start on an element, or on the padding before it.
        return number - 1 if (number - 1) * stride >= extent + pad else number

    @property
    def pads(self) -> list[tuple[int, int]]:
        """(before, after) so that all windows fit, and nothing is left over."""
        return [
            (pad, (number - 1) * stride + span_of(kernel, dilation) - extent - pad)
            for pad, number, stride, kernel, dilation, extent in zip(
                self.padding, self.numbers, self.stride, self.kernel, self.dilation, self.extents, strict=True
            )
        ]

    def counts(self, include_pad: bool) -> Value | float:
        """How many elements of each window count: the product over axes."""
        found: Value | float = 1.0
        for axis, number in enumerate(self.numbers):
            pad, kernel, stride, extent = (
                each[axis] for each in (self.padding, self.kernel, self.stride, self.extents)
            )
            first, last = (-pad, extent + pad) if include_pad else (0, extent)
            if first <= -pad and (number - 1) * stride - pad + kernel <= last:
                found = found * float(kernel)
                continue
            starts = lnp.arange(number, dtype="float32") * float(stride) - float(pad)
            along = lnp.minimum(starts + float(kernel), float(last)) - lnp.maximum(starts, float(first))
            found = found * lnp.reshape(along, (-1,) + (1,) * (len(self.numbers) - axis - 1))
        return found


def _max_pool(
    name: str,
    count: int,
    x: ArrayLike,
    kernel_size: PerAxis,
    stride: PerAxis | None,
    padding: PerAxis,
    dilation: PerAxis,
    ceil_mode: bool,
) -> Value:
    value = as_value(x)
    windows = _Windows(name, value, count, kernel_size, stride, padding, dilation, ceil_mode)
    return max_pool(value, windows.kernel, windows.stride, windows.pads, windows.dilation)


def _avg_pool(
    name: str,
    count: int,
    x: ArrayLike,
    kernel_size: PerAxis,
    stride: PerAxis | None,
    padding: PerAxis,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Value:
    value = as_floating(x)
    wide = cast(value, averaging(value.type.dtype))
    windows = _Windows(name, wide, count, kernel_size, stride, padding, 1, ceil_mode)
    total = sum_pool(wide, windows.kernel, windows.stride, windows.pads)
    counts = windows.counts(count_include_pad) if divisor_override is None else float(divisor_override)
    return cast(lnp.divide(total, counts), value.type.dtype)


def max_pool1d(
    x: ArrayLike,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
) -> Value:
    """`max_pool2d` of [..., L]."""
    return _max_pool("max_pool1d", 1, x, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    x: ArrayLike,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
) -> Value:
    """The greatest element of every window of [..., H, W], in the dtype of `x`.

    Windows of `kernel_size` move by `stride` (None: as far as they are wide); their elements are `dilation` apart.
    `padding` on both sides, at most half a window, is never the greatest. With `ceil_mode` a last window that only
    begins inside counts too. The gradient goes to the first of the greatest elements. Raises ShapeError if no window
    fits.
    """
    return _max_pool("max_pool2d", 2, x, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d(
    x: ArrayLike,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
) -> Value:
    """`max_pool2d` of [..., D, H, W]."""
    return _max_pool("max_pool3d", 3, x, kernel_size, stride, padding, dilation, ceil_mode)


def avg_pool1d(
    x: ArrayLike,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: PerAxis = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Value:
    """`avg_pool2d` of [..., L]."""
    return _avg_pool("avg_pool1d", 1, x, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(
    x: ArrayLike,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: PerAxis = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Value:
    """The mean of every window of [..., H, W]; arguments as in `max_pool2d`.

    Zeros of the padding count as elements, unless `count_include_pad` is false; what `ceil_mode` adds beyond them never
    does. `divisor_override` divides sums by another number. Sums are float32 for 16-bit inputs.
    """
    return _avg_pool(
        "avg_pool2d", 2, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def avg_pool3d(
    x: ArrayLike,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: PerAxis = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Value:
    """`avg_pool2d` of [..., D, H, W]."""
    return _avg_pool(
        "avg_pool3d", 3, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def _sizes(name: str, x: Value, count: int, output_size: Sizes) -> list[tuple[int, int]]:
    """(axis, windows along it) for the last axes; None keeps the extent."""
    require_window_axes(name, x.type, count)
    given = list(output_size) if isinstance(output_size, Sequence) else [output_size] * count
    axes = range(x.ndim - count, x.ndim)
    if len(given) != count or any(size is not None and size < 1 for size in given):
        raise shape_error(f"{name}: output_size is a number from 1 on, or {count} of them, got {output_size}")
    if 0 in x.shape[x.ndim - count :]:
        raise shape_error(f"{name}: there is nothing to pool in {x.type}")
    return [(axis, x.shape[axis] if size is None else size) for axis, size in zip(axes, given, strict=True)]


def _in_pieces(x: Value, sizes: Sequence[tuple[int, int]]) -> tuple[Value, list[int]]:
    """Axes that divide evenly as pairs, (windows, elements of a window), and the places of the latter."""
    numbers = {axis: number for axis, number in sizes if x.shape[axis] % number == 0}
    shape: list[int] = []
    within = []
    for axis, extent in enumerate(x.shape):
        if numbers.get(axis, extent) == extent:
            shape.append(extent)
            continue
        within.append(len(shape) + 1)
        shape += [numbers[axis], extent // numbers[axis]]
    return lnp.reshape(x, tuple(shape)), within


def _bounds(extent: int, number: int) -> tuple[Value, Value]:
    """Where windows begin and end, [number, 1]: from ⌊i·extent / number⌋ to ⌈(i + 1)·extent / number⌉."""
    windows = lnp.expand_dims(lnp.arange(number), 1)
    return windows * extent // number, ((windows + 1) * extent + number - 1) // number


def _adaptive_max_pool(name: str, count: int, x: ArrayLike, output_size: Sizes) -> Value:
    value = as_value(x)
    sizes = _sizes(name, value, count, output_size)
    for axis, number in sizes:
        extent = value.shape[axis]
        if extent % number:
            width = max(-(-(i + 1) * extent // number) - i * extent // number for i in range(number))
            starts, ends = _bounds(extent, number)
            # Shorter windows repeat their last element.
            windows = lnp.take(value, lnp.minimum(starts + lnp.arange(width), ends - 1), axis=axis)
            value = lnp.max(windows, axis=axis + 1)
    pieces, within = _in_pieces(value, sizes)
    return lnp.max(pieces, axis=tuple(within)) if within else pieces


def _adaptive_avg_pool(name: str, count: int, x: ArrayLike, output_size: Sizes) -> Value:
    given = as_floating(x)
    value = cast(given, averaging(given.type.dtype))
    sizes = _sizes(name, value, count, output_size)
    for axis, number in sizes:
        extent = value.shape[axis]
        if extent % number:
            # Windows overlap and differ in width: their means are products with a band matrix.
            places = lnp.arange(extent)
            starts, ends = _bounds(extent, number)
            is_inside = (places >= starts) & (places < ends)
            band = lnp.where(is_inside, 1.0 / lnp.astype(ends - starts, "float32"), 0.0)
            value = lnp.moveaxis(lnp.matmul(lnp.moveaxis(value, axis, -1), lnp.matrix_transpose(band)), -1, axis)
    pieces, within = _in_pieces(value, sizes)
    return cast(lnp.mean(pieces, axis=tuple(within)) if within else pieces, given.type.dtype)


def adaptive_avg_pool1d(x: ArrayLike, output_size: Sizes) -> Value:
    """`adaptive_avg_pool2d` of [..., L]."""
    return _adaptive_avg_pool("adaptive_avg_pool1d", 1, x, output_size)


def adaptive_avg_pool2d(x: ArrayLike, output_size: Sizes) -> Value:
    """Means of as many windows of [..., H, W] as `output_size` says; None keeps an axis. Any extents fit.

    Window i of n elements runs from ⌊i·n / size⌋ to ⌈(i + 1)·n / size⌉, as in PyTorch.
    """
    return _adaptive_avg_pool("adaptive_avg_pool2d", 2, x, output_size)


def adaptive_avg_pool3d(x: ArrayLike, output_size: Sizes) -> Value:
    """`adaptive_avg_pool2d` of [..., D, H, W]."""
    return _adaptive_avg_pool("adaptive_avg_pool3d", 3, x, output_size)


def adaptive_max_pool1d(x: ArrayLike, output_size: Sizes) -> Value:
    """`adaptive_max_pool2d` of [..., L]."""
    return _adaptive_max_pool("adaptive_max_pool1d", 1, x, output_size)


def adaptive_max_pool2d(x: ArrayLike, output_size: Sizes) -> Value:
    """The greatest elements of as many windows of [..., H, W] as `output_size` says; as `adaptive_avg_pool2d`."""
    return _adaptive_max_pool("adaptive_max_pool2d", 2, x, output_size)


def adaptive_max_pool3d(x: ArrayLike, output_size: Sizes) -> Value:
    """`adaptive_max_pool2d` of [..., D, H, W]."""
    return _adaptive_max_pool("adaptive_max_pool3d", 3, x, output_size)
