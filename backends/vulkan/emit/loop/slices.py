"""Scans whose rows never meet: each workgroup runs all turns for its own rows, which stay in shared memory.

The body over one workgroup's rows is scheduled like any graph. Its kernels are the parts of a turn, one after the other
with barriers between them. The invocations share the elements of a map. Of a product each has a few columns and a part
of the sum, so that all read the factor together that is the same in all turns; they keep what they can of it in
registers, from before the first turn. A second step adds up the parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from math import prod

from lavax.backends.vulkan.emit.loop.slices_choice import (
    SLICED_LOOPS,
    ScheduledSlices,
    columns_of,
    inputs_of,
    scheduled_slices,
    threads_of,
)
from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.bounds import inside
from lavax.backends.vulkan.glsl.expressions import VECTOR, type_name
from lavax.backends.vulkan.glsl.lanes import LANE, GlslValue, widened
from lavax.backends.vulkan.glsl.launch import WORKGROUP, Launch, at_row, grid, open_body_of, steps_of_stride
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node, graph_of, input_node, with_operands
from lavax.passes.build.contraction_geometry import operand_at, sizes_of
from lavax.passes.kernels.accesses import accesses
from lavax.passes.kernels.index import Index, flatten, linear, unflatten, variable
from lavax.passes.kernels.kernel import Kernel, KernelStep
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.kernels.reads import Coordinates

_BARRIER = ("memoryBarrierShared();", "barrier();")
_LANE = "lane"
_THREAD, _SLICE, _TURN = "thread", "slice", "turn"


class _SliceBody(Body):
    """A body some of whose arrays are in shared memory: `held` has their names, and where in these they begin."""

    held: dict[Node, tuple[str, str]]

    def load_at(self, node: Node, position: Index) -> GlslValue:
        if node not in self.held:
            return super().load_at(node, position)
        if _LANE in position.variables:
            texts = [self._held_at(node, text) for text in self._components(inside(position, node.type.size))]
            return GlslValue(f"{type_name(node.dtype, VECTOR)}({', '.join(texts)})", VECTOR)
        return GlslValue(self._held_at(node, self.index(inside(position, node.type.size))), 1)

    def _held_at(self, node: Node, index: str) -> str:
        name, first = self.held[node]
        return f"{name}[{first}{index}]"

    def store(self, node: Node, at: Coordinates, value: GlslValue, address: str) -> None:
        if node not in self.held:
            super().store(node, at, value, address)
            return
        position = inside(self.real(flatten(at, node.shape)), node.type.size)
        self.line(f"{self._held_at(node, self.index(position))} = {value.text};")


def emit_slices(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a scan of which each workgroup runs all turns for its rows."""
    body, outputs = open_body_of(_SliceBody, kernel, lifted)
    body.held = {}
    loop, (slices,) = kernel.graph.nodes[0], kernel.domain.outer
    found = scheduled_slices(loop, slices)
    assert found is not None, "the scan's rows never meet"
    writing = _Slices(kernel, found, body, outputs)
    writing.emit()
    text = ShaderText(body.uses, body.scopes[0].lines, (writing.threads, 1), writing.shared)
    return Launch(assemble(text), tuple(body.parameters.words), grid(slices), text=text)


