"""Convolutions over one to three window axes."""
from __future__ import annotations

from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax import nn
from lavax.onnx.operators.operator import Call, Operator
from lavax.onnx.operators.sampling import sampled
from lavax.onnx.operators.windows import WINDOW_ATTRIBUTES, windows_of


def conv(call: Call, x: Any, w: Any, b: Any = None) -> Any:
    """The convolution of a node, for other operators that are convolutions too."""
    found = windows_of(call, x.shape[2:], w.shape[2:])
    made = nn.conv(
        x, w, found.stride, found.padding, 1, found.dilation, feature_group_count=call.group
    )
    return made if b is None else made + b.reshape(-1, *([1] * (x.ndim - 2)))


def _conv_transpose(call: Call, x: Any, w: Any, b: Any = None) -> Any:
    rank = x.ndim - 2
    stride, dilation = call.strides or (1,) * rank, call.dilations or (1,) * rank
    extra = call.output_padding or (0,) * rank
    padding = []
    for axis in range(rank):
        span = dilation[axis] * (w.shape[2 + axis] - 1) + 1
        full = stride[axis] * (x.shape[2 + axis] - 1) + extra[axis] + span
        before, after = _cut(call, axis, rank, full, x.shape[2 + axis] * stride[axis])
        padding.append((span - 1 - before, span - 1 - after + extra[axis]))
    made = nn.conv_transpose(
        x, w, stride, padding, dilation, transpose_kernel=True, feature_group_count=call.group
    )
    return made if b is None else made + b.reshape(-1, *([1] * rank))


def _cut(call: Call, axis: int, rank: int, full: int, same: int) -> tuple[int, int]:
    """What the padding cuts off the full result of an axis, before and after."""
    if call.output_shape is not None:
        total = full - call.output_shape[axis - rank]
    elif call.auto_pad.startswith("SAME"):
        total = full - same
    else:
        return (call.pads[axis], call.pads[axis + rank]) if call.pads and call.auto_pad == "NOTSET" else (0, 0)
    less = total // 2
    return (less, total - less) if call.auto_pad == "SAME_UPPER" else (total - less, less)


def _deform_conv(call: Call, x: Any, w: Any, offset: Any, b: Any = None, mask: Any = None) -> Any:
    """Dai et al. 2017: each element of a window is read at its place plus an offset, bilinearly; zeros outside."""
    found = windows_of(call, x.shape[2:], w.shape[2:])
    (height, width), (rows, columns) = found.count, found.size
    batch, groups, taps = x.shape[0], call.offset_group, rows * columns
    offset = offset.reshape(batch, groups, rows, columns, 2, height, width)
    places = []
    for axis in range(2):
        start = found.padding[axis][0]
        inside = np.arange(found.size[axis], dtype=np.float32) * found.dilation[axis]
        across = np.arange(found.count[axis], dtype=np.float32) * found.stride[axis] - start
        shape = [1, 1, 1, 1, 1, 1]
        shape[2 + axis] = -1
        own = [1, 1, 1, 1, 1, 1]
        own[4 + axis] = -1
        places.append(inside.reshape(shape) + across.reshape(own) + offset[:, :, :, :, axis])
    channels = x.shape[1] // groups
    images = x.reshape(batch * groups, channels, *x.shape[2:])
    read = sampled(images, [place.reshape(batch * groups, taps, height * width) for place in places])
    read = read.reshape(batch, groups, channels, taps, height * width)
    if mask is not None:
        read = read * mask.reshape(batch, groups, 1, taps, height * width)
    read = read.reshape(batch, call.group, x.shape[1] // call.group, taps, height * width)
    kernel = w.reshape(call.group, w.shape[0] // call.group, w.shape[1], taps)
    product = lnp.einsum("bgctp,gotc->bgop", read, lnp.swapaxes(kernel, 2, 3))
    made = lnp.reshape(product, (batch, -1, height, width))
    return made if b is None else made + b.reshape(-1, 1, 1)


CONV_ATTRIBUTES = {**WINDOW_ATTRIBUTES, "group": 1}


OPERATORS = (
    Operator("Conv", conv, CONV_ATTRIBUTES),
    Operator(
        "ConvTranspose", _conv_transpose, {**CONV_ATTRIBUTES, "output_padding": None, "output_shape": None}
    ),
    Operator(
        "DeformConv", _deform_conv, {**CONV_ATTRIBUTES, "offset_group": 1},
        lacking="other than two window axes",
    ),
)  # fmt: skip
