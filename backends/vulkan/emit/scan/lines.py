"""The lines that scans walk over, in chunks that are folded from their starts."""

from __future__ import annotations

from functools import cached_property
from math import prod

from lavax.backends.vulkan.glsl.expressions import literal, type_name
from lavax.backends.vulkan.glsl.reductions import REDUCTIONS, Reduction
from lavax.backends.vulkan.glsl.uses import Uses
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.ir.types import DType
from lavax.passes.kernels.index import Index, unflatten
from lavax.passes.kernels.reads import Coordinates

# log(exp(a) + exp(b)); two equal infinities have no distance.
_LOGSUMEXP = "({larger}({0}, {1}) + {log1p}({exp}(-abs(mix({0} - {1}, {zero}, {equal})))))"


def _logsumexp(left: str, right: str, dtype: DType, width: int, uses: Uses) -> str:
    zero = literal(0.0, dtype) if width == 1 else f"{type_name(dtype, width)}(0.0)"
    same = f"{left} == {right}" if width == 1 else f"equal({left}, {right})"
    larger, log1p, exp = (uses.function(f"lx_{name}", dtype) for name in ("maximum", "log1p", "exp"))
    return _LOGSUMEXP.format(left, right, zero=zero, equal=same, larger=larger, log1p=log1p, exp=exp)


FOLDS: dict[str, Reduction] = {
    "cumulative_sum": REDUCTIONS["sum"],
    "cumulative_prod": REDUCTIONS["prod"],
    "cumulative_max": REDUCTIONS["max"],
    "cumulative_min": REDUCTIONS["min"],
    "cumulative_logsumexp": Reduction(REDUCTIONS["max"].identity, _logsumexp),
}


@dataclass(frozen=True)
class ScannedLines:
    """Lines of `array` along `axis`, each in chunks of `chunk` elements, of which the last may be shorter.

    `starts` has the value from which each chunk is folded; None stands for the identity. `wholes`: the kernel writes
    only the fold of each chunk. `reverse`: elements and chunks are counted from the line's end.
    """

    array: Node
    starts: Node | None
    fold: Reduction
    axis: int
    chunk: int
    reverse: bool
    wholes: bool

    @cached_property
    def length(self) -> int:
        return self.array.shape[self.axis]

    @property
    def overflows(self) -> bool:
        """Whether the fold of some elements may be far greater than any result."""
        return self.fold in (FOLDS["cumulative_sum"], FOLDS["cumulative_prod"])

    @cached_property
    def parts(self) -> int:
        """Chunks of a line."""
        return -(-self.length // self.chunk)

    @cached_property
    def across(self) -> tuple[int, ...]:
        """The extents of the other axes."""
        return self.array.shape[: self.axis] + self.array.shape[self.axis + 1 :]

    @cached_property
    def count(self) -> int:
        return prod(self.across)

    @property
    def along_memory(self) -> bool:
        """Whether neighbours along a line are neighbours in memory."""
        return prod(self.array.shape[self.axis + 1 :]) == 1

    def at(self, line: Index, along: Index) -> Coordinates:
        """The coordinates of an element along the line of that number."""
        outer = unflatten(line, self.across)
        return (*outer[: self.axis], along, *outer[self.axis :])

    def identity(self) -> str:
        return f"{type_name(self.array.dtype, 1)}({self.fold.identity(self.array.dtype)})"

    def joined(self, earlier: str, later: str, uses: Uses, width: int = 1) -> str:
        return self.fold.join(earlier, later, self.array.dtype, width, uses)


def lines_of(node: Node) -> ScannedLines:
    """The lines of a cumulative operation, or of one over chunks."""
    attrs = node.attrs
    if node.op in FOLDS:
        length = node.shape[attrs["axis"]]
        line = (attrs["axis"], length, attrs["reverse"])
        return ScannedLines(node.operands[0], None, FOLDS[node.op], *line, wholes=False)
    array, *starts = node.operands
    fold, wholes = FOLDS[attrs["fold"]], node.op == "chunk_totals"
    start = starts[0] if starts else None
    return ScannedLines(array, start, fold, attrs["axis"], attrs["chunk"], attrs["reverse"], wholes)
