"""Products of few rows side by side, and what is computed from them element by element: the gates of a cell.

Invocations share the sums of a workgroup's products. All terms are on their way from memory at about the same time,
where a loop over parts of the sum would wait for each part. What the slices of a sum add up to passes through shared
memory. Then each invocation has an element of every product, and computes the results at that place; what else it reads
for that it loads before the products.
"""

from __future__ import annotations

from lavax.backends.vulkan.emit.gates.choose import GateTile, tile_of
from lavax.backends.vulkan.glsl.body import LANE, GlslValue, widened
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR, type_name
from lavax.backends.vulkan.glsl.launch import WORKGROUP, Launch, grid, open_body
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.build.contraction_geometry import neighbours_of, operand_at, sizes_of
from lavax.passes.kernels.accesses import accesses
from lavax.passes.kernels.index import Index, add, clamp, linear, quotient, remainder, unflatten, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates


def emit_gates(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a kernel of products of one shape and of what follows them."""
    dots = [node for node in kernel.graph.nodes if node.op == "dot"]
    return _GateKernel(kernel, tile_of(sizes_of(dots[0]), len(dots), profile), lifted).emit()


class _GateKernel:
    """The state of writing one kernel."""

    def __init__(self, kernel: Kernel, tile: GateTile, lifted: bool) -> None:
        self.kernel, self.tile = kernel, tile
        self.dots = [node for node in kernel.graph.nodes if node.op == "dot"]
        self.sizes = sizes_of(self.dots[0])
        self.body, self.outputs = open_body(kernel, lifted)
        self.count = tile.rows * tile.columns  # of a workgroup's elements
        self.first_row = self.first_column = linear(())
        self.vectors = self.sizes.k // VECTOR  # of a sum's terms
        unit = variable("unit", tile.units)
        self.row = linear([(quotient(unit, tile.vectors_across), tile.register_rows)])  # within the tile
        self.column = linear([(remainder(unit, tile.vectors_across), VECTOR)])

    def emit(self) -> Launch:
        """The whole shader."""
        body, tile, sizes = self.body, self.tile, self.sizes
        across, down = -(-sizes.n // tile.columns), -(-sizes.m // tile.rows)
        body.line(f"int t = int{WORKGROUP};")
        if grid(across * down)[1] > 1:
            body.line(f"if (t >= {across * down}) return;")
        body.line("int i = int(gl_LocalInvocationIndex);")
        body.scopes[0].variables |= {"t", "i"}
        number = variable("t", across * down)
        self.first_row = linear([(quotient(number, across), tile.rows)])
        self.first_column = linear([(remainder(number, across), tile.columns)])
        element = clamp(variable("i", tile.threads), 0, self.count - 1)
        self._read_ahead(element)
        self._add_up()
        body.line("barrier();")
        self._write(element)
        text = self._text()
        return Launch(assemble(text), tuple(body.parameters.words), grid(across * down), text=text)

    # -- results ------------------------------------------------------------------------------------------------------

    def _place(self, element: Index) -> tuple[Index, Index]:
        """The row and the column of an element of the workgroup."""
        columns = self.tile.columns
        row = _sum_of(self.first_row, quotient(element, columns))
        return row, _sum_of(self.first_column, remainder(element, columns))

    def _at(self, element: Index) -> dict[str, Index]:
        """The kernel's loop variables at an element of the workgroup, inside the products in any case."""
        sizes, tile, (m, n) = self.sizes, self.tile, self._place(element)
        m = m if sizes.m % tile.rows == 0 else clamp(m, 0, sizes.m - 1)
        n = n if sizes.n % tile.columns == 0 else clamp(n, 0, sizes.n - 1)
        indices = *unflatten(m, sizes.rows), *unflatten(n, sizes.columns)
        pairs = zip(self.kernel.domain.outer_variables, indices, strict=True)
        return {variable.key: index for variable, index in pairs if not variable.is_constant}

    @property
    def _has_one_each(self) -> bool:
        return self.count <= self.tile.threads

    def _read_ahead(self, element: Index) -> None:
        """Loads what the results are computed from besides the products, if an invocation has one element."""
        body, at = self.body, self.kernel.coordinates
        roots = [(node, at[node]) for node in self.kernel.graph.outputs] if self._has_one_each else []
        with body.at(self._at(element)):
            for node, positions in accesses(self.kernel, roots).items():
                for position in positions:
                    place = body.real(position)
                    text, kind = body.load_at(node, place).text, type_name(node.dtype, 1)
                    body.provide(node, place, GlslValue(body.declare(body.scopes[-1], kind, text), 1))

    def _write(self, element: Index) -> None:
        """Joins the slices' sums, and computes the results."""
        body, tile, sizes = self.body, self.tile, self.sizes
        head, variables = f"if (i < {self.count})", frozenset[str]()
        if not self._has_one_each:
            element, variables = variable("e", self.count), frozenset(("e",))
            head = f"for (int e = i; e < {self.count}; e += {tile.threads})"
        with body.pinned_block(head, variables):
            row, column = self._place(element)
            ends = ((sizes.m, tile.rows, row), (sizes.n, tile.columns, column))
            beyond = [f"{body.index(place)} >= {extent}" for extent, each, place in ends if extent % each]
            if beyond:
                body.line(f"if ({' || '.join(beyond)}) {'return' if self._has_one_each else 'continue'};")
            coordinates = self.kernel.coordinates
            with body.at(self._at(element)):
                for number, dot in enumerate(self.dots):
                    body.define(dot, coordinates[dot], GlslValue(self._joined(number, element), 1))
                values = {node: body.value(node, coordinates[node]) for node in self.kernel.graph.outputs}
                for node, value in values.items():
                    body.store(node, coordinates[node], value, self.outputs[node])

    # -- products -----------------------------------------------------------------------------------------------------

    def _text(self) -> ShaderText:
        shared = [f"shared float parts[{self.tile.shared_bytes(len(self.dots)) // 4}];"]
        return ShaderText(self.body.uses, self.body.scopes[0].lines, (self.tile.threads, 1), shared)

    def _joined(self, number: int, element: Index) -> str:
        body, line, name = self.body, self.tile.line, self.body.name()
        place = body.index(linear([(element, line)], number * self.count * line))
        first = body.declare(body.scopes[-1], "int", place)
        body.line(f"float {name} = parts[{first}];")
        body.line(f"{body.uses.unroll}for (int s = 1; s < {self.tile.slices}; ++s) {name} += parts[{first} + s];")
        return name

    def _add_up(self) -> None:
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
        with body.block(""):
            for dot in range(len(self.dots)):
                for row in range(tile.register_rows):
                    at = linear([(add(self.row, row), tile.columns), (self.column, 1)], dot * self.count)
                    for component, name in enumerate(COMPONENTS):
                        place = linear([(add(at, component), tile.line), (variable("slice", tile.slices), 1)])
                        body.line(f"parts[{body.index(place)}] = {self._sum(dot, row)}.{name};")

    @staticmethod
    def _sum(dot: int, row: int) -> str:
        return f"s{dot}_{row}"

    def _lefts(self) -> list[Node]:
        """A product for each left factor, of which several may have the same."""
        return list({(dot.operands[0], dot.attrs["contract"][0]): dot for dot in self.dots}.values())

    def _places(self) -> tuple[list[list[int]], list[list[int]]]:
        """The places among the loaded vectors, per product: of its left factor, and of its right one."""
        rows, lefts = self.tile.register_rows, self._lefts()
        order = [(dot.operands[0], dot.attrs["contract"][0]) for dot in lefts]
        numbers = [order.index((dot.operands[0], dot.attrs["contract"][0])) for dot in self.dots]
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
                m = _sum_of(self.first_row, self.row, offset=row)
                m = m if sizes.m % self.tile.rows == 0 else clamp(m, 0, sizes.m - 1)
                texts.append(self._operand(dot, 0, unflatten(m, sizes.rows), along))
        n = _sum_of(self.first_column, self.column)
        if sizes.n % self.tile.columns:
            n = linear([(clamp(quotient(n, VECTOR), 0, sizes.n // VECTOR - 1), VECTOR)])
        for dot in self.dots:
            for place in range(VECTOR):
                free, summed = add(n, place), along
                if not self._is_along_sum(dot):
                    free, summed = _sum_of(n, LANE), linear([(k, VECTOR)], place)
                texts.append(self._operand(dot, 1, unflatten(free, sizes_of(dot).columns), summed))
        return texts

    @staticmethod
    def _is_along_sum(dot: Node) -> bool:
        near = neighbours_of(dot, 1)
        return near.summed and not near.free

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
                    if self._is_along_sum(dot):
                        line = f"vec4({', '.join(f'{column}.{component}' for column in right)})"
                    self.body.line(f"{name} += {left}.{component} * {line};")


def _sum_of(*indices: Index, offset: int = 0) -> Index:
    """The sum of indices."""
    return linear([(index, 1) for index in indices], offset)
