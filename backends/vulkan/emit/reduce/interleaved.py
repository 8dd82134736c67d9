"""Interleaved row groups, for rows that are neighbours in memory: neighbouring invocations have neighbouring rows.

Members of a group lie in different subgroups. In shared memory, they fold several partial results into one at a time,
because each step ends with a barrier, and all of them join the few that are left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lavax.backends.vulkan.emit.reduce.row_group import RowGroup
from lavax.backends.vulkan.emit.reduce.row_schedule import RowSchedule
from lavax.backends.vulkan.glsl.launch import WORKGROUP
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node

_LANE_OF_GROUP = "gl_LocalInvocationID.x"
# The most partial results that every member joins, and that a step folds into one.
MOST_LEFT = 8


@dataclass(frozen=True, kw_only=True)
class InterleavedRows(RowSchedule):
    """A workgroup has `local // members` neighbouring rows, or vectors of rows, and so many parts of each."""


class InterleavedGroup(RowGroup[InterleavedRows]):
    """Writes interleaved row groups."""

    @contextmanager
    def opened(self, rows: int) -> Iterator[list[str]]:
        """No invocation ends here, because all of a workgroup must reach its barriers."""
        groups, bound = self.schedule.row_groups, self.body.parameters.integer(rows)
        self.body.line(f"int team = int({WORKGROUP} * {groups}u + gl_LocalInvocationID.x % {groups}u);")
        self.body.line(f"int row = min(team, {bound} - 1);")
        self.body.line(f"int lane_of_row = int(gl_LocalInvocationID.x / {groups}u);")
        self.exists = f"team < {bound}"
        self.body.scopes[0].variables |= {"row"}
        yield ["row"]

    @property
    def reads_early(self) -> bool:
        return False

    @property
    def has_barriers(self) -> bool:
        return True

    def join(self, partial: Sequence[tuple[Node, str]]) -> None:
        registers, groups, left = self._registers_of(partial), self.schedule.row_groups, self.schedule.members
        for register in registers:
            self._declare(register, self.schedule.local)
            self.body.line(f"{register.shared}[{_LANE_OF_GROUP}] = {register.name};")
        self.body.line("barrier();")
        for fold in folds(left):
            left //= fold
            with self.body.block(f"if (lane_of_row < {left})"):
                for number in range(1, fold):
                    self._join_from(partial, f"{_LANE_OF_GROUP} + {number * left * groups}u")
                for register in registers:
                    self.body.line(f"{register.shared}[{_LANE_OF_GROUP}] = {register.name};")
            self.body.line("barrier();")
        first = f"{_LANE_OF_GROUP} % {groups}u"
        for register in registers:
            self.body.line(f"{register.name} = {register.shared}[{first}];")
        for number in range(1, left):
            self._join_from(partial, f"{first} + {number * groups}u")

    def _join_from(self, partial: Sequence[tuple[Node, str]], place: str) -> None:
        """Joins the partial results at a place in shared memory into the invocation's own."""
        for node, name in partial:
            self._join_one(node, name, lambda register: f"{register.shared}[{place}]")


def folds(members: int) -> Iterator[int]:
    """The parts that each step folds into one. A few are left, which every member joins without another barrier."""
    while members > MOST_LEFT:
        fold = min(MOST_LEFT, members // 4)
        yield fold
        members //= fold
