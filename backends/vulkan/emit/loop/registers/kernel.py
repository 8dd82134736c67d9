"""Loops whose arrays stay in the registers of one subgroup, from turn to turn.

On CPU drivers a load or store by address is a loop over the lanes, and takes ten times as long as an operation on all
of them. In a loop over little data a turn is nothing but loads and stores. So one subgroup runs all turns, arrays that
it carries or reads lie in its registers (held.py), and lanes exchange elements by shuffles, which need no barrier.
Sequences are read and stacked rows written where they are. All is written out, so that this is for small arrays only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lavax.backends.vulkan.emit.loop.registers.held import LANES, Held, Statements, TooMuchError
from lavax.backends.vulkan.emit.loop.registers.nodes import check, check_dtype, computed, registers_of
from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.expressions import literal, type_name
from lavax.backends.vulkan.glsl.launch import Launch, grid, open_body
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Graph, Node
from lavax.passes.build.control_flow import parts_of
from lavax.passes.fuse.lane_loops import MOST_TURNS_IN_LOOP
from lavax.passes.fuse.register_loops import most_turns_in_registers
from lavax.passes.fuse.register_tables import TABLES, in_order, tables_of
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.target.kernel_limits import MAX_LOOP_ITERATIONS


def emit_register_loop_in_loop(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The same as a part of a loop that asks on after a few turns, and counts them whether they run or not."""
    return emit_register_loop(kernel, profile, lifted, MOST_TURNS_IN_LOOP)


def emit_register_loop(
    kernel: Kernel,
    profile: DeviceProfile,
    lifted: bool,
    turns: int = MAX_LOOP_ITERATIONS,
    most: int = 1 << 30,
) -> Launch:
    """The shader of a loop in registers. Raises TooMuchError beyond so many statements."""
    body, outputs = open_body(kernel, lifted)
    head = list(body.scopes[0].lines)
    body.scopes[0].lines.clear()
    statements = Statements(body, most)
    _RegisterLoop(kernel, statements, outputs, turns).emit()
    lines = [*head, *statements.constants(), *body.scopes[0].lines]
    text = ShaderText(body.uses, lines, (LANES, 1), subgroup_size=LANES, shuffles=True)
    return Launch(assemble(text), tuple(body.parameters.words), grid(1), text=text)


