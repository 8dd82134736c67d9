"""Cumulative operations, whole lines or chunks of them: who goes along them, and how long chunks are."""

from __future__ import annotations

from lavax.backends.vulkan.emit.scan.columns import Columns, ColumnsEmitter
from lavax.backends.vulkan.emit.scan.lanes import LanesEmitter, Team
from lavax.backends.vulkan.emit.scan.lines import FOLDS, Lines, lines_of
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.launch import Launch, local_invocations
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.target.kernel_limits import MAX_LOOP_ITERATIONS

# On a CPU driver a chunk is what one subgroup goes along; with so many lines every invocation has one of its own.
_CHUNK, _MANY_LINES = 1 << 10, 1 << 12
# On a GPU: a workgroup's subgroups at most, the vectors of a lane, or numbers where vectors do not divide the line.
_MOST_SUBGROUPS, _VECTORS, _NUMBERS = 8, 4, 8
# Shorter lines than this have an invocation each, longer ones several lanes.
_SHORTEST_LINE = 8
# How many workgroups keep it busy, and into how many chunks all lines go at least if they are fewer.
_BUSY_GROUPS, _CHUNKS = 1 << 9, 1 << 12
# How many elements of its lines an invocation loads at a time, and how long its chunks are at least.
_AHEAD, _SHORTEST_CHUNK = 8, 1 << 5
# How many invocations that have lines of their own keep it busy, and how many are made where they do not.
_BUSY_INVOCATIONS, _INVOCATIONS = 1 << 15, 1 << 17


def chunk_of(node: Node, profile: DeviceProfile) -> int | None:
    """The length of the chunks that a cumulative operation is done in; None where it goes along whole lines."""
    lines = lines_of(node)
    if profile.kind == "cpu":
        whole = lines.length <= _CHUNK or (lines.count >= _MANY_LINES and lines.length <= MAX_LOOP_ITERATIONS)
        return None if whole else _CHUNK
    if _has_lanes(lines, profile):
        tile = _MOST_SUBGROUPS * profile.subgroup_size * (_VECTORS * VECTOR if _width(lines) == VECTOR else _NUMBERS)
        if lines.length <= 2 * tile or lines.count >= _BUSY_GROUPS:
            return None
        return max(tile, _power_of_two(-(-lines.count * lines.length // _CHUNKS)))
    invocations = lines.count // _columns(lines, profile).width
    if invocations >= _BUSY_INVOCATIONS:
        return None
    chunk = max(-(-lines.length * invocations // _INVOCATIONS), _SHORTEST_CHUNK)
    return None if 2 * chunk > lines.length else -(-chunk // _AHEAD) * _AHEAD


def _power_of_two(least: int) -> int:
    return 1 << max(least - 1, 0).bit_length()


def _has_lanes(lines: Lines, profile: DeviceProfile) -> bool:
    """Whether lanes share lines: where their elements are neighbours in memory, or there are few lines."""
    subgroup, length = profile.subgroup_size, min(lines.chunk, lines.length)
    if profile.kind == "gpu" and lines.along_memory:
        return profile.subgroup_shuffle and length >= _SHORTEST_LINE
    neighbours = lines.along_memory or lines.count < subgroup
    return profile.subgroup_shuffle and length >= 2 * subgroup and neighbours


def _width(lines: Lines) -> int:
    """How many neighbours of a line a lane takes together."""
    return VECTOR if lines.length % VECTOR == 0 and lines.chunk % VECTOR == 0 else 1


def _columns(lines: Lines, profile: DeviceProfile) -> Columns:
    wide = not lines.along_memory and lines.across[-1] % VECTOR == 0
    return Columns(VECTOR if wide else 1, 1 if profile.kind == "cpu" else _AHEAD)


def _team(lines: Lines, profile: DeviceProfile) -> Team:
    """On a CPU driver a subgroup with a vector each; on a GPU as many lanes and vectors as the line has work for."""
    width, lanes = _width(lines), profile.subgroup_size
    if profile.kind == "cpu":
        return Team(1, lanes, 1, width)
    steps = -(-min(lines.chunk, lines.length) // width)
    lanes = min(lanes, _power_of_two(steps))
    vectors = min(_power_of_two(-(-steps // lanes)), _VECTORS if width == VECTOR else _NUMBERS)
    subgroups = min(_power_of_two(-(-steps // (lanes * vectors))), _MOST_SUBGROUPS)
    subgroups = min(subgroups, lanes, profile.max_workgroup_invocations // lanes)
    chunks = max(local_invocations(profile) // profile.subgroup_size, 1) * profile.subgroup_size // lanes
    return Team(subgroups, lanes, vectors, width, chunks if subgroups == 1 else 1)


def emit_cumulative(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a cumulative operation, of the totals of chunks, or of chunks from their starts."""
    (node,) = kernel.graph.outputs
    lines = lines_of(node)
    if _has_lanes(lines, profile):
        return LanesEmitter(kernel, profile, lifted, _team(lines, profile)).emit()
    return ColumnsEmitter(kernel, profile, lifted, _columns(lines, profile)).emit()


__all__ = ["FOLDS", "chunk_of", "emit_cumulative"]
