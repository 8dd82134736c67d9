"""Where windows lie: the strides, dilations and padding of convolutions and pools."""
from __future__ import annotations

from collections.abc import Sequence

from lavax.base.quick_dataclasses import dataclass
from lavax.onnx.operators.operator import Call

WINDOW_ATTRIBUTES = {"auto_pad": "NOTSET", "dilations": None, "kernel_shape": None, "pads": None, "strides": None}


@dataclass(frozen=True)
class Windows:
    """Of each window axis: its size, stride, dilation, padding (before, after) and the number of windows."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    count: tuple[int, ...]

    @property
    def spans(self) -> tuple[int, ...]:
        """The elements from a window's first to its last."""
        return tuple(dilation * (size - 1) + 1 for size, dilation in zip(self.size, self.dilation, strict=True))


def windows_of(call: Call, extents: Sequence[int], size: Sequence[int]) -> Windows:
    """The windows of a node over axes of `extents`, with `ceil_mode` if the operator has it."""
    rank = len(extents)
    stride = tuple(call.strides or (1,) * rank)
    dilation = tuple(call.dilations or (1,) * rank)
    if not len(size) == len(stride) == len(dilation) == rank:
        raise call.error(f"kernel_shape, strides and dilations must have {rank} numbers, one for each window axis")
    if min((*size, *stride, *dilation), default=1) < 1:
        raise call.error("kernel_shape, strides and dilations must be positive")
    spans = [step * (extent - 1) + 1 for extent, step in zip(size, dilation, strict=True)]
    rounds_up = bool(call.attributes.get("ceil_mode"))
    padding, count = [], []
    for axis, extent in enumerate(extents):
        before, after = _padding(call, axis, rank, extent, spans[axis], stride[axis])
        room = extent + before + after - spans[axis]
        windows = (-(-room // stride[axis]) if rounds_up else room // stride[axis]) + 1
        if rounds_up and (windows - 1) * stride[axis] >= extent + before:
            windows -= 1  # a window that would begin in the padding behind
        padding.append((before, after))
        count.append(max(windows, 0))
    return Windows(tuple(size), stride, dilation, tuple(padding), tuple(count))


def _padding(call: Call, axis: int, rank: int, extent: int, span: int, stride: int) -> tuple[int, int]:
    if call.auto_pad == "VALID":
        return 0, 0
    if call.auto_pad == "NOTSET":
        return (call.pads[axis], call.pads[axis + rank]) if call.pads else (0, 0)
    total = max((-(-extent // stride) - 1) * stride + span - extent, 0)
    less = total // 2
    return (less, total - less) if call.auto_pad == "SAME_UPPER" else (total - less, less)
