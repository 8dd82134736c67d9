"""A report in the terminal."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from lavax.explanation.report import CountedRule, ExplainedProgram, Report
from lavax.explanation.stages import Stage
from lavax.passes.reports.table import lines_text, table

_MOST_RULES = 12
_WIDTH_OF_OTHERS = 100


def text_of(report: Report) -> str:
    """The report, without the graphs themselves and the GLSL: those are on the page."""
    return "\n".join(_lines(report)).rstrip()


def _lines(report: Report) -> Iterator[str]:
    yield f"{report.function}({report.arguments})"
    for number, program in enumerate(report.programs):
        if len(report.programs) > 1:
            yield f"\npart {number + 1} of {len(report.programs)}, between calls of the host"
        yield from _of_program(program, report.device)
    if report.note:
        yield f"\n({report.note})"
    if report.rules:
        yield "\nrewrites"
        yield table(("", "times", "source lines", ""), _rules(report.rules))
    yield "\nThe graphs, the GLSL and the pictures are on the page: report.save(\"page.html\")"


def _of_program(program: ExplainedProgram, device: str) -> Iterator[str]:
    yield "\npasses"
    yield table(("", "operations", "lines", ""), _stages(program.stages))
    yield "\nkernels"
    if program.profile is not None:
        yield str(program.profile)
        yield ""
        copies, arithmetic = program.profile.copy_gigabytes_per_second, program.profile.arithmetic_gigaflops
        yield f"limits, measured: copies move {copies:.3g} GB/s, arithmetic in registers {arithmetic:.3g} GFLOP/s"
    else:
        yield device
    yield ""
    yield str(program.cost)
    yield "\nmemory"
    yield str(program.memory)


def _stages(stages: Sequence[Stage]) -> Iterator[tuple[str, ...]]:
    unchanged = [stage.name for stage in stages[1:] if not stage.added and not stage.removed]
    for stage in stages:
        if stage.name not in unchanged:
            changed = "" if stage is stages[0] else stage.changes
            yield stage.name, str(len(stage.graph.nodes)), changed, stage.summary
    if unchanged:
        first, *rest = wrap(f"without effect here: {', '.join(unchanged)}", _WIDTH_OF_OTHERS)
        yield "others", "", "", first
        yield from (("", "", "", line) for line in rest)


def _rules(rules: Sequence[CountedRule]) -> Iterator[tuple[str, ...]]:
    for rule in rules[:_MOST_RULES]:
        yield rule.rule, str(rule.count), lines_text(rule.locations), rule.meaning
    if len(rules) > _MOST_RULES:
        rest = rules[_MOST_RULES:]
        yield f"… and {len(rest)} others", str(sum(rule.count for rule in rest)), "", ""
