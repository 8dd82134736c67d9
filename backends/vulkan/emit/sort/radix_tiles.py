"""The tiles of a pass of radix sort, and the digits of their values."""

from __future__ import annotations

from contextlib import AbstractContextManager
from math import prod

from lavax.backends.vulkan.glsl.routine import RoutineShader
from lavax.ir.ops.lowered.sorting import ZEROS
from lavax.passes.kernels.index import ZERO, flatten, unflatten, variable
from lavax.passes.kernels.reads import Coordinates


class RadixTiles:
    """A shader over the tiles of values[…,n], which walks over a tile from `first` to `end`."""

    def __init__(self, routine: RoutineShader) -> None:
        self.routine, self.body = routine, routine.body
        self.values = routine.operands[0]
        *self.batch, self.length = self.values.shape
        attrs = routine.node.attrs
        self.shift, self.bits, self.tile, self.tied = (attrs[name] for name in ("shift", "bits", "tile", "tied"))
        self.digits = 1 << self.bits
        self.extents = (*self.batch, -(-self.length // self.tile))
        self.count = prod(self.extents)

    def open(self, number: str) -> None:
        *self.row, self.place = unflatten(variable(number, self.count), self.extents)
        self.routine.integer("size", self.tile)
        self.body.line(f"int first = {self.body.index(self.place)} * size;")
        self.body.line(f"int end = min(first + size, {self.body.parameters.integer(self.length)});")
        self.body.line(f"int row = {self.body.index(flatten((*self.row, ZERO), self.values.shape))};")

    def value(self, at: str) -> str:
        """The value at a position of the row; also declares its `digit`."""
        text = self.routine.read(self.values, (*self.row, variable(at, self.length)))
        self.write_digit(text)
        return text

    def write_digit(self, value: str) -> None:
        counted = f"({value} + uint({value} == {ZEROS[0]}u))" if self.tied else value
        self.body.line(f"uint digit = uint({counted} >> {self.shift}u) & {self.digits - 1}u;")

    def along(self, start: str, step: str) -> AbstractContextManager[None]:
        return self.body.block(f"for (int k = {start}; k < end; k += {step})", frozenset(("k",)))

    def every_digit(self, start: str = "0", step: str = "1") -> AbstractContextManager[None]:
        return self.body.block(f"for (int d = {start}; d < {self.digits}; d += {step})", frozenset(("d",)))

    def start(self) -> str:
        """The position at which the values of the digit d begin."""
        return f"uint({self.routine.read(self.routine.operands[1], self._counter())})"

    def write_count(self) -> None:
        target = flatten(self._counter(), self.routine.node.shape)
        self.body.line(f"{self.routine.element(target)} = int(counters[d]);")

    def _counter(self) -> Coordinates:
        return (*self.row, variable("d", self.digits), self.place)
