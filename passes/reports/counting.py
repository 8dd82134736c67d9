"""Counts the least that kernels compute and move, from their graphs.

The count follows elements from the results back to the arrays that are read, through the index expressions of
movement: of an array that is sliced, gathered or padded, only the elements that are needed count. Each counts once.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from math import prod

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import INPUT, Graph, Node
from lavax.ir.operation import OPERATIONS, names_of_family
from lavax.ir.ops.attention import PROJECTED
from lavax.passes.build.attention import named_operands, visible_pairs
from lavax.passes.build.fourier_points import points_of_step
from lavax.passes.fuse.costs import cost_of
from lavax.passes.fuse.lane_loops import operations_of, shape_of_lanes
from lavax.passes.fuse.sliced_loops import operations_of_turn
from lavax.passes.kernels.accesses import array_in_place
from lavax.passes.kernels.commands import FLAG_BYTES, Command, Guard, Repeat, Until
from lavax.passes.kernels.index import Index, variable
from lavax.passes.kernels.kernel import Kernel, KernelStep, once_a_kernel
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.kernels.reads import READS, Coordinates
from lavax.passes.reports.cost import Cost, KernelCost

# Elementwise, but no arithmetic.
_CHOICES = frozenset({"cast", "bitcast", "where", "stop_gradient", "known_value"})


def _of_operand(node: Node) -> int:
    """Each element of the operand is used once."""
    return node.operands[0].type.size


def _of_dot(node: Node) -> int:
    left = node.operands[0]
    length: int = prod(left.shape[axis] for axis in node.attrs["contract"][0])
    return 2 * node.type.size * length


def _of_conv(node: Node) -> int:
    right = node.operands[1]
    met = (*node.attrs["contract"][1], *node.attrs["window"][1])
    length: int = prod(right.shape[axis] for axis in met)
    return 2 * node.type.size * length


def _of_depthwise(node: Node) -> int:
    weights = node.operands[1].shape
    return 2 * prod(weights[:-1]) * prod(node.shape[1:])


def _of_logsumexp(node: Node) -> int:
    """log(exp(x) + exp(y)) for each element: a maximum, a difference, exp, log1p, an addition."""
    return 27 * _of_operand(node)


def _of_chunks(node: Node) -> int:
    return _of_logsumexp(node) if node.attrs["fold"] == "cumulative_logsumexp" else _of_operand(node)


def _of_sort(node: Node) -> int:
    """Comparisons of a merge sort."""
    keys = node.operands[0]
    return keys.type.size * _halvings(keys.shape[node.attrs.get("axis", -1)])


def _of_nothing(node: Node) -> int:
    """Elements are only moved."""
    return 0


def _of_runs(node: Node) -> int:
    """Comparisons of sorting runs, or of searching each element's position in the other run."""
    return node.operands[0].type.size * _halvings(node.attrs["run"])


def _of_search(node: Node) -> int:
    return node.type.size * _halvings(node.operands[0].shape[-1] + 1)


def _of_scatter(node: Node) -> int:
    return 0 if node.op == "scatter_set" else node.operands[1].type.size


def _halvings(length: int) -> int:
    """How often a length must be halved to reach one."""
    return max(length - 1, 0).bit_length()


# For one matrix of m rows and n columns; systems have n right-hand sides (Golub and Van Loan, Matrix Computations).


def _of_cholesky(node: Node, m: int, n: int) -> int:
    return n**3 // 3


def _of_triangular_solve(node: Node, m: int, n: int) -> int:
    return m**2 * n


def _of_lu(node: Node, m: int, n: int) -> int:
    return n**2 * (3 * m - n) // 3


def _of_householder(node: Node, m: int, n: int) -> int:
    return 2 * n**2 * (3 * m - n) // 3


def _of_linear_solve(node: Node, m: int, n: int) -> int:
    return 2 * m**2 * n


def _of_qr(node: Node, m: int, n: int) -> int:
    return 4 * n**2 * (3 * m - n) // 3


def _of_eigh(node: Node, m: int, n: int) -> int:
    return 9 * n**3 if node.attrs["vectors"] else 4 * n**3 // 3


def _of_jacobi(node: Node, m: int, n: int) -> int:
    return 40 * n**3  # four sweeps of rotations from both sides, and of the accumulated vectors


