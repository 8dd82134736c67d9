"""Interleaved row groups, for rows that are neighbours in memory: neighbouring invocations have neighbouring rows.

Members of a group lie in different subgroups. They halve the number of partial results in shared memory until one is
left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lavax.backends.vulkan.emit.reduce.row_group import Register, RowGroup, doubling, registers_of
from lavax.backends.vulkan.emit.reduce.row_schedule import RowSchedule
from lavax.backends.vulkan.glsl.launch import WORKGROUP
from lavax.ir.graph import Node

_LANE_OF_GROUP = "gl_LocalInvocationID.x"


@dataclass(frozen=True, kw_only=True)
class InterleavedRows(RowSchedule):
    """A workgroup has `local // members` neighbouring rows, or vectors of rows, and so many parts of each."""


class InterleavedGroup(RowGroup[InterleavedRows]):
    """Writes interleaved row groups."""

    def open(self, rows: int) -> list[str]:
        """No invocation ends here, because all of a workgroup must reach its barriers."""
        groups, bound = self.schedule.row_groups, self.body.parameters.integer(rows)
        self.body.line(f"int team = int({WORKGROUP} * {groups}u + gl_LocalInvocationID.x % {groups}u);")
        self.body.line(f"int row = min(team, {bound} - 1);")
        self.body.line(f"int lane_of_row = int(gl_LocalInvocationID.x / {groups}u);")
        self.exists = f"team < {bound}"
        self.body.scopes[0].variables |= {"row"}
        return ["row"]

    @property
    def reads_early(self) -> bool:
        return False

    def join(self, partial: Sequence[tuple[Node, str]]) -> None:
        registers = registers_of(partial)
        for register in registers:
            self._declare(register, self.schedule.local)
            self.body.line(f"{register.shared}[{_LANE_OF_GROUP}] = {register.name};")
        self.body.line("barrier();")
        for step in reversed(list(doubling(self.schedule.members))):
            with self.body.block(f"if (lane_of_row < {step})"):
                self._join_at_distance(partial, step * self.schedule.row_groups)
            self.body.line("barrier();")
        for register in registers:
            self.body.line(
                f"{register.name} = {register.shared}[{_LANE_OF_GROUP} % {self.schedule.row_groups}u];"
            )

    def _join_at_distance(self, partial: Sequence[tuple[Node, str]], distance: int) -> None:
        def other(register: Register) -> str:
            return f"{register.shared}[{_LANE_OF_GROUP} + {distance}u]"

        for node, name in partial:
            self._join_one(node, name, other)
        for register in registers_of(partial):
            self.body.line(f"{register.shared}[{_LANE_OF_GROUP}] = {register.name};")
