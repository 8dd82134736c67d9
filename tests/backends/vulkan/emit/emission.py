"""Graphs to GLSL without a device."""
from __future__ import annotations

from collections.abc import Sequence
from textwrap import dedent

from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.plan.plan import Dispatch, Plan
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile
from lavax.ir import Graph, parse
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule

PROFILES = {"cpu": CPU_DRIVER, "gpu": GENERIC_GPU}


def plan_of(
    graph: Graph | str, profile: DeviceProfile, *, eager: bool = False, donated: Sequence[int] = ()
) -> Plan:
    """The plan of a graph or of its text."""
    found = parse(dedent(graph)) if isinstance(graph, str) else graph
    return emit_program(schedule(prepare(found), donated), profile, eager)


def dispatches_of(
    graph: Graph | str, profile: DeviceProfile, *, eager: bool = False, donated: Sequence[int] = ()
) -> list[Dispatch]:
    """The dispatches of a graph or of its text."""
    return plan_of(graph, profile, eager=eager, donated=donated).dispatches


def dispatch_of(graph: Graph | str, profile: DeviceProfile, *, eager: bool = False) -> Dispatch:
    """The only dispatch of a graph."""
    (dispatch,) = dispatches_of(graph, profile, eager=eager)
    return dispatch


def main_of(dispatch: Dispatch) -> str:
    """The local size, and what a shader does."""
    source = dispatch.shader.source
    (layout,) = [line for line in source.splitlines() if line.startswith("layout(local_size")]
    return f"{layout}\n{source[source.index('void main()'):]}"


def assert_shader(dispatch: Dispatch, expected: str) -> None:
    """The main of a shader is this text."""
    assert main_of(dispatch).strip() == dedent(expected).strip()
