"""The schedule of attention by cooperative matrices: how a workgroup's subgroups share the work. Writes no GLSL."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from lavax.backends.vulkan.emit.attention.problem import Problem, Stage, is_by_keys, problem_of, stages_of
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.narrow_vectors import EIGHT
from lavax.backends.vulkan.plan.profile import DeviceProfile, MatrixShape
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.build.attention import named_operands

_VECTOR_BYTES = 16
# Longer heads take more registers than an invocation has: of each result, and of each operand of rows.
LONGEST_HEAD = 128
# The elements of a row of an operand that are staged at a time on their way to matrices: longer rows at once would take
# shared memory that other workgroups need.
PIECE = 64
# The operands that matrices hold; the others are numbers of float32.
_OF_MATRICES = ("query", "key", "value", "cotangent")
# The rows of matrices of a workgroup that is not tall.
_MOST_IN_FLAT = 4
# Statistics of queries, which are columns where rows are keys.
STATISTICS = ("logsumexp", "delta")


@dataclass(frozen=True)
class CooperativeShape:
    """`subgroups` with `down` rows of matrices each; blocks of `columns`. Matrices have `shape`, and `lanes` share one.

    Rows of operands have up to `head` elements, with zeros behind those of heads that are no whole number of matrices;
    `rows_kept` such operands stay in shared memory, or they are in
    matrices. With two `buffers` a block's columns are staged while some subgroups still work on the last one's, and
    meet once a block. If it `loads_places`, matrices of the places of elements are loaded for tiles that have something
    hidden, or else they are in registers all the time. With `phases`, blocks in which nothing is hidden have a loop of
    their own, if they come first. If it `overlaps`, the subgroups' parts of shared memory lie where columns are staged,
    because nothing uses them meanwhile.

    A lane has one row of a tile, or part of one: `across` lanes split it, eight neighbouring columns at a time.
    """

    subgroups: int
    columns: int
    shape: MatrixShape
    lanes: int
    head: int = LONGEST_HEAD
    buffers: int = 1
    down: int = 1
    rows_kept: int = 0
    loads_places: bool = False
    phases: bool = False
    overlaps: bool = False

    @property
    def local(self) -> int:
        return self.subgroups * self.lanes

    @property
    def rows(self) -> int:
        return self.subgroups * self.down * self.shape.m

    @property
    def across(self) -> int:
        return self.lanes // self.shape.m

    @property
    def groups(self) -> int:
        """A lane's vectors of four columns."""
        return self.columns // (VECTOR * self.across)

    # Lines in shared memory have an odd number of vectors, so that neighbours lie in other banks.

    @property
    def tile_stride(self) -> int:
        """The vectors of a row of a tile in float32."""
        return self.columns // VECTOR | 1

    @property
    def weights_stride(self) -> int:
        """The vectors of a row of a tile in 16 bits."""
        return self.columns // EIGHT | 1

    def held(self, operand: Node) -> int:
        """The elements of an operand's row that matrices hold."""
        return _held(operand.shape[-1], self.shape)

    def operand_stride(self, head: int) -> int:
        """The vectors of an operand's row in 16 bits."""
        return head // EIGHT | 1

    @property
    def own_vectors(self) -> int:
        """A subgroup's part of shared memory: a tile, a piece of its rows of an operand, or all rows that stay."""
        kept = self.rows_kept * self.down * self.operand_stride(self.head)
        return self.shape.m * max(self.tile_stride, self.operand_stride(min(self.head, PIECE)), kept)

    @property
    def columns_at(self) -> int:
        """Where columns are staged: behind the subgroups' parts of shared memory, or in their place."""
        return 0 if self.overlaps else self.subgroups * self.own_vectors

    def staged(self, stages: Sequence[Stage]) -> dict[Node, int]:
        """Where each operand of columns begins in shared memory."""
        found: dict[Node, int] = {}
        end = self.columns_at
        for stage in stages:
            if stage.of_columns not in found:
                found[stage.of_columns] = end
                end += self.columns * self.operand_stride(self.held(stage.of_columns))
        return found

    def buffer_vectors(self, stages: Sequence[Stage], by_keys: bool) -> int:
        """The vectors of a block's columns in shared memory."""
        operands = dict.fromkeys(stage.of_columns for stage in stages)
        lines = sum(self.operand_stride(self.held(operand)) for operand in operands)
        statistics = len(STATISTICS) * self.columns // VECTOR if by_keys else 0
        return self.columns * lines + statistics

    def vectors(self, stages: Sequence[Stage], by_keys: bool) -> int:
        """The vectors of shared memory."""
        columns = self.columns_at + self.buffers * self.buffer_vectors(stages, by_keys)
        return max(columns, self.subgroups * self.own_vectors) + self.vectors_of_places

    @property
    def vectors_of_places(self) -> int:
        return -(-max(self.shape.m, self.shape.n) // VECTOR) if self.loads_places else 0

    def divides(self) -> bool:
        """Whether lanes share tiles evenly, matrices fill them, and there is an invocation per column."""
        shared_evenly = self.lanes % self.shape.m == 0 and self.columns % (EIGHT * max(self.across, 1)) == 0
        whole = shared_evenly and self.local >= max(self.columns, self.vectors_of_places * VECTOR)
        return whole and self.columns % self.shape.n == 0 and self.columns % self.shape.k == 0


@dataclass(frozen=True)
class Form:
    """The numbers of a `CooperativeShape` that are chosen; `keeps_rows` if operands of rows stay in shared memory."""

    subgroups: int
    columns: int
    buffers: int = 1
    down: int = 1
    keeps_rows: bool = False
    loads_places: bool = False
    phases: bool = False
    overlaps: bool = False


@dataclass(frozen=True)
class Forms:
    """The forms of a kernel: `tall` ones where there are `least` workgroups of so many rows a processor, else `flat`,
    or `few` where those are fewer than `many`; and those for heads of more than `PIECE` elements. Exercised by
    `python -m benchmarks models`.

    A tall form has twice the rows, so each matrix that is loaded, or each vector that is staged, serves twice as many
    products; but registers leave few of its workgroups on a processor at a time.
    """

    least: float
    tall: Form
    flat: Form
    tall_longer: Form
    flat_longer: Form
    few: Form | None = None
    many: float = 0


# Timed in docs/performance/training_bfloat16.md, "Long sequences"; what lost is in docs/rejected/attention.md.
_FORMS = {
    "forward": Forms(
        3,
        Form(4, 32, 2, down=2, loads_places=True, phases=True, overlaps=True),
        Form(4, 32, 2, loads_places=True, phases=True, overlaps=True),
        Form(8, 32, 2, loads_places=True, phases=True, overlaps=True),
        Form(4, 32, loads_places=True, overlaps=True),
        few=Form(4, 64, loads_places=True, phases=True, overlaps=True),
        many=2.5,
    ),
    "query": Forms(2.5, Form(4, 32, 2, down=2), Form(4, 32, 2), Form(8, 32), Form(4, 32)),
    "keys": Forms(
        2.5,
        Form(4, 32, down=2, keeps_rows=True),
        Form(4, 32, 2),
        Form(8, 32, loads_places=True),
        Form(4, 32, loads_places=True),
    ),
}
# Subgroups and columns of a block where these do not fit, with one buffer or two.
_SHAPES = ((4, 32), (2, 32), (4, 64), (2, 64))


def cooperative_shapes(profile: DeviceProfile, nodes: Mapping[str, Node]) -> list[CooperativeShape]:
    """The shapes for the kernel that computes these nodes, the preferred one first; none if matrices do not suit it."""
    node = next(iter(nodes.values()))
    precision = node.attrs["precision"]
    matrix = next((shape for shape in profile.matrices if shape.dtype == precision), None)
    able = profile.kind == "gpu" and profile.subgroup_shuffle and profile.knows_subgroup_size
    heads = _heads(nodes)
    if matrix is None or not able or "attention_query_parts" in nodes or not _are_held(heads, matrix):
        return []
    longest = _held(max(heads), matrix)
    stages, by_keys, problem = stages_of(nodes), is_by_keys(nodes), problem_of(nodes)
    kind = "keys" if by_keys else "query" if "attention_query_gradient" in nodes else "forward"
    kept = len(operands_of_rows(stages))
    buffers = (1,) if kind == "forward" else (2, 1)
    others = (Form(*each, count) for each in _SHAPES for count in buffers)
    chosen = dict.fromkeys([*_preferred(kind, profile, longest), *others])
    shapes = [
        CooperativeShape(
            form.subgroups,
            form.columns,
            matrix,
            profile.subgroup_size,
            longest,
            form.buffers,
            form.down,
            kept if form.keeps_rows else 0,
            form.loads_places,
            form.phases,
            form.overlaps,
        )
        for form in chosen
    ]
    return [
        shape
        for form, shape in zip(chosen, shapes, strict=True)
        if shape.divides()
        and shape.local <= profile.max_workgroup_invocations
        and _VECTOR_BYTES * shape.vectors(stages, by_keys) <= profile.shared_memory_bytes
        and _workgroups(shape, problem) >= _least_workgroups(form, shape, _FORMS[kind]) * profile.processors
    ]


def _preferred(kind: str, profile: DeviceProfile, head: int) -> list[Form]:
    """The forms for tiles that stay in matrices."""
    if not profile.converts_matrices:
        return []
    forms = _FORMS[kind]
    if head > PIECE:
        return [forms.tall_longer, forms.flat_longer]
    return [forms.tall, forms.flat, *([] if forms.few is None else [forms.few])]


def _least_workgroups(form: Form, shape: CooperativeShape, forms: Forms) -> float:
    """How many workgroups a processor a shape is for."""
    if _is_tall(shape):
        return forms.least
    return forms.many if form == forms.flat else 0


def _is_tall(shape: CooperativeShape) -> bool:
    return shape.subgroups * shape.down > _MOST_IN_FLAT


def _workgroups(shape: CooperativeShape, problem: Problem) -> int:
    return problem.count * -(-problem.rows // shape.rows)


def operands_of_rows(stages: Sequence[Stage]) -> list[Node]:
    return list(dict.fromkeys(stage.of_rows for stage in stages if stage.of_rows is not None))


def longest_head(nodes: Mapping[str, Node]) -> int:
    """The most elements of a row of the operands that matrices would hold."""
    return max(_heads(nodes))


def _heads(nodes: Mapping[str, Node]) -> set[int]:
    """The extents of heads that matrices hold."""
    return {
        operand.shape[-1]
        for node in nodes.values()
        for name, operand in named_operands(node).items()
        if name in _OF_MATRICES
    }


def _held(head: int, matrix: MatrixShape) -> int:
    """The elements of whole matrices that hold a head."""
    least = math.lcm(matrix.k, matrix.n)
    return -(-head // least) * least


def _are_held(heads: set[int], matrix: MatrixShape) -> bool:
    """Whether heads are whole numbers of vectors, and matrices hold them."""
    return all(head % EIGHT == 0 and _held(head, matrix) <= LONGEST_HEAD for head in heads)
