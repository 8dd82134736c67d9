"""Neighbouring rows that a subgroup shares, of which each becomes one member's own when all their results are known.

Then what is computed from the results is written once, for all rows at once: on CPU drivers the lanes of a subgroup
are one vector, and a read by address, a function or a store of one lane takes as long as that of eight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lavax.backends.vulkan.emit.reduce.row_group import RowGroup
from lavax.backends.vulkan.glsl.expressions import type_name
from lavax.backends.vulkan.glsl.launch import at_row
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index
from lavax.passes.kernels.kernel import Kernel

_ROW = "own_row"  # the shader's variable for the number of a member's own row, or vector of rows


class OwnRows:
    """Writes the results of rows by the members of a row group that have one each."""

    def __init__(self, kernel: Kernel, group: RowGroup[Any]) -> None:
        self.kernel, self.group, self.body = kernel, group, group.body
        self.members: int = group.schedule.members

    def opened(self) -> dict[str, Index]:
        """Declares the number of a member's own row; the kernel's variables in it. Members without one have the last
        one, too."""
        count = self.group.own_rows
        lane = "lane_of_row" if count == self.members else f"min(lane_of_row, {count - 1})"
        self.body.line(f"int {_ROW} = {self.group.first_row} + {lane};")
        self.body.scopes[0].variables |= {_ROW}
        return at_row(self.group.schedule.row_index(self.kernel.domain.rows, _ROW), self.kernel)

    def results(self, of_rows: Sequence[Sequence[tuple[Node, str]]]) -> list[tuple[Node, str]]:
        """Each reduction with the variable of a member's own result, chosen from those of each row."""
        names: Mapping[Node, list[str]] = {node: [] for node, _ in of_rows[0]}
        for of_row in of_rows:
            for node, name in of_row:
                names[node].append(name)
        return [(node, self._own(node, of_node)) for node, of_node in names.items()]

    def _own(self, node: Node, names: Sequence[str]) -> str:
        own, (*others, last) = self.body.name(), names
        choices = "".join(f"lane_of_row == {lane} ? {name} : " for lane, name in enumerate(others))
        self.body.line(f"{type_name(node.dtype, self.group.width_of(node))} {own} = {choices}{last};")
        return own

    @property
    def exists(self) -> str:
        """The condition that a member has a row of its own; empty if all have."""
        count, rows = self.group.own_rows, self.kernel.domain.rows // self.group.schedule.row_width
        has_one = "" if count == self.members else f"lane_of_row < {count}"
        is_one = f"{_ROW} < {rows}" if rows % count else ""
        return " && ".join(filter(None, (has_one, is_one)))


def own_rows_of(kernel: Kernel, group: RowGroup[Any], phases: int) -> OwnRows | None:
    """The members' own rows, if all that the kernel writes is numbers of rows, known after one walk."""
    suits = group.own_rows and phases == 1 and all(map(kernel.is_row_level, kernel.graph.outputs))
    return OwnRows(kernel, group) if suits else None
