"""Concatenations whose parts lie one after the other in memory, as a flat map for each part.

In one kernel each vector would read all parts and select: sixteen parts are read sixteen times over. A CPU driver does
what a selection skips, and reads by address where arrays are too many for descriptors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from math import prod

from lavax.backends.vulkan.emit.map.as_copies import as_copies
from lavax.backends.vulkan.emit.map.flat_map import BEGIN_BYTES, emit_flat_maps, suits_descriptors
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.plan import Copies
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, graph_of, input_node, make_node
from lavax.ir.operation import OPERATIONS
from lavax.passes.kernels.index import variable
from lavax.passes.kernels.kernel import Domain, Kernel
from lavax.passes.schedule.merge import merge_key


@dataclass(frozen=True)
class JoinedPart:
    """A part: its flat map, the numbers of the arrays that it reads, and how many bytes of the result are before it."""

    kernel: Kernel
    reads: tuple[int, ...]
    begin: int


@dataclass(frozen=True)
class Joined:
    """Exercised by `python -m benchmarks selection` (computed parts joined)."""

    elements: int = 1 << 14  # of a part, on average: a dispatch takes 20 to 40 µs


JOINED = Joined()


def joined_parts(kernel: Kernel, profile: DeviceProfile) -> list[JoinedPart]:
    """The parts of a kernel that only joins them; none if it does more, or a part is no flat map."""
    (result, *others) = kernel.graph.outputs
    if others or kernel.kind != "map" or result.op != "concatenate" or kernel.moving:
        return []
    variables = kernel.domain.outer_variables
    is_whole = kernel.domain.outer == result.shape and kernel.coordinates[result] == variables
    joined = _joined(result)
    if not is_whole or result.type.size < JOINED.elements * len(joined):
        return []
    if result.type.nbytes > profile.descriptor_range_bytes // 2:
        return []
    begins = accumulate((part.type.nbytes for part in joined[:-1]), initial=0)
    parts = [_part(kernel.graph, part, begin) for part, begin in zip(joined, begins, strict=True)]
    suited = (part is not None and _suits(part, profile) for part in parts)
    return [part for part in parts if part is not None] if all(suited) else []


def emit_joined_parts(
    parts: Sequence[JoinedPart], profile: DeviceProfile, lifted: bool
) -> Iterator[tuple[JoinedPart, Launch]]:
    """The launch of each part; parts of one form share a shader."""
    forms: dict[str | None, list[JoinedPart]] = {}
    for part in parts:
        forms.setdefault(merge_key(part.kernel), []).append(part)
    for alike in forms.values():
        kernels, begins = [part.kernel for part in alike], [part.begin for part in alike]
        yield from zip(alike, emit_flat_maps(kernels, profile, lifted, begins), strict=True)


def copies_of_part(part: JoinedPart, profile: DeviceProfile) -> Copies | None:
    """The copies that do without a part's shader, where it lies in the result."""
    found = as_copies(part.kernel, profile)
    if found is None or found.fills:
        return None
    behind = (
        tuple((source, part.begin + target, nbytes) for source, target, nbytes in copy.runs) for copy in found.copies
    )
    copies = (replace(copy, runs=runs) for copy, runs in zip(found.copies, behind, strict=True))
    return replace(found, copies=tuple(copies))


def _joined(result: Node) -> list[Node]:
    """What lies one after the other in a result, which may be a concatenation of concatenations."""
    found, stack = [], [result]
    while stack:
        node = stack.pop()
        if node.op == "concatenate" and prod(node.shape[: node.attrs["axis"]]) == 1:
            stack += reversed(node.operands)
        else:
            found.append(node)
    return found


def _suits(part: JoinedPart, profile: DeviceProfile) -> bool:
    return (
        part.begin % BEGIN_BYTES == 0
        and merge_key(part.kernel) is not None
        and suits_descriptors(part.kernel, profile)
    )


def _part(graph: Graph, part: Node, begin: int) -> JoinedPart | None:
    """The flat map of one part, over one axis; None if elements of others are needed."""
    needed = graph_of(graph.inputs, (part,))
    used = {operand for node in needed.nodes for operand in node.operands} | {part}
    reads = [number for number, node in enumerate(graph.inputs) if node in used]
    size = part.type.size
    renamed: dict[Node, Node] = {}
    for place, number in enumerate(reads):
        source = graph.inputs[number]
        if source.type.size not in (1, size):
            return None
        renamed[source] = input_node(f"a{place}", source.type.with_shape((size,) if source.type.size == size else ()))
    for node in needed.nodes:
        if node.type.size not in (1, size) or not _keeps_places(node):
            return None
        renamed[node] = _flat(node, [renamed[operand] for operand in node.operands], size)
    output = renamed[part]
    at = (variable("o0", size),)
    inputs = [renamed[graph.inputs[number]] for number in reads]
    flat = Kernel("map", graph_of(inputs, (output,)), Domain((size,), (), at, ()), {output: at})
    return JoinedPart(flat, tuple(reads), begin)


def _keeps_places(node: Node) -> bool:
    """Whether each element is made of those in its place, or of arrays of one element."""
    if node.op == "broadcast":
        return node.operands[0].type.size in (1, node.type.size)
    return node.op in ("constant", "reshape") or OPERATIONS[node.op].family == "elementwise"


def _flat(node: Node, operands: Sequence[Node], size: int) -> Node:
    """A node over one axis, or of one element."""
    type = node.type.with_shape((size,) if node.type.size == size else ())
    if node.op in ("reshape", "broadcast") and operands[0].shape == type.shape:
        return operands[0]
    return make_node(node.op, operands, {"axes": ()} if node.op == "broadcast" else node.attrs, type)
