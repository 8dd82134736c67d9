"""Graphs with calls of the host: programs of the device, with the calls, and the loops that hold some, between them."""
from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from lavax.ir import Graph
from lavax.ir.graph import Node
from lavax.passes.build.host_calls import divided, holds_host_calls
from lavax.passes.reports import Cost, Memory, Profile
from lavax.tracer.compiled.executable import Executable, refuse_tracers
from lavax.tracer.compiled.host_runs import run_by_host
from lavax.tracer.values.array import Array, with_weakness
from lavax.tracer.values.value import Value


class StagedExecutable:
    """A graph that calls the host, called as an Executable; each call of the host waits for the device.

    Donated arrays cannot be used afterwards, but their memory is not reused.
    """

    def __init__(
        self,
        graph: Graph,
        weak: Sequence[bool],
        captured: Sequence[Value] = (),
        donated: Sequence[int] = (),
        tune: bool = False,
    ) -> None:
        self._graph, self._stages = divided(graph)
        self._weak = tuple(weak)
        self._captured = tuple(captured)
        self._donated = tuple(donated)
        self._programs = [
            Executable(stage.graph, [False] * len(stage.outputs), tune=tune) for stage in self._stages
        ]
        self._calls = {call: run_by_host(call, executable) for stage in self._stages for call in stage.calls}
        self._results: dict[Node, list[Node]] = {call: [] for call in self._calls}
        for node in self._graph.nodes:
            if node.op == "item" and node.operands[0] in self._calls:
                self._results[node.operands[0]].append(node)

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """The outputs. Raises what the functions on the host raise."""
        every: list[Array] = [*arrays, *self._captured]  # type: ignore[list-item]  # tracers are refused below
        refuse_tracers(every)
        values = dict(zip(self._graph.inputs, every, strict=True))
        for stage, program in zip(self._stages, self._programs, strict=True):
            results = program([values[node] for node in stage.inputs])
            values.update(zip(stage.outputs, results, strict=True))
            for call in stage.calls:
                results = self._calls[call]([values[operand] for operand in call.operands])
                values.update((node, results[node.attrs["index"]]) for node in self._results[call])
        outputs = [
            with_weakness(values[node], weak) for node, weak in zip(self._graph.outputs, self._weak, strict=True)
        ]
        for position in self._donated:
            if not any(output is arrays[position] for output in outputs):
                arrays[position].donate()
        return outputs

    @property
    def held_bytes(self) -> int:
        """The device memory that the programs hold between calls."""
        return sum(program.held_bytes for program in self._programs)

    def cost(self) -> Cost:
        """Raises ValueError: there are several programs."""
        self._refuse("cost")

    def memory(self) -> Memory:
        """Raises ValueError: there are several programs."""
        self._refuse("memory")

    def profile(self, arrays: Sequence[Array]) -> Profile:
        """Raises ValueError: there are several programs."""
        self._refuse("profile")

    def _refuse(self, report: str) -> NoReturn:
        raise ValueError(f"{report}: a function that calls the host runs as several programs; ask for its parts")


def executable(
    graph: Graph,
    weak: Sequence[bool],
    captured: Sequence[Value] = (),
    donated: Sequence[int] = (),
    tune: bool = False,
    eager: bool = False,
) -> Executable | StagedExecutable:
    """A graph that can be called on arrays, in stages if it calls the host."""
    if holds_host_calls(graph):
        return StagedExecutable(graph, weak, captured, donated, tune)
    return Executable(graph, weak, captured, donated, tune, eager)
