"""Scans whose rows never meet: each workgroup runs all turns for its own rows, which stay in shared memory.

The body over one workgroup's rows is scheduled like any graph. Its kernels are the parts of a turn, one after the other
with barriers between them. The invocations share the elements of a map. Of a product each has a few columns and a part
of the sum, so that all read the factor together that is the same in all turns; they keep what they can of it in
registers, from before the first turn. A second step adds up the parts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from lavax.backends.vulkan.emit.loop.slice_body import BARRIER, SLICE, THREAD, TURN, SliceBody
from lavax.backends.vulkan.emit.loop.slice_maps import SliceMap
from lavax.backends.vulkan.emit.loop.slice_parts import Part
from lavax.backends.vulkan.emit.loop.slice_products import SliceProduct
from lavax.backends.vulkan.emit.loop.slices_choice import SLICED_LOOPS, ScheduledSlices, scheduled_slices, threads_of
from lavax.backends.vulkan.glsl.expressions import VECTOR, type_name
from lavax.backends.vulkan.glsl.launch import WORKGROUP, Launch, grid, open_body_of, steps_of_stride
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node, graph_of, input_node, with_operands
from lavax.passes.kernels.index import Index, linear, variable
from lavax.passes.kernels.kernel import Kernel, KernelStep
from lavax.passes.kernels.program import KernelProgram


def emit_slices(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a scan of which each workgroup runs all turns for its rows."""
    body, outputs = open_body_of(SliceBody, kernel, lifted)
    loop, (slices,) = kernel.graph.nodes[0], kernel.domain.outer
    found = scheduled_slices(loop, slices)
    assert found is not None, "the scan's rows never meet"
    writing = _Slices(kernel, found, body, outputs)
    writing.emit()
    text = ShaderText(body.uses, body.scopes[0].lines, (writing.threads, 1), writing.shared)
    return Launch(assemble(text), tuple(body.parameters.words), grid(slices), text=text)


