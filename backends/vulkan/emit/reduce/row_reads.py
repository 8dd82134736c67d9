"""What a row kernel reads, and how much of it registers and shared memory hold: the facts that schedules depend on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod

from lavax.backends.vulkan.emit.reduce.online_sum import phases_of
from lavax.backends.vulkan.emit.reduce.shared_results import shared_results
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.lanes import LANE, LANE_NAME
from lavax.backends.vulkan.glsl.launch import at_element, at_row, placed
from lavax.backends.vulkan.glsl.reductions import POSITIONS
from lavax.ir.graph import Node
from lavax.passes.kernels.accesses import accesses, roots_of
from lavax.passes.kernels.index import (
    ZERO,
    Index,
    Quotient,
    constant,
    flatten,
    grows_by_one,
    grows_by_one_inside,
    linear,
    substitute,
    variable,
)
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates


def is_only_read(kernel: Kernel) -> bool:
    """Whether all results have one value per row."""
    return all(kernel.is_row_level(output) for output in kernel.graph.outputs)


def is_read_once(kernel: Kernel) -> bool:
    """Whether one walk over each row is all there is."""
    return is_only_read(kernel) and max(phases_of(kernel).values(), default=0) == 1


def bytes_of_partial_results(kernel: Kernel, width: int) -> int:
    """The shared memory of an invocation's partial results of `width` rows; no type is shorter than a word there."""
    once = shared_results(kernel) if width > 1 else ()
    found = 0
    for node in phases_of(kernel):
        value, position = (node.operands[0], 4) if node.op in POSITIONS else (node, 0)
        found += (1 if node in once else width) * (max(value.dtype.storage.itemsize, 4) + position)
    return found


def arrays_kept(kernel: Kernel) -> int:
    """How many arrays have elements of their own for each row and each element of it. On GPUs an element of arrays
    that lie end to end is read from one of them."""
    arrays = _accesses(kernel, joined=not kernel.paired).values()
    full = (any({"k", "row"} <= index.variables for index in positions) for positions in arrays)
    return max(sum(full), 1)


def reads_much_in_common(kernel: Kernel) -> bool:
    """Whether rows read at least as many bytes in common, each of them, as they have for themselves."""
    rows, most = kernel.domain.rows, kernel.domain.rows * kernel.domain.length
    own = common = 0
    for node, positions in _accesses(kernel).items():
        variables = frozenset[str]().union(*(index.variables for index in positions))
        nbytes = min(node.type.size, most) * node.dtype.storage.itemsize
        own += nbytes if {"k", "row"} <= variables else 0
        common += nbytes * rows if "k" in variables and "row" not in variables else 0
    return common >= own


def common_reads(kernel: Kernel, element: Index) -> dict[tuple[Node, str], Index]:
    """The positions at which all rows read arrays for an element of theirs, or four of them, by node and key."""
    row = variable("row", kernel.domain.rows)
    values = at_row(row, kernel) | at_element(element, kernel)
    roots: list[tuple[Node, Coordinates]] = [(node, placed(at, values)) for node, at in roots_of(kernel)]
    return {
        (node, index.key): index
        for node, found in accesses(kernel, roots).items()
        for index in found
        if "row" not in index.variables and not element.variables.isdisjoint(index.variables)
    }


def is_read_by_descriptor(kernel: Kernel) -> bool:
    """Whether what rows read for themselves is read through descriptors, whose ends drivers know."""
    described = {kernel.graph.inputs[number] for number in kernel.by_descriptor if number < len(kernel.graph.inputs)}
    own = {node for node, found in _accesses(kernel).items() if any("row" in index.variables for index in found)}
    return own <= described


def reads_in_common(kernel: Kernel) -> bool:
    """Whether all rows read the elements of some array, such as a vector that multiplies a matrix."""
    places = (index.variables for positions in _accesses(kernel).values() for index in positions)
    return any("k" in variables and "row" not in variables for variables in places)