class _Slices:
    """The state of writing one kernel."""

    def __init__(self, kernel: Kernel, found: ScheduledSlices, body: _SliceBody, outputs: dict[Node, str]) -> None:
        self.body, self.loop, (self.slices,) = body, kernel.graph.nodes[0], kernel.domain.outer
        self.sliced, self.program, self.threads = found.body, found.program, threads_of(found)
        self.operands = [body.addresses[operand] for operand in kernel.graph.inputs]
        self.results = {node.attrs["index"]: outputs[node] for node in kernel.graph.outputs}
        self.carries, self.length = int(self.loop.attrs["carries"]), int(self.loop.attrs["length"])
        self.shared: list[str] = []
        self.places: dict[str, tuple[str, str]] = {}  # of buffers in shared memory that the kernels read
        self.targets: dict[str, tuple[str, str]] = {}  # of those that they write
        self.addresses: dict[str, str] = {}  # of buffers elsewhere
        self.cut_results: dict[str, bool] = {}  # of those that are stacked
        self.kept: set[str] = set()  # buffers that are the same in all turns

    def emit(self) -> None:
        body, threads = self.body, self.threads
        body.lines([f"int {_THREAD} = int(gl_LocalInvocationIndex);", f"int {_SLICE} = int({WORKGROUP});"])
        body.scopes[0].variables |= {_THREAD, _SLICE}
        self._declare()
        steps = list(map(_own, _steps_of(self.program)))
        products = self._products(steps)
        bound = body.parameters.unknown(self.length)
        with body.pinned_block(f"for (int {_TURN} = 0; {_TURN} < {bound}; ++{_TURN})", frozenset((_TURN,))):
            body.line(f"int here = {_TURN} & 1;")
            self._aim()
            for number, step in enumerate(steps):
                if step.barrier or number == 0 or step.kernel.kind == "contract":
                    body.lines(_BARRIER)
                for kernel, reads, writes in zip(step.kernels, step.reads, step.writes, strict=True):
                    self._bind(kernel, reads, writes)
                    if kernel.kind == "contract":
                        products[kernel].emit()
                    else:
                        count = kernel.domain.rows
                        head = f"for (int e = {_THREAD}; e < {count}; e += {threads})"
                        with body.pinned_block(head, frozenset(("e",))), body.at(at_row(variable("e", count), kernel)):
                            self.write(kernel, writes)
        body.lines(_BARRIER)
        self._finish()

    # -- arrays -------------------------------------------------------------------------------------------------------

    def _declare(self) -> None:
        """Arrays in shared memory, of carries twice: a turn reads one half and writes the other."""
        inputs = self.program.graph.inputs
        for number, (node, (position, is_cut)) in enumerate(zip(inputs, self.sliced.inputs, strict=True)):
            if number < self.carries:
                self._carry(number, node, position)
            elif position >= self.carries + self.loop.attrs["sequences"]:
                address = self.operands[position]
                self.addresses[node.name] = self._behind(address, _SLICE, node.type.nbytes) if is_cut else address
                self.kept.add(node.name)
        for step in _steps_of(self.program):
            for kernel, writes in zip(step.kernels, step.writes, strict=True):
                for node, name in zip(kernel.graph.outputs, writes, strict=True):
                    if name in self.program.offsets:
                        array = self._array(node, f"t{len(self.shared)}", 1)
                        self.places[name] = self.targets[name] = array, ""

    def _carry(self, number: int, node: Node, position: int) -> None:
        size, operand = node.type.size, self.loop.operands[position]
        result = self.program.results[number]
        changes = result != node.name
        array = self._array(node, f"c{number}", 1 + changes)
        self.places[node.name] = array, f"here * {size} + " if changes else ""
        if changes:
            self.targets[result] = self.places[result] = array, f"(1 - here) * {size} + "
        with self._elements(size):
            value = self.body.load_at(operand, self._of_slice(size, self.sliced.cut[number]))
            self.body.line(f"{array}[e] = {value.text};")

    def _array(self, node: Node, name: str, times: int) -> str:
        self.shared.append(f"shared {type_name(node.dtype, 1)} {name}[{max(node.type.size, 1) * times}];")
        return name

    def _elements(self, size: int) -> AbstractContextManager[None]:
        head = f"for (int e = {_THREAD}; e < {size}; e += {self.threads})"
        return self.body.pinned_block(head, frozenset(("e",)))

    def _of_slice(self, size: int, is_cut: bool) -> Index:
        """The position of the slice's element `e` of an array whose slices have so many."""
        e = variable("e", size)
        return linear([(variable(_SLICE, self.slices), size), (e, 1)]) if is_cut else e

    def _behind(self, address: str, number: str, nbytes: int) -> str:
        for step in steps_of_stride(nbytes):
            address = f"{self.body.uses.access('behind')}({address}, {number}, {step}u)"
        return self.body.declare(self.body.scopes[-1], "uint64_t", address)

    def _aim(self) -> None:
        """The rows of a turn: of sequences, and of what is stacked."""
        body, loop = self.body, self.loop
        row = f"({self.length - 1} - {_TURN})" if loop.attrs["reverse"] else _TURN
        if loop.attrs["reverse"]:
            row = body.declare(body.scopes[-1], "int", row)
        for node, (position, is_cut) in zip(self.program.graph.inputs, self.sliced.inputs, strict=True):
            if self.carries <= position < self.carries + loop.attrs["sequences"]:
                nbytes = loop.operands[position].type.nbytes // self.length
                address = self._behind(self.operands[position], row, nbytes)
                self.addresses[node.name] = self._behind(address, _SLICE, node.type.nbytes) if is_cut else address
        for position in range(self.carries, len(self.sliced.cut)):
            name, node = self.program.results[position], self.program.graph.outputs[position]
            nbytes = node.type.nbytes * (self.slices if self.sliced.cut[position] else 1)
            address = self._behind(self.results[position], row, nbytes)
            is_cut = self.cut_results[name] = self.sliced.cut[position]
            self.addresses[name] = self._behind(address, _SLICE, node.type.nbytes) if is_cut else address

    def _finish(self) -> None:
        """What is carried, from shared memory to the results."""
        body = self.body
        for number, node in enumerate(self.program.graph.inputs[: self.carries]):
            if number not in self.results:
                continue
            size, (name, first) = node.type.size, self.places[node.name]
            at = first.replace("here", str(self.length & 1))
            is_cut = self.sliced.cut[number]
            with body.block("" if is_cut else f"if ({_SLICE} == 0)"), self._elements(size):
                index = body.index(self._of_slice(size, is_cut))
                body.line(body.memory.stored(node.dtype, self.results[number], index, f"{name}[{at}e]"))

    # -- kernels ------------------------------------------------------------------------------------------------------

    def _bind(self, kernel: Kernel, reads: Sequence[str], writes: Sequence[str]) -> None:
        """Says where the kernel's arrays are."""
        body = self.body
        for node, name in zip(kernel.graph.inputs, reads, strict=True):
            if name in self.places:
                body.held[node] = self.places[name]
            else:
                body.addresses[node] = self.addresses[name]
        for node, name in zip(kernel.graph.outputs, writes, strict=True):
            if name in self.targets:
                body.held[node] = self.targets[name]

    def write(self, kernel: Kernel, writes: Sequence[str]) -> None:
        """Writes the results at one place of the kernel's loops."""
        body, at = self.body, kernel.coordinates
        values = {node: body.value(node, at[node]) for node in kernel.graph.outputs}
        for (node, value), name in zip(values.items(), writes, strict=True):
            alone = name in self.targets or self.cut_results[name]
            with body.block("" if alone else f"if ({_SLICE} == 0)"):
                body.store(node, at[node], value, self.addresses.get(name, ""))

    def _products(self, steps: Sequence[KernelStep]) -> dict[Kernel, _Product]:
        """The products, with what is the same in all turns read before the first one."""
        found: dict[Kernel, _Product] = {}
        kept = SLICED_LOOPS.kept // max(sum(kernel.kind == "contract" for step in steps for kernel in step.kernels), 1)
        for step in steps:
            for kernel, reads, writes in zip(step.kernels, step.reads, step.writes, strict=True):
                if kernel.kind == "contract":
                    unchanging = {n for n, name in zip(kernel.graph.inputs, reads, strict=True) if name in self.kept}
                    for node, name in zip(kernel.graph.inputs, reads, strict=True):
                        if name in self.kept:
                            self.body.addresses[node] = self.addresses[name]
                    found[kernel] = _Product(self, kernel, writes, len(found), unchanging, kept)
        if found:
            size = max(product.parts * product.count for product in found.values())
            self.shared.append(f"shared vec4 parts[{-(-size // VECTOR)}];")
        return found


