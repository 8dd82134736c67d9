"""Loops that run lane by lane: one invocation per lane runs all turns, with what is carried in registers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext

from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.expressions import literal, type_name
from lavax.backends.vulkan.glsl.lanes import GlslValue
from lavax.backends.vulkan.glsl.launch import Launch, grid, local_invocations, open_body, open_invocations
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node
from lavax.passes.build.control_flow import parts_of
from lavax.passes.fuse.lane_loops import MOST_TURNS_IN_LOOP, at_lane, most_turns, own_condition, rows_of, rows_read
from lavax.passes.kernels.index import Index, linear, unflatten, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates
from lavax.passes.target.kernel_limits import MAX_LOOP_ITERATIONS

Row = tuple[Node, Coordinates]


@dataclass(frozen=True)
class ReadAhead:
    """Turns whose rows are loaded at once: what a turn stores would keep the next one's loads waiting for memory.

    docs/performance/loops_on_gpus.md, "Loops lane by lane".
    """

    turns: int = 16
    loads: int = 32  # of all those turns, which are held in registers; and of what no turn changes
    nodes: int = 256  # of all those turns: drivers compile longer shaders for seconds


READ_AHEAD = ReadAhead()


def emit_lane_loop_in_loop(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The same as a part of a loop that asks on after a few turns, and counts them whether they run or not."""
    return emit_lane_loop(kernel, profile, lifted, MOST_TURNS_IN_LOOP)


