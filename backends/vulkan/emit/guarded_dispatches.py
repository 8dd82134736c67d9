"""Dispatches under a guard, which read their numbers of workgroups from a table that the guard writes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from lavax.backends.vulkan.plan.plan import Command, Dispatch, RepeatDispatches, Shader, UntilFlag

COUNTS_BYTES = 12  # three numbers of workgroups


def counted(
    commands: Sequence[Command], table: int, groups: list[tuple[int, int, int]], guards: Collection[Shader]
) -> list[Command]:
    """The commands with their dispatches' numbers of workgroups in the table; inner guards have tables of their own.

    A guard always runs, because its table must not keep earlier numbers.
    """
    found: list[Command] = []
    for command in _apart(commands):
        if isinstance(command, (RepeatDispatches, UntilFlag)):
            found.append(replace(command, commands=tuple(counted(command.commands, table, groups, guards))))
        elif command.counts is not None or command.shader in guards:
            found.append(command)
        else:
            found.append(replace(command, counts=(table, COUNTS_BYTES * len(groups))))
            groups.append(command.groups)
    return found


def _apart(commands: Iterable[Command]) -> Iterator[Command]:
    """The commands, with a dispatch for each part."""
    for command in commands:
        yield from command.apart() if isinstance(command, Dispatch) else (command,)
