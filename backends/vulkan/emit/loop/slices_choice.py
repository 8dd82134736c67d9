"""Which scans workgroups run slice by slice (slices.py), and their bodies as kernels of one slice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import INPUT, Node, graph_of, make_node
from lavax.ir.types import DType, bool_, float32
from lavax.passes.build.contraction_geometry import neighbours_of, sizes_of
from lavax.passes.fuse.sliced_loops import SlicedBody, rows_of, sliced_body
from lavax.passes.kernels.kernel import Kernel, KernelStep
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.embedding import with_distinct_outputs
from lavax.passes.schedule.schedule import schedule
from lavax.passes.target.target import FusionLimits, Loops, Products, Target


@dataclass(frozen=True)
class SlicedLoops:
    """The scans that are run slice by slice. Measured on an H100 (docs/performance/loops_on_gpus.md).

    A turn reads at least what is the same in all turns and not in registers, from caches that give a processor some 64
    bytes a cycle: 1 MiB takes as long as the dispatches of a turn, 256 KiB a fifth of that.
    """

    threads: int = 512  # of a workgroup
    least_threads: int = 32
    kept: int = 24  # vectors of what is the same in all turns that an invocation keeps in registers
    ahead: int = 16  # numbers that an invocation loads a turn ahead, at most
    nbytes: int = 1 << 19  # that a turn reads of that, at most
    steps: int = 64  # of an invocation's part of a sum, at most: they are written out
    near: int = 1 << 12  # elements of a factor that may be read in any order
    kernels: int = 12
    elements: int = 1 << 11  # that a turn without products computes of a slice, at most
    turns: int = 8  # fewer do not pay for a shader of their own


SLICED_LOOPS = SlicedLoops()
# Kernels write copies, too, and what a product reads over and over is computed once.
_WITHIN = Target(
    Products(vectors_stay=True), fusion=FusionLimits(prologue_cost=0), loops=Loops(turns=2, write_copies=True)
)


@dataclass(frozen=True)
class ScheduledSlices:
    """A scan's body over the rows of one slice, and its kernels."""

    body: SlicedBody
    program: KernelProgram


def slices_of(loop: Node, profile: DeviceProfile) -> int:
    """The number of workgroups that run a scan, each for its own rows; 0 if it is no such scan, or is not worth it."""
    rows = rows_of(loop)
    if rows is None or profile.kind == "cpu" or loop.attrs["length"] < SLICED_LOOPS.turns:
        return 0
    limits = SLICED_LOOPS.threads <= profile.max_workgroup_invocations
    if not limits or not 2 <= rows <= profile.processors:
        return 0
    found = scheduled_slices(loop, rows)
    if found is None or _unchanging_bytes(loop, found) > SLICED_LOOPS.nbytes:
        return 0
    return rows if _shared_bytes(loop, found) <= profile.shared_memory_bytes else 0


