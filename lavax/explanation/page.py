"""A report as one page of HTML, which refers to nothing outside itself and needs no script."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from lavax.base import config
from lavax.explanation.arena_picture import arena_svg
from lavax.explanation.kernels import ExplainedKernel
from lavax.explanation.markup import bar_cell, block, cell, code, folded, html_cell, names, table
from lavax.explanation.report import ExplainedProgram, Report
from lavax.explanation.source_lines import Excerpt, excerpts
from lavax.explanation.stages import Stage
from lavax.ir.drawing import svg_of
from lavax.passes.reports.memory import MEANINGS
from lavax.passes.reports.table import bytes_text, lines_text, rate_text, seconds_text, times_text

_MOST_CHIPS, _MOST_UNFOLDED = 3, 6  # kernels beside a line, and kernels that are not folded into one
_LEGEND = (
    "The graph as it is cut into kernels; at the corner of each box is the kernel that computes it. Products are "
    "orange, reductions yellow, movement green, loops and branches violet. Constants stand where they are read."
)
MOST_DRAWN = 300  # operations of a graph that is drawn


def page_of(report: Report) -> str:
    """The page."""
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    name = escape(report.function)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{name} · lavax</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1><span>{name}</span>, explained</h1>
<p class="signature mono">{escape(report.arguments)}</p>
<p class="soft">{escape(" · ".join(filter(None, [report.device, report.location, f"lavax {config.VERSION}"])))}</p>
{f'<p class="soft">{escape(report.note)}</p>' if report.note else ""}
</header>
{_navigation()}
<main>
{"".join(_parts(report))}
{_rewrites(report)}
</main>
<footer>Written by lavax.explain. Kernels, buffers and values have the names that they have in lavax’s dumps.</footer>
</body>
</html>
"""


_SECTIONS: dict[str, tuple[str, Callable[[ExplainedProgram], str]]] = {}


def _section(title: str) -> Callable[[Callable[[ExplainedProgram], str]], Callable[[ExplainedProgram], str]]:
    def registered(content: Callable[[ExplainedProgram], str]) -> Callable[[ExplainedProgram], str]:
        _SECTIONS[title.split()[-1].lower()] = (title, content)
        return content

    return registered


def _navigation() -> str:
    links = [f'<a href="#{anchor}">{escape(title)}</a>' for anchor, (title, _) in _SECTIONS.items()]
    return f'<nav><div>{"".join(links)}<a href="#rewrites">Rewrites</a></div></nav>'


def _parts(report: Report) -> Iterator[str]:
    for number, program in enumerate(report.programs):
        if len(report.programs) > 1:
            yield f"<h2>Part {number + 1} of {len(report.programs)}</h2><p>Between calls of the host.</p>"
        for anchor, (title, content) in _SECTIONS.items():
            identity = f' id="{anchor}"' if number == 0 else ""
            yield f"<section{identity}><h2>{escape(title)}</h2>{content(program)}</section>\n"


@_section("Summary")
def _summary(program: ExplainedProgram) -> str:
    first, last = program.stages[0], program.stages[-1]
    cost, profile = program.cost, program.profile
    cards = [
        (f"{len(first.graph.nodes)} → {len(last.graph.nodes)}", "operations, traced and prepared"),
        (str(len(program.kernels)), "kernels"),
        (bytes_text(cost.bytes_read + cost.bytes_written), "moved, at least"),
        (_count_text(cost.operations), "floating-point operations"),
        (bytes_text(program.memory.peak), "of memory at most"),
    ]
    if profile is not None:
        cards.insert(0, (seconds_text(profile.seconds), "on the device"))
        cards.insert(1, (f"{100 * profile.of_limit(cost, profile.seconds):.0f} %", "of what the device could do"))
    tiles = "".join(
        f'<div class="card"><b>{escape(value)}</b><span>{escape(text)}</span></div>' for value, text in cards
    )
    return f'<div class="cards">{tiles}</div>'


