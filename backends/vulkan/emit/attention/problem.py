"""The work of a kernel of attention: its rows and columns, and the steps of a block. Writes no GLSL."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, prod

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.build.attention import named_operands
from lavax.passes.kernels.kernel import Kernel

BY_KEYS = ("attention_key_gradient", "attention_value_gradient", "attention_query_parts")


@dataclass(frozen=True)
class Stage:
    """A step of a block.

    With `of_rows`, it makes a tile: the products of rows of two operands. Without, it adds the tile's product with the
    operand's rows, which are columns here, to a result. With `to_columns`, the operand's rows are rows here, and the
    product of the tile's transpose with them is added to a result for the columns.
    """

    of_columns: Node
    of_rows: Node | None = None
    to_columns: bool = False


@dataclass(frozen=True)
class HeadsInTurn:
    """How many heads take turns where some rows have more columns than others. Exercised by `python -m benchmarks
    models`.

    A workgroup of a GPU takes as long as its rows have columns. If those of many heads that have most start first, none
    of these starts when others are done. More heads would share a device with more keys than its cache holds.
    """

    most: int = 128


HEADS_IN_TURN = HeadsInTurn()


@dataclass(frozen=True)
class Problem:
    """The scores of a kernel: a `batch` of `rows` by `columns`. Rows are keys if `by_keys`, else queries.

    `uneven`: some rows see more columns than others; later queries more than earlier ones, and earlier keys.
    """

    batch: tuple[int, ...]
    rows: int
    columns: int
    by_keys: bool
    uneven: bool = False

    @property
    def count(self) -> int:
        return prod(self.batch)

    @property
    def grows(self) -> bool:
        """Whether later rows see more columns."""
        return self.uneven and not self.by_keys

    @property
    def heads_in_turn(self) -> int:
        """How many heads' workgroups of the same rows best follow each other on a GPU: a divisor of all."""
        most = HEADS_IN_TURN.most if self.uneven else 1
        return max(heads for heads in range(1, most + 1) if self.count % heads == 0)

    @property
    def queries(self) -> int:
        return self.columns if self.by_keys else self.rows

    @property
    def keys(self) -> int:
        return self.rows if self.by_keys else self.columns


def stages_of(nodes: Mapping[str, Node]) -> list[Stage]:
    """The steps of a block in the kernel that computes these nodes, given by their operations."""
    operands: dict[str, Node] = {}
    for node in nodes.values():
        operands |= named_operands(node)
    found = [_stage(operands, *stage) for op, *stages in _STAGES if op in nodes for stage in stages]
    product = ("query", "key") if is_by_keys(nodes) else ("key", "query")
    if "attention_query_parts" in nodes:
        alone = "attention_key_gradient" not in nodes
        found += [_stage(operands, "cotangent", "value")] if alone else []
        found.append(Stage(operands["key"], to_columns=True))
    return [_stage(operands, *product), *found]


# After the product of queries and keys: the operand of columns that is accumulated, or those of columns and rows whose
# product is a tile.
_STAGES = (
    ("attention", ("value",)),
    ("attention_query_gradient", ("value", "cotangent"), ("key",)),
    ("attention_value_gradient", ("cotangent",)),
    ("attention_key_gradient", ("cotangent", "value"), ("query",)),
)


def _stage(operands: Mapping[str, Node], of_columns: str, of_rows: str | None = None) -> Stage:
    return Stage(operands[of_columns], None if of_rows is None else operands[of_rows])


def is_by_keys(nodes: Mapping[str, Node]) -> bool:
    """Whether the rows of the kernel that computes these nodes are keys."""
    return not nodes.keys().isdisjoint(BY_KEYS)


def problem_of(nodes: Mapping[str, Node]) -> Problem:
    """The problem of the kernel that computes these nodes."""
    node = next(iter(nodes.values()))
    operands, by_keys = named_operands(node), is_by_keys(nodes)
    query, key = operands["query"], operands["key"]
    rows, columns = (key, query) if by_keys else (query, key)
    uneven = node.attrs["fill"] == -inf and node.attrs["highest"] < key.shape[-2] - 1
    return Problem(query.shape[:-2], rows.shape[-2], columns.shape[-2], by_keys, uneven)


def nodes_of(kernel: Kernel) -> dict[str, Node]:
    """The nodes that a kernel computes, by their operations."""
    return {node.op: node for node in kernel.graph.outputs}
