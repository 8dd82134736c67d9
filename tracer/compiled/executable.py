"""A graph that can be called on arrays."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from lavax.base import config
from lavax.base.errors import DeviceError, DonatedArrayError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir import Graph
from lavax.ir.graph import INPUT, Node, graph_of, make_node, substitute
from lavax.ir.location import user_error
from lavax.passes.build.inline import inline_calls
from lavax.passes.reports import Cost, Memory, Profile
from lavax.tracer.tracing.trace import active_trace
from lavax.tracer.tracing.tracer import Tracer, node_in, require_alive
from lavax.tracer.values.abstract import Abstract, abstract
from lavax.tracer.values.array import Array, computed_arrays, shared_scalar, splat_array
from lavax.tracer.values.backend import Buffer, LoweredProgram, Program, Run, runtime
from lavax.tracer.values.programs import program_for
from lavax.tracer.values.value import PythonScalar, Value


@dataclass(frozen=True, eq=False)
class ComputedPart:
    """The part of a graph that the device computes.

    An output that is an input is returned as a twin of the array that was passed in, and a constant output needs no
    memory: the program computes the other outputs, in order.
    """

    graph: Graph
    passed: dict[int, int]  # output -> input
    splats: dict[int, PythonScalar]  # output -> its value
    donated: tuple[int, ...]  # inputs whose memory the program may overwrite


def plan(graph: Graph, donated: Iterable[int] = ()) -> ComputedPart:
    """Divides the outputs of `graph` into computed, passed through and constant ones; a passed input is not donated."""
    position_of = {node: position for position, node in enumerate(graph.inputs)}
    passed = {k: position_of[output] for k, output in enumerate(graph.outputs) if output.op == INPUT}
    splats = {k: output.attrs["value"] for k, output in enumerate(graph.outputs) if output.op == "constant"}
    computed = [output for k, output in enumerate(graph.outputs) if k not in passed and k not in splats]
    kept = tuple(position for position in donated if position not in passed.values())
    apart = _apart(computed)
    part = graph if apart == [*graph.outputs] else graph_of(graph.inputs, apart)
    return ComputedPart(part, passed, splats, kept)


def _apart(outputs: Sequence[Node]) -> list[Node]:
    """The same outputs as distinct nodes: each gets memory of its own, because any of them may be donated later."""
    seen: set[Node] = set()
    apart = []
    for output in outputs:
        apart.append(make_node("reshape", (output,), {}, output.type) if output in seen else output)
        seen.add(output)
    return apart


class Executable:
    """A compiled graph with the arrays that it closes over; called with the arrays for its other inputs."""

    def __init__(
        self,
        graph: Graph,
        weak: Sequence[bool],
        captured: Sequence[Value] = (),
        donated: Sequence[int] = (),
        tune: bool = False,
        eager: bool = False,
    ) -> None:
        self._plan = plan(graph, donated)
        self._kinds = [abstract(node.type, w) for node, w in zip(graph.outputs, weak, strict=True)]
        fixed = {*self._plan.passed, *self._plan.splats}
        self._computed: list[Abstract] = [kind for k, kind in enumerate(self._kinds) if k not in fixed]
        self._is_plain = not fixed
        self._donated = self._plan.donated
        self._captured = tuple(captured)
        self._program: Program | None = None
        self._run: Run = _nothing
        if self._plan.graph.outputs:
            self._program = program_for(self._plan.graph, self._donated, eager, tune or config.tune())
            self._run = self._program.run

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """The outputs.

        Raises DonatedArrayError, before anything runs, if an array was donated earlier, or is both donated and read by
        this call.
        """
        if self._captured:
            arrays = [*arrays, *self._captured]  # type: ignore[list-item]  # tracers are refused below
        try:
            buffers = [array._buffer for array in arrays]
        except AttributeError:
            refuse_tracers(arrays)
            raise
        if not all(buffers):  # some are None
            buffers = [buffer or self._made(position, arrays[position]) for position, buffer in enumerate(buffers)]
        if self._donated:
            results = computed_arrays(self._computed, self._run_donating(arrays, buffers))
        else:
            results = computed_arrays(self._computed, self._run(buffers))
        return results if self._is_plain else self._assembled(results, arrays)

    def cost(self) -> Cost:
        """The operations and bytes of the kernels; outputs that are inputs or constants cost nothing."""
        return self._program.cost() if self._program is not None else Cost({})

    def memory(self) -> Memory:
        """The memory of the program and of a call; arrays that it closes over count as constants."""
        return memory_of(self._plan, self._program, self._captured)

    @property
    def held_bytes(self) -> int:
        """The device memory that the program holds between calls."""
        if self._program is None:
            return 0
        memory = self._program.memory()
        return memory.temporaries + memory.constants

    def profile(self, arrays: Sequence[Array]) -> Profile:
        """The times of the kernels for these arrays, which are not donated. Raises ValueError without kernels."""
        if self._program is None:
            raise ValueError("nothing is computed: all results are arguments or constants, so there is no profile")
        every: list[Array] = [*arrays, *self._captured]  # type: ignore[list-item]  # tracers are refused below
        refuse_tracers(every)
        return self._program.profile(*(array.buffer for array in every))

    def _assembled(self, computed: list[Array], arrays: Sequence[Array]) -> list[Array]:
        remaining = iter(computed)
        results = []
        for k, kind in enumerate(self._kinds):
            if k in self._plan.passed:
                results.append(arrays[self._plan.passed[k]].twin(kind.weak))
            elif k in self._plan.splats:
                results.append(splat_array(self._plan.splats[k], kind))
            else:
                results.append(next(remaining))
        return results

    def _made(self, position: int, array: Array) -> Buffer:
        """The buffer of an array that has none yet; scalars that are only read share one."""
        splat = array.splat
        if splat is None or array.shape or position in self._donated:
            return array.buffer
        return shared_scalar(splat, array.type.dtype)

    def _run_donating(self, arrays: Sequence[Array], buffers: Sequence[Buffer]) -> Sequence[Buffer]:
        """The run, which takes the donated arrays just before it starts; of several threads, one gets them."""
        if len(set(map(id, buffers))) != len(buffers):
            self._check_donation(arrays, buffers)
        donated = [arrays[position] for position in self._donated]
        claimed: list[Buffer] = []

        def claim() -> None:
            claimed.extend(array.buffer for array in donated)  # raises if another thread has donated one
            for array in donated:
                array.donate()

        try:
            return self._run(buffers, claim)
        except BaseException as error:
            if isinstance(error, DeviceError) and not error.has_begun:  # the device did not take the work
                for array, buffer in zip(donated, claimed, strict=False):
                    array.take_back(buffer)
            elif len(claimed) == len(donated):
                for array in donated:
                    if array.is_donated:
                        array.lose()
            raise

    def _check_donation(self, arrays: Sequence[Array], buffers: Sequence[Buffer]) -> None:
        """Raises DonatedArrayError if a donated buffer is also that of another input."""
        names = [node.name for node in self._plan.graph.inputs]
        first: dict[int, int] = {}
        for position, buffer in enumerate(buffers):
            other = first.setdefault(id(buffer), position)
            if other != position and (other in self._donated or position in self._donated):
                raise user_error(
                    DonatedArrayError,
                    f"the same array ({arrays[position].type}) is passed as {names[other]} and as {names[position]}, "
                    "and at least one of them is donated: its memory cannot be overwritten and read at once. Pass "
                    "copies (copy.copy(array)), or do not donate it",
                )


def memory_of(parts: ComputedPart, program: Program | LoweredProgram | None, captured: Sequence[Value]) -> Memory:
    """The memory of a program, None if nothing is computed, and of a call; captured arrays count as constants."""
    closed_over = sum(array.type.nbytes for array in captured)
    arguments = sum(node.type.nbytes for node in parts.graph.inputs)
    found = Memory(arguments) if program is None else program.memory()
    return replace(found, arguments=found.arguments - closed_over, constants=found.constants + closed_over)


def _nothing(buffers: Sequence[Buffer], claim: Callable[[], None] | None = None) -> Sequence[Buffer]:
    """The run of a program that computes no results."""
    if claim is not None:
        claim()
    return ()


def refuse_tracers(arrays: Iterable[Value]) -> None:
    """Raises TracerLeakError for a tracer outside its trace."""
    for array in arrays:
        if isinstance(array, Tracer):
            require_alive(array)


def _at_once(graph: Graph, weak: Sequence[bool]) -> Callable[[Sequence[Array]], list[Array]]:
    if runtime().refuses_nans:
        from lavax.tracer.compiled.nan_check import NaNChecked  # which imports this module

        return NaNChecked("a function that runs outside compile", graph, weak)
    from lavax.tracer.compiled.stages import executable  # which imports this module

    return executable(inline_calls(graph), weak)


def apply_graph(graph: Graph, values: Sequence[Value], weak: Sequence[bool]) -> list[Value]:
    """The outputs of `graph` for `values`, one per input: inlined into the active trace, or run at once."""
    trace = active_trace()
    if trace is None:
        return list(_at_once(graph, weak)(values))  # type: ignore[arg-type]  # outside a trace all are arrays
    replacements: dict[Node, Node] = {
        node: node_in(trace, value) for node, value in zip(graph.inputs, values, strict=True)
    }
    found = substitute(graph, replacements)
    return [Tracer(trace, found[output], w) for output, w in zip(graph.outputs, weak, strict=True)]