@_section("Kernels")
def _kernels(program: ExplainedProgram) -> str:
    profile, intro = program.profile, ""
    if profile is not None:
        copies, arithmetic = profile.copy_gigabytes_per_second, profile.arithmetic_gigaflops
        intro = (
            "<p>Each kernel is one dispatch, timed by itself. The limits were measured along with them: copies move "
            f"{copies:.3g} GB/s, arithmetic in registers does {arithmetic:.3g} GFLOP/s.</p>"
        )
    head = ["kernel", "kind", "source lines", "times", "operations", "read", "written"]
    head += ["time", "share", "GB/s", "GFLOP/s", "of the limit"] if profile is not None else []
    rows = [_kernel_row(kernel, _anchor(program, kernel)) for kernel in program.kernels]
    rows.append(_total_row(program))
    listed = table(head, rows, left=(0, 1, 2), total=True)
    first: dict[str, ExplainedKernel] = {}  # with each shader: the layers of a network have theirs in common
    for kernel in program.kernels:
        for shader in kernel.shaders:
            first.setdefault(shader, kernel)
    details = "".join(_kernel_details(program, kernel, first) for kernel in program.kernels)
    if len(program.kernels) > _MOST_UNFOLDED:
        details = folded("<b>in detail</b><span class=\"soft\">graphs, reasons, schedules, GLSL</span>", details)
    return f"{intro}{listed}{details}"


def _kernel_row(kernel: ExplainedKernel, anchor: str) -> list[str]:
    cost = kernel.cost
    row = [
        html_cell(f'<a href="#{anchor}">{escape(kernel.name)}</a>', "left mono"),
        cell(cost.kind, "left"),
        cell(lines_text(cost.locations), "left mono"),
        cell(times_text(cost.times, cost.is_least)),
        cell(f"{cost.operations:,}"),
        cell(bytes_text(cost.bytes_read)),
        cell(bytes_text(cost.bytes_written)),
    ]
    if kernel.time is not None:
        share, of_limit = kernel.share or 0.0, kernel.of_limit or 0.0
        row += [
            cell(seconds_text(kernel.time.total_seconds)),
            bar_cell(f"{100 * share:.1f} %", share),
            cell(rate_text(kernel.time.gigabytes_per_second)),
            cell(rate_text(kernel.time.gigaflops)),
            bar_cell(f"{100 * of_limit:.0f} %", of_limit),
        ]
    return row


def _total_row(program: ExplainedProgram) -> list[str]:
    cost, profile = program.cost, program.profile
    row = [cell("all", "left"), cell(""), cell(""), cell(""), cell(f"{cost.operations:,}")]
    row += [cell(bytes_text(cost.bytes_read)), cell(bytes_text(cost.bytes_written))]
    if profile is not None:
        seconds = profile.seconds
        amounts = (cost.bytes_read + cost.bytes_written, cost.operations)
        rates = [amount / seconds / 1e9 if seconds else 0.0 for amount in amounts]
        row += [cell(seconds_text(seconds)), cell("100 %"), *(cell(rate_text(rate)) for rate in rates)]
        row.append(cell(f"{100 * profile.of_limit(cost, seconds):.0f} %"))
    return row


def _kernel_details(program: ExplainedProgram, kernel: ExplainedKernel, first: Mapping[str, ExplainedKernel]) -> str:
    facts = [kernel.cost.kind, lines_text(kernel.cost.locations)]
    described = escape(" · ".join(filter(None, facts)))
    summary = f'<b class="mono">{escape(kernel.name)}</b><span class="soft">{described}</span>'
    content = []
    if kernel.reasons:
        reasons = "".join(f"<p>{escape(line)}</p>" for line in kernel.reasons.splitlines())
        content.append(f'<div class="inside">{reasons}</div>')
    if kernel.schedule:
        content.append(f'<div class="inside soft mono">{escape(kernel.schedule)}</div>')
    if kernel.groups:
        groups = ", ".join(" × ".join(map(str, each)) for each in kernel.groups)
        content.append(f'<div class="inside soft">workgroups: {escape(groups)}</div>')
    if kernel.graph:
        content.append(folded("what it computes", block(kernel.graph, "graph"), is_open=True))
    for shader in kernel.shaders:
        if first[shader] is kernel:
            content.append(folded("GLSL", block(shader, "glsl")))
        else:
            link = f'<a href="#{_anchor(program, first[shader])}">{escape(first[shader].name)}</a>'
            content.append(f'<div class="inside soft">GLSL: that of {link}</div>')
    return f'<div id="{_anchor(program, kernel)}">{folded(summary, "".join(content))}</div>'


def _anchor(program: ExplainedProgram, kernel: ExplainedKernel) -> str:
    return f"kernel-{program.part or ''}{re.sub(r'[^0-9A-Za-z]', '-', kernel.name)}"


@_section("Your lines")
def _source(program: ExplainedProgram) -> str:
    shown = "".join(map(_excerpt, excerpts(program.kernels)))
    return shown or "<p>The lines of the program cannot be read.</p>"