class _RegisterLoop:
    """The state of writing one kernel."""

    def __init__(self, kernel: Kernel, statements: Statements, outputs: Mapping[Node, str], turns: int) -> None:
        self.statements, self.outputs, self.turns = statements, outputs, turns
        self.body: Body = statements.body
        self.loop, self.results = kernel.graph.nodes[0], kernel.graph.outputs

    def emit(self) -> None:
        loop = self.loop
        carries = loop.attrs["carries"] if loop.op == "scan" else len(parts_of(loop))
        sequences = loop.attrs["sequences"] if loop.op == "scan" else 0
        read = [*loop.operands[:carries], *loop.operands[carries + sequences :]]
        in_memory, tables = _only_gathered_operands(loop), tables_of(loop)
        held = {
            x: Held((), x.dtype, x.type.size, self.body.addresses[x]) if x in in_memory else self._loaded(x)
            for x in dict.fromkeys(x for position, x in enumerate(loop.operands) if position not in tables)
            if x in read
        }
        carried = [
            self._table(position) if position in tables else self._variables(held[operand])
            for position, operand in enumerate(loop.operands[:carries])
        ]
        if loop.op == "scan":
            unchanging = [held[operand] for operand in loop.operands[carries + sequences :]]
            self._scan(loop, carried, unchanging, is_outermost=True)
        else:
            self._while(loop, carried, [held[operand] for operand in loop.operands[carries:]])
        for result in self.results:
            if result.attrs["index"] < carries and result.attrs["index"] not in tables:
                self._store(result, "0", carried[result.attrs["index"]])

    # -- memory -------------------------------------------------------------------------------------------------------

    def _table(self, position: int) -> Held:
        """The table that the loop carries at that position: its result, which begins as what it is given."""
        operand = self.loop.operands[position]
        (result,) = (result for result in self.results if result.attrs["index"] == position)
        address, memory, dtype = self.outputs[result], self.body.memory, operand.dtype
        place, bound = self.body.name(), self.body.parameters.unknown(operand.type.size)
        with self.statements.block(f"for (int {place} = lane; {place} < {bound}; {place} += {TABLES.copied})"):
            element = memory.loaded(dtype, self.body.addresses[operand], place)
            self.body.line(memory.stored(dtype, address, place, element))
        self.statements.spend(2 * LANES)
        self.statements.meet()
        return Held((), dtype, operand.type.size, address, is_table=True)

    def _loaded(self, array: Node, row: str = "", size: int | None = None) -> Held:
        """An array, or the row of that number."""
        size = array.type.size if size is None else size
        first, found = f"{row} * {size} + " if row else "", []
        address = self.body.addresses[array]
        for number in range(registers_of(size)):
            rest = size - number * LANES
            lane = "0" if size == 1 else "lane" if rest >= LANES else f"min(lane, {rest - 1})"
            text = self.body.memory.loaded(array.dtype, address, f"{first}{number * LANES} + {lane}")
            self.statements.spend_loads(address, 1)
            found.append(self.statements.variable(type_name(array.dtype, 1), text))
        return Held(tuple(found), array.dtype, size)

    def _store(self, result: Node, row: str, held: Held) -> None:
        """Writes a row of a result, or all of it."""
        address = self.outputs[result]
        for number, name in enumerate(held.names):
            rest = held.size - number * LANES
            test = f"if (lane < {rest})" if rest < LANES else ""
            self.statements.spend(LANES)
            with self.body.block(test):
                place = f"{row} * {held.size} + {number * LANES} + lane"
                self.body.line(self.body.memory.stored(result.dtype, address, place, name))

    # -- loops and branches -------------------------------------------------------------------------------------------

    def _variables(self, start: Held) -> Held:
        """Variables of their own that start with a value; a table stays where it is."""
        if start.is_table:
            return start
        kind = type_name(start.dtype, 1)
        return Held(tuple(self.statements.variable(kind, name) for name in start.names), start.dtype, start.size)

    def _scan(
        self, loop: Node, carried: Sequence[Held], unchanging: Sequence[Held], is_outermost: bool = False
    ) -> None:
        body, attrs = self.body, loop.attrs
        turn, length, carries = body.name(), attrs["length"], attrs["carries"]
        sequences = loop.operands[carries : carries + attrs["sequences"]]
        if not is_outermost and len(parts_of(loop)) + attrs["sequences"] > carries:
            raise TooMuchError
        bound = body.parameters.unknown(length)
        with self.statements.block(f"for (int {turn} = 0; {turn} < {bound}; ++{turn})"):
            here = f"({length - 1} - {turn})" if attrs["reverse"] else turn
            rows = [self._loaded(x, here, x.type.size // length) for x in sequences]
            found = self._graph(attrs["body"], [*carried, *rows, *unchanging])
            for result in self.results if is_outermost else ():
                if result.attrs["index"] >= carries:
                    self._store(result, here, found[result.attrs["index"]])
            self._assign(carried, found)

    def _while(self, loop: Node, carried: Sequence[Held], unchanging: Sequence[Held]) -> None:
        """Turns while the condition holds, but no more than a dispatch takes.

        The dispatch is for a condition that holds, so its first turn asks nothing: the kernels that asked may add in
        another order, and a dispatch that takes no turn would be repeated for ever.
        """
        turn = self.body.name()
        bound = self.body.parameters.unknown(min(self.turns, most_turns_in_registers(loop)))
        with self.statements.block(f"for (int {turn} = 0; {turn} < {bound}; ++{turn})"):
            (holds,) = self._graph(loop.attrs["condition"], [*carried, *unchanging])
            self.body.line(f"if ({turn} > 0 && !{holds.names[0]}) break;")
            self._assign(carried, self._graph(loop.attrs["body"], [*carried, *unchanging]))

    def _switch(self, node: Node, operands: Sequence[Held]) -> list[Held]:
        number, *given = operands
        branches = node.attrs["branches"]
        found = [self._variables(_zeros(output)) for output in branches[0].outputs]
        for case, branch in enumerate(branches):
            test = f"if ({number.names[0]} <= {case})" if case < len(branches) - 1 else ""
            with self.statements.block((f"else {test}" if case else test).rstrip()):
                self._assign(found, self._graph(branch, given))
        return found

    def _graph(self, graph: Graph, given: Sequence[Held]) -> list[Held]:
        """The outputs of a body with these inputs."""
        values = dict(zip(graph.inputs, given, strict=True))
        inner: dict[Node, Sequence[Held]] = {}
        nodes = in_order(graph, [node for node, held in values.items() if held.is_table])
        assert nodes is not None, "the tables of a loop have an order"
        for node in nodes:
            operands = [values[operand] for operand in node.operands if operand not in inner]
            match node.op:
                case "item":
                    values[node] = inner[node.operands[0]][node.attrs["index"]]
                case "scan":
                    carries = node.attrs["carries"]
                    inner[node] = [self._variables(held) for held in operands[:carries]]
                    self._scan(node, inner[node], operands[carries:])
                case "switch":
                    inner[node] = self._switch(node, operands)
                case "while":
                    raise TooMuchError
                case _:
                    values[node] = computed(self.statements, node, values)
        return [values[output] for output in graph.outputs]

    def _assign(self, carried: Sequence[Held], found: Sequence[Held]) -> None:
        """Gives variables their next values, none of which is another's variable by then."""
        pairs = [
            (name, text, type_name(held.dtype, 1))
            for held, value in zip(carried, found, strict=False)
            for name, text in zip(held.names, value.names, strict=True)
            if name != text
        ]
        names = {name for held in carried for name in held.names}
        copies = [self.statements.variable(kind, text) if text in names else text for _, text, kind in pairs]
        self.body.lines(f"{name} = {text};" for (name, _, _), text in zip(pairs, copies, strict=True))


def _zeros(node: Node) -> Held:
    check(node)
    return Held((literal(0, node.dtype),) * registers_of(node.type.size), node.dtype, node.type.size)


def _only_gathered_operands(loop: Node) -> set[Node]:
    """The operands of which a loop does nothing but gather: they are read where they are."""
    graphs = [loop.attrs[name] for name in ("condition", "body") if name in loop.attrs]
    moving = loop.attrs["carries"] + loop.attrs["sequences"] if loop.op == "scan" else len(parts_of(loop))
    others = set(loop.operands[:moving])
    return {
        operand
        for position, operand in enumerate(loop.operands)
        if operand not in others and all(_is_only_gathered(graph, graph.inputs[position]) for graph in graphs)
    }


def _is_only_gathered(graph: Graph, array: Node) -> bool:
    readers = [node for node in graph.nodes if array in node.operands]
    gathers = all(node.op == "gather" and array not in node.operands[1:] for node in readers)
    return gathers and array not in graph.outputs


def checked(loop: Node) -> None:
    """Raises TooMuchError if something that the loop carries, reads or stacks is not held in registers."""
    tables = tables_of(loop)
    for graph in (loop.attrs["body"], *([loop.attrs["condition"]] if loop.op == "while" else [])):
        for nodes in (graph.inputs, graph.outputs if graph is loop.attrs["body"] else ()):
            for position, node in enumerate(nodes):
                (check_dtype if position in tables else check)(node)