class _Product:
    """A product of a turn. `count` elements are added up in `parts`, by invocations with `width` columns each.

    They keep `kept` vectors of what is the same in all turns.
    """

    def __init__(
        self, slices: _Slices, kernel: Kernel, writes: Sequence[str], number: int, unchanging: set[Node], kept: int
    ) -> None:
        self.slices, self.body, self.kernel, self.writes = slices, slices.body, kernel, writes
        self.dot = next(node for node in kernel.graph.nodes if node.op == "dot")
        self.sizes = sizes_of(self.dot)
        self.count, (self.width, self.groups, self.parts) = prod(kernel.domain.outer), columns_of(self.dot)
        self.steps = self.sizes.k // self.parts
        self.column, self.part = f"column{number}", f"part{number}"
        self.sum = f"sum{number}"
        threads, body = slices.threads, self.body
        body.line(f"int {self.column} = {_THREAD} % {self.groups};")
        body.line(f"int {self.part} = min({_THREAD} / {self.groups}, {self.parts - 1});")
        self.element, self.is_one_each = f"e{number}", self.count <= threads
        if self.is_one_each:
            body.line(f"int {self.element} = min({_THREAD}, {self.count - 1});")
        body.scopes[0].variables |= {self.column, self.part, self.element}
        same = [side for side in range(2) if inputs_of(self.dot.operands[side]) <= unchanging]
        for side in same:
            for step in range(min(kept // len(same), self.steps)):
                self._operand(side, step)

    def _at_columns(self) -> Coordinates:
        *ahead, last = self.kernel.domain.outer
        *at, along = unflatten(variable(self.column, self.groups), (*ahead, last // self.width))
        return (*at, linear([(along, self.width), (LANE, 1)]) if self.width > 1 else along)

    def _operand(self, side: int, step: int) -> GlslValue:
        """An operand's elements at the invocation's columns, at a step of its part of the sum."""
        at, sizes = self._at_columns(), self.sizes
        batch, rows = len(sizes.batch), len(sizes.batch) + len(sizes.rows)
        free = at[batch:rows] if side == 0 else at[rows:]
        summed = unflatten(linear([(variable(self.part, self.parts), self.steps)], step), sizes.summed)
        where = operand_at(self.dot, side, at[:batch], free, summed)
        with self.body.at({}):
            return self.body.value(self.dot.operands[side], where)

    def _read_ahead(self) -> None:
        """Reads what the epilogue takes from memory, if an invocation has one element of the product."""
        body, at = self.body, self.kernel.coordinates
        roots = [(node, at[node]) for node in self.kernel.graph.outputs] if self.is_one_each else []
        with body.at(at_row(variable(self.element, self.count), self.kernel)):
            for node, positions in accesses(self.kernel, roots).items():
                for position in positions if node not in body.held else ():
                    place = body.real(position)
                    text, kind = body.load_at(node, place).text, type_name(node.dtype, 1)
                    body.provide(node, place, GlslValue(body.declare(body.scopes[-1], kind, text), 1))

    def emit(self) -> None:
        body, threads = self.body, self.slices.threads
        kind = type_name(self.dot.dtype, self.width)
        self._read_ahead()
        with body.pinned_block(""):
            body.line(f"{kind} {self.sum} = {kind}(0);")
            for step in range(self.steps):
                left, right = (
                    widened(self._operand(side, step), self.width, self.dot.dtype) for side in range(2)
                )
                body.line(f"{self.sum} += {left} * {right};")
            used = self.groups * self.parts
            with body.block("" if used == threads else f"if ({_THREAD} < {used})"):
                place = f"{self.part} * {self.groups} + {self.column}"
                if self.width == VECTOR:
                    body.line(f"parts[{place}] = {self.sum};")
                else:
                    body.lines([f"int at = {place};", f"parts[at >> 2][at & 3] = {self.sum};"])
        body.lines(_BARRIER)
        e = self.element
        head = f"for (int {e} = {_THREAD}; {e} < {self.count}; {e} += {threads})"
        with body.pinned_block(f"if ({_THREAD} < {self.count})" if self.is_one_each else head):
            kind = type_name(self.dot.dtype, 1)
            body.line(f"{kind} whole = parts[{e} >> 2][{e} & 3];")
            for part in range(1, self.parts):
                first = part * self.count
                body.line(f"whole += parts[({first} + {e}) >> 2][({first} + {e}) & 3];")
            with body.at(at_row(variable(e, self.count), self.kernel)):
                body.define(self.dot, self.kernel.coordinates[self.dot], GlslValue("whole", 1))
                self.slices.write(self.kernel, self.writes)


def _steps_of(program: KernelProgram) -> list[KernelStep]:
    return [step for step in program.steps if isinstance(step, KernelStep)]


def _own(step: KernelStep) -> KernelStep:
    """The step with kernels of nodes that no other step has: values of equal nodes are kept apart."""
    return replace(step, kernels=tuple(map(_own_kernel, step.kernels)))


def _own_kernel(kernel: Kernel) -> Kernel:
    found = {node: input_node(node.name, node.type) for node in kernel.graph.inputs}
    for node in kernel.graph.nodes:
        found[node] = with_operands(node, tuple(found[operand] for operand in node.operands))
    graph = graph_of([found[node] for node in kernel.graph.inputs], [found[node] for node in kernel.graph.outputs])
    return replace(kernel, graph=graph, coordinates={found[node]: at for node, at in kernel.coordinates.items()})
