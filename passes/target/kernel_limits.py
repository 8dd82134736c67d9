"""Limits of kernels that are the same on every device: passes cut work to them, and backends write kernels to them."""

from __future__ import annotations

from lavax.base.quick_dataclasses import dataclass

# Iterations of all loops that one invocation may make: some CPU drivers silently end loops after 65,535.
MAX_LOOP_ITERATIONS = 40_000

# Products that one kernel of a recurrent cell computes side by side.
MOST_GATES = 4

# Elements of an array, which shaders count in signed words of 32 bits.
MOST_ELEMENTS = 2**31 - 1


@dataclass(frozen=True)
class AttentionKernels:
    """What one kernel of attention computes. Chosen by `python -m benchmarks.attention_tiles`."""

    block_of_columns: int = 32  # the keys, or queries, that an invocation processes at once if it works alone
    largest_head: int = 256  # larger heads are not kept in registers


@dataclass(frozen=True)
class MatrixKernels:
    """The largest matrices that one kernel factors or solves; larger ones are cut into blocks.

    Bounded by MAX_LOOP_ITERATIONS. No benchmark times them; see docs/rejected/functions.md, "Jacobi's
    method in other ways".
    """

    least_invocations: int = 8  # at least as many share a matrix
    cholesky: int = 64
    cholesky_by_columns: int = 128  # where the lanes of one subgroup keep the columns
    looked_for: int = 32  # numbers of a permutation that is inverted
    solved_for_many_sides: int = 64
    solved_for_few_sides: int = 256
    few_sides: int = 8  # fewer right sides than this are few
    # Elements of all matrices that are factored by reflections in registers and products. On an H200 that takes 59 µs
    # of 3 × 3, one kernel 35; of 12 × 5 52 and 60, of 10,000 of 4 × 4 47 and 137.
    least_in_registers: int = 64
    # Rows of blocks of a panel whose own rows registers hold less than the other number of columns of.
    reflected_rows: int = 512
    narrow_panel: int = 16
    eigenvalues: int = 32
    # Singular values: within the loop iterations that 8 invocations may make.
    singular_columns: int = 16
    singular_rows: int = 32
    singular_rows_completed: int = 24  # if all left vectors are asked for
    # Sweeps of Jacobi's method. Convergence is quadratic in the end: six or seven are enough for so few rows. With ten
    # the iterations of loops stay within what every driver allows.
    sweeps: int = 10


@dataclass(frozen=True)
class RadixSortKernels:
    """The passes of radix sort: their digits, and how many adjacent values one invocation or workgroup moves in each.

    Chosen by `python -m benchmarks algorithms`; docs/rejected/sorting_and_scatters.md, "Longer
    digits for radix sort on a CPU driver".
    """

    digit_bits: tuple[int, ...] = (4, 6, 8)  # the possible numbers of bits per pass, ascending
    shortest_tile: int = 1 << 10
    longest_tile: int = 1 << 12
    enough_tiles: int = 1 << 5  # tiles are shorter if a row has fewer


@dataclass(frozen=True)
class Selection:
    """Rows whose greatest elements one subgroup selects.

    Chosen by `python -m benchmarks selection`. Within MAX_LOOP_ITERATIONS: 40 walks of a row of eight lanes.
    """

    room: int = 256  # elements that are stored and ranked
    most: int = 128  # elements that are asked for
    longest_row: int = 1 << 12


@dataclass(frozen=True)
class SelectionByWorkgroup:
    """Rows whose greatest elements one workgroup of a GPU selects. `python -m benchmarks operations --only "top*"`."""

    little_room: int = 256  # elements that are stored and ranked, at least; or twice as many as are asked for
    most: int = 256  # elements that are asked for
    longest_row: int = 1 << 16  # of 2^22 at most, whose places have two digits

    @property
    def room(self) -> int:
        return 2 * self.most


@dataclass(frozen=True)
class Places:
    """Updates that one kernel joins to their places. Within MAX_LOOP_ITERATIONS, of eight lanes that take four each."""

    most: int = 1 << 20


@dataclass(frozen=True)
class Rows:
    """Rows that one kernel joins to an array. Within MAX_LOOP_ITERATIONS, of four rows each."""

    most: int = 1 << 17


@dataclass(frozen=True)
class Lists:
    """Rows that one kernel joins by lists. Within MAX_LOOP_ITERATIONS, of up to four rows each."""

    most: int = 4 * MAX_LOOP_ITERATIONS


@dataclass(frozen=True)
class TridiagonalKernels:
    """Symmetric matrices that one kernel makes tridiagonal, and another one finds the eigenvalues of."""

    largest: int = 128  # rows; within MAX_LOOP_ITERATIONS, of eight lanes that take four columns
    few_elements: int = 256  # of all matrices: one kernel that rotates all of their pairs is faster
    # Of rotations; matrices of many kinds needed up to 0.94 times the square of their rows. Beyond, values are NaN.
    most_rotations: int = 30_000


@dataclass(frozen=True)
class BidiagonalKernels:
    """Square matrices that one kernel makes bidiagonal, and another one finds the singular values of."""

    largest: int = 128  # rows; within MAX_LOOP_ITERATIONS, of eight lanes that take four rows or columns
    # Of fewer rows, and of so few elements of all matrices, one kernel that rotates all pairs of rows is faster.
    least: int = 8
    few_elements: int = 200
    # Of pairs of rotations; matrices of many kinds needed up to 1.3 times the square of their rows. Beyond, values are
    # NaN.
    most_rotations: int = 30_000


ATTENTION = AttentionKernels()
MATRICES = MatrixKernels()
RADIX_SORT = RadixSortKernels()
SELECTION = Selection()
SELECTION_BY_WORKGROUP = SelectionByWorkgroup()
PLACES = Places()
ROWS = Rows()
LISTS = Lists()
TRIDIAGONAL = TridiagonalKernels()
BIDIAGONAL = BidiagonalKernels()
