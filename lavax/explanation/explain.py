"""`lavax.explain`: what a function becomes on its way to the device, and what it costs there."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import CodeType
from typing import Any

from lavax.backends.vulkan.backend import LoweredGraph
from lavax.base.errors import DeviceError
from lavax.explanation.arena import arena_of
from lavax.explanation.kernels import explained_kernels
from lavax.explanation.report import ExplainedProgram, Report, counted_rules
from lavax.explanation.stages import stages_of
from lavax.ir.graph import Node
from lavax.passes.reports import Profile, cost_of_program
from lavax.passes.reports.fusion import FusionReport, fusion_report
from lavax.passes.simplify.watching import watched
from lavax.tracer.compiled.compile import BoundMethod, CompiledFunction, compile
from lavax.tracer.compiled.lowered import Lowered
from lavax.tracer.pytrees.pytree import leaves
from lavax.tracer.tracing.abstract_evaluation import ShapeDtype

_MOST_ARGUMENTS = 12  # that are named


def explain(function: Callable[..., Any], *, times: bool = True) -> Callable[..., Report]:
    """A function that takes the arguments of `function` and returns a Report: `lx.explain(f)(x)`.

    The report shows the graph before and after each pass, the rewrites that applied, the kernels with the lines of the
    program that they come from, their cost, time and GLSL, and the memory of the program. `print(report)` shows it in
    the terminal, `report.save("page.html")` writes it as one page.

    `function` may be compiled already; else it is compiled as by `lx.compile(function)`. With `times`, the program runs
    a few times, each kernel between timestamps; arguments are not donated. Without a device, or with `ShapeDtype` in
    place of arrays, nothing runs and there are no times. Raises the errors of a call.
    """
    method = function if isinstance(function, BoundMethod) else None
    of_instance = () if method is None else (method.__self__,)
    whole = function if method is None else method.function
    compiled = whole if isinstance(whole, CompiledFunction) else compile(whole)

    @functools.wraps(function, updated=())
    def explained(*args: Any, **kwargs: Any) -> Report:
        return _report(compiled, (*of_instance, *args), kwargs, times)

    return explained


def _report(
    compiled: CompiledFunction, args: tuple[Any, ...], kwargs: dict[str, Any], times: bool
) -> Report:
    with watched() as applied:
        lowered = compiled.lower(*args, **kwargs)
    programs = [_of_vulkan(program) for program in lowered.programs]
    profile, note = _timed(lowered, programs, args, kwargs) if times else (None, "nothing was timed, as asked")
    explained = tuple(
        replace(_explained(lowered, program, len(programs) > 1, profile), part=number)
        for number, program in enumerate(programs)
    )
    kinds = [f"{node.name}: {node.type}" for node in lowered.traced.graph.inputs]
    more = f" and {len(kinds) - _MOST_ARGUMENTS} more" if len(kinds) > _MOST_ARGUMENTS else ""
    return Report(
        function=lowered.signature.function,
        arguments=", ".join(kinds[:_MOST_ARGUMENTS]) + more,
        device=programs[0].backend.profile.name if programs else "",
        location=_location(compiled),
        rules=counted_rules(applied),
        programs=explained,
        note=note,
    )


def _of_vulkan(program: Any) -> LoweredGraph:
    if not isinstance(program, LoweredGraph):
        raise TypeError(f"explain: the backend in use lowers to {type(program).__name__}, which has no kernels to show")
    return program


def _timed(
    lowered: Lowered, programs: Sequence[LoweredGraph], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Profile | None, str]:
    """The times of the kernels; or why there are none."""
    if any(isinstance(leaf, ShapeDtype) for leaf in leaves((args, kwargs))):
        return None, "nothing was timed, because arguments are shapes without numbers"
    if len(programs) != 1:
        return None, "nothing was timed, because the function calls the host: it runs as several programs"
    if not programs[0].kernels.steps:
        return None, "nothing is computed: all results are arguments or constants"
    try:
        static = {place for place, _, _ in lowered.call.statics}
        given = [arg for position, arg in enumerate(args) if position not in static]
        named = {name: arg for name, arg in kwargs.items() if name not in static}
        return lowered.compile().profile(*given, **named), ""
    except DeviceError as error:
        return None, f"nothing was timed: {error}"


def _explained(lowered: Lowered, program: LoweredGraph, is_part: bool, profile: Profile | None) -> ExplainedProgram:
    cost, fusion = cost_of_program(program.kernels), fusion_report(program.kernels.graph, program.target)
    return ExplainedProgram(
        stages=stages_of(program.graph if is_part else lowered.traced.graph, program),
        kernels=tuple(explained_kernels(program, fusion, cost, profile)),
        graph=program.kernels.graph,
        kernel_of=_kernel_of(fusion),
        arena=arena_of(program.kernels),
        cost=cost,
        memory=program.memory() if is_part else lowered.memory(),
        profile=profile,
    )


def _kernel_of(fusion: FusionReport) -> dict[Node, str]:
    """For each value, the kernels that compute it."""
    found: dict[Node, str] = {}
    for kernel in fusion.kernels:
        for node in kernel.nodes:
            found[node] = f"{found[node]} {kernel.name}" if node in found else kernel.name
    return found


def _location(compiled: CompiledFunction) -> str:
    """The line where the user's function begins."""
    code = getattr(inspect.unwrap(compiled), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if isinstance(code, CodeType) else ""