def is_one_for_vector(kernel: Kernel, read: tuple[Node, Coordinates]) -> bool:
    """Whether an array has one element of 32 bits for all four elements of a vector, as for integers in its bits."""
    node, at = read
    row = variable("row", kernel.domain.rows)
    element = linear([(variable("k", kernel.domain.length // VECTOR), VECTOR), (LANE, 1)])
    places = placed(at, at_row(row, kernel) | at_element(element, kernel))
    return node.dtype.storage.itemsize == 4 and all(LANE.variables.isdisjoint(index.variables) for index in places)


def unit_strides(kernel: Kernel) -> tuple[int, int]:
    """How many elements are read as neighbours from element to element of a row, and how many from row to row.

    An array's elements count once per position at which they are read: numbers that all rows share, or that a row has
    once, are few. On GPUs words that each hold several elements of a row are its neighbours, too.
    """
    extents = {"row": kernel.domain.rows, "k": kernel.domain.length}

    def read(node: Node, index: Index) -> int:
        return min(node.type.size, prod(extent for name, extent in extents.items() if name in index.variables))

    reads = [(read(node, index), index) for node, found in _accesses(kernel).items() for index in found]
    grows = grows_by_one if kernel.paired else _grows_slowly
    along_row, along_rows = (sum(n for n, index in reads if grows(index, name)) for name in ("k", "row"))
    return along_row, along_rows


def _grows_slowly(index: Index, name: str) -> bool:
    """Whether the innermost part of the variable, or its quotient by a number, has stride 1."""
    quotients = (atom for atom, coefficient in index.terms if coefficient == 1 and isinstance(atom, Quotient))
    return grows_by_one_inside(index, name) or any(atom.dividend.key == name for atom in quotients)


def starts_of_rows(kernel: Kernel) -> tuple[int, int] | None:
    """By how much later than the one above each row begins, and where the first one does, behind multiples of four: in
    results that are rows, else in most of what is read. None if none has rows of neighbours that are evenly apart."""
    row, element = variable("row", kernel.domain.rows), variable("k", kernel.domain.length)
    values = at_row(row, kernel) | at_element(element, kernel)
    written = [
        flatten(placed(kernel.coordinates[output], values), output.shape)
        for output in kernel.graph.outputs
        if not kernel.is_row_level(output)
    ]
    most = kernel.domain.rows * kernel.domain.length
    read = [(index, min(node.type.size, most)) for node, found in _accesses(kernel).items() for index in found]
    votes: dict[tuple[int, int] | None, int] = {}
    for index, count in [(index, most) for index in written] or read:
        if grows_by_one_inside(index, "k") and "row" in index.variables:
            start = _start_of_rows(index, kernel.domain.rows)
            votes[start] = votes.get(start, 0) + count
    votes.pop(None, None)
    return max(votes, key=lambda start: votes[start], default=None)


def _start_of_rows(position: Index, rows: int) -> tuple[int, int] | None:
    """By how much later than the one above each row begins, and where the first one does, behind multiples of four.
    None if that is not the same for all fours of rows."""
    fours = variable("fours", -(-rows // VECTOR))
    begins: list[int] = []
    for number in range(VECTOR):
        of_row = substitute(position, {"row": linear([(fours, VECTOR)], number), "k": ZERO})
        if any(factor % VECTOR for _, factor in of_row.terms):
            return None
        begins.append(of_row.constant % VECTOR)
    stride, offset = (begins[1] - begins[0]) % VECTOR, begins[0]
    is_even = all(begin == (offset + number * stride) % VECTOR for number, begin in enumerate(begins))
    return (stride, offset) if is_even else None


def elements_of_step(kernel: Kernel, rows: Sequence[Index]) -> int:
    """How many elements an invocation with these rows reads for an element of each."""
    element = at_element(variable("k", kernel.domain.length), kernel)
    found: set[tuple[Node, str]] = set()
    for row in rows:
        values = at_row(row, kernel) | element
        roots: list[tuple[Node, Coordinates]] = [(node, placed(at, values)) for node, at in roots_of(kernel)]
        lanes = [{LANE_NAME: constant(lane)} for lane in range(VECTOR if LANE.variables <= row.variables else 1)]
        for node, positions in accesses(kernel, roots).items():
            found |= {(node, substitute(position, lane).key) for position in positions for lane in lanes}
    return len(found)


def _accesses(kernel: Kernel, joined: bool = False) -> Mapping[Node, Collection[Index]]:
    """For each array, the positions read at element `k` of row `row`."""
    element, row = variable("k", kernel.domain.length), variable("row", kernel.domain.rows)
    values = at_row(row, kernel) | at_element(element, kernel)
    roots: list[tuple[Node, Coordinates]] = [(node, placed(at, values)) for node, at in roots_of(kernel)]
    return accesses(kernel, roots, joined)
