"""What generators draw from: values that were built so far, with what they are on the program's arrays."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from lavax.ir import DType, Node, TensorType, float32, int32
from lavax.ir import interpreter as interpreter_of_graphs
from lavax.ir.graph import topological
from lavax.ir.types import DTYPES
from lavax.passes.build import builder
from tests.fuzz.noise import RUNS, IllConditionedError, noise, tolerance

# 0 and 1, below a vector, a vector, a subgroup, and what none divides; seldom what is above a workgroup or a page.
EXTENTS = (0, 1, 1, 3, 3, 4, 4, 8, 17)
LARGE = (70, 300, 1100, 4100)
MOST_ELEMENTS = 1 << 13
MOST_RANK = 5
# Larger ones overflow float16 or lose too many bits on the way.
_LARGEST = {"f16": 500.0, "bf16": 1e3, "f32": 1e4, "f64": 1e6, "c64": 1e4, "c128": 1e6}

NUMBERS = ("float", "int", "uint")
ALL = (*NUMBERS, "bool")
Runs = tuple[np.ndarray, ...]
Option = TypeVar("Option")


class NotDrawnError(ValueError):
    """This operation cannot be drawn from these values; another one may."""


@dataclass
class Source:
    """Values of one graph. `runs`: what each is, without noise and with it."""

    random: np.random.Generator
    values: list[Node] = field(default_factory=list)
    runs: dict[Node, Runs] = field(default_factory=dict)
    depth: int = 0  # of graphs within graphs
    any_operation: Callable[[Source], Node] | None = None  # draws an operation, and its value

    # Numbers

    def number(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high))

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def one_of(self, options: Sequence[Option]) -> Option:
        return options[self.number(0, len(options))]

    def extent(self) -> int:
        return self.one_of(LARGE) if self.chance(0.04) else self.one_of(EXTENTS)

    def extents(self, rank: int) -> tuple[int, ...]:
        found = [self.extent() for _ in range(rank)]
        while int(np.prod(found)) > MOST_ELEMENTS // 2:
            found[int(np.argmax(found))] = self.one_of(EXTENTS)
        return tuple(found)

    def axes(self, x: Node) -> list[int]:
        return [axis for axis in range(x.type.rank) if self.chance(0.5)]

    def axis_of(self, x: Node) -> int:
        return self.number(0, x.type.rank)

    # Values

    def choose(self, options: Sequence[Node]) -> Node:
        """One of the options, more often a late one."""
        return options[-1 - int(len(options) * self.random.random() ** 3)]

    def pick(self, kinds: Sequence[str] = ALL, least_rank: int = 0, fits: Callable[[Node], bool] | None = None) -> Node:
        """A value of one of these kinds. Raises NotDrawnError if there is none."""
        fitting = [
            node
            for node in self.values
            if node.dtype.kind in kinds and node.type.rank >= least_rank and (fits is None or fits(node))
        ]
        if not fitting:
            raise NotDrawnError(f"no value of {kinds}")
        return self.choose(fitting)

    def of_type(self, type: TensorType) -> Node:
        """A value of this type: one there is, a part of one, a broadcast or a cast of one, or counted numbers."""
        same = [node for node in self.values if node.type == type]
        if same and self.chance(0.8):
            return self.choose(same)
        made = self._broadcast_to(type) if self.chance(0.5) else None
        if made is None and type.size and self.chance(0.8):
            made = self._cut_to(type)
        if made is not None:
            return made
        if self.chance(0.5) or not type.rank or type.dtype.kind == "bool":
            return builder.splat(type.dtype.number(self.number(0, 3)), type)
        counted = builder.iota(type, self.number(0, type.rank))
        return builder.scale(counted, 0.25) if type.dtype.is_float else counted

    def _broadcast_to(self, type: TensorType) -> Node | None:
        for node in reversed(self.values):
            if node.dtype == type.dtype and node.type.rank <= type.rank:
                axes = range(type.rank - node.type.rank, type.rank)
                if all(e in (1, type.shape[a]) for e, a in zip(node.shape, axes, strict=True)):
                    return builder.broadcast(node, type.shape, axes)
        return None

    def _cut_to(self, type: TensorType) -> Node | None:
        """The first elements of a large enough value, cast if need be."""
        large = [node for node in self.values if node.type.size >= type.size and self._may_become(node, type.dtype)]
        own = [node for node in large if node.dtype == type.dtype]
        if not large or not (own or self.chance(0.5)):
            return None
        x = self.choose(own or large)
        flat = builder.reshape(x, (x.type.size,))
        cut = builder.reshape(builder.slice_(flat, [0], [type.size], [1]), type.shape)
        return cut if cut.dtype == type.dtype else builder.cast(cut, type.dtype)

    def _may_become(self, node: Node, dtype: DType) -> bool:
        """Whether a cast keeps it within what is computed with."""
        return not dtype.is_float or node.dtype.is_float or node.dtype.kind == "bool" or self.bound(node) < 500

    def bound(self, node: Node) -> float:
        found = self.evaluated(node)[0]
        return float(np.abs(found.astype(np.float64)).max(initial=0.0))

    def like(self, x: Node, dtype: DType | None = None) -> Node:
        return self.of_type(x.type.with_dtype(dtype or x.dtype))

    def within(self, x: Node, low: float, high: float) -> Node:
        """A value of the float `x` that lies between these: a smooth function of it where it does not anyway."""
        if x.type.size == 0:
            return x
        found = self.evaluated(x)[0]
        if low <= found.min() and found.max() <= high:
            return x
        half = (high - low) / 2
        squashed = builder.multiply(builder.build("tanh", x), builder.splat(half * 0.98, x.type))
        return builder.add(squashed, builder.splat((high + low) / 2, x.type))

    def indices(self, shape: tuple[int, ...], extent: int) -> Node:
        """Positions, of which some may lie outside."""
        type = TensorType(shape, int32)
        if self.chance(0.6) and type.size:
            x = self.of_type(type)
            if self.chance(0.7):
                x = builder.build("remainder", builder.absolute(x), builder.splat(max(extent, 1), type))
            return x
        if type.rank and self.chance(0.7):
            counted = builder.iota(type, self.number(0, type.rank))
            steps = builder.multiply(counted, builder.splat(self.number(1, 4), type))
            return builder.add(steps, builder.splat(self.number(-2, 3), type))
        return builder.splat(self.number(-2, extent + 2), type)

    def small_integer(self) -> Node:
        """A scalar from -3 to 4 that hangs on a value."""
        integers = [n for n in self.values if n.dtype == int32 and n.type.size]
        type = TensorType((), int32)
        if not integers:
            return builder.splat(self.number(-1, 4), type)
        x = self.choose(integers)
        return builder.clamp(builder.reduce("max", builder.clamp(x, -3, 4), range(x.type.rank)), -3, 4)

    # What values are

    def give(self, node: Node, array: np.ndarray) -> None:
        """An input, which is exact in all runs."""
        held = array.astype(np.float64 if node.dtype.is_float else node.dtype.numpy)
        self.values.append(node)
        self.runs[node] = (held,) * RUNS

    def evaluated(self, node: Node) -> Runs:
        """The value in all runs. Raises IllConditionedError; NotDrawnError for one that is too large."""
        for each in topological([node], stop=self.runs):
            if each not in self.runs:
                self.runs[each] = self._evaluate(each)
        return self.runs[node]

    def _evaluate(self, node: Node) -> Runs:
        found = []
        float64 = np.dtype(np.float64)
        seed = self.number(0, 1 << 30)
        for number in range(RUNS):
            operands = [self.runs[operand][number] for operand in node.operands]
            if number == 0:
                found.append(interpreter_of_graphs.evaluate_node(node, operands, float64))
            else:
                with noise(seed + number) as noisy:
                    found.append(noisy(node, operands, float64))
        return tuple(found)

    def add(self, node: Node) -> None:
        """One more value. Raises IllConditionedError or NotDrawnError if it is not one that says something."""
        if node.type.size > MOST_ELEMENTS or node.type.rank > MOST_RANK:
            raise NotDrawnError(f"{node.type} is too large")
        known = dict(self.runs)
        try:
            self.evaluated(node)
            for each in topological([node], stop=known):
                self._check(each)
        except (IllConditionedError, NotDrawnError):
            self.runs = known
            raise
        self.values.append(node)

    def grow(self, steps: int) -> None:
        """Adds about so many values, of any operation each."""
        assert self.any_operation is not None
        for _ in range(steps):
            for _attempt in range(6):
                try:
                    self.add(self.any_operation(self))
                except (IllConditionedError, NotDrawnError):
                    continue
                break

    def _check(self, node: Node) -> None:
        if node.dtype.kind == "tuple":
            return
        runs = self.runs[node]
        tolerance(node.dtype, runs)
        if node.dtype.is_inexact and np.abs(runs[0]).max(initial=0.0) > _LARGEST[node.dtype.name]:
            raise NotDrawnError(f"{node.op} gives large numbers")


def dtype_of(random: np.random.Generator, wide: bool) -> DType:
    """A dtype, more often one of 32 bits; of 64 bits only if `wide`."""
    if random.random() < 0.65:
        return (float32, float32, float32, int32, DTYPES["u32"], DTYPES["bool"])[int(random.integers(0, 6))]
    options = [dtype for dtype in DTYPES.values() if not dtype.is_complex and (wide or dtype.bits < 64)]
    return options[int(random.integers(0, len(options)))]
