"""Small kernels that control flow itself needs: copies, counters, and loops whose lanes never meet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from lavax.ir.graph import Graph, Node, graph_of, input_node, make_node
from lavax.ir.types import TensorType, int32
from lavax.passes.fuse.lane_loops import at_lane
from lavax.passes.kernels.index import variable
from lavax.passes.kernels.kernel import Domain, Kernel, KernelStep
from lavax.passes.schedule.merge import merge_key

COUNTER = TensorType((), int32)


def _map_kernel(graph: Graph) -> Kernel:
    """The kernel that computes outputs of one shape, element by element."""
    shape = graph.outputs[0].shape
    variables = tuple(variable(f"o{number}", extent) for number, extent in enumerate(shape))
    return Kernel("map", graph, Domain(shape, (), variables, ()), dict.fromkeys(graph.outputs, variables))


def lane_kernel(graph: Graph, lanes: tuple[int, ...]) -> Kernel:
    """The kernel of a loop that runs lane by lane; of its results, what is carried is a scalar or has the lanes'
    shape, and what is stacked has an axis of turns before that."""
    return Kernel("loop", graph, Domain(lanes, (), at_lane(lanes, lanes), ()), {})


def slice_kernel(graph: Graph, slices: int) -> Kernel:
    """The kernel of a scan that so many workgroups run, each for its own rows of what is carried."""
    return Kernel("slices", graph, Domain((slices,), (), (variable("o0", slices),), ()), {})


def _copied(type: TensorType) -> Kernel:
    source = input_node("a0", type)
    return _map_kernel(graph_of((source,), (make_node("cast", (source,), {}, type),)))


def filled(*values: int) -> Kernel:
    """The kernel that writes these numbers."""
    return _map_kernel(graph_of((), [_number(value) for value in values]))


def incremented(*steps: int) -> Kernel:
    """The kernel that reads a number and writes it increased by each of these steps, which may be any integers."""
    source = input_node("a0", COUNTER)
    return _map_kernel(graph_of((source,), [make_node("add", (source, _number(_wrapped(step)))) for step in steps]))


def _wrapped(value: int) -> int:
    """The integer as 32 bits hold it."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def _number(value: int) -> Node:
    return make_node("constant", (), {"value": value}, COUNTER)


def step_of(name: str, kernel: Kernel, reads: Sequence[str], writes: Sequence[str]) -> KernelStep:
    """A dispatch of one kernel that waits for all earlier ones."""
    return KernelStep(name, (kernel,), (tuple(reads),), (tuple(writes),), barrier=True)


def side_by_side(steps: Iterable[KernelStep]) -> list[KernelStep]:
    """The steps, which wait for all earlier ones and not for each other."""
    return [replace(step, barrier=number == 0) for number, step in enumerate(steps)]


def copy_steps(
    name: str, sources: Sequence[str], targets: Sequence[str], types: Sequence[TensorType]
) -> list[KernelStep]:
    """Copies buffers; mergeable copies share a dispatch."""
    groups: dict[str, list[tuple[Kernel, str, str]]] = {}
    for source, target, type in zip(sources, targets, types, strict=True):
        if type.size:
            kernel = _copied(type)
            groups.setdefault(merge_key(kernel) or target, []).append((kernel, source, target))
    steps = []
    for number, group in enumerate(groups.values()):
        kernels, froms, tos = zip(*group, strict=True)
        reads, writes = tuple((each,) for each in froms), tuple((each,) for each in tos)
        steps.append(KernelStep(f"{name}{number}", kernels, reads, writes, barrier=number == 0))
    return steps
