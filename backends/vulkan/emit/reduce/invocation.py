"""Row groups of one invocation, which has a row, four neighbouring rows, or several strips of them to itself."""

from __future__ import annotations

from collections.abc import Sequence

from lavax.backends.vulkan.emit.reduce.row_group import RowGroup
from lavax.backends.vulkan.emit.reduce.row_schedule import RowSchedule
from lavax.backends.vulkan.glsl.launch import open_invocations, open_strips
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node


@dataclass(frozen=True, kw_only=True)
class InvocationRows(RowSchedule):
    """An invocation has a row, or a vector of rows, in each of its `strips`, which lie a workgroup apart."""

    strips: int = 1


class InvocationGroup(RowGroup[InvocationRows]):
    """Writes an invocation's own rows."""

    def open(self, rows: int) -> list[str]:
        if self.schedule.strips > 1:
            return open_strips(self.body, rows, self.schedule.local, self.schedule.strips)
        open_invocations(self.body, rows, self.schedule.local, "i")
        return ["i"]

    def join(self, partial: Sequence[tuple[Node, str]]) -> None:
        """An invocation's result is the row's."""

    @property
    def reads_early(self) -> bool:
        return True

    def workgroups(self, rows: int) -> int:
        return -(-rows // (self.schedule.local * self.schedule.strips))
