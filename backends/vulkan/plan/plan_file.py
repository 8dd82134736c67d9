"""A finished plan as bytes, and back: what the disk cache keeps, so that another process need not plan again.

The bytes are a compressed line of JSON, which names each shader once, and the constants behind it. Reading them runs no
code from them.
"""
from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from lavax.backends.vulkan.plan.plan import (
    Command,
    Copies,
    Copy,
    Dispatch,
    DispatchPart,
    Fill,
    Plan,
    RepeatDispatches,
    Result,
    Shader,
    UntilFlag,
    Work,
)

_LEVEL = 1  # of compression: higher ones take longer than they save
_LENGTH_BYTES = 8  # of the JSON's length


def written(plan: Plan) -> bytes:
    """The plan as bytes."""
    shaders = {shader: number for number, shader in enumerate(dict.fromkeys(d.shader for d in plan.dispatches))}
    content = [
        [[s.source, s.specialization, s.subgroup_size, s.bindings, s.doubles] for s in shaders],
        [len(constant) for constant in plan.constants],
        plan.arguments,
        [[result.nbytes, result.donor] for result in plan.results],
        plan.temporaries,
        plan.arena_bytes,
        [_written_command(command, shaders) for command in plan.commands],
        plan.flags,
        plan.range_slots,
        plan.block_bytes,
    ]
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
    return zlib.compress(b"".join([len(text).to_bytes(_LENGTH_BYTES, "little"), text, *plan.constants]), _LEVEL)


def read(file: bytes) -> Plan:
    """The plan that `written` wrote. Raises ValueError for other bytes."""
    try:
        return _read(zlib.decompress(file))
    except (zlib.error, ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
        raise ValueError(f"these are not the bytes of a plan: {error}") from error


def _read(file: bytes) -> Plan:
    end = _LENGTH_BYTES + int.from_bytes(file[:_LENGTH_BYTES], "little")
    shaders, lengths, arguments, results, temporaries, arena, commands, flags, ranges, block = json.loads(
        file[_LENGTH_BYTES:end]
    )
    starts = list(accumulate(lengths, initial=end))
    if starts[-1] != len(file):
        raise ValueError(f"{len(file)} bytes in place of {starts[-1]}")
    known = [_read_shader(*shader) for shader in shaders]
    return Plan(
        arguments=tuple(arguments),
        results=tuple(Result(*result) for result in results),
        constants=tuple(file[start:stop] for start, stop in pairwise(starts)),
        temporaries=tuple(temporaries),
        arena_bytes=arena,
        commands=_read_commands(commands, known),
        flags=flags,
        range_slots=tuple(ranges),
        block_bytes=block,
    )


def _written_command(command: Command, shaders: dict[Shader, int]) -> list[Any]:
    """The command's values; those that hold commands are shorter, and differ in their first."""
    if isinstance(command, RepeatDispatches):
        return ["repeat", command.count, [_written_command(inner, shaders) for inner in command.commands]]
    if isinstance(command, UntilFlag):
        inner = [_written_command(inner, shaders) for inner in command.commands]
        return ["until", command.flag, inner, command.may_be_skipped]
    return [
        shaders[command.shader],
        command.slots,
        command.words,
        command.groups,
        command.barrier,
        command.name,
        command.counts,
        command.seen,
        [command.work.operations, command.work.nbytes],
        [[part.seen, part.groups] for part in command.parts],
        command.copies and _written_copies(command.copies),
    ]


def _written_copies(copies: Copies) -> list[Any]:
    fills = [[fill.slot, fill.nbytes, fill.word] for fill in copies.fills]
    return [fills, [[copy.source, copy.target, copy.runs] for copy in copies.copies]]


def _read_commands(commands: Sequence[Sequence[Any]], shaders: Sequence[Shader]) -> tuple[Command, ...]:
    return tuple(_read_command(command, shaders) for command in commands)


def _read_command(command: Sequence[Any], shaders: Sequence[Shader]) -> Command:
    match command:
        case ["repeat", count, inner]:
            return RepeatDispatches(count, _read_commands(inner, shaders))
        case ["until", flag, inner, may_be_skipped]:
            return UntilFlag(flag, _read_commands(inner, shaders), may_be_skipped)
    number, slots, words, groups, barrier, name, counts, seen, work, parts, copies = command
    x, y, z = groups
    return Dispatch(
        shaders[number],
        tuple(slots),
        tuple(words),
        (x, y, z),
        barrier,
        name,
        None if counts is None else (counts[0], counts[1]),
        None if seen is None else tuple(seen),
        Work(*work),
        tuple(DispatchPart(tuple(of_part), number_of) for of_part, number_of in parts),
        copies and _read_copies(*copies),
    )


def _read_copies(fills: Sequence[Sequence[int]], copies: Sequence[Any]) -> Copies:
    read = (Copy(source, target, tuple((a, b, n) for a, b, n in runs)) for source, target, runs in copies)
    return Copies(tuple(Fill(slot, nbytes, word) for slot, nbytes, word in fills), tuple(read))


def _read_shader(
    source: str, specialization: list[int], subgroup: int | None, bindings: list[Any], doubles: bool
) -> Shader:
    return Shader(source, tuple(specialization), subgroup, tuple((form, slot) for form, slot in bindings), doubles)