def emit_lane_loop(kernel: Kernel, profile: DeviceProfile, lifted: bool, turns: int = MAX_LOOP_ITERATIONS) -> Launch:
    """The shader of a loop that runs lane by lane; of turns that nobody knows beforehand, no more than that many."""
    body, outputs = open_body(kernel, lifted)
    local = local_invocations(profile)
    count = kernel.domain.rows
    open_invocations(body, count, local, "i")
    meaning = {f"lane{axis}": index for axis, index in enumerate(unflatten(variable("i", count), kernel.domain.outer))}
    with body.at(meaning):
        _LaneLoop(kernel, body, outputs, turns).emit()
    text = ShaderText(body.uses, body.scopes[0].lines, (local, 1))
    return Launch(assemble(text), tuple(body.parameters.words), grid(-(-count // local)), text=text)


class _LaneLoop:
    """The state of writing one kernel."""

    def __init__(self, kernel: Kernel, body: Body, outputs: dict[Node, str], turns: int) -> None:
        self.body, self.outputs, self.lanes, self.turns = body, outputs, kernel.domain.outer, turns
        self.loop, self.results = kernel.graph.nodes[0], kernel.graph.outputs
        self.rows = rows_of(self.loop)

    def emit(self) -> None:
        loop, body = self.loop, self.body
        carries = loop.attrs["carries"] if loop.op == "scan" else len(parts_of(loop))
        registers = [self._register(x, self._value(x)) for x in loop.operands[:carries]]
        if loop.op == "scan":
            self._scan(loop, registers, is_outermost=True)
        else:
            self._while(loop, registers)
        for result in self.results:
            position = result.attrs["index"]
            if position >= carries:
                continue
            with body.block("" if result.shape == self.lanes else "if (i == 0)"):
                body.store(result, self._at(result), registers[position], self.outputs[result])

    def _at(self, node: Node) -> Coordinates:
        return at_lane(node.shape, self.lanes)

    def _value(self, node: Node) -> GlslValue:
        return self.body.value(node, self._at(node))

    def _register(self, node: Node, start: GlslValue) -> GlslValue:
        """A variable of its own that starts with a value."""
        return GlslValue(self.body.declare(self.body.scopes[-1], type_name(node.dtype, 1), start.text), 1)

    # -- loops and branches -------------------------------------------------------------------------------------------

    def _scan(self, loop: Node, registers: Sequence[GlslValue], is_outermost: bool = False) -> None:
        """The turns of a scan. Sequences and stacked results are those of the kernel."""
        body, length = self.body, loop.attrs["length"]
        turn, carries = body.name(), loop.attrs["carries"]
        others = loop.operands[carries + loop.attrs["sequences"] :]
        unchanging = [self._unchanging(operand) for operand in others]
        read = rows_read(loop, self.lanes, not self.body.parameters.lifted) if is_outermost else []
        self._read_ahead(loop, read)
        together = _turns_together(loop, read) if is_outermost else 1
        whole = length - length % together
        bounds = [body.parameters.unknown(end) if is_outermost else str(end) for end in sorted({whole, length})]
        steps = [(f"int {turn} = 0", bounds[0], together, whole), (f"int {turn} = {bounds[0]}", bounds[-1], 1, length)]
        for first, bound, step, end in steps[: len(bounds)]:
            with self._pinned(f"for ({first}; {turn} < {bound}; {turn} += {step})", turn):
                here = variable(turn, end - step + 1)
                places = [linear([(here, 1)], number) for number in range(step)]
                places = [linear([(place, -1)], length - 1) if loop.attrs["reverse"] else place for place in places]
                rows = [self._rows(loop, read, place) for place in places]
                for place, row in zip(places, rows, strict=True):
                    with self._pinned("") if step > 1 else nullcontext():
                        for (node, at), value in row.items():
                            body.define(node, at, value)
                        self._turn(loop, registers, unchanging, place if is_outermost else None)

    def _turn(
        self, loop: Node, registers: Sequence[GlslValue], unchanging: Sequence[GlslValue | None], here: Index | None
    ) -> None:
        """One turn of a scan, whose rows are defined; `here` is its row of the results."""
        attrs = loop.attrs
        others = [*[None] * attrs["sequences"], *unchanging]
        found = self._graph(attrs["body"], loop.operands, others, registers)
        if here is not None:
            self._stack(loop, here, found)
        self._assign(registers, found, attrs["body"])

    def _stack(self, loop: Node, here: Index, found: Sequence[GlslValue]) -> None:
        """Stores what a turn stacks."""
        for result in self.results:
            position = result.attrs["index"]
            if position >= loop.attrs["carries"]:
                at = self._at(loop.attrs["body"].outputs[position])
                self.body.store(result, (here, *at), found[position], self.outputs[result])

    def _read_ahead(self, loop: Node, read: Iterable[Row]) -> None:
        """Loads what all turns read of arrays that do not change."""
        others = _operand_of(loop, loop.attrs["carries"] + loop.attrs["sequences"], None)
        for node, at in [row for row in read if row[0] in others][: READ_AHEAD.loads]:
            self.body.define(node, at, self.body.value(others[node], at))

    def _rows(self, loop: Node, read: Iterable[Row], here: Index) -> dict[Row, GlslValue]:
        """What a turn reads of its elements of the sequences."""
        taken = _operand_of(loop, loop.attrs["carries"], loop.attrs["carries"] + loop.attrs["sequences"])
        return {(node, at): self.body.value(taken[node], (here, *at)) for node, at in read if node in taken}

    def _while(self, loop: Node, registers: Sequence[GlslValue]) -> None:
        """Turns while the condition holds, but no more than a dispatch takes."""
        body, turn = self.body, self.body.name()
        given = list(map(self._unchanging, loop.operands[len(registers) :]))
        bound = body.parameters.unknown(min(self.turns, most_turns(loop, self.lanes)))
        with self._pinned(f"for (int {turn} = 0; {turn} < {bound}; ++{turn})", turn):
            asked = loop.attrs["condition"]
            own = Graph(asked.inputs, asked.nodes, (own_condition(loop, self.lanes),))
            (holds,) = self._graph(own, loop.operands, given, registers)
            body.line(f"if (!{holds.text}) break;")
            found = self._graph(loop.attrs["body"], loop.operands, given, registers)
            self._assign(registers, found, loop.attrs["body"])

    def _inner(self, node: Node, graph: Graph) -> None:
        """A loop or branch inside a body, whose results get registers."""
        if node.op == "scan":
            count = node.attrs["carries"]
            registers = [self._register(x, self._value(x)) for x in node.operands[:count]]
            self._scan(node, registers)
        else:
            registers = self._switch(node)
        for result in graph.nodes:
            if result.op == "item" and result.operands[0] is node:
                self.body.define(result, self._at(result), registers[result.attrs["index"]])

    def _switch(self, node: Node) -> list[GlslValue]:
        """The results of the branch of that number, or of the nearest one."""
        number, *operands = node.operands
        branches = node.attrs["branches"]
        chosen = self._value(number).text
        given = [self._unchanging(operand) for operand in operands]
        results = branches[0].outputs
        registers = [self._register(result, GlslValue(literal(0, result.dtype), 1)) for result in results]
        for case, branch in enumerate(branches):
            test = f"if ({chosen} <= {case})" if case < len(branches) - 1 else ""
            head = f"else {test}" if case else test
            with self._pinned(head.rstrip()):
                self._assign(registers, self._graph(branch, operands, given), branch)
        return registers

    def _unchanging(self, operand: Node) -> GlslValue | None:
        """A lane's element of a value that a loop or branch does not change; None for another array of the kernel's."""
        return self._value(operand) if operand.shape in (self.lanes, ()) else None

    def _graph(
        self,
        graph: Graph,
        operands: Sequence[Node],
        given: Sequence[GlslValue | None],
        carried: Sequence[GlslValue] = (),
    ) -> list[GlslValue]:
        """The outputs of a body, whose first inputs are the registers of what is carried. The others are what is given,
        or else the operands' arrays; what is carried is no longer what memory has."""
        body, first = self.body, len(carried)
        self._share_addresses(graph.inputs[first:], operands[first:])
        for node, value in zip(graph.inputs, [*carried, *given], strict=True):
            if value is not None:
                body.define(node, self._at(node), value)
        for node in graph.nodes:
            if node.op in ("scan", "switch"):
                self._inner(node, graph)
        return [self._value(output) for output in graph.outputs]

    def _share_addresses(self, inputs: Sequence[Node], operands: Sequence[Node]) -> None:
        """Inputs of a body lie where the operands do, but for rows of sequences, which move."""
        for node, operand in zip(inputs, operands, strict=True):
            if operand in self.body.addresses and node not in self.rows:
                self.body.addresses[node] = self.body.addresses[operand]
            if operand in self.body.unaligned:
                self.body.unaligned.add(node)

    # -- blocks -------------------------------------------------------------------------------------------------------

    def _pinned(self, head: str, *variables: str) -> AbstractContextManager[None]:
        """A block in which all is computed that is written in it: registers change from turn to turn."""
        return self.body.pinned_block(head, frozenset(variables))

    def _assign(self, registers: Sequence[GlslValue], found: Sequence[GlslValue], graph: Graph) -> None:
        """Gives registers their next values, none of which is another's register by then."""
        names = {register.text for register in registers}
        pairs = [(r, v, node) for r, v, node in zip(registers, found, graph.outputs, strict=False) if r.text != v.text]
        copied = [self._register(node, value) if value.text in names else value for _, value, node in pairs]
        self.body.lines(f"{r.text} = {value.text};" for (r, _, _), value in zip(pairs, copied, strict=True))


def _operand_of(loop: Node, first: int, end: int | None) -> dict[Node, Node]:
    """The operands that some inputs of a loop's body stand for."""
    return dict(zip(loop.attrs["body"].inputs[first:end], loop.operands[first:end], strict=True))


def _turns_together(loop: Node, read: Sequence[Row]) -> int:
    """The turns that are written out: as many as registers bear, or some less if the loop's are a multiple of them."""
    taken = _operand_of(loop, loop.attrs["carries"], loop.attrs["carries"] + loop.attrs["sequences"])
    loads, nodes = sum(node in taken for node, _ in read), loop.attrs["body"].nodes
    if not loads or any(node.op in ("scan", "switch") for node in nodes):
        return 1
    most = min(READ_AHEAD.turns, READ_AHEAD.loads // loads, READ_AHEAD.nodes // max(len(nodes), 1))
    length = loop.attrs["length"]
    return next((turns for turns in range(most, most // 2, -1) if length % turns == 0), max(1, min(most, length)))
