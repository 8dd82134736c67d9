"""Which schedule a scan gets, and how long its chunks are."""

from __future__ import annotations

from lavax.backends.vulkan.emit.scan.lines import ScannedLines, lines_of
from lavax.backends.vulkan.emit.scan.schedule import Columns, Lanes, ScanSchedule
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.launch import local_invocations
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.target.kernel_limits import MAX_LOOP_ITERATIONS


@dataclass(frozen=True)
class ScanOnCpu:
    """Scans on CPU drivers. Exercised by `python -m benchmarks algorithms`."""

    chunk: int = 1 << 10  # that one subgroup walks over
    many_lines: int = 1 << 12  # from which on every invocation has a line of its own


@dataclass(frozen=True)
class SharedLines:
    """Lanes that share lines on a GPU. docs/rejected/maps_and_rows.md, "Other chunks and workgroups for cumulative
    sums on a GPU"; `python -m benchmarks algorithms`."""

    shortest_line: int = 8  # that lanes share
    subgroups: int = 8  # of a workgroup, at most
    vectors: int = 4  # of a lane at a time
    numbers: int = 8  # in place of vectors that do not divide the line
    busy_workgroups: int = 1 << 9
    chunks: int = 1 << 12  # of all lines, at least, if there are fewer lines than busy workgroups


@dataclass(frozen=True)
class OwnLines:
    """Invocations with lines of their own on a GPU. Exercised by `python -m benchmarks algorithms`."""

    ahead: int = 8  # elements that an invocation loads at a time
    shortest_chunk: int = 1 << 5
    busy: int = 1 << 15  # invocations that need no chunks
    invocations: int = 1 << 17  # for which chunks are made otherwise


SCAN_ON_CPU, SHARED_LINES, OWN_LINES = ScanOnCpu(), SharedLines(), OwnLines()


def choose_schedule(kernel: Kernel, profile: DeviceProfile) -> ScanSchedule:
    """Lanes share lines whose elements are neighbours in memory, and few lines; invocations have others."""
    (node,) = kernel.graph.outputs
    lines = lines_of(node)
    return _lanes(lines, profile) if _has_lanes(lines, profile) else _columns(lines, profile)


def chunk_of(node: Node, profile: DeviceProfile) -> int | None:
    """The length of the chunks that a cumulative operation is split into; None if it walks over whole lines."""
    lines = lines_of(node)
    if profile.kind == "cpu":
        chunk = SCAN_ON_CPU.chunk
        many = lines.count >= SCAN_ON_CPU.many_lines and lines.length <= MAX_LOOP_ITERATIONS
        return None if lines.length <= chunk or many else chunk
    return _chunk_of_lanes(lines, profile) if _has_lanes(lines, profile) else _chunk_of_columns(lines, profile)


def _chunk_of_lanes(lines: ScannedLines, profile: DeviceProfile) -> int | None:
    of_lane = SHARED_LINES.vectors * VECTOR if _width(lines) == VECTOR else SHARED_LINES.numbers
    tile = SHARED_LINES.subgroups * profile.subgroup_size * of_lane
    if lines.length <= 2 * tile or lines.count >= SHARED_LINES.busy_workgroups:
        return None
    return max(tile, _power_of_two(-(-lines.count * lines.length // SHARED_LINES.chunks)))


def _chunk_of_columns(lines: ScannedLines, profile: DeviceProfile) -> int | None:
    invocations = lines.count // _columns(lines, profile).width
    if invocations >= OWN_LINES.busy:
        return None
    chunk = max(-(-lines.length * invocations // OWN_LINES.invocations), OWN_LINES.shortest_chunk)
    return None if 2 * chunk > lines.length else -(-chunk // OWN_LINES.ahead) * OWN_LINES.ahead


def _power_of_two(least: int) -> int:
    return 1 << max(least - 1, 0).bit_length()


def _has_lanes(lines: ScannedLines, profile: DeviceProfile) -> bool:
    subgroup, length = profile.subgroup_size, min(lines.chunk, lines.length)
    if profile.kind == "gpu" and lines.along_memory:
        return profile.subgroup_shuffle and length >= SHARED_LINES.shortest_line
    neighbours = lines.along_memory or lines.count < subgroup
    return profile.subgroup_shuffle and length >= 2 * subgroup and neighbours


def _width(lines: ScannedLines) -> int:
    """How many neighbours of a line a lane takes together."""
    return VECTOR if lines.length % VECTOR == 0 and lines.chunk % VECTOR == 0 else 1


def _columns(lines: ScannedLines, profile: DeviceProfile) -> Columns:
    wide = not lines.along_memory and lines.across[-1] % VECTOR == 0
    return Columns(VECTOR if wide else 1, 1 if profile.kind == "cpu" else OWN_LINES.ahead)


def _lanes(lines: ScannedLines, profile: DeviceProfile) -> Lanes:
    """On a CPU driver a subgroup with a vector each; on a GPU as many lanes and vectors as the line has work for."""
    width, lanes = _width(lines), profile.subgroup_size
    if profile.kind == "cpu":
        return Lanes(1, lanes, 1, width)
    steps = -(-min(lines.chunk, lines.length) // width)
    lanes = min(lanes, _power_of_two(steps))
    most_vectors = SHARED_LINES.vectors if width == VECTOR else SHARED_LINES.numbers
    vectors = min(_power_of_two(-(-steps // lanes)), most_vectors)
    subgroups = min(_power_of_two(-(-steps // (lanes * vectors))), SHARED_LINES.subgroups)
    subgroups = min(subgroups, lanes, profile.max_workgroup_invocations // lanes)
    chunks = max(local_invocations(profile) // profile.subgroup_size, 1) * profile.subgroup_size // lanes
    return Lanes(subgroups, lanes, vectors, width, chunks if subgroups == 1 else 1)
