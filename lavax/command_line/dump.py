"""`lavax dump file.py:function`: the text of a function at the stages on its way to the device."""
from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lavax.command_line.errors import UsageError
from lavax.command_line.output import say
from lavax.command_line.targets import ARGUMENTS_HELP, arguments_of, function_at, user_code
from lavax.explanation.explain import explain
from lavax.explanation.report import Report
from lavax.tracer.compiled.compile import BoundMethod, CompiledFunction, compile
from lavax.tracer.compiled.lowered import STAGES, Lowered
from lavax.tracer.transforms.grad import grad

SHOWN = ("ir", "optimized", "kernels", "glsl")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the command."""
    parser.add_argument("function", metavar="FILE:FUNCTION", help="or package.module:function")
    parser.add_argument("arguments", nargs="*", metavar="ARGUMENT", help=ARGUMENTS_HELP)
    parser.add_argument("--example", metavar="NAME", help="take the arguments from this name in the file")
    known = ", ".join((*STAGES, "prepare:PASS", "all"))
    parser.add_argument("--stage", action="append", metavar="STAGE", help=f"{known}; by default {', '.join(SHOWN)}")
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write a page that explains it")
    parser.add_argument("--grad", type=int, default=0, metavar="ORDER", help="of the derivative of this order")


def run(options: argparse.Namespace) -> int:
    """Writes the stages; nothing runs on the device."""
    stages = _stages(options.stage or SHOWN)
    if options.grad < 0:
        raise UsageError(f"--grad must be 0 or more, got {options.grad}")
    target = function_at(options.function)
    args, kwargs = arguments_of(target, options.arguments, options.example)
    compiled = compiled_form(target.function, options.grad)
    with user_code(options.function):
        lowered: Lowered = compiled.lower(*args, **kwargs)
    for number, stage in enumerate(stages):
        if len(stages) > 1:
            say(f"{'' if not number else chr(10)}== {stage} ==")
        say(_text(lowered, stage))
    if options.html is not None:
        with user_code(options.function):
            report = explain(compiled, times=False)(*args, **kwargs)
        _save(report, options.html)
    return 0


def compiled_form(function: Callable[..., Any], order: int = 0) -> CompiledFunction | BoundMethod:
    """The function compiled, unless it is already; of its derivative if an order is given."""
    for _ in range(order):
        function = grad(function)
    return function if isinstance(function, (CompiledFunction, BoundMethod)) else compile(function)


def _text(lowered: Lowered, stage: str) -> str:
    try:
        return lowered.as_text(stage).rstrip()
    except ValueError as error:  # a pass that there is not
        raise UsageError(str(error)) from error


def _save(report: Report, path: Path) -> None:
    try:
        report.save(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


def _stages(names: list[str] | tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for name in names:
        if name != "all" and name.partition(":")[0] not in STAGES:
            raise UsageError(f"there is no stage {name!r}; there are {', '.join(STAGES)}, prepare:PASS and all")
        found += STAGES if name == "all" else [name]
    return list(dict.fromkeys(found))
