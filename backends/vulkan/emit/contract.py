"""Contract kernels: every invocation computes a tile of the result in registers.

The result is seen as batch × M × N and the sum as K. A tile is `rows` × `columns`; columns are vectors of four. Where
tiles do not divide the result, the last tile is moved back to lie inside it and writes only what is its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from lavax.backends.vulkan.emit.body import LANE, Value, widened
from lavax.backends.vulkan.emit.expressions import COMPONENTS, VECTOR, type_name
from lavax.backends.vulkan.emit.launch import Launch, grid, local_invocations, open_body, open_invocations
from lavax.backends.vulkan.emit.shader import ShaderText, assemble
from lavax.backends.vulkan.plan import Shader
from lavax.backends.vulkan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.ir.ops.contraction import free_axes
from lavax.passes.kernels.index import (
    ZERO,
    Index,
    add,
    clamp,
    constant,
    linear,
    quotient,
    remainder,
    substitute,
    unflatten,
    variable,
)
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates

# Tiles from the one that reads least to the one that leaves most invocations.
_TILES = ((8, 16), (8, 8), (4, 8), (4, 4), (2, 4), (1, 4))
# How many invocations keep a device busy.
_INVOCATIONS = {"cpu": 96, "gpu": 1 << 15}
# The epilogue is written out for every element of a tile, and drivers compile slowly what is long.
_MOST_EPILOGUE = 768


@dataclass(frozen=True)
class Sizes:
    """The extents of a contraction's four groups of axes."""

    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    summed: tuple[int, ...]

    @property
    def m(self) -> int:
        return prod(self.rows)

    @property
    def n(self) -> int:
        return prod(self.columns)

    @property
    def k(self) -> int:
        return prod(self.summed)


def sizes_of(dot: Node) -> Sizes:
    left, right = dot.operands
    (left_batch, right_batch), (left_sum, right_sum) = dot.attrs["batch"], dot.attrs["contract"]
    return Sizes(
        tuple(left.shape[axis] for axis in left_batch),
        tuple(left.shape[axis] for axis in free_axes(left.type, left_batch, left_sum)),
        tuple(right.shape[axis] for axis in free_axes(right.type, right_batch, right_sum)),
        tuple(left.shape[axis] for axis in left_sum),
    )