def _excerpt(excerpt: Excerpt) -> str:
    rows = []
    for line in excerpt.lines:
        texts = list(_chips(line.kernels))
        hit = ' class="hit"' if texts else ""
        rows.append(f"<div{hit}><i>{line.number}</i><code>{escape(line.text)}</code><span>{names(texts)}</span></div>")
    return f'<h3 class="mono">{escape(excerpt.path)}</h3><div class="source">{"".join(rows)}</div>'


def _chips(kernels: Sequence[ExplainedKernel]) -> Iterator[str]:
    """The kernels of a line that take longest, with their shares of the time, and how many others there are."""
    longest = sorted(kernels, key=lambda kernel: -(kernel.share or 0.0))
    for kernel in longest[:_MOST_CHIPS]:
        yield kernel.name if kernel.share is None else f"{kernel.name} {100 * kernel.share:.0f} %"
    if len(longest) > _MOST_CHIPS:
        rest = sum(kernel.share or 0.0 for kernel in longest[_MOST_CHIPS:])
        yield f"+ {len(longest) - _MOST_CHIPS} more{f' {100 * rest:.0f} %' if rest else ''}"


@_section("Graph")
def _graph(program: ExplainedProgram) -> str:
    if len(program.graph.nodes) > MOST_DRAWN:
        return f"<p>The graph has {len(program.graph.nodes)} operations, too many to be drawn.</p>"
    picture = svg_of(program.graph, program.kernel_of)
    return f'<p>{_LEGEND}</p><div class="picture">{picture}</div>'


@_section("Passes")
def _passes(program: ExplainedProgram) -> str:
    first, *later = program.stages
    effective = [stage for stage in later if stage.added or stage.removed]
    others = [stage for stage in later if stage not in effective]
    shown = "".join([_stage(first, True), *(_stage(stage, False) for stage in effective)])
    if not others:
        return shown
    rows = [[cell(stage.name, "left"), cell(stage.summary, "text")] for stage in others]
    summary = f'<b>{len(others)} others</b><span class="soft">had nothing to do here</span>'
    return shown + folded(summary, f'<div class="inside">{table(("pass", "what it does"), rows, left=(0, 1))}</div>')


def _stage(stage: Stage, is_first: bool) -> str:
    count = f"{len(stage.graph.nodes)} operations"
    changed = "" if is_first else f'<span class="changed">{stage.changes}</span>'
    about = f'<span class="soft">{escape(stage.summary)}</span>'
    summary = f"<b>{escape(stage.name)}</b>{changed}<span>{count}</span>{about}"
    inputs = ", ".join(f"{node.name}: {node.type}" for node in stage.graph.inputs)
    kinds = {"+": ' class="new"', "-": ' class="gone"', " ": ""}
    lines = "".join(f"<span{kinds[line.sign]}>{line.sign} {code(line.text, 'graph')}</span>" for line in stage.lines)
    return folded(summary, f'<pre class="diff"><span class="comment">graph ({escape(inputs)})</span>{lines}</pre>')


@_section("Memory")
def _memory(program: ExplainedProgram) -> str:
    meanings = {**MEANINGS, "peak": "needed at once"}
    rows = [
        [cell(name, "left"), cell(bytes_text(getattr(program.memory, name))), cell(meaning, "text soft")]
        for name, meaning in meanings.items()
    ]
    listed = table(("", "bytes", ""), rows, total=True)
    if not program.arena.buffers:
        return f"{listed}<p>There are no temporaries.</p>"
    return (
        f"{listed}<h3>Temporaries over time</h3><p>Each rectangle is a buffer in the arena, from the first kernel that "
        f"uses it to the last. The line is what is in use.</p>{arena_svg(program.arena)}"
    )


def _rewrites(report: Report) -> str:
    rows = [
        [
            cell(rule.rule, "left"),
            cell(str(rule.count)),
            cell(rule.meaning, "text mono"),
            cell(lines_text(rule.locations), "left mono"),
        ]
        for rule in report.rules
    ]
    listed = table(("rule", "times", "what it does", "source lines"), rows, left=(0, 2, 3)) if rows else "<p>None.</p>"
    return (
        '<section id="rewrites"><h2>Rewrites</h2><p>The rules of simplification that applied while the function was '
        f"traced and simplified.</p>{listed}</section>"
    )


def _count_text(count: int) -> str:
    for size, unit in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return str(count)
