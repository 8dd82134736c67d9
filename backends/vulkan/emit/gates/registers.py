"""Products of few rows whose sums are in registers: invocations share the sums of a workgroup's products.

All terms are on their way from memory at about the same time, where a loop over parts of the sum would wait for each
part.
"""

from __future__ import annotations

from lavax.backends.vulkan.emit.gates.choose import GateTile, is_along_sum, left_factor
from lavax.backends.vulkan.emit.gates.results import GateKernel, sum_of
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR
from lavax.backends.vulkan.glsl.lanes import LANE, widened
from lavax.backends.vulkan.glsl.reductions import doubling
from lavax.backends.vulkan.glsl.shader import ShaderText
from lavax.ir.graph import Node
from lavax.passes.build.contraction_geometry import operand_at, sizes_of
from lavax.passes.kernels.index import Index, add, clamp, linear, quotient, remainder, unflatten, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates


class GatesInRegisters(GateKernel):
    """The state of writing one kernel."""

    def __init__(self, kernel: Kernel, tile: GateTile, lifted: bool) -> None:
        super().__init__(kernel, tile.rows, tile.columns, tile.threads, lifted)
        self.tile = tile
        self.vectors = self.sizes.k // VECTOR  # of a sum's terms
        unit = variable("unit", tile.units)
        self.row = linear([(quotient(unit, tile.vectors_across), tile.register_rows)])  # within the tile
        self.column = linear([(remainder(unit, tile.vectors_across), VECTOR)])

    def text(self) -> ShaderText:
        shared = [f"shared float parts[{self.tile.shared_bytes(len(self.dots)) // 4}];"]
        lines, lanes = self.body.scopes[0].lines, self.tile.lanes
        if lanes == 1:
            return ShaderText(self.body.uses, lines, (self.tile.threads, 1), shared)
        return ShaderText(self.body.uses, lines, (self.tile.threads, 1), shared, subgroup_size=lanes, shuffles=True)

    def joined(self, number: int, element: Index) -> str:
        body, line, name = self.body, self.tile.line, self.body.name()
        place = body.index(linear([(element, line)], number * self.count * line))
        first = body.declare(body.scopes[-1], "int", place)
        body.line(f"float {name} = parts[{first}];")
        body.line(f"{body.uses.unroll}for (int s = 1; s < {self.tile.parts}; ++s) {name} += parts[{first} + s];")
        return name

    def add_up(self) -> None:
        """Adds up an invocation's terms; the next ones are loaded before the present ones are multiplied."""
        body, tile = self.body, self.tile
        body.lines([f"int slice = i % {tile.slices};", f"int unit = i / {tile.slices};"])
        body.scopes[0].variables |= {"slice", "unit"}
        sums = [self._sum(dot, row) for dot in range(len(self.dots)) for row in range(tile.register_rows)]
        body.line(f"vec4 {', '.join(f'{name} = vec4(0)' for name in sums)};")
        k, steps = variable("k", self.vectors), -(-self.vectors // tile.slices)
        is_whole = self.vectors % tile.slices == 0
        count = len(self._lefts()) * tile.register_rows + len(self.dots) * VECTOR
        loaded = [f"f{place}" for place in range(count)]
        body.line(f"vec4 {', '.join(loaded)};")
        with body.block("", frozenset(("k",))):
            body.line("int k = slice;")
            first = self._load(k)
            body.lines([f"{name} = {text};" for name, text in zip(loaded, first, strict=True)])
        with body.block(f"for (int step = 1; step < {body.parameters.unknown(steps)}; ++step)", frozenset(("k",))):
            body.line(f"int k = step * {tile.slices} + slice;")
            if not is_whole:
                body.line(f"bool more = k < {self.vectors};")
                body.line(f"k = min(k, {self.vectors - 1});")
            following = self._load(k)
            names = [body.declare(body.scopes[-1], "vec4", text) for text in following]
            self._multiply(loaded)
            body.lines([f"{name} = {text};" for name, text in zip(loaded, names, strict=True)])
            if not is_whole:  # of both factors: zero times infinity is no zero
                body.lines([f"{name} = more ? {name} : vec4(0);" for name in loaded])
        self._multiply(loaded)
        for distance in doubling(tile.lanes):
            body.lines([f"{name} += subgroupShuffleXor({name}, {distance}u);" for name in sums])
        part = quotient(variable("slice", tile.slices), tile.lanes)
        with body.block(f"if (i % {tile.lanes} == 0)" if tile.lanes > 1 else ""):
            for dot in range(len(self.dots)):
                for row in range(tile.register_rows):
                    at = linear([(add(self.row, row), tile.columns), (self.column, 1)], dot * self.count)
                    for component, name in enumerate(COMPONENTS):
                        place = linear([(add(at, component), tile.line), (part, 1)])
                        body.line(f"parts[{body.index(place)}] = {self._sum(dot, row)}.{name};")

    @staticmethod
    def _sum(dot: int, row: int) -> str:
        return f"s{dot}_{row}"

    def _lefts(self) -> list[Node]:
        """A product for each left factor, of which several may have the same."""
        return list({left_factor(dot): dot for dot in self.dots}.values())

    def _places(self) -> tuple[list[list[int]], list[list[int]]]:
        """The places among the loaded vectors, per product: of its left factor, and of its right one."""
        rows, lefts = self.tile.register_rows, self._lefts()
        order = list(map(left_factor, lefts))
        numbers = [order.index(left_factor(dot)) for dot in self.dots]
        first = len(lefts) * rows
        of_left = [[number * rows + row for row in range(rows)] for number in numbers]
        of_right = [[first + number * VECTOR + j for j in range(VECTOR)] for number in range(len(self.dots))]
        return of_left, of_right

    def _load(self, k: Index) -> list[str]:
        """Four terms at the sum's vector k: of the left factors' rows, then of the columns of the right ones."""
        sizes, texts = self.sizes, list[str]()
        along = linear([(k, VECTOR), (LANE, 1)])
        for dot in self._lefts():
            for row in range(self.tile.register_rows):
                m = sum_of(self.first_row, self.row, offset=row)
                m = m if sizes.m % self.tile.rows == 0 else clamp(m, 0, sizes.m - 1)
                texts.append(self._operand(dot, 0, unflatten(m, sizes.rows), along))
        n = sum_of(self.first_column, self.column)
        if sizes.n % self.tile.columns:
            n = linear([(clamp(quotient(n, VECTOR), 0, sizes.n // VECTOR - 1), VECTOR)])
        for dot in self.dots:
            for place in range(VECTOR):
                free, summed = add(n, place), along
                if not is_along_sum(dot):
                    free, summed = sum_of(n, LANE), linear([(k, VECTOR)], place)
                texts.append(self._operand(dot, 1, unflatten(free, sizes_of(dot).columns), summed))
        return texts

    def _operand(self, dot: Node, side: int, free: Coordinates, summed: Index) -> str:
        at = operand_at(dot, side, (), free, unflatten(summed, sizes_of(dot).summed))
        return widened(self.body.value(dot.operands[side], at), VECTOR, dot.dtype)

    def _multiply(self, loaded: list[str]) -> None:
        """Adds the products of loaded vectors to the sums."""
        of_left, of_right = self._places()
        for number, dot in enumerate(self.dots):
            right = [loaded[place] for place in of_right[number]]
            for row, place in enumerate(of_left[number]):
                left, name = loaded[place], self._sum(number, row)
                for component, line in zip(COMPONENTS, right, strict=True):
                    if is_along_sum(dot):
                        line = f"vec4({', '.join(f'{column}.{component}' for column in right)})"
                    self.body.line(f"{name} += {left}.{component} * {line};")