def choose_tile(sizes: Sizes, profile: DeviceProfile, epilogue: int = 0) -> tuple[int, int]:
    """(rows, columns): the largest tile that leaves the device enough to do; columns a multiple of 4, or N < 4.

    `epilogue` is what is computed for each element of the result, in nodes.
    """
    needed = _INVOCATIONS[profile.kind]
    rows, columns = _TILES[-1]
    for rows, columns in _TILES:
        tiles = prod(sizes.batch) * -(-sizes.m // rows) * -(-sizes.n // columns)
        short = rows * columns * epilogue <= _MOST_EPILOGUE
        if short and tiles >= needed and rows <= sizes.m and columns <= sizes.n:
            break
    columns = min(columns, sizes.n) if sizes.n < VECTOR else min(columns, sizes.n // VECTOR * VECTOR)
    return min(rows, sizes.m), columns


class ContractEmitter:
    """The state of writing one contract kernel."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool) -> None:
        self.kernel = kernel
        self.dot = next(node for node in kernel.graph.nodes if node.op == "dot")
        self.sizes = sizes_of(self.dot)
        epilogue = sum(node.op not in ("dot", "constant") for node in kernel.graph.nodes)
        self.rows, self.columns = choose_tile(self.sizes, profile, epilogue)
        self.width = VECTOR if self.columns % VECTOR == 0 else 1
        self.local = local_invocations(profile)
        self.body, self.outputs = open_body(kernel, lifted)

    def emit(self) -> Launch:
        sizes, body = self.sizes, self.body
        across, down = -(-sizes.n // self.columns), -(-sizes.m // self.rows)
        count = prod(sizes.batch) * down * across
        open_invocations(body, count, self.local, "i")
        tile = variable("i", count)
        rest = quotient(tile, across)
        self.tile_column, self.tile_row = remainder(tile, across), remainder(rest, down)
        self.batch = unflatten(quotient(rest, down), sizes.batch)
        self.first_row = clamp(linear([(self.tile_row, self.rows)]), 0, sizes.m - self.rows)
        self.first_column = clamp(linear([(self.tile_column, self.columns)]), 0, sizes.n - self.columns)
        self._declare_sums()
        unrolled = VECTOR if sizes.k % VECTOR == 0 else 1
        self._sum_loop(unrolled)
        self._write_tile()
        text = ShaderText(body.scopes[0].lines, (self.local, 1))
        return Launch(Shader(assemble(text)), tuple(body.parameters.words), grid(-(-count // self.local)))

    # -- the sum ------------------------------------------------------------------------------------------------------

    def _vectors(self) -> range:
        return range(self.columns // self.width)

    def _column(self, vector: int) -> Index:
        start = add(self.first_column, vector * self.width)
        return linear([(start, 1), (LANE, 1)]) if self.width == VECTOR else start

    def _declare_sums(self) -> None:
        kind = type_name(self.dot.dtype, self.width)
        for row in range(self.rows):
            names = ", ".join(f"s{row}_{vector} = {kind}(0)" for vector in self._vectors())
            self.body.line(f"{kind} {names};")

    def _sum_loop(self, unrolled: int) -> None:
        steps = self.sizes.k // unrolled
        bound = self.body.parameters.integer(steps)
        with self.body.block(f"for (int k = 0; k < {bound}; ++k)", frozenset(("k",))):
            start = linear([(variable("k", steps), unrolled)])
            left = [self._left(add(self.first_row, row), start, unrolled) for row in range(self.rows)]
            for step in range(unrolled):
                at = unflatten(add(start, step), self.sizes.summed)
                for vector in self._vectors():
                    right = widened(self._right(at, self._column(vector)), self.width, self.dot.dtype)
                    for row in range(self.rows):
                        self.body.line(f"s{row}_{vector} += {left[row][step]} * {right};")

    def _left(self, row: Index, start: Index, unrolled: int) -> list[str]:
        """The left operand's elements of a row for `unrolled` steps of the sum: neighbours in one load if they are."""
        if unrolled == 1:
            return [self._operand(0, row, unflatten(start, self.sizes.summed)).text]
        value = self._operand(0, row, unflatten(linear([(start, 1), (LANE, 1)]), self.sizes.summed))
        return [f"{value.text}.{c}" for c in COMPONENTS] if value.width == VECTOR else [value.text] * unrolled

    def _right(self, summed: Coordinates, column: Index) -> Value:
        return self._operand(1, column, summed)

    def _operand(self, side: int, free: Index, summed: Coordinates) -> Value:
        operand = self.dot.operands[side]
        batch, contract = self.dot.attrs["batch"][side], self.dot.attrs["contract"][side]
        extents = self.sizes.rows if side == 0 else self.sizes.columns
        at = [ZERO] * len(operand.shape)
        for axes, indices in (
            (batch, self.batch),
            (contract, summed),
            (free_axes(operand.type, batch, contract), unflatten(free, extents)),
        ):
            for axis, index in zip(axes, indices, strict=True):
                at[axis] = index
        return self.body.value(operand, tuple(at))

    # -- the result ---------------------------------------------------------------------------------------------------

    def _write_tile(self) -> None:
        for row in range(self.rows):
            for vector in self._vectors():
                m, n = add(self.first_row, row), self._column(vector)
                with self.body.at(self._outer(m, n)):
                    self.body.define(self.dot, self.kernel.places[self.dot], Value(f"s{row}_{vector}", self.width))
                    self._write(row, vector)

    def _outer(self, m: Index, n: Index) -> dict[str, Index]:
        indices = (*self.batch, *unflatten(m, self.sizes.rows), *unflatten(n, self.sizes.columns))
        pairs = zip(self.kernel.domain.outer_variables, indices, strict=True)
        return {variable.key: index for variable, index in pairs if not variable.is_constant}

    def _write(self, row: int, vector: int) -> None:
        results = {output: self.body.value(output, self.kernel.places[output]) for output in self.kernel.graph.outputs}
        for lane, condition in self._own(row, vector):
            for output, result in results.items():
                if condition:
                    with self.body.block(f"if ({condition})"):
                        self._store(output, result, lane)
                else:
                    self._store(output, result, lane)

    def _store(self, output: Node, value: Value, lane: int | None) -> None:
        """Writes a vector, or one lane of it."""
        at = tuple(self.body.real(index) for index in self.kernel.places[output])
        if lane is not None:
            at = tuple(substitute(index, {"lane": constant(lane)}) for index in at)
            value = Value(f"{value.text}.{COMPONENTS[lane]}", 1) if value.width == VECTOR else value
        with self.body.at({}):
            self.body.store(output, at, value, self.outputs[output])

    def _own(self, row: int, vector: int) -> list[tuple[int | None, str]]:
        """What of a vector the tile writes: (lane or all, condition). Tiles moved back leave out what others write."""
        conditions = []
        if self.sizes.m % self.rows:
            conditions.append(self._beyond(self.first_row, row, self.tile_row, self.rows))
        if self.sizes.n % self.columns == 0:
            return [(None, " && ".join(conditions))]
        if self.width == 1 or self.sizes.n % VECTOR == 0:
            conditions.append(self._beyond(self.first_column, vector * self.width, self.tile_column, self.columns))
            return [(None, " && ".join(conditions))]
        lanes = range(VECTOR)
        beyond = [
            self._beyond(self.first_column, vector * VECTOR + lane, self.tile_column, self.columns) for lane in lanes
        ]
        return [(lane, " && ".join([*conditions, beyond[lane]])) for lane in lanes]

    def _beyond(self, first: Index, offset: int, tile: Index, extent: int) -> str:
        return f"{self.body.index(add(first, offset))} >= {self.body.index(linear([(tile, extent)]))}"


def emit_contract(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a contraction with its prologue and epilogue."""
    return ContractEmitter(kernel, profile, lifted).emit()
