"""Tiles of invocations, for devices whose lanes cannot exchange values: no shared memory, no barriers.

An invocation has its own rows. Its sums are in the result's memory, a few vectors at a time in registers. So heads of
any size have the same code, and each load serves a whole tile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from lavax.backends.vulkan.emit.attention.problem import Problem, Stage
from lavax.backends.vulkan.emit.attention.subgroup_shape import InvocationShape
from lavax.backends.vulkan.emit.attention.tiles import AttentionTile, Tiles
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR
from lavax.backends.vulkan.glsl.lanes import LANE
from lavax.backends.vulkan.glsl.launch import Launch, grid, local_invocations
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index, add, clamp, linear, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.target.kernel_limits import ATTENTION


class InvocationTiles(Tiles):
    """One tile per invocation."""

    def __init__(
        self,
        kernel: Kernel,
        profile: DeviceProfile,
        lifted: bool,
        problem: Problem,
        stages: Sequence[Stage],
        shape: InvocationShape,
    ) -> None:
        local, height = local_invocations(profile), shape.height
        columns = ATTENTION.block_of_columns
        tile = AttentionTile(height, columns // VECTOR, height * local, columns, local)
        super().__init__(kernel, lifted, problem, tile)
        self._first_row = linear([(self.corner, 1), (self.member, height)])

    def row_index(self, number: int) -> Index:
        return add(self._first_row, number)

    def first_column(self, group: int) -> Index:
        return linear([(self.block, self.width)], VECTOR * group)

    def rows_together(self) -> tuple[str, int]:
        return self.body.index(self.corner), self.height * self.local

    def folded(self, join: str, names: Sequence[str]) -> None:
        """Nothing: a row belongs to one invocation."""

    def open_blocks(self, start: str, stages: Sequence[Stage]) -> None:
        """Nothing is staged."""

    # -- products -----------------------------------------------------------------------------------------------------

    def product(self, name: str, of_rows: Node, of_columns: Node) -> None:
        for part in self.parts():
            self.line(f"vec4 {part.of(name)} = vec4(0);")
        with self._along("d", of_rows.shape[-1]) as (along, width):
            left = [self.vector(of_rows, self.row(row), along, width) for row in range(self.height)]
            columns = self._of_columns(of_columns, along, width)
            for component in COMPONENTS[:width]:
                dot = f".{component}" if width == VECTOR else ""
                for group in range(self.groups):
                    four = ", ".join(f"{column}{dot}" for column in columns[VECTOR * group : VECTOR * (group + 1)])
                    turned = self.body.declare(self.body.scopes[-1], "vec4", f"vec4({four})")
                    for row in range(self.height):
                        self.line(f"{name}{row}_{group} += {left[row]}{dot} * {turned};")

    def accumulate(self, node: Node, name: str, of_columns: Node, scaled: bool) -> None:
        with self._along("e", node.shape[-1]) as (along, width):
            kind = "vec4" if width == VECTOR else "float"
            sums = []
            for row in range(self.height):
                held = self.element(node, self.outputs[node], self.row(row), along)
                sums.append(self.body.declare(self.body.scopes[-1], kind, f"{held} * scale{row}" if scaled else held))
            columns = self._of_columns(of_columns, along, width)
            for number, column in enumerate(columns):
                for row in range(self.height):
                    weight = f"{name}{row}_{number // VECTOR}.{COMPONENTS[number % VECTOR]}"
                    self.line(f"{sums[row]} += {weight} * {column};")
            for row in range(self.height):
                self._store(node, add(self._first_row, row), along, sums[row])

    def _of_columns(self, operand: Node, along: Index, width: int) -> list[str]:
        """The vectors of a block's columns."""
        starts = (linear([(self.block, self.width)], start) for start in range(self.width))
        last = self.problem.columns - 1
        return [self.vector(operand, clamp(start, 0, last), along, width) for start in starts]

    @contextmanager
    def _along(self, name: str, extent: int) -> Iterator[tuple[Index, int]]:
        """A loop along the last axis of an operand, four elements per iteration if they divide it."""
        width = VECTOR if extent % VECTOR == 0 else 1
        steps = extent // width
        bound = self.unknown(steps)
        with self.body.block(f"for (int {name} = 0; {name} < {bound}; ++{name})", frozenset((name,))):
            step = variable(name, steps)
            yield (linear([(step, VECTOR), (LANE, 1)]) if width == VECTOR else step), width

    # -- results ------------------------------------------------------------------------------------------------------

    def open_result(self, node: Node) -> None:
        with self._over_rows(), self._along("e", node.shape[-1]) as (along, width):
            self._store(node, self._any_row(), along, "vec4(0)" if width == VECTOR else "0.0")

    def close_result(self, node: Node, factors: Sequence[str]) -> None:
        if not factors:
            return
        self.line(f"float factors[{self.height}] = float[]({', '.join(factors)});")
        with self._over_rows(), self._along("e", node.shape[-1]) as (along, _):
            held = self.element(node, self.outputs[node], self.inside(self._any_row()), along)
            self._store(node, self._any_row(), along, f"{held} * factors[r]")

    def _over_rows(self) -> AbstractContextManager[None]:
        """A loop over the invocation's rows, because drivers compile loads and stores slowly, and so there are few."""
        return self.body.block(f"for (int r = 0; r < {self.unknown(self.height)}; ++r)", frozenset(("r",)))

    def _any_row(self) -> Index:
        return linear([(self._first_row, 1), (variable("r", self.height), 1)])

    def _store(self, node: Node, row: Index, along: Index, value: str) -> None:
        there = self.is_row(row)
        target = self.element(node, self.outputs[node], self.inside(row), along)
        self.line(f"{f'if ({there}) ' if there else ''}{target} = {value};")

    def store_statistic(self, node: Node, values: Sequence[str]) -> None:
        for number, value in enumerate(values):
            row = add(self._first_row, number)
            there = self.is_row(row)
            target = self.element(node, self.outputs[node], self.inside(row))
            self.line(f"{f'if ({there}) ' if there else ''}{target} = {value};")

    def close(self) -> Launch:
        shader = assemble(ShaderText(self.body.uses, self.body.scopes[0].lines, (self.local, 1)))
        return Launch(shader, tuple(self.body.parameters.words), grid(self.count))
