"""Convolutions of each channel by itself -> shaders: an invocation has neighbouring channels and windows.

Lanes have neighbouring channels, which are neighbours in memory. An invocation goes through the terms of its part of
the sum; of a line of a window it takes a few elements at once. What several windows have in common is loaded once for
all of them, and each weight once for all windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from math import prod

from lavax.backends.vulkan.glsl.expressions import VECTOR, type_name
from lavax.backends.vulkan.glsl.lanes import LANE, GlslValue, widened
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import RoutineShader, open_routine
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index, linear, unflatten, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates


@dataclass(frozen=True)
class DepthwiseTile:
    """What an invocation has. Exercised by `python -m benchmarks architectures` (convnext)."""

    elements: int = 8  # of a line of a window, at most
    all_windows: int = 8  # windows of a line of the result that are one invocation's if there are no more
    windows: Sequence[int] = (4, 2)  # else, if so many invocations are left
    busy: int = 1 << 15


_TILE = DepthwiseTile()


class _Depthwise:
    """The state of writing the kernel."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool) -> None:
        self.routine: RoutineShader = open_routine(kernel, profile, lifted)
        self.body, self.node = self.routine.body, self.routine.node
        self.x, self.weights = self.routine.operands
        self.stride, self.dilation, self.run = (self.node.attrs[name] for name in ("stride", "dilation", "run"))
        _, self.rows, *self.leading, self.line, self.channels = self.node.shape
        is_wide = self.channels % VECTOR == 0 and not lifted and self.node.dtype.bits == 32
        self.width = VECTOR if is_wide else 1
        self.summed, *self.window = self.weights.shape[:-1]
        self.elements = _largest_divisor(_TILE.elements, self.window[-1], self.run)
        self.windows = self._windows()
        self.tiles = -(-self.line // self.windows)
        self.shape = (self.node.shape[0], self.rows, *self.leading, self.tiles, self.channels // self.width)

    def _windows(self) -> int:
        if self.line <= _TILE.all_windows:
            return self.line
        others = self.node.type.size // self.line // self.width
        return next((count for count in _TILE.windows if others * -(-self.line // count) >= _TILE.busy), 1)

    def emit(self) -> Launch:
        body, routine = self.body, self.routine
        part, row, *leading, tile, group = routine.open_elements(self.shape)
        start = self._start(tile)
        channel = group if self.width == 1 else linear([(group, VECTOR), (LANE, 1)])
        kind = type_name(self.node.dtype, self.width)
        for window in range(self.windows):
            body.line(f"{kind} total{window} = {kind}(0);")
        steps = prod(self.weights.shape[:-1]) // self.elements
        with self._steps(part, steps):
            summed, *element, block = unflatten(
                variable("step", steps), (self.summed, *self.window[:-1], self.window[-1] // self.elements)
            )
            self._take(row, tuple(leading), start, channel, summed, (*element, linear([(block, self.elements)])))
        for window in range(self.windows):
            at = (part, row, *leading, linear([(start, 1)], window), channel)
            body.store(self.node, at, GlslValue(f"total{window}", self.width), routine.target)
        return routine.close(prod(self.shape))

    def _start(self, tile: Index) -> Index:
        """The first window of a tile; the last tile has windows of the one before, too, if they do not fill it."""
        if self.line % self.windows == 0:
            return linear([(tile, self.windows)])
        last = self.line - self.windows
        first = self.body.index(linear([(tile, self.windows)]))
        return self.routine.position("start", f"min({first}, {last})", last + 1)

    def _steps(self, part: Index, steps: int) -> AbstractContextManager[None]:
        """The loop over the steps of a part of the sum."""
        body, count = self.body, self.body.parameters.integer(steps)
        own = self.run // self.elements
        if self.node.shape[0] == 1:
            return body.block(f"for (int step = 0; step < {count}; ++step)", frozenset(("step",)))
        body.line(f"int first = {body.index(linear([(part, own)]))};")
        return body.block(
            f"for (int step = first; step < min(first + {own}, {count}); ++step)", frozenset(("step",))
        )

    def _take(
        self, row: Index, leading: Coordinates, start: Index, channel: Index, summed: Index, element: Coordinates
    ) -> None:
        """Adds the products of a few elements of a line, for all windows."""
        body, step, spread = self.body, self.stride[-1], self.dilation[-1]
        lines = [
            linear([(window, self.stride[axis]), (k, self.dilation[axis])])
            for axis, (window, k) in enumerate(zip(leading, element[:-1], strict=True))
        ]
        weights = [
            self._read(self.weights, (summed, *element[:-1], linear([(element[-1], 1)], number), channel))
            for number in range(self.elements)
        ]
        for number, weight in enumerate(weights):
            for window in range(self.windows):
                place = linear([(start, step), (element[-1], spread)], window * step + number * spread)
                read = self._read(self.x, (row, summed, *lines, place, channel))
                body.line(f"total{window} += {read} * {weight};")

    def _read(self, operand: Node, at: Coordinates) -> str:
        return widened(self.body.value(operand, at), self.width, operand.dtype)


def _largest_divisor(most: int, *numbers: int) -> int:
    return next(count for count in range(most, 0, -1) if all(number % count == 0 for number in numbers))


def emit_depthwise(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of depthwise_conv."""
    return _Depthwise(kernel, profile, lifted).emit()
