"""A long dispatch as several over parts of its workgroups, with the same results.

Workgroups are numbered by one expression in all shaders. In a part, the number of its first workgroup is added, which
is a push constant. Under a guard, each part has its own number of workgroups in the guard's table.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace

from lavax.backends.vulkan.glsl.launch import WORKGROUP
from lavax.backends.vulkan.plan.plan import BASE_WORD, Command, Dispatch, Plan, Shader
from lavax.base.quick_dataclasses import dataclass

_BASED = f"({WORKGROUP} + words[{BASE_WORD}])"
_MOST_GROUPS = 65535  # more are not portable in one dimension
_GROUPS = struct.Struct("=3I")
_COUNTS_SLOT, _GROUPS_SLOT = 2, 3  # of a guard: its tables of workgroups, those that run now and those that may run


def with_long_dispatches_cut(plan: Plan, pieces: Callable[[Dispatch], int]) -> Plan:
    """The plan with each dispatch in as many parts as `pieces` says, or fewer if it has fewer workgroups."""
    cutting = _Cutting(plan, pieces)
    commands = tuple(cutting.commands(plan.commands))
    if not cutting.is_changed:
        return plan
    if cutting.added:
        commands = tuple(cutting.with_more_counts(commands))
    return replace(plan, commands=commands, constants=tuple(cutting.constants))


def shader_as_cut(dispatch: Dispatch, pieces: int) -> Shader:
    """The shader that a dispatch runs if it is cut into so many parts."""
    if pieces < 2 or dispatch.parts or not _can_be_cut(dispatch) or _is_part(dispatch):
        return dispatch.shader
    return _based(dispatch.shader)


@dataclass
class _Cutting:
    plan: Plan
    pieces: Callable[[Dispatch], int]
    is_changed: bool = False
    added: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)  # workgroups, by the slot of the table

    def __post_init__(self) -> None:
        self.constants = list(self.plan.constants)
        self._first_constant = len(self.plan.arguments) + len(self.plan.results)

    def commands(self, commands: Iterable[Command]) -> Iterator[Command]:
        for command in commands:
            if isinstance(command, Dispatch):
                yield from self._cut(command)
            else:
                yield replace(command, commands=tuple(self.commands(command.commands)))

    def _cut(self, dispatch: Dispatch) -> list[Dispatch]:
        """Its parts, if it has several, are cut one by one."""
        if not dispatch.parts or self.pieces(dispatch) < 2:
            return self._parts(dispatch)
        self.is_changed = True
        return [piece for part in dispatch.apart() for piece in self._parts(part)]

    def _parts(self, dispatch: Dispatch) -> list[Dispatch]:
        x, y, _ = dispatch.groups
        total = x * y
        count = min(self.pieces(dispatch), total) if _can_be_cut(dispatch) else 1
        if count < 2:
            return [dispatch]
        self.is_changed = True
        longest = min(-(-total // count), _MOST_GROUPS)
        dispatch = replace(dispatch, copies=None)  # which are not cut
        given, is_part = len(dispatch.slots) + len(dispatch.words), _is_part(dispatch)
        words = dispatch.words[:-1] if is_part else dispatch.words + (0,) * (BASE_WORD - given)
        base = dispatch.words[-1] if is_part else 0
        shader = dispatch.shader if is_part else _based(dispatch.shader)
        parts = []
        for first in range(0, total, longest):
            groups = (min(longest, total - first), 1, 1)
            work = dispatch.work.share(groups[0], total)
            part = replace(dispatch, shader=shader, words=(*words, base + first), groups=groups, work=work)
            counts = self._counts(dispatch, groups)
            parts.append(replace(part, barrier=dispatch.barrier and first == 0, counts=counts))
        return parts

    def _counts(self, dispatch: Dispatch, groups: tuple[int, int, int]) -> tuple[int, int] | None:
        """The place of a part's number of workgroups, if that depends on a guard: behind those that are there."""
        if dispatch.counts is None:
            return None
        table = dispatch.counts[0]
        added = self.added.setdefault(table, [])
        added.append(groups)
        present = len(self.constants[table - self._first_constant]) // _GROUPS.size
        return table, (present + len(added) - 1) * _GROUPS.size

    def with_more_counts(self, commands: Iterable[Command]) -> Iterator[Command]:
        """The commands with larger tables for their guards."""
        for command in commands:
            if not isinstance(command, Dispatch):
                yield replace(command, commands=tuple(self.with_more_counts(command.commands)))
            elif len(command.slots) > _GROUPS_SLOT and command.slots[_COUNTS_SLOT] in self.added:
                yield self._larger(command)
            else:
                yield command

    def _larger(self, guard: Dispatch) -> Dispatch:
        added = self.added[guard.slots[_COUNTS_SLOT]]
        counts, groups = (guard.slots[slot] - self._first_constant for slot in (_COUNTS_SLOT, _GROUPS_SLOT))
        self.constants[groups] += b"".join(_GROUPS.pack(*each) for each in added)
        self.constants[counts] = bytes(len(self.constants[groups]))
        return replace(guard, words=(*guard.words[:-1], len(self.constants[groups]) // _GROUPS.size))


def _can_be_cut(dispatch: Dispatch) -> bool:
    x, y, z = dispatch.groups
    return x * y > 1 and z == 1 and WORKGROUP in dispatch.shader.source


def _is_part(dispatch: Dispatch) -> bool:
    """Whether its shader adds the number of a first workgroup already."""
    return len(dispatch.slots) + len(dispatch.words) > BASE_WORD


def _based(shader: Shader) -> Shader:
    return replace(shader, source=shader.source.replace(WORKGROUP, _BASED))
