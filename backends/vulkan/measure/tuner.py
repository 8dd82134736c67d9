"""Choice by measurement: the schedule of a kernel that was fastest on the device, found once and kept on disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Sequence
from math import isfinite

from lavax.backends.vulkan.compile.disk_cache import DiskCache
from lavax.backends.vulkan.emit.candidates import schedules_of
from lavax.backends.vulkan.emit.contract.choose import parts_candidates
from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.plan.plan import Plan
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base import counters
from lavax.base.errors import DeviceError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, graph_of, input_node, make_node
from lavax.ir.printer import structural_key
from lavax.ir.types import DType
from lavax.passes.kernels.kernel import Kernel, KernelStep, kernel_key
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.kernels.reads import READS
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.target.target import ANY_DEVICE

# The seconds of each plan, all over the same arguments of these dtypes; infinity if the device refuses a plan.
Measure = Callable[[Sequence[Plan], Sequence[DType]], Sequence[float]]


@dataclass(frozen=True)
class Tuning:
    """When measurements decide, and what is measured.

    Exercised by `LAVAX_TUNE=1 python -m benchmarks comparison --only matmul-1024`.
    """

    worth_it: float = 0.95  # the rules' choice stays unless another one takes this part of its time: times vary
    most_prologue: int = 32  # nodes between a contraction's operands and memory that are timed with it


_TUNING = Tuning()


class Records:
    """The fastest candidate per subject of a measurement. `device` names the device, the driver and lavax's version.

    An unreadable entry counts as missing.
    """

    def __init__(self, cache: DiskCache, device: str) -> None:
        self._cache, self._device = cache, device
        self._known: dict[str, str] = {}

    def winner(self, subject: str, names: Sequence[str]) -> str | None:
        """The fastest of these; None if it was never measured, or is no longer among them."""
        if subject not in self._known:
            found = self._read(subject)
            if found is not None:
                self._known[subject] = found
        winner = self._known.get(subject)
        return winner if winner in names else None

    def keep(self, subject: str, winner: str, seconds: Sequence[tuple[str, float]]) -> None:
        """Records the winner, with the times of all, for readers of the entry."""
        self._known[subject] = winner
        entry = {"winner": winner, "seconds": {name: taken for name, taken in seconds if isfinite(taken)}}
        self._cache.store(self._key(subject), json.dumps(entry).encode())

    def _read(self, subject: str) -> str | None:
        payload = self._cache.load(self._key(subject))
        if payload is None:
            return None
        try:
            winner = json.loads(payload)["winner"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        return winner if isinstance(winner, str) else None

    def _key(self, subject: str) -> str:
        return f"{self._device}\n{subject}"


class Tuner:
    """Chooses among candidates by their times, for one device. Safe in several threads."""

    def __init__(self, profile: DeviceProfile, records: Records, measure: Measure) -> None:
        self._profile, self._records, self._measure = profile, records, measure

    def schedule_of(self, kernel: Kernel) -> Hashable | None:
        """The fastest schedule of the kernel; None if there is no choice."""
        key, schedules = kernel_key(kernel), schedules_of(kernel, self._profile)
        if key is None or len(schedules) < 2:
            return None
        dtypes = [node.dtype for node in kernel.graph.inputs]
        program = by_itself(kernel)
        plans = [lambda way=way: emit_program(program, self._profile, choice=lambda _: way) for way in schedules]
        return schedules[self._best(f"kernel {key!r}", list(map(repr, schedules)), plans, dtypes)]

    def parts_of(self, dot: Node) -> int:
        """The number of parts of the contraction's sum with the fastest kernels, each with its fastest schedule."""
        numbers = parts_candidates(dot, self._profile)
        if len(numbers) < 2:
            return numbers[0]
        graph = with_prologue(dot)
        dtypes = [node.dtype for node in graph.inputs]
        plans = [lambda parts=parts: self._plan_in_parts(graph, parts) for parts in numbers]
        return numbers[self._best(f"parts {structural_key(graph)}", list(map(str, numbers)), plans, dtypes)]

    def _plan_in_parts(self, graph: Graph, parts: int) -> Plan:
        target = ANY_DEVICE.with_parts(lambda dot: parts)
        kernels = schedule(prepare(graph, target), target=target)
        return emit_program(kernels, self._profile, choice=self.schedule_of)

    def _best(
        self, subject: str, names: Sequence[str], plans: Sequence[Callable[[], Plan]], dtypes: Sequence[DType]
    ) -> int:
        """The position of the winner, recorded or measured now; 0 if none can be timed."""
        subject = f"{self._profile!r}\n{subject}"
        recorded = self._records.winner(subject, names)
        if recorded is not None:
            return names.index(recorded)
        try:
            seconds = self._measure([plan() for plan in plans], dtypes)
        except DeviceError:
            return 0
        counters.count("tunings")
        best = min(range(len(names)), key=lambda position: seconds[position])
        winner = best if seconds[best] < _TUNING.worth_it * seconds[0] else 0
        self._records.keep(subject, names[winner], list(zip(names, seconds, strict=True)))
        return winner


def by_itself(kernel: Kernel) -> KernelProgram:
    """A program of this kernel alone, whose arrays are the arguments and results."""
    graph = kernel.graph
    reads = tuple(node.name for node in graph.inputs)
    writes = tuple(f"%r{number}" for number in range(len(graph.outputs)))
    nodes = zip((*reads, *writes), (*graph.inputs, *graph.outputs), strict=True)
    sizes = {name: node.type.nbytes for name, node in nodes}
    step = KernelStep("k0", (kernel,), (reads,), (writes,), False)
    return KernelProgram(graph, (step,), writes, sizes, {}, {}, 0, ANY_DEVICE.largest_allocation, {})


def with_prologue(dot: Node) -> Graph:
    """The contraction with its prologue: the moves and elementwise operations between its operands and memory."""
    order: list[Node] = []
    seen: set[Node] = set()
    stack = [(dot, False)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            order.append(node)
        elif node not in seen and (node is dot or (node.op in READS and len(seen) <= _TUNING.most_prologue)):
            seen.add(node)
            stack.append((node, True))
            stack.extend((operand, False) for operand in node.operands)
    rebuilt: dict[Node, Node] = {}
    inputs: list[Node] = []
    for node in order:
        for operand in node.operands:
            if operand not in rebuilt:
                inputs.append(input_node(f"a{len(inputs)}", operand.type))
                rebuilt[operand] = inputs[-1]
        operands = tuple(rebuilt[operand] for operand in node.operands)
        rebuilt[node] = make_node(node.op, operands, node.attrs, node.type)
    return graph_of(tuple(inputs), (rebuilt[dot],))