def scheduled_slices(loop: Node, slices: int) -> ScheduledSlices | None:
    """The body over one slice of so many as kernels that a workgroup can run; None if there are others."""
    rows = rows_of(loop)
    sliced = None if rows is None else sliced_body(loop, rows // slices)
    if sliced is None:
        return None
    graph, carries = prepare(sliced.graph, _WITHIN), loop.attrs["carries"]
    kept = dict(enumerate(graph.inputs[:carries]))
    graph = with_distinct_outputs(graph, kept)
    program = schedule(graph, pairs={}, target=_WITHIN)
    if _reads_stacked(program, carries):
        copied = [x if x.op == INPUT else make_node("cast", (x,), {}, x.type) for x in graph.outputs[carries:]]
        graph = with_distinct_outputs(graph_of(graph.inputs, [*graph.outputs[:carries], *copied]), kept)
        program = schedule(graph, pairs={}, target=_WITHIN)
    steps = [step for step in program.steps if isinstance(step, KernelStep)]
    kernels = [kernel for step in steps for kernel in step.kernels]
    if len(steps) < len(program.steps) or not 0 < len(kernels) <= SLICED_LOOPS.kernels:
        return None
    if _reads_stacked(program, carries) or not all(map(_suits, kernels)):
        return None
    if not _has_products(kernels) and sum(kernel.domain.rows for kernel in kernels) > SLICED_LOOPS.elements:
        return None
    if any(_reads_along_sums(kernel, reads, program, carries) for kernel, reads in _with_reads(steps)):
        return None
    return ScheduledSlices(replace(sliced, graph=graph), program)


def threads_of(found: ScheduledSlices) -> int:
    """The invocations of a workgroup: maps have no use for more than their elements, and barriers wait for all."""
    kernels = [kernel for step in found.program.steps for kernel in step.kernels]  # type: ignore[union-attr]
    if _has_products(kernels):
        return SLICED_LOOPS.threads
    most = max(kernel.domain.rows for kernel in kernels)
    return min(SLICED_LOOPS.threads, max(1 << (most - 1).bit_length(), SLICED_LOOPS.least_threads))


def _has_products(kernels: Sequence[Kernel]) -> bool:
    return any(kernel.kind == "contract" for kernel in kernels)


def _reads_stacked(program: KernelProgram, carries: int) -> bool:
    """Whether a turn reads what it stacks, which is in other memory than what it keeps."""
    stacked = program.results[carries:]
    steps = (step for step in program.steps if isinstance(step, KernelStep))
    return any(name in stacked for step in steps for part in step.reads for name in part)


def _with_reads(steps: Sequence[KernelStep]) -> Iterator[tuple[Kernel, Sequence[str]]]:
    for step in steps:
        yield from zip(step.kernels, step.reads, strict=True)


def _reads_along_sums(kernel: Kernel, reads: Sequence[str], program: KernelProgram, carries: int) -> bool:
    """Whether a product reads a large factor from memory whose neighbours lie along the sum."""
    held = {node.name for node in program.graph.inputs[:carries]} | program.offsets.keys() | {*program.results}
    far = {node for node, name in zip(kernel.graph.inputs, reads, strict=True) if name not in held}
    for dot in (node for node in kernel.graph.nodes if node.op == "dot"):
        for side, operand in enumerate(dot.operands):
            near = neighbours_of(dot, side)
            if operand.type.size > SLICED_LOOPS.near and near.summed and not near.free and inputs_of(operand) & far:
                return True
    return False


def inputs_of(node: Node) -> set[Node]:
    """The inputs of a graph that a value is computed from."""
    found, stack = set(), [node]
    while stack:
        node = stack.pop()
        if node.op == INPUT:
            found.add(node)
        stack += node.operands
    return found


def columns_of(dot: Node) -> tuple[int, int, int]:
    """How many neighbouring elements an invocation adds up; by how many invocations; in how many parts of the sum."""
    count, k = dot.type.size, sizes_of(dot).k
    width = VECTOR if dot.shape and dot.shape[-1] % VECTOR == 0 else 1
    groups, parts = count // width, 1
    while groups * parts * 2 <= SLICED_LOOPS.threads and k % (parts * 2) == 0:
        parts *= 2
    return width, groups, parts


def _suits(kernel: Kernel) -> bool:
    arrays = (*kernel.graph.inputs, *kernel.graph.outputs)
    if not all(_has_words(node.dtype) and node.type.size for node in arrays):
        return False
    if kernel.kind != "contract":
        return kernel.kind == "map"
    (dot, *others) = [node for node in kernel.graph.nodes if node.op == "dot"]
    _, groups, parts = columns_of(dot)
    fits = bool(dot.shape) and groups <= SLICED_LOOPS.threads and sizes_of(dot).k <= SLICED_LOOPS.steps * parts
    return fits and not others and dot.dtype == float32


def _has_words(dtype: DType) -> bool:
    """Whether a word of shared memory holds such an element: floats of 16 bits as rounded ones of 32."""
    return dtype == bool_ or (dtype.bits == 16 and dtype.is_float) or (dtype.bits == 32 and dtype.storage.itemsize == 4)


def _unchanging_bytes(loop: Node, found: ScheduledSlices) -> int:
    """What a turn reads that is the same in all turns."""
    first = loop.attrs["carries"] + loop.attrs["sequences"]
    pairs = zip(found.body.graph.inputs, found.body.inputs, strict=True)
    return sum(node.type.nbytes for node, (position, _) in pairs if position >= first)


def _shared_bytes(loop: Node, found: ScheduledSlices) -> int:
    carried = sum(2 * node.type.size for node in found.body.graph.inputs[: loop.attrs["carries"]])
    aside = sum(found.program.sizes[name] for name in found.program.offsets)
    dots = [node for step in found.program.steps for node in _dots(step)]  # type: ignore[arg-type]
    parts = max((columns_of(dot)[2] * prod(dot.shape) for dot in dots), default=0)
    return 4 * carried + 4 * aside + 4 * parts + 16


def _dots(step: KernelStep) -> list[Node]:
    return [node for kernel in step.kernels for node in kernel.graph.nodes if node.op == "dot"]
