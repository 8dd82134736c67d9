"""What is computed from products of few rows side by side, element by element: the gates of a cell.

Slices of a workgroup add up parts of all sums (registers.py, matrices.py), which pass through shared memory. Then each
invocation has an element of every product, and computes the results at that place; what else it reads for that it loads
before the products.
"""

from __future__ import annotations

from lavax.backends.vulkan.glsl.lanes import GlslValue
from lavax.backends.vulkan.glsl.launch import WORKGROUP, Launch, grid, open_body
from lavax.backends.vulkan.glsl.loads_ahead import load_ahead
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.passes.build.contraction_geometry import sizes_of
from lavax.passes.kernels.index import Index, clamp, linear, quotient, remainder, unflatten, variable
from lavax.passes.kernels.kernel import Kernel


class GateKernel:
    """The state of writing one kernel, whose workgroups have `rows` and `columns` of each product."""

    def __init__(self, kernel: Kernel, rows: int, columns: int, threads: int, lifted: bool) -> None:
        self.kernel, self.rows, self.columns, self.threads = kernel, rows, columns, threads
        self.dots = [node for node in kernel.graph.nodes if node.op == "dot"]
        self.found = self.dots  # what is computed by `add_up`
        self.sizes = sizes_of(self.dots[0])
        self.body, self.outputs = open_body(kernel, lifted)
        self.count = rows * columns  # of a workgroup's elements
        self.first_row = self.first_column = linear(())

    def emit(self) -> Launch:
        """The whole shader."""
        body, sizes = self.body, self.sizes
        across, down = -(-sizes.n // self.columns), -(-sizes.m // self.rows)
        body.line(f"int t = int{WORKGROUP};")
        if grid(across * down)[1] > 1:
            body.line(f"if (t >= {across * down}) return;")
        body.line("int i = int(gl_LocalInvocationIndex);")
        body.scopes[0].variables |= {"t", "i"}
        number = variable("t", across * down)
        self.first_row = linear([(quotient(number, across), self.rows)])
        self.first_column = linear([(remainder(number, across), self.columns)])
        element = clamp(variable("i", self.threads), 0, self.count - 1)
        if self._has_one_each:
            with self.body.at(self._at(element)):
                load_ahead(self.body, self.kernel)
        self.add_up()
        body.line("barrier();")
        self._write(element)
        text = self.text()
        return Launch(assemble(text), tuple(body.parameters.words), grid(across * down), text=text)

    # -- results ------------------------------------------------------------------------------------------------------

    def _place(self, element: Index) -> tuple[Index, Index]:
        """The row and the column of an element of the workgroup."""
        row = sum_of(self.first_row, quotient(element, self.columns))
        return row, sum_of(self.first_column, remainder(element, self.columns))

    def _at(self, element: Index) -> dict[str, Index]:
        """The kernel's loop variables at an element of the workgroup, inside the products in any case."""
        sizes, (m, n) = self.sizes, self._place(element)
        m = m if sizes.m % self.rows == 0 else clamp(m, 0, sizes.m - 1)
        n = n if sizes.n % self.columns == 0 else clamp(n, 0, sizes.n - 1)
        indices = *unflatten(m, sizes.rows), *unflatten(n, sizes.columns)
        pairs = zip(self.kernel.domain.outer_variables, indices, strict=True)
        return {variable.key: index for variable, index in pairs if not variable.is_constant}

    @property
    def _has_one_each(self) -> bool:
        return self.count <= self.threads

    def _write(self, element: Index) -> None:
        """Joins the slices' sums, and computes the results."""
        body, sizes = self.body, self.sizes
        head, variables = f"if (i < {self.count})", frozenset[str]()
        if not self._has_one_each:
            element, variables = variable("e", self.count), frozenset(("e",))
            head = f"for (int e = i; e < {self.count}; e += {self.threads})"
        with body.pinned_block(head, variables):
            row, column = self._place(element)
            ends = ((sizes.m, self.rows, row), (sizes.n, self.columns, column))
            beyond = [f"{body.index(place)} >= {extent}" for extent, each, place in ends if extent % each]
            if beyond:
                body.line(f"if ({' || '.join(beyond)}) {'return' if self._has_one_each else 'continue'};")
            coordinates = self.kernel.coordinates
            with body.at(self._at(element)):
                at = coordinates[self.dots[0]]
                for number, node in enumerate(self.found):
                    body.define(node, at, GlslValue(self.joined(number, element), 1))
                values = {node: body.value(node, coordinates[node]) for node in self.kernel.graph.outputs}
                for node, value in values.items():
                    body.store(node, coordinates[node], value, self.outputs[node])

    # -- products -----------------------------------------------------------------------------------------------------

    def add_up(self) -> None:
        """Adds up the slices' sums, and leaves them in shared memory."""
        raise NotImplementedError

    def joined(self, number: int, element: Index) -> str:
        """The name of the sum of all slices for an element of the value with that number."""
        raise NotImplementedError

    def text(self) -> ShaderText:
        """The shader's parts."""
        raise NotImplementedError


def sum_of(*indices: Index, offset: int = 0) -> Index:
    """The sum of indices."""
    return linear([(index, 1) for index in indices], offset)
