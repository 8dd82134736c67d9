"""The schedules of attention without shared memory: a tile per subgroup, or per invocation. Writes no GLSL."""

from __future__ import annotations

from collections.abc import Sequence

from lavax.backends.vulkan.emit.attention.problem import Problem, Stage
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.launch import local_invocations
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node


@dataclass(frozen=True)
class BroadcastShape:
    """The rows of a subgroup whose lanes exchange values."""

    rows: int


@dataclass(frozen=True)
class InvocationShape:
    """The rows of an invocation that works by itself."""

    height: int


@dataclass(frozen=True)
class SubgroupTiles:
    """Limits of tiles on CPU drivers. Chosen by `python -m benchmarks.attention_tiles`."""

    rows: tuple[int, ...] = (32, 16, 8, 4, 2, 1)
    least_rows: int = 8  # lower tiles take nearly as long
    # The tallest tiles, which take few loads, are for results with at most as many vectors of a row per lane. Drivers
    # compile tall tiles of longer heads too long, and their values no longer fit the first cache.
    few_vectors: int = 2
    heights: tuple[int, ...] = (4, 2, 1)  # rows of an invocation that works by itself
    busy_subgroups: int = 12  # of such invocations, to keep a CPU busy


_LIMITS = SubgroupTiles()


def broadcast_shapes(profile: DeviceProfile, problem: Problem, stages: Sequence[Stage]) -> list[BroadcastShape]:
    """The shapes worth timing, first the tallest of moderate size that leaves enough subgroups, else the lowest."""
    least = min(_LIMITS.least_rows, problem.rows)
    tallest, lowest = _LIMITS.rows[0], _LIMITS.rows[-1]
    worth = [rows for rows in _LIMITS.rows if rows >= least and (rows < 2 * problem.rows or rows == lowest)]
    results = (vectors_per_lane(stage.of_columns, profile.subgroup_size) for stage in stages if stage.of_rows is None)
    most = tallest if max(results, default=0) <= _LIMITS.few_vectors else _LIMITS.rows[1]
    subgroups = profile.busy_invocations // profile.subgroup_size
    moderate = [rows for rows in worth if rows <= most]
    busy = (rows for rows in moderate if problem.count * -(-problem.rows // rows) >= subgroups)
    chosen = next(busy, moderate[-1])
    return [BroadcastShape(rows) for rows in (chosen, *(other for other in worth if other != chosen))]


def vectors_per_lane(node: Node, lanes: int) -> int:
    """The number of vectors of a row that each lane has."""
    return -(-node.shape[-1] // (VECTOR * lanes))


def invocation_shape(profile: DeviceProfile, problem: Problem) -> InvocationShape:
    """The shape with most rows per invocation that leaves enough subgroups."""
    local = local_invocations(profile)
    for height in _LIMITS.heights:
        if problem.count * -(-problem.rows // (height * local)) >= _LIMITS.busy_subgroups:
            return InvocationShape(height)
    return InvocationShape(1)
