"""The choice of the schedule of a kernel of attention, from its sizes and the device. Writes no GLSL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Union

from lavax.backends.vulkan.emit.attention.cooperative_shape import CooperativeShape, cooperative_shapes
from lavax.backends.vulkan.emit.attention.few_queries_shape import (
    FewQueriesShape,
    few_queries_shape,
    has_few_queries,
)
from lavax.backends.vulkan.emit.attention.problem import BY_KEYS, Problem, Stage, nodes_of, problem_of, stages_of
from lavax.backends.vulkan.emit.attention.subgroup_shape import (
    BroadcastShape,
    InvocationShape,
    broadcast_shapes,
    invocation_shape,
)
from lavax.backends.vulkan.emit.attention.workgroup_shape import (
    WorkgroupShape,
    choose_workgroup_shape,
    fitting_shapes,
    keeps_busy,
)
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.ir.types import float32
from lavax.passes.kernels.kernel import Kernel

AttentionSchedule = Union[  # noqa: UP007  # it is called below
    CooperativeShape, WorkgroupShape, BroadcastShape, InvocationShape, FewQueriesShape
]


def choose_schedule(profile: DeviceProfile, nodes: Mapping[str, Node]) -> AttentionSchedule:
    """The schedule of the kernel that computes these nodes, given by their operations."""
    few = few_queries_shape(profile, nodes)
    if few is not None:
        return few
    problem, stages = problem_of(nodes), stages_of(nodes)
    cooperative = cooperative_shapes(profile, nodes)
    if cooperative:
        return cooperative[0]
    if profile.subgroup_shuffle and profile.kind == "cpu":
        return broadcast_shapes(profile, problem, stages)[0]
    return choose_workgroup_shape(profile, problem, stages, _rows_of_workgroups(nodes)) or invocation_shape(
        profile, problem
    )


def _rows_of_workgroups(nodes: Mapping[str, Node]) -> int | None:
    """The keys per workgroup if parts of the queries' gradient fix that number."""
    parts = nodes.get("attention_query_parts")
    return None if parts is None else parts.attrs["block"]


def attention_candidates(kernel: Kernel, profile: DeviceProfile) -> Sequence[AttentionSchedule]:
    """The schedules worth timing, first the one that is chosen without timing; none if there is no choice."""
    nodes = nodes_of(kernel)
    chosen, stages, rows = choose_schedule(profile, nodes), stages_of(nodes), _rows_of_workgroups(nodes)
    match chosen:
        case InvocationShape() | FewQueriesShape():
            return []
        case BroadcastShape():
            return broadcast_shapes(profile, problem_of(nodes), stages)
        case CooperativeShape():
            return cooperative_shapes(profile, nodes)
    fitting = (shape for shape in fitting_shapes(profile, stages) if rows is None or shape.rows == rows)
    return list(dict.fromkeys((chosen, *fitting)))


def block_of_parts(node: Node, profile: DeviceProfile) -> int | None:
    """The keys per workgroup of the kernel that computes parts of a queries' gradient with those of keys and values.

    None if there is no such kernel, or too little work for it.
    """
    if profile.kind != "gpu" or not profile.subgroup_shuffle or cooperative_shapes(profile, {node.op: node}):
        return None
    nodes = dict.fromkeys(BY_KEYS, node)
    problem: Problem = problem_of(nodes)
    stages: list[Stage] = stages_of(nodes)
    shape = choose_workgroup_shape(profile, problem, stages)
    return shape.rows if shape is not None and keeps_busy(shape, problem, profile) else None


def suits_rows(node: Node, profile: DeviceProfile) -> bool:
    """Whether attention is best computed by kernels over rows: its queries are too few to fill a GPU."""
    query, key = node.operands[:2]
    few = has_few_queries(query.shape[-2], key.shape[-2])
    return profile.kind == "gpu" and few and query.dtype == float32
