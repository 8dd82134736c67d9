"""The description of the device that kernels are made for. Passes ask it questions; backends answer them.

Questions that depend on an operation are functions of its node. The defaults suit any device.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node
from lavax.ir.types import DType, TensorType
from lavax.passes.target.kernel_limits import MATRICES, MAX_LOOP_ITERATIONS


def _one(node: Node) -> int:
    return 1


ARRAYS_TOGETHER = 20  # of several kernels in one dispatch, whose slots stand in the push constants


def _one_of_several(node: Node, together: int) -> int:
    return 1


def _no(node: Node) -> bool:
    return False


def _leaves_none(node: Node, rows: int) -> bool:
    return False


def _nowhere(node: Node) -> int:
    return 0


def _none(node: Node) -> None:
    return None


def _in_push_constants(kernel: Any) -> int:
    return ARRAYS_TOGETHER


def _not_in_registers(loop: Node, prepare: Callable[[Graph], Graph]) -> None:
    return None


def _has_no_large_kernel(body: Graph, scheduled: Callable[[], Any]) -> bool:
    return False


def _not_in_turn(kernels: Sequence[Any]) -> int:
    return 0


def _not_rows(rows: Node, columns: Node) -> bool:
    return False


def _not_stored(dot: Node, side: int) -> bool:
    return False


@dataclass(frozen=True)
class Products:
    """How contractions are computed."""

    # The number of parts that a contraction's sum is split into to keep the device busy.
    parts: Callable[[Node], int] = _one
    # The precision in which a product of integers of 8 bits is computed as one of floats: "" is float32, None integers.
    of_bytes: Callable[[Node], str | None] = _none
    # Whether contractions bring both operands into one order in fast memory. Then either may be the left one, but
    # neighbours in memory have to be neighbours in the contraction.
    stages_operands: bool = False
    # The same for one that maps alone read, which add the parts, if so many of its extents are likely to share a
    # dispatch.
    parts_for_maps: Callable[[Node, int], int] = _one_of_several
    # The same for one whose parts the kernel of the next rows adds, if others compute so many products meanwhile.
    parts_for_rows: Callable[[Node, int], int] = _one_of_several
    # Whether a contraction reads its left (0) or right (1) operand so often that the rounded values are best stored.
    stores_rounded: Callable[[Node, int], bool] = _not_stored
    # Lines of a contraction's operands and of its result are best multiples of so many elements; 1 if it does not care.
    line: Callable[[Node], int] = _one
    # Whether a contraction shares its shader with others if its arrays are strided. Then it pays to store an operand in
    # order once, and to keep whatever prevents sharing out of the epilogue.
    shares_shader: Callable[[Node], bool] = _no
    # Operands are stored in order for a shared shader if each element is read in so many products, and other epilogues
    # are left out if so many products are added up.
    worth_sharing: int = 128
    # Whether a convolution's windows are best the rows of its product, given this and the one with them as columns, if
    # channels come first and operands are not staged.
    windows_as_rows: Callable[[Node, Node], bool] = _not_rows
    # Sums of windows are padded with zeros to multiples of so many products.
    step_of_windows: int = 1
    # Whether a product of many small matrices is best a map, which writes its sums out.
    writes_out: Callable[[Node], bool] = _no
    # Whether the product of a large matrix and a vector, too, is best a sum over the matrix's rows.
    vectors_as_sums: bool = False
    # Whether a product alone leaves processors idle. Then an operation on two such products that wait for the same is
    # left to a later kernel: in the epilogue of one it would wait for the other.
    leaves_idle: Callable[[Node], bool] = _no
    # Whether every product with a vector stays a contraction.
    vectors_stay: bool = False
    # Whether a contraction of few rows is best computed together with others of its shape, by a kernel that computes
    # all that follows them element by element: the gates of a recurrent cell.
    are_gates: Callable[[Node], bool] = _no


@dataclass(frozen=True)
class Attention:
    """How attention and its derivatives are computed."""

    # Whether a derivative is best computed by contractions, with the scores in memory.
    stores_scores: Callable[[Node], bool] = _no
    # Whether attention itself is.
    by_products: Callable[[Node], bool] = _no
    # How much memory the scores of all attention may take while they wait for derivatives.
    kept_bytes: int = 0
    # Whether kernels over rows compute what depends on stored scores, not the products' epilogues.
    scores_by_rows: bool = False
    # The number of keys per part if the kernel of the keys' gradient is to compute the queries' gradient in parts; None
    # if the queries' gradient has its own kernel.
    query_parts: Callable[[Node], int | None] = _none
    # Whether its kernel of attention, or of a derivative, can write results in the dtype of the operation's precision.
    rounds_results: Callable[[Node], bool] = _no
    # Whether attention of few queries is best computed by kernels over rows: of scores, and of elements of the result.
    by_rows: Callable[[Node], bool] = _no
    # Whether it is best computed by one kernel, which reads its operands once; of what is projected, whether that
    # kernel is best to multiply its result by the weight, too.
    in_one_kernel: Callable[[Node], bool] = _no
    # Whether `attention_projected` is best to leave its heads' products to a norm of the sum, which is computed in so
    # many rows of products.
    leaves_heads: Callable[[Node, int], bool] = _leaves_none


@dataclass(frozen=True)
class Rows:
    """How rows are reduced and folded."""

    # Longer rows of neighbouring elements are reduced in parts, however many rows there are.
    longest: int = MAX_LOOP_ITERATIONS
    # The elements from which columns are reduced in parts if they are few; also those that are columns only in memory,
    # if they are read through a transposition. None: only columns of the array itself, by their own limit.
    long_column: int | None = None
    # A value of so many elements, one for each row, that lies in another order than the rows is left to a map, which
    # transposes it. None: it is written as it lies.
    turned: int | None = None
    # The length of the chunks that a cumulative operation is cut into; None if it goes along whole lines.
    chunk: Callable[[Node], int | None] = _none


@dataclass(frozen=True)
class Sorting:
    """How rows are sorted."""

    # Whether radix sort can move keys together with a payload, as integers of 64 bits.
    moves_pairs: bool = True
    # How many of the greatest elements of a row one kernel can select, and the longest such row.
    most_selected: int = 0
    longest_selected: int = 0


def _any_sides(right: TensorType) -> int:
    is_few = right.shape[-1] < MATRICES.few_sides
    return MATRICES.solved_for_few_sides if is_few else MATRICES.solved_for_many_sides


def _no_columns(rows: int, dtype: DType) -> int:
    return 0


def _few_rows(dtype: DType) -> int:
    return MATRICES.eigenvalues


@dataclass(frozen=True)
class Matrices:
    """How matrices are taken apart."""

    # Whether eigenvalues are those of a tridiagonal matrix that one subgroup finds.
    tridiagonal: bool = False
    # Whether singular values are those of a bidiagonal matrix, likewise.
    bidiagonal: bool = False
    # The most rows of a matrix whose Cholesky factor one kernel computes.
    cholesky: int = MATRICES.cholesky
    # The most columns of a matrix of so many rows that one kernel reflects while registers hold it; 0 if none does.
    reflected_in_registers: Callable[[int, DType], int] = _no_columns
    # The most rows of a triangle that one kernel solves for such right sides.
    solved: Callable[[TensorType], int] = _any_sides
    # The most columns of a matrix of so many rows that one kernel eliminates whose workgroups keep them in registers; 0
    # if there are too many rows, or no such kernel.
    eliminated: Callable[[int, DType], int] = _no_columns
    # Whether the parts of a matrix that is cut are as large as one kernel takes, but for the last, so that they share
    # shaders; else they are halves.
    cuts_by_kernels: bool = False
    # The most rows of a symmetric matrix, an even number, that one kernel makes diagonal by rotations.
    rotated: Callable[[DType], int] = _few_rows
    # Whether the kernel that finds rotations corrects their product, so that no others have to.
    orthonormal_rotations: bool = False


def _whole(points: int, behind: int, part: DType) -> Sequence[int]:
    return (points,)


def _no_steps(points: int, inverse: bool, part: DType) -> Sequence[int]:
    return ()


def _no_end_steps(points: int, part: DType) -> Sequence[int]:
    return ()


def _no_folds(points: int, rest: int, behind: int, inverse: bool) -> bool:
    return False


def _no_order(steps: Sequence[int], inverse: bool) -> Sequence[int]:
    return ()


def _no_few_steps(points: int, numbers: int) -> Sequence[int]:
    return ()


def _no_odd_steps(points: int) -> Sequence[int]:
    return ()


def _no_convolved_steps(least: int, lines: int) -> Sequence[int]:
    return ()


def _no_paired_steps(points: int, behind: int) -> Sequence[int]:
    return ()


def _none_beside(points: int, neighbours: int, lines: int) -> bool:
    return False


def _no_across_steps(points: int, behind: int, numbers: int, inverse: bool, cosines: bool) -> Sequence[int]:
    return ()


@dataclass(frozen=True)
class Transforms:
    """How Fourier transforms are computed."""

    # The points of each step of a transform of so many points, whose product they are, if so many lines are neighbours
    # in memory, by the dtype of their parts.
    steps: Callable[[int, int, DType], Sequence[int]] = _whole
    # Of a transform of so many points that are pairs of real ones, or of its inverse, with the points of the last step
    # at the end, by the dtype of its parts; none if no step holds the numbers that are joined, which are mirrored.
    mirrored_steps: Callable[[int, bool, DType], Sequence[int]] = _no_steps
    # The same of a cosine transform of type 2, whose last step leaves real numbers, along memory.
    cosine_steps: Callable[[int, DType], Sequence[int]] = _no_end_steps
    # The same of an inverse whose first step joins half a spectrum; of another one that step makes the spectrum.
    joined_steps: Callable[[int, DType], Sequence[int]] = _no_end_steps
    # Of a transform of an odd number of real points, the step on real numbers first, which is the last one of the
    # inverse; none if it is a transform of complex numbers.
    odd_steps: Callable[[int], Sequence[int]] = _no_odd_steps
    # Of a transform of so many real points, or of its inverse, if so many lines are neighbours in memory and all lines
    # have so many numbers, with the step on real numbers first, and whether a cosine transform has real numbers at both
    # ends; none if lines are put along memory before.
    across_steps: Callable[[int, int, int, bool, bool], Sequence[int]] = _no_across_steps
    # Whether steps of lines along memory read and write real lines of so many points where they are, of which so many
    # are neighbours in memory, by how many lines there are; if not, these are put along memory before.
    beside: Callable[[int, int, int], bool] = _none_beside
    # Of a cosine or sine transform of type 4, of so many points that are pairs of real ones, if so many lines are
    # neighbours in memory; none if it is a transform of complex numbers that are made of them.
    paired_steps: Callable[[int, int], Sequence[int]] = _no_paired_steps
    # Of a transform of so many points, if all lines together have so few numbers that short code matters more than how
    # many steps there are; none if not.
    few_steps: Callable[[int, int], Sequence[int]] = _no_few_steps
    # Of a convolution of so many lines of at least so many numbers, whose product is its length: the first one of the
    # transform, which is the last one of its inverse, first, and the one that they share at the end. None if transforms
    # of large primes are convolutions of other steps.
    convolved_steps: Callable[[int, int], Sequence[int]] = _no_convolved_steps
    # Whether the last step of a transform of pairs of real numbers may turn its numbers by tables, and leave real ones.
    cosines: bool = False
    # Whether a first step of such a transform, of so many points, rest and behind, may read lines in the order of
    # cosine transforms, or the last one of its inverse write them so.
    folds: Callable[[int, int, int, bool], bool] = _no_folds
    # The order of the steps of such a transform, or of its inverse, in which they may; none if there is no such.
    folded_order: Callable[[Sequence[int], bool], Sequence[int]] = _no_order
    # The largest prime number of points of a step; of few numbers it is at most 31.
    largest_prime: int = 31


@dataclass(frozen=True)
class Scatters:
    """How scatters of many updates are distributed over copies of a small array."""

    # The lines of all copies together, each of which an invocation updates: as many as keep the device busy.
    lines: int = 1 << 12
    # The most elements that all copies may have, per element of the updates.
    elements_per_update: int = 2
    # The most updates of a line of a copy, which one invocation applies one after the other; more are sorted.
    longest_share: int = 1 << 8
    # The dtypes in which updates of a large array are joined to their places in memory; others are sorted.
    joined_in_place: frozenset[str] = frozenset()
    # Whether all invocations of a kernel join them at once, in any order, rather than a subgroup in order.
    at_once: bool = False
    # The dtypes in which updates that are rows are joined to the rows of an array, in their order.
    joined_by_rows: frozenset[str] = frozenset()
    # The lanes that stand side by side along such rows.
    lanes_of_rows: int = 8
    # How many updates, each of one element, an invocation applies one by one if the array is small, too.
    one_by_one: int = 0
    elements_one_by_one: int = 1 << 12


@dataclass(frozen=True)
class FusionLimits:
    """What is computed in one kernel. Costs are in simple operations (passes/fuse/costs.py)."""

    # How many operations are worth repeating to avoid moving one byte; 0 if none are.
    operations_per_byte: float = 0.0
    # The same for what a sum over other elements reads of a kernel's rows, if that has at most so many bytes.
    small_bytes: int = 0
    operations_per_small_byte: float = 0.0
    # The most that a contraction's epilogue may cost, and the arrays it may read: its code is repeated for each of the
    # elements that an invocation has.
    epilogue_cost: int = 24
    epilogue_arrays: int = 6
    # The most that one of its operations may have computed from other arrays alone, such as GELU's derivative; None if
    # there is no limit. A map has more invocations to wait for functions.
    epilogue_operand_cost: int | None = None
    # The same for a prologue, which is repeated whenever an element is loaded.
    prologue_cost: int = 6
    prologue_arrays: int = 3
    # The most code that a step of a Fourier transform may have to compute a number that it reads, which is written out
    # for each of its points; None if there is no limit.
    transformed_cost: int | None = None
    # Whether costly places of a gather are stored, rather than computed for every element that is taken from them.
    stores_places: bool = False

    def worth_reducing_again(self, nbytes: int) -> float:
        """How many operations a sum over other elements repeats to avoid moving one byte of so many."""
        is_small = nbytes <= self.small_bytes
        return max(self.operations_per_byte, self.operations_per_small_byte if is_small else 0.0)


@dataclass(frozen=True)
class Dispatches:
    """How kernels are dispatched."""

    # Equal for kernels (passes/kernels/kernel.py) that can share a dispatch, each with workgroups of its own; None for
    # one that cannot.
    abreast: Callable[[Any], Hashable | None] = _none
    # The same for kernels that one shader serves, of which a dispatch takes more.
    same_shader: Callable[[Any], Hashable | None] = _none
    # How many arrays such kernels have in one dispatch, at most; those that are like this one.
    arrays: Callable[[Any], int] = _in_push_constants
    # How many lines a workgroup takes at a time through kernels each of which reads what the one before it writes, line
    # by line; 0 if each is better dispatched for itself.
    in_turn: Callable[[Sequence[Any]], int] = _not_in_turn
    # Whether kernels without a barrier between them run at the same time, as far as the device has room for both.
    overlap: bool = False


@dataclass(frozen=True)
class Loops:
    """How loops of dispatches are recorded."""

    # So many turns are recorded one after the other, each with buffers of its own: an even number, or 1.
    turns: int = 1
    # This is done where a turn computes an array of as many bytes that it carries, or where one of its kernels, in the
    # program that the function makes of the body, is more work than a workgroup's: other turns may be one.
    carried_bytes: int = 0
    has_large_kernel: Callable[[Graph, Callable[[], Any]], bool] = _has_no_large_kernel
    # So many turns may be one that reads little of what other turns have computed, as many as possible first.
    joined_turns: tuple[int, ...] = ()
    # What `FusionLimits` says of small arrays is this within loops.
    small_bytes: int = 0
    operations_per_small_byte: float = 0.0
    # Whether kernels also write the copies of what they compute.
    write_copies: bool = False
    # The number of workgroups that run a scan, each for its own rows of what is carried; 0 if it is no such scan.
    slices: Callable[[Node], int] = _nowhere
    # The loop with bodies as the function prepares them, if one subgroup runs it with all arrays in its registers.
    in_registers: Callable[[Node, Callable[[Graph], Graph]], Node | None] = _not_in_registers
    # What `Products.are_gates` is within loops.
    are_gates: Callable[[Node], bool] = _no
    # Whether turns of several loops run at the same time if there is no barrier between them.
    side_by_side: bool = False


@dataclass(frozen=True)
class Target:
    """A device as the passes see it."""

    products: Products = Products()
    attention: Attention = Attention()
    rows: Rows = Rows()
    sorting: Sorting = Sorting()
    matrices: Matrices = Matrices()
    scatters: Scatters = Scatters()
    transforms: Transforms = Transforms()
    fusion: FusionLimits = FusionLimits()
    dispatches: Dispatches = Dispatches()
    loops: Loops = Loops()
    # Whether functions whose results are rounded to 16 bits have short forms, which are exact enough for these.
    narrow_functions: bool = False
    # So many neighbours are read at once where they begin at a multiple of as many; 1 if that does not matter.
    vector: int = 1
    # Buffers in the arena start at multiples of as many bytes: a multiple of every device's alignment and cache line.
    alignment: int = 256
    # The most bytes of one allocation, a multiple of the alignment. The arena is several allocations if it needs more.
    largest_allocation: int = 1 << 62

    def with_parts(self, parts: Callable[[Node], int]) -> Target:
        """The same target, but for the number of parts that contractions' sums are split into."""
        return replace(self, products=replace(self.products, parts=parts))

    def in_loops(self) -> Target:
        """The same target for what is computed in each turn of a loop."""
        are_gates, parts = self.loops.are_gates, self.products.parts
        products = replace(
            self.products,
            are_gates=are_gates,
            parts=lambda dot: 1 if are_gates(dot) else parts(dot),
            parts_for_maps=_one_of_several,
            parts_for_rows=_one_of_several,
        )
        fusion = replace(
            self.fusion,
            small_bytes=self.loops.small_bytes,
            operations_per_small_byte=self.loops.operations_per_small_byte,
        )
        return replace(self, products=products, fusion=fusion)


ANY_DEVICE = Target()
