"""The elements of its inputs that a kernel reads, as index expressions in its loop variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lavax.ir.graph import INPUT, Node
from lavax.ir.ops.indexing import SCATTERS
from lavax.passes.kernels.index import ZERO, Index, flatten
from lavax.passes.kernels.kernel import Kernel, once_a_kernel
from lavax.passes.kernels.reads import READS, Coordinates, lies_end_to_end


def accesses(
    kernel: Kernel, roots: list[tuple[Node, Coordinates]], joined: bool = False
) -> dict[Node, dict[Index, None]]:
    """For each input reached from `roots`, the row-major positions read. Stops at reductions and contractions.

    If `joined`, inputs that lie end to end are one array, as they are for shaders that choose among addresses. The
    positions are the keys of a dictionary rather than a set, because a set's order differs between processes.
    """
    found: dict[Node, dict[Index, None]] = {}
    seen: set[tuple[Node, Coordinates]] = set()
    stack = list(roots)
    while stack:
        node, at = stack.pop()
        if (node, at) in seen:
            continue
        seen.add((node, at))
        if node.op == INPUT or (joined and lies_end_to_end(node)):
            found.setdefault(node, {})[flatten(at, node.shape)] = None
        elif node.op in READS:
            stack.extend(READS[node.op](node, at))
    return found


def roots_of(kernel: Kernel) -> list[tuple[Node, Coordinates]]:
    """Everything the kernel computes: outputs, and the operands of reductions, with their coordinates."""
    roots: list[tuple[Node, Coordinates]] = []
    for node, at in kernel.coordinates.items():
        if node.op in READS:
            roots.append((node, at))
        elif kernel.kind == "row":
            roots.append((node.operands[0], operand_coordinates(node, at, kernel)))
    return roots


def _roots_before(kernel: Kernel) -> list[tuple[Node, Coordinates]]:
    """What a row kernel computes before the results that have one element per row.

    The invocations that share a row go through it at their own pace, so one of them may still read while another one
    writes the row's results.
    """
    last = [(node, kernel.coordinates[node]) for node in kernel.graph.outputs if kernel.is_row_level(node)]
    return [root for root in roots_of(kernel) if root not in last]


def operand_coordinates(reduction: Node, at: Coordinates, kernel: Kernel) -> Coordinates:
    """The coordinates at which a reduction reads its operand, once per element of the row."""
    attrs = reduction.attrs
    axes = attrs["axes"] if "axes" in attrs else (attrs["axis"],)
    outside = iter(at)
    operand = reduction.operands[0]
    proper = iter([index for index in kernel.domain.reduced_variables if not index.is_constant])
    return tuple(
        (ZERO if operand.shape[axis] == 1 else next(proper)) if axis in axes else next(outside)
        for axis in range(len(operand.shape))
    )


@once_a_kernel
def is_pointwise(kernel: Kernel, read: Node, written: Node) -> bool:
    """Whether each element of the input is read only by the invocation that writes the output's same element."""
    if kernel.kind == "routine":
        return updated_in_place(kernel) is read
    if kernel.kind == "region":
        return False
    if kernel.kind == "row" and kernel.is_row_level(written) and read in accesses(kernel, _roots_before(kernel)):
        return False
    operands = (operand for node in kernel.coordinates for operand in _dots(node))
    if kernel.kind in ("contract", "gates") and any(read in _cone(operand) for operand in operands):
        return False
    positions = _all_accesses(kernel).get(read, {})
    return positions.keys() <= {flatten(kernel.coordinates[written], written.shape)}


@once_a_kernel
def _all_accesses(kernel: Kernel) -> Mapping[Node, Mapping[Index, None]]:
    return accesses(kernel, roots_of(kernel))


# Which may change an array where it lies.
UPDATES = frozenset((*SCATTERS, "join_places", "join_rows", "join_runs", "link_rows"))


@once_a_kernel
def updated_in_place(kernel: Kernel) -> Node | None:
    """The input that a scatter updates, if the kernel uses that input for nothing else."""
    node, *others = kernel.graph.outputs
    if others or node.op not in UPDATES:
        return None
    array, *rest = node.operands
    return array if array.op == INPUT and not any(array in _cone(operand) for operand in rest) else None


def array_in_place(
    kernel: Kernel, reads: Sequence[str], writes: Sequence[str], donors: Mapping[str, str]
) -> Node | None:
    """The input that a scatter updates, if it lies in the result's memory already: there is nothing to copy.

    `reads` and `writes` name the buffers of the kernel's inputs and outputs, `donors` those whose memory results take.
    """
    array = updated_in_place(kernel)
    if array is None:
        return None
    read, written = reads[kernel.graph.inputs.index(array)], writes[0]
    return array if written == read or donors.get(written) == read else None


def _dots(node: Node) -> tuple[Node, ...]:
    return node.operands if node.op not in READS else ()


def _cone(node: Node) -> set[Node]:
    found: set[Node] = set()
    stack = [node]
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack.extend(node.operands[:1] if node.op == "barrier" else node.operands)  # it waits for the second one
    return found