def _of_tridiagonal(node: Node, m: int, n: int) -> int:
    return 4 * n**3 // 3


def _of_tridiagonal_eigh(node: Node) -> int:
    size = node.operands[0].type.size * node.operands[0].shape[-1]  # reflections, and six per rotated pair
    return 7 * size if node.attrs["vectors"] else 0


def _of_bidiagonal(node: Node, m: int, n: int) -> int:
    return 8 * n**3 // 3


def _of_bidiagonal_svd(node: Node) -> int:
    return 2 * _of_tridiagonal_eigh(node)  # for vectors of two sides


def _of_fft(node: Node) -> int:
    """Of complex numbers with radix 2, by which transforms of any length are usually counted."""
    return 5 * node.type.size * _halvings(node.shape[node.attrs["axis"]])


def _of_rfft(node: Node) -> int:
    return 5 * node.operands[0].type.size * _halvings(node.operands[0].shape[-1]) // 2


def _of_trigonometric_4(node: Node) -> int:
    """Per number: half a transform of half as many complex ones, and two products with roots."""
    return node.type.size * (5 * _halvings(node.shape[node.attrs["axis"]] // 2) + 12) // 2


def _of_irfft(node: Node) -> int:
    return 5 * node.type.size * _halvings(node.shape[-1]) // 2


_OF_COSINES = ("fourier_cosines", "fourier_from_cosines")


def _of_real_line(node: Node) -> int:
    """Per number: the transform, and as much for what even and odd places have as for a product with a root, as are the
    two with tables."""
    _, points, *_ = node.operands[0].shape
    if "rest" in node.attrs:  # of an inverse, whose operand has whole lines
        points = (points // 2 if node.op == "fourier_from_cosines" else points - 1) // node.attrs["rest"]
    size = max(node.type.size, node.operands[0].type.size)  # of one part of a spectrum, both are computed
    return size * (5 * _halvings(points) + 12 + 6 * (node.op in _OF_COSINES)) // 2


def _of_fourier_step(node: Node) -> int:
    """Per number: a transform, and a product with a root if there is more to transform."""
    _, points, rest, _, _ = node.operands[0].shape
    return node.type.size * (5 * _halvings(points) + 6 * (rest > 1)) // 2


def _of_convolved(node: Node) -> int:
    """Per number of a whole line: a transform, or two of a step that two transforms share, and products with a table
    and with roots."""
    numbers = node.type.size if node.op == "fourier_padded" else node.operands[0].type.size
    transforms = 2 if node.op == "fourier_filtered" else 1
    return numbers * (transforms * 5 * _halvings(points_of_step(node)) + 12) // 2


def _of_real_columns(node: Node) -> int:
    """Per number: a transform of complex columns, or of real ones, which takes half, and a product with a root. Two
    tables are as much as another product."""
    x, *tables = node.operands
    return max(node.type.size, x.type.size) * (5 * _halvings(points_of_step(node)) + 6 + 3 * len(tables)) // 2


def _of_paired_columns(node: Node) -> int:
    """Per number: the transform, and two products with roots."""
    return node.type.size * (5 * _halvings(points_of_step(node)) + 12) // 2


def _of_svd(node: Node, m: int, n: int) -> int:
    return 6 * m * n**2 + 20 * n**3 if node.attrs["vectors"] else 4 * n**2 * (3 * m - n) // 3


def _of_matrices(of_one: Callable[[Node, int, int], int]) -> Callable[[Node], int]:
    def of_all(node: Node) -> int:
        *batch, rows, columns = node.operands[-1].shape
        return prod(batch) * of_one(node, rows, columns)

    return of_all


# Per pair of a query and a key: products of the length of the head, and of the length of the values' head.
_PRODUCTS = {
    "attention": (1, 1),
    "attention_logsumexp": (1, 0),
    "attention_query_gradient": (2, 1),
    "attention_key_gradient": (2, 1),
    "attention_value_gradient": (1, 1),
    "attention_query_parts": (1, 0),
    **dict.fromkeys(PROJECTED, (1, 1)),
}
_OF_SCORE = 15  # other operations per score: exp, and a few additions and multiplications


def _of_attention(node: Node) -> int:
    """Operations for every pair of a query and a visible key."""
    operands = named_operands(node)
    head = operands["query"].shape[-1]
    values = operands.get("value", operands.get("cotangent", operands["query"])).shape[-1]
    of_head, of_values = _PRODUCTS[node.op]
    projection = 2 * operands["weight"].type.size if "weight" in operands else 0
    return visible_pairs(node) * (2 * (of_head * head + of_values * values) + _OF_SCORE) + projection


# Operations of nodes that read all of their operands.
WHOLE: dict[str, Callable[[Node], int]] = {
    **dict.fromkeys(names_of_family("reduction"), _of_operand),
    **dict.fromkeys(_PRODUCTS, _of_attention),
    "dot": _of_dot,
    "conv": _of_conv,
    "depthwise_conv": _of_depthwise,
    **dict.fromkeys(("cumulative_sum", "cumulative_prod", "cumulative_max", "cumulative_min"), _of_operand),
    "cumulative_logsumexp": _of_logsumexp,
    "chunk_totals": _of_chunks,
    "cumulative_chunks": _of_chunks,
    "count_digits": _of_operand,
    "fft": _of_fft,
    "rfft": _of_rfft,
    "irfft": _of_irfft,
    "trigonometric_4": _of_trigonometric_4,
    "fourier_step": _of_fourier_step,
    **{
        f"fourier_{where}{step}": _of_real_columns
        for where in ("", "across_")
        for step in ("from_half", "from_reals", "to_half", "to_reals")
    },
    **dict.fromkeys(("fourier_padded", "fourier_filtered", "fourier_cut"), _of_convolved),
    **dict.fromkeys(("fourier_from_paired", "fourier_paired", "fourier_to_paired"), _of_paired_columns),
    "fourier_cosines": _of_real_line,
    "fourier_from_cosines": _of_real_line,
    "fourier_spectrum": _of_real_line,
    "fourier_join": _of_real_line,
    "fold_runs": _of_operand,
    "join_lists": _of_scatter,
    "join_places": _of_scatter,
    "join_rows": _of_scatter,
    "join_runs": _of_scatter,
    "link_rows": _of_nothing,
    "move_by_digit": _of_operand,
    "sort": _of_sort,
    "sort_order": _of_sort,
    "top_order": _of_operand,
    "whole_spectrum": _of_operand,
    "select_greatest": _of_operand,
    "sort_runs": _of_runs,
    "merge_runs": _of_runs,
    "bidiagonal": _of_matrices(_of_bidiagonal),
    "bidiagonal_svd": _of_bidiagonal_svd,
    "tridiagonal": _of_matrices(_of_tridiagonal),
    "tridiagonal_eigh": _of_tridiagonal_eigh,
    "search_sorted": _of_search,
    "unsort": _of_nothing,
    "cholesky": _of_matrices(_of_cholesky),
    "triangular_solve": _of_matrices(_of_triangular_solve),
    "lu": _of_matrices(_of_lu),
    "householder": _of_matrices(_of_householder),
    "linear_solve": _of_matrices(_of_linear_solve),
    "qr": _of_matrices(_of_qr),
    "eigh": _of_matrices(_of_eigh),
    "jacobi": _of_matrices(_of_jacobi),
    "svd": _of_matrices(_of_svd),
    **dict.fromkeys(sorted(name for name in names_of_family("indexing") if name != "gather"), _of_scatter),
}


@dataclass
class _Needs:
    """The number of elements of each node that are needed; a node is visited once per coordinates."""

    extents: dict[str, int] = field(default_factory=dict)  # of the variables
    elements: dict[Node, int] = field(default_factory=dict)
    _met: set[tuple[Node, Coordinates]] = field(default_factory=set)
    _waiting: deque[tuple[Node, Coordinates]] = field(default_factory=deque)

    def follow(self, graph: Graph) -> None:
        """Walks from the outputs of the graph to its inputs."""
        for output in graph.outputs:
            self._waiting.append((output, self._everywhere(output)))
        while self._waiting:
            node, at = self._waiting.popleft()
            if (node, at) in self._met:
                continue
            self._met.add((node, at))
            is_first = node not in self.elements
            self.elements[node] = min(node.type.size, self.elements.get(node, 0) + self._count(at))
            if node.op in READS:
                self._waiting.extend(READS[node.op](node, at))
            elif node.op != INPUT and is_first:
                self._waiting.extend((operand, self._everywhere(operand)) for operand in node.operands)

    def _everywhere(self, node: Node) -> Coordinates:
        """Coordinates that run over the whole node; the same for all nodes of its shape."""
        names = [f"{axis}of{extent}" for axis, extent in enumerate(node.shape)]
        self.extents.update(zip(names, node.shape, strict=True))
        return tuple(variable(name, extent) for name, extent in zip(names, node.shape, strict=True))

    def _count(self, at: Coordinates) -> int:
        """A bound on the elements visited: the points that the variables have, and those that the coordinates reach."""
        names: frozenset[str] = frozenset().union(*(index.variables for index in at))
        return min(prod(self.extents[name] for name in names), prod(map(_reach, at)))


def _reach(index: Index) -> int:
    return index.high - index.low + 1


def operations_of_node(node: Node, elements: int) -> int:
    """Floating-point operations to compute that many elements of a node."""
    if node.op in ("scan", "while"):
        by_slices = shape_of_lanes(node) is None
        return node.attrs.get("length", 1) * operations_of_turn(node) if by_slices else operations_of(node)
    if node.op in _CHOICES or not any(value.dtype.is_float for value in (node, *node.operands)):
        return 0
    if node.op in WHOLE:
        return WHOLE[node.op](node)
    return cost_of(node) * elements if OPERATIONS[node.op].family == "elementwise" else 0


@once_a_kernel
def _elements_needed(kernel: Kernel) -> Mapping[Node, int]:
    needs = _Needs()
    needs.follow(kernel.graph)
    return needs.elements


@once_a_kernel
def _operations_of(kernel: Kernel) -> int:
    needed = _elements_needed(kernel)
    return sum(operations_of_node(node, needed.get(node, 0)) for node in kernel.graph.nodes)


def cost_of_step(
    step: KernelStep, donors: Mapping[str, str], times: int = 1, is_least: bool = False
) -> KernelCost:
    """The cost of one run of a step, which has `times` of them in a call."""
    operations = 0
    read: dict[str, int] = {}
    written: dict[str, int] = {}
    for kernel, reads, writes in zip(step.kernels, step.reads, step.writes, strict=True):
        needed = _elements_needed(kernel)
        held = array_in_place(kernel, reads, writes, donors)
        operations += _operations_of(kernel)
        for node, name in zip(kernel.graph.inputs, reads, strict=True):
            elements = needed.get(node, 0) if node is not held else _reread(kernel)
            nbytes = elements * node.dtype.storage.itemsize
            read[name] = max(read.get(name, 0), nbytes)  # an array read by several merged kernels is loaded once
        stored = (node if held is None else node.operands[1] for node in kernel.graph.outputs)
        written.update(zip(writes, (node.type.nbytes for node in stored), strict=True))
    moved = sum(read.values()), sum(written.values())
    return KernelCost(step.name, step.kernel.kind, operations, *moved, times, is_least, _locations(step))


def _reread(kernel: Kernel) -> int:
    """The elements of its array that a scatter reads if the others stay where they are."""
    (node,) = kernel.graph.outputs
    return 0 if node.op == "scatter_set" else node.operands[1].type.size


def _locations(step: KernelStep) -> tuple[str, ...]:
    nodes = (node for kernel in step.kernels for node in kernel.graph.nodes)
    return tuple(dict.fromkeys(node.location for node in nodes if node.location is not None))


def _costs(
    commands: Sequence[Command], donors: Mapping[str, str], times: int, is_least: bool
) -> Iterator[KernelCost]:
    for command in commands:
        match command:
            case KernelStep():
                yield cost_of_step(command, donors, times, is_least)
            case Guard():
                yield KernelCost(command.name, "guard", 0, FLAG_BYTES, FLAG_BYTES, times, is_least)
            case Repeat():
                yield from _costs(command.commands, donors, times * command.count, is_least)
            case _:
                yield from _costs(command.commands, donors, times, is_least or isinstance(command, Until))


def cost_of_program(program: KernelProgram) -> Cost:
    """The cost of every kernel of a program, including guards of branches and loops, in the order they run."""
    return Cost({cost.name: cost for cost in _costs(program.steps, program.donors, 1, False)})
