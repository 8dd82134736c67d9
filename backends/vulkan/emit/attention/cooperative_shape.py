"""The schedule of attention by cooperative matrices: how a workgroup's subgroups share the work. Writes no GLSL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lavax.backends.vulkan.emit.attention.problem import Stage, is_by_keys, stages_of
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.narrow_vectors import EIGHT
from lavax.backends.vulkan.plan.profile import DeviceProfile, MatrixShape
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.build.attention import named_operands

_VECTOR_BYTES = 16
# Longer heads take more registers than an invocation has: of each result, and of each operand of rows.
_LONGEST_HEAD = 128
# The operands that matrices hold; the others are numbers of float32.
_OF_MATRICES = ("query", "key", "value", "cotangent")
# Statistics of queries, which are columns where rows are keys.
STATISTICS = ("logsumexp", "delta")


@dataclass(frozen=True)
class CooperativeShape:
    """`subgroups` with a row of matrices each; blocks of `columns`. Matrices have `shape`, and `lanes` share one.

    Rows of operands have up to `head` elements. With two `buffers` a block's columns are staged while some subgroups
    still work on the last one's, and meet once a block.

    A lane has one row of a tile, or part of one: `across` lanes split it, eight neighbouring columns at a time.
    """

    subgroups: int
    columns: int
    shape: MatrixShape
    lanes: int
    head: int = _LONGEST_HEAD
    buffers: int = 1

    @property
    def local(self) -> int:
        return self.subgroups * self.lanes

    @property
    def rows(self) -> int:
        return self.subgroups * self.shape.m

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

    def operand_stride(self, head: int) -> int:
        """The vectors of an operand's row in 16 bits."""
        return head // EIGHT | 1

    @property
    def own_vectors(self) -> int:
        """A subgroup's part of shared memory: a tile, or its rows of an operand."""
        return self.shape.m * max(self.tile_stride, self.operand_stride(self.head))

    def staged(self, stages: Sequence[Stage]) -> dict[Node, int]:
        """Where each operand of columns begins in shared memory, behind the subgroups' parts."""
        found: dict[Node, int] = {}
        end = self.subgroups * self.own_vectors
        for stage in stages:
            if stage.of_columns not in found:
                found[stage.of_columns] = end
                end += self.columns * self.operand_stride(stage.of_columns.shape[-1])
        return found

    def buffer_vectors(self, stages: Sequence[Stage], by_keys: bool) -> int:
        """The vectors of a block's columns in shared memory."""
        operands = dict.fromkeys(stage.of_columns for stage in stages)
        lines = sum(self.operand_stride(operand.shape[-1]) for operand in operands)
        statistics = len(STATISTICS) * self.columns // VECTOR if by_keys else 0
        return self.columns * lines + statistics

    def vectors(self, stages: Sequence[Stage], by_keys: bool) -> int:
        """The vectors of shared memory."""
        return self.subgroups * self.own_vectors + self.buffers * self.buffer_vectors(stages, by_keys)

    def divides(self) -> bool:
        """Whether lanes share tiles evenly, matrices fill them, and there is an invocation per column."""
        shared_evenly = self.lanes % self.shape.m == 0 and self.columns % (EIGHT * max(self.across, 1)) == 0
        whole = shared_evenly and self.local >= self.columns
        return whole and self.columns % self.shape.n == 0 and self.columns % self.shape.k == 0


# Subgroups, and columns of a block: first those that are fastest. Chosen by `python -m benchmarks models`; twice the
# columns take the forward kernel more registers than there are (docs/performance/training_bfloat16.md). With two
# buffers gradients gain 1 to 4 %, and the forward kernel loses as much (docs/rejected/attention.md).
_SHAPES = ((4, 32), (2, 32), (4, 64), (2, 64))


def cooperative_shapes(profile: DeviceProfile, nodes: Mapping[str, Node]) -> list[CooperativeShape]:
    """The shapes for the kernel that computes these nodes, the preferred one first; none if matrices do not suit it."""
    node = next(iter(nodes.values()))
    precision = node.attrs["precision"]
    matrix = next((shape for shape in profile.matrices if shape.dtype == precision), None)
    able = profile.kind == "gpu" and profile.subgroup_shuffle and profile.knows_subgroup_size
    heads = _heads(nodes)
    if matrix is None or not able or "attention_query_parts" in nodes or not _are_whole(heads, matrix):
        return []
    stages, by_keys = stages_of(nodes), is_by_keys(nodes)
    buffers = (1,) if "attention" in nodes or "attention_logsumexp" in nodes else (2, 1)
    shapes = (
        CooperativeShape(*numbers, matrix, profile.subgroup_size, max(heads), count)
        for numbers in _SHAPES
        for count in buffers
    )
    return [
        shape
        for shape in shapes
        if shape.divides()
        and shape.local <= profile.max_workgroup_invocations
        and _VECTOR_BYTES * shape.vectors(stages, by_keys) <= profile.shared_memory_bytes
    ]


def _heads(nodes: Mapping[str, Node]) -> set[int]:
    """The extents of heads that matrices hold."""
    return {
        operand.shape[-1]
        for node in nodes.values()
        for name, operand in named_operands(node).items()
        if name in _OF_MATRICES
    }


def _are_whole(heads: set[int], matrix: MatrixShape) -> bool:
    """Whether heads are whole numbers of matrices."""
    return all(head % matrix.k == 0 and head % matrix.n == 0 and head <= _LONGEST_HEAD for head in heads)
