"""Row groups of one invocation, which has a row, four neighbouring rows, or several strips of them to itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lavax.backends.vulkan.emit.reduce.row_group import RowGroup
from lavax.backends.vulkan.emit.reduce.row_schedule import RowSchedule
from lavax.backends.vulkan.glsl.launch import open_strips, open_turns
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node


@dataclass(frozen=True, kw_only=True)
class InvocationRows(RowSchedule):
    """An invocation has a row, or a vector of rows, in each of its `strips`, which lie a workgroup apart.

    It works on those at once. Or it has one in each of its `turns`, one after the other. Or as many neighbours as are
    `together`, at once: what they have in common is read and computed once.
    """

    strips: int = 1
    turns: int = 1
    together: int = 1


class InvocationGroup(RowGroup[InvocationRows]):
    """Writes an invocation's own rows."""

    @contextmanager
    def opened(self, rows: int) -> Iterator[list[str]]:
        if self.schedule.strips > 1:
            yield open_strips(self.body, rows, self.schedule.local, self.schedule.strips)
            return
        together, body = self.schedule.together, self.body
        with open_turns(body, rows // together, self.schedule.local, self.schedule.turns):
            if together == 1:
                yield ["i"]
                return
            names = [f"row{number}" for number in range(together)]
            body.lines(f"int {name} = i * {together} + {number};" for number, name in enumerate(names))
            body.scopes[-1].variables |= set(names)
            yield names

    def join(self, partial: Sequence[tuple[Node, str]]) -> None:
        """An invocation's result is the row's."""

    @property
    def reads_early(self) -> bool:
        return True

    @property
    def turns(self) -> int:
        return self.schedule.turns

    def workgroups(self, rows: int) -> int:
        schedule = self.schedule
        return -(-rows // (schedule.local * schedule.strips * schedule.turns * schedule.together))
