"""Tiles of workgroups, for GPUs: operands go through shared memory, what is added up stays in registers.

The invocations of a workgroup stand in a grid of 16 × 8. Each has some neighbouring rows, which the 8 of its line
share; columns are dealt out to these by fours. A product takes its operands a few elements of the heads at a time from
shared memory. To be multiplied by an operand's rows, a tile goes through shared memory as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lavax.backends.vulkan.emit.attention_tiles import Problem, Tiles
from lavax.backends.vulkan.emit.body import LANE
from lavax.backends.vulkan.emit.expressions import COMPONENTS, VECTOR
from lavax.backends.vulkan.emit.launch import Launch, grid, open_body
from lavax.backends.vulkan.emit.shader import ShaderText, assemble
from lavax.backends.vulkan.plan import Shader
from lavax.backends.vulkan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index, add, clamp, linear, quotient, remainder, unflatten, variable
from lavax.passes.kernels.kernel import Kernel

DOWN, ACROSS = 16, 8
LOCAL = DOWN * ACROSS
# Elements of the heads in shared memory at a time.
_DEPTH = 16
# Rows of an invocation and vectors of columns; larger tiles were slower (docs/rejected.md).
_HEIGHT, _GROUPS = 4, 1
# Columns of a block that are in shared memory at a time for a sum: the more the better.
_SHARES = (16, 8)
# Registers for tiles and what is added up.
_MOST_REGISTERS = 200
_VECTOR_BYTES = 16


@dataclass(frozen=True)
class Shape:
    """An invocation's part of a tile, and columns of a block that are in shared memory at a time for a sum."""

    height: int
    groups: int
    share: int

    @property
    def rows(self) -> int:
        return DOWN * self.height

    @property
    def columns(self) -> int:
        return ACROSS * VECTOR * self.groups

    def shared_bytes(self, head: int) -> int:
        """Staged operands, or rows of a head, and a tile."""
        return _VECTOR_BYTES * (self.staged_vectors(head) + self.columns * self.tile_stride)

    def staged_vectors(self, head: int) -> int:
        of_products = _DEPTH * (self.rows_stride + self.columns_stride)
        return max(of_products, self.share * -(-head // VECTOR))

    # Lines in shared memory are one vector longer than they are, so that neighbours lie in other banks.

    @property
    def rows_stride(self) -> int:
        return self.rows // VECTOR + 1

    @property
    def columns_stride(self) -> int:
        return self.columns // VECTOR + 1

    @property
    def tile_stride(self) -> int:
        return self.rows // VECTOR + 1


def _registers(heads: Sequence[int], tiles: int) -> int:
    sums = sum(-(-head // (VECTOR * ACROSS)) * VECTOR for head in heads)
    return _HEIGHT * (sums + tiles * VECTOR * _GROUPS)


def choose_shape(profile: DeviceProfile, heads: Sequence[int], tiles: int) -> Shape | None:
    """The tile with as many shared columns as fit; `heads` are those of the results, whose sums are in registers.

    None where the device lacks what workgroups need.
    """
    if not profile.subgroup_shuffle or profile.subgroup_size < ACROSS or profile.max_workgroup_invocations < LOCAL:
        return None
    if _registers(heads, tiles) > _MOST_REGISTERS:
        return None
    shapes = (Shape(_HEIGHT, _GROUPS, share) for share in _SHARES)
    head = max(heads, default=0)
    return next((shape for shape in shapes if shape.shared_bytes(head) <= profile.shared_memory_bytes), None)


class WorkgroupTiles(Tiles):
    """One tile a workgroup."""

    def __init__(
        self, kernel: Kernel, profile: DeviceProfile, lifted: bool, problem: Problem, heads: Sequence[int], shape: Shape
    ) -> None:
        body, self.outputs = open_body(kernel, lifted)
        self.shape = shape
        super().__init__(body, problem, self.shape.height, self.shape.groups, self.shape.columns)
        self.subgroup = profile.subgroup_size
        self.staged = self.shape.staged_vectors(max(heads, default=0))
        down = -(-problem.rows // self.shape.rows)
        self.count = problem.count * down
        body.line("int group = int(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x);")
        body.line(f"if (group >= {body.parameters.integer(self.count)}) return;")
        body.line("int member = int(gl_LocalInvocationID.x);")
        body.line(f"int line = member / {ACROSS}, place = member % {ACROSS};")
        body.scopes[0].variables |= {"group", "member", "line", "place"}
        group = variable("group", self.count)
        self.batch = unflatten(quotient(group, down), problem.batch)
        self.corner = linear([(remainder(group, down), self.shape.rows)])
        self.line_index, self.place_index = variable("line", DOWN), variable("place", ACROSS)

    def first_row(self) -> Index:
        return linear([(self.corner, 1), (self.line_index, self.height)])

    def first_column(self, group: int) -> Index:
        return linear([(self.block, self.width), (self.place_index, VECTOR)], VECTOR * ACROSS * group)

    def rows_together(self) -> tuple[str, int]:
        return self.body.index(self.corner), self.shape.rows

    def folded(self, join: str, name: str) -> None:
        for distance in (1, 2, 4):
            other = f"subgroupShuffleXor({name}, {distance}u)"
            self.line(f"{name} = {f'{name} + {other}' if join == '+' else f'{join}({name}, {other})'};")

    # -- products -----------------------------------------------------------------------------------------------------

    def product(self, name: str, of_rows: Node, of_columns: Node) -> None:
        extent, shape = of_rows.shape[-1], self.shape
        for part in self.parts():
            self.line(f"vec4 {part.of(name)} = vec4(0);")
        steps = -(-extent // _DEPTH)
        with self.body.block(f"for (int d = 0; d < {self.body.parameters.integer(steps)}; ++d)", frozenset(("d",))):
            start = linear([(variable("d", steps), _DEPTH)])
            self.line("barrier();")
            self._stage(of_rows, self.corner, self.problem.rows, shape.rows, start, 0, shape.rows_stride)
            columns = linear([(self.block, self.width)])
            behind = _DEPTH * shape.rows_stride
            self._stage(of_columns, columns, self.problem.columns, shape.columns, start, behind, shape.columns_stride)
            self.line("barrier();")
            with self.body.block(f"for (int k = 0; k < {_DEPTH}; ++k)", frozenset(("k",))):
                vectors = self.height // VECTOR
                for vector in range(vectors):
                    self.line(f"vec4 left{vector} = staged[k * {shape.rows_stride} + line * {vectors} + {vector}];")
                for group in range(self.groups):
                    at = f"{behind} + k * {shape.columns_stride} + {group * ACROSS} + place"
                    self.line(f"vec4 right{group} = staged[{at}];")
                for part in self.parts():
                    left = f"left{part.row // VECTOR}.{COMPONENTS[part.row % VECTOR]}"
                    self.line(f"{part.of(name)} += {left} * right{part.group};")

    def _stage(
        self, operand: Node, first: Index, extent: int, count: int, start: Index, offset: int, stride: int
    ) -> None:
        """Rows of an operand, `count` from `first` on, of elements from `start` on, turned to lines of rows."""
        parts, length = _DEPTH // VECTOR, operand.shape[-1]
        total = count // VECTOR * parts
        for turn in range(-(-total // LOCAL)):
            number = add(variable("member", LOCAL), turn * LOCAL)
            with self.body.block(self._if_below(number, total)):
                four, part = quotient(number, parts), remainder(number, parts)
                along = linear([(start, 1), (part, VECTOR), (LANE, 1)])
                rows = (linear([(first, 1), (four, VECTOR)], row) for row in range(VECTOR))
                at = (clamp(row, 0, extent - 1) for row in rows)
                values = [self.vector(operand, row, clamp(along, 0, length - 1)) for row in at]
                if length % _DEPTH:
                    place = self.body.index(linear([(start, 1), (part, VECTOR)]))
                    inside = f"lessThan(ivec4({place}) + ivec4(0, 1, 2, 3), ivec4({length}))"
                    scope = self.body.scopes[-1]
                    values = [self.body.declare(scope, "vec4", f"mix(vec4(0), {v}, {inside})") for v in values]
                for line, component in enumerate(COMPONENTS):
                    turned = ", ".join(f"{value}.{component}" for value in values)
                    place = self.body.index(linear([(part, VECTOR * stride), (four, 1)], offset + line * stride))
                    self.line(f"staged[{place}] = vec4({turned});")

    def _if_below(self, number: Index, end: int) -> str:
        """The head of a block for what is below the end."""
        return f"if ({self.body.index(number)} < {end})" if number.high >= end else ""

    # -- sums ---------------------------------------------------------------------------------------------------------

    def _vectors(self, node: Node) -> int:
        """How many vectors of a result's row an invocation has, ACROSS vectors apart."""
        return -(-node.shape[-1] // (VECTOR * ACROSS))

    def _sum(self, node: Node, row: int, vector: int) -> str:
        return f"{node.op}{row}_{vector}"

    def open_result(self, node: Node) -> None:
        for row in range(self.height):
            names = ", ".join(f"{self._sum(node, row, vector)} = vec4(0)" for vector in range(self._vectors(node)))
            self.line(f"vec4 {names};")

    def accumulate(self, node: Node, name: str, of_columns: Node, scaled: bool) -> None:
        if scaled:
            for row in range(self.height):
                for vector in range(self._vectors(node)):
                    self.line(f"{self._sum(node, row, vector)} *= scale{row};")
        self._share(name)
        share = self.shape.share
        turns = self.width // share
        with self.body.block(f"for (int c = 0; c < {turns}; ++c)", frozenset(("c",))):
            first = linear([(self.block, self.width), (variable("c", turns), share)])
            self.line("barrier();")
            self._stage_heads(of_columns, first)
            self.line("barrier();")
            with self.body.block(f"for (int k = 0; k < {share}; ++k)", frozenset(("k",))):
                self._add_column(node)

    def _share(self, name: str) -> None:
        """Writes a tile to shared memory, a line a column."""
        vectors = self.height // VECTOR
        self.line("barrier();")
        for group in range(self.groups):
            for number, component in enumerate(COMPONENTS):
                column = f"({VECTOR * ACROSS * group + number} + place * {VECTOR})"
                for vector in range(vectors):
                    rows = range(VECTOR * vector, VECTOR * (vector + 1))
                    four = ", ".join(f"{name}{row}_{group}.{component}" for row in rows)
                    at = f"{column} * {self.shape.tile_stride} + line * {vectors} + {vector}"
                    self.line(f"tile[{at}] = vec4({four});")

    def _stage_heads(self, operand: Node, first: Index) -> None:
        """Rows of an operand, `share` from `first` on, as they are."""
        length = operand.shape[-1]
        vectors = -(-length // VECTOR)
        total = self.shape.share * vectors
        for turn in range(-(-total // LOCAL)):
            number = add(variable("member", LOCAL), turn * LOCAL)
            with self.body.block(self._if_below(number, total)):
                within = clamp(number, 0, total - 1)
                row, part = quotient(within, vectors), remainder(within, vectors)
                along = clamp(linear([(part, VECTOR), (LANE, 1)]), 0, length - 1)
                at = clamp(linear([(first, 1), (row, 1)]), 0, self.problem.columns - 1)
                self.line(f"staged[{self.body.index(number)}] = {self.vector(operand, at, along)};")

    def _add_column(self, node: Node) -> None:
        vectors, of_rows = self._vectors(node), self.height // VECTOR
        whole = -(-node.shape[-1] // VECTOR)
        for vector in range(of_rows):
            at = f"(c * {self.shape.share} + k) * {self.shape.tile_stride} + line * {of_rows} + {vector}"
            self.line(f"vec4 weights{vector} = tile[{at}];")
        for vector in range(vectors):
            place = f"place + {vector * ACROSS}"
            if (vector + 1) * ACROSS > whole:
                place = f"min({place}, {whole - 1})"
            self.line(f"vec4 other{vector} = staged[k * {whole} + {place}];")
        for row in range(self.height):
            for vector in range(vectors):
                weight = f"weights{row // VECTOR}.{COMPONENTS[row % VECTOR]}"
                self.line(f"{self._sum(node, row, vector)} += {weight} * other{vector};")

    def close_result(self, node: Node, factors: Sequence[str]) -> None:
        length = node.shape[-1]
        for row in range(self.height):
            place = add(self.first_row(), row)
            there = self.is_row(place)
            with self.body.block(f"if ({there})" if there else ""):
                for vector in range(self._vectors(node)):
                    name = self._sum(node, row, vector)
                    if factors:
                        self.line(f"{name} *= {factors[row]};")
                    self._store(node, place, vector, name, length)

    def _store(self, node: Node, row: Index, vector: int, name: str, length: int) -> None:
        first = linear([(self.place_index, VECTOR)], vector * VECTOR * ACROSS)
        row, address = self.inside(row), self.outputs[node]
        if length % VECTOR == 0:
            with self.body.block(self._if_below(first, length)):
                along = linear([(clamp(first, 0, length - VECTOR), 1), (LANE, 1)])
                self.line(f"{self.element(node, address, row, along)} = {name};")
            return
        for number, component in enumerate(COMPONENTS):
            along = add(first, number)
            target = self.element(node, address, row, clamp(along, 0, length - 1))
            self.line(f"{self._if_below(along, length)} {target} = {name}.{component};".lstrip())

    def store_statistic(self, node: Node, values: Sequence[str]) -> None:
        for number, value in enumerate(values):
            row = add(self.first_row(), number)
            there = self.is_row(row)
            guard = f"if (place == 0{f' && {there}' if there else ''})"
            self.line(f"{guard} {self.element(node, self.outputs[node], self.inside(row))} = {value};")

    def close(self) -> Launch:
        declarations = [
            f"shared vec4 staged[{self.staged}];",
            f"shared vec4 tile[{self.shape.columns * self.shape.tile_stride}];",
        ]
        text = ShaderText(self.body.scopes[0].lines, (LOCAL, 1), declarations, subgroup=True)
        shader = Shader(assemble(text), subgroup_size=self.subgroup)
        return Launch(shader, tuple(self.body.parameters.words), grid(self.count))