class _Slices:
    """The state of writing one kernel."""

    def __init__(self, kernel: Kernel, found: ScheduledSlices, body: SliceBody, outputs: dict[Node, str]) -> None:
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
        self.following: dict[str, str] = {}  # the addresses of sequences' rows of the next turn
        contractions = (pair for pair in _with_reads(_steps_of(self.program)) if pair[0].kind == "contract")
        self.factors = {name for _, reads in contractions for name in reads}

    def emit(self) -> None:
        body = self.body
        body.lines([f"int {THREAD} = int(gl_LocalInvocationIndex);", f"int {SLICE} = int({WORKGROUP});"])
        body.scopes[0].variables |= {THREAD, SLICE}
        self._declare()
        steps = list(map(_own, _steps_of(self.program)))
        maps = self._maps(steps)
        ahead = sum(len(each.variables) for each in maps.values())
        products = self._products(steps, VECTOR * SLICED_LOOPS.kept - ahead)
        needed = set[str]().union(*(each.buffers_ahead for each in maps.values()))
        first = self._rows(needed, str(self.length - 1) if self.loop.attrs["reverse"] else "0")
        for each in maps.values():
            each.begin(first)
        bound = body.parameters.unknown(self.length)
        with body.pinned_block(f"for (int {TURN} = 0; {TURN} < {bound}; ++{TURN})", frozenset((TURN,))):
            body.line(f"int here = {TURN} & 1;")
            self._aim(needed)
            for number, step in enumerate(steps):
                if step.barrier or number == 0 or step.kernel.kind == "contract":
                    body.lines(BARRIER)
                for kernel, reads, writes in zip(step.kernels, step.reads, step.writes, strict=True):
                    self._emit(kernel, reads, writes, maps, products)
        body.lines(BARRIER)
        self._finish()

    def _emit(
        self,
        kernel: Kernel,
        reads: Sequence[str],
        writes: Sequence[str],
        maps: Mapping[Kernel, SliceMap],
        products: Mapping[Kernel, SliceProduct],
    ) -> None:
        """A kernel of a turn."""
        self._bind(kernel, reads, writes)
        if kernel in products:
            products[kernel].emit(lambda: self._write(kernel, writes))
            return

        def write(part: Part) -> None:
            self._bind(part.kernel, reads, writes, part.start)
            self._write(part.kernel, writes, part.start)

        maps[kernel].emit(write, self.following)

    # -- arrays -------------------------------------------------------------------------------------------------------

    def _declare(self) -> None:
        """Arrays in shared memory, of carries twice: a turn reads one half and writes the other."""
        inputs = self.program.graph.inputs
        for number, (node, (position, is_cut)) in enumerate(zip(inputs, self.sliced.inputs, strict=True)):
            if number < self.carries:
                self._carry(number, node, position)
            elif position >= self.carries + self.loop.attrs["sequences"]:
                address = self.operands[position]
                self.addresses[node.name] = self._behind(address, SLICE, node.type.nbytes) if is_cut else address
                self.kept.add(node.name)
        for step in _steps_of(self.program):
            for kernel, writes in zip(step.kernels, step.writes, strict=True):
                for node, name in zip(kernel.graph.outputs, writes, strict=True):
                    if name in self.program.offsets:
                        array = self._array(node, name, f"t{len(self.shared)}", 1)
                        self.places[name] = self.targets[name] = array, ""

    def _carry(self, number: int, node: Node, position: int) -> None:
        size, operand = node.type.size, self.loop.operands[position]
        result = self.program.results[number]
        changes = result != node.name
        array = self._array(node, node.name, f"c{number}", 1 + changes)
        self.places[node.name] = array, f"here * {size} + " if changes else ""
        if changes:
            self.targets[result] = self.places[result] = array, f"(1 - here) * {size} + "
        with self._elements(size):
            value = self.body.load_at(operand, self._of_slice(size, self.sliced.cut[number]))
            self.body.line(f"{self.body.shared_element(array, 'e')} = {value.text};")

    def _array(self, node: Node, buffer: str, name: str, times: int) -> str:
        """An array in shared memory for a buffer: of vectors if products read it."""
        size, kind = max(node.type.size, 1), type_name(node.dtype, 1)
        if buffer in self.factors and kind == "float" and size % VECTOR == 0:
            self.body.in_fours.add(name)
            self.shared.append(f"shared vec4 {name}[{size * times // VECTOR}];")
        else:
            self.shared.append(f"shared {kind} {name}[{size * times}];")
        return name

    def _elements(self, size: int) -> AbstractContextManager[None]:
        head = f"for (int e = {THREAD}; e < {size}; e += {self.threads})"
        return self.body.pinned_block(head, frozenset(("e",)))

    def _of_slice(self, size: int, is_cut: bool) -> Index:
        """The position of the slice's element `e` of an array whose slices have so many."""
        e = variable("e", size)
        return linear([(variable(SLICE, self.slices), size), (e, 1)]) if is_cut else e

    def _behind(self, address: str, number: str, nbytes: int) -> str:
        for step in steps_of_stride(nbytes):
            address = f"{self.body.uses.access('behind')}({address}, {number}, {step}u)"
        return self.body.declare(self.body.scopes[-1], "uint64_t", address)

    def _rows(self, buffers: Collection[str], row: str) -> dict[str, str]:
        """The addresses of the slice's part of a row of sequences, by the buffers that the kernels read them in."""
        found, loop = {}, self.loop
        for node, (position, is_cut) in zip(self.program.graph.inputs, self.sliced.inputs, strict=True):
            if self.carries <= position < self.carries + loop.attrs["sequences"] and node.name in buffers:
                nbytes = loop.operands[position].type.nbytes // self.length
                address = self._behind(self.operands[position], row, nbytes)
                found[node.name] = self._behind(address, SLICE, node.type.nbytes) if is_cut else address
        return found

    def _aim(self, ahead: Collection[str]) -> None:
        """The rows of a turn: of sequences, and of what is stacked; and of the sequences `ahead` those of the next."""
        body, loop = self.body, self.loop
        row, following = TURN, f"min({TURN} + 1, {self.length - 1})"
        if loop.attrs["reverse"]:
            row = body.declare(body.scopes[-1], "int", f"({self.length - 1} - {TURN})")
            following = f"max({row} - 1, 0)"
        self.addresses |= self._rows([node.name for node in self.program.graph.inputs], row)
        if ahead:
            self.following = self._rows(ahead, body.declare(body.scopes[-1], "int", following))
        for position in range(self.carries, len(self.sliced.cut)):
            name, node = self.program.results[position], self.program.graph.outputs[position]
            nbytes = node.type.nbytes * (self.slices if self.sliced.cut[position] else 1)
            address = self._behind(self.results[position], row, nbytes)
            is_cut = self.cut_results[name] = self.sliced.cut[position]
            self.addresses[name] = self._behind(address, SLICE, node.type.nbytes) if is_cut else address

    def _finish(self) -> None:
        """What is carried, from shared memory to the results."""
        body = self.body
        for number, node in enumerate(self.program.graph.inputs[: self.carries]):
            if number not in self.results:
                continue
            size, (name, first) = node.type.size, self.places[node.name]
            at = first.replace("here", str(self.length & 1))
            is_cut = self.sliced.cut[number]
            with body.block("" if is_cut else f"if ({SLICE} == 0)"), self._elements(size):
                index = body.index(self._of_slice(size, is_cut))
                element = body.shared_element(name, f"{at}e")
                body.line(body.memory.stored(node.dtype, self.results[number], index, element))

    # -- kernels ------------------------------------------------------------------------------------------------------

    def _bind(self, kernel: Kernel, reads: Sequence[str], writes: Sequence[str], start: int = 0) -> None:
        """Says where the kernel's arrays are; it writes from the element `start` on."""
        body = self.body
        # Another kernel may have had the same node elsewhere, such as a constant.
        for node in (*kernel.graph.inputs, *kernel.graph.outputs):
            body.held.pop(node, None)
        for node, name in zip(kernel.graph.inputs, reads, strict=True):
            if name in self.places:
                body.held[node] = self.places[name]
            else:
                body.addresses[node] = self.addresses[name]
        for node, name in zip(kernel.graph.outputs, writes, strict=True):
            if name in self.targets:
                array, first = self.targets[name]
                body.held[node] = array, f"{first}{start} + " if start else first

    def _write(self, kernel: Kernel, writes: Sequence[str], start: int = 0) -> None:
        """Writes the results at one place of the kernel's loops, so many elements further on."""
        body, at = self.body, kernel.coordinates
        values = {node: body.value(node, at[node]) for node in kernel.graph.outputs}
        for (node, value), name in zip(values.items(), writes, strict=True):
            address, is_own = self.addresses.get(name, ""), name in self.targets or self.cut_results[name]
            with body.block("" if is_own else f"if ({SLICE} == 0)"):
                if start and address:
                    address = self._behind(address, str(start), node.dtype.storage.itemsize)
                body.store(node, at[node], value, address)

    def _maps(self, steps: Sequence[KernelStep]) -> dict[Kernel, SliceMap]:
        """The maps, of which those that are first in a turn load rows ahead, as many as there are registers for."""
        found: dict[Kernel, SliceMap] = {}
        rows, left = self._sequences(), SLICED_LOOPS.ahead
        for kernel, reads in _with_reads(steps):
            if kernel.kind != "contract":
                made = SliceMap(self.body, kernel, reads, rows, self.threads, len(found))
                if len(made.variables) > left:
                    made.forget()
                found[kernel] = made
                left -= len(made.variables)
        return found

    def _sequences(self) -> set[str]:
        """The buffers that hold a turn's rows."""
        first, end = self.carries, self.carries + self.loop.attrs["sequences"]
        pairs = zip(self.program.graph.inputs, self.sliced.inputs, strict=True)
        return {node.name for node, (position, _) in pairs if first <= position < end}

    def _products(self, steps: Sequence[KernelStep], registers: int) -> dict[Kernel, SliceProduct]:
        """The products, with what is the same in all turns read before the first one, into so many registers."""
        found: dict[Kernel, SliceProduct] = {}
        products = [(kernel, reads) for kernel, reads in _with_reads(steps) if kernel.kind == "contract"]
        for kernel, reads in products:
            unchanging = {node for node, name in zip(kernel.graph.inputs, reads, strict=True) if name in self.kept}
            for node, name in zip(kernel.graph.inputs, reads, strict=True):
                if name in self.kept:
                    self.body.addresses[node] = self.addresses[name]
            share = registers // len(products)
            found[kernel] = SliceProduct(self.body, kernel, self.threads, len(found), unchanging, share)
        if found:
            size = max(product.parts * product.count for product in found.values())
            self.shared.append(f"shared vec4 parts[{-(-size // VECTOR)}];")
        return found


def _steps_of(program: KernelProgram) -> list[KernelStep]:
    return [step for step in program.steps if isinstance(step, KernelStep)]


def _with_reads(steps: Sequence[KernelStep]) -> Iterator[tuple[Kernel, Sequence[str]]]:
    for step in steps:
        yield from zip(step.kernels, step.reads, strict=True)


def _own(step: KernelStep) -> KernelStep:
    """The step with kernels of nodes that no other step has: values of equal nodes are kept apart."""
    return replace(step, kernels=tuple(map(_own_kernel, step.kernels)))


def _own_kernel(kernel: Kernel) -> Kernel:
    found = {node: input_node(node.name, node.type) for node in kernel.graph.inputs}
    for node in kernel.graph.nodes:
        found[node] = with_operands(node, tuple(found[operand] for operand in node.operands))
    graph = graph_of([found[node] for node in kernel.graph.inputs], [found[node] for node in kernel.graph.outputs])
    return replace(kernel, graph=graph, coordinates={found[node]: at for node, at in kernel.coordinates.items()})
