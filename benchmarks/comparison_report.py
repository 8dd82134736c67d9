"""A comparison as a table, as JSON and as a picture."""
from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.comparison import Limits, Measurement, over_first
from benchmarks.figure import markdown, median, spread

LAVAX = "lavax"
# Both ways of calling are shown if one takes less than this part of the other.
DIFFERENCE = 0.9
HEAD = (
    "workload",
    "library",
    "a call: median (quartiles)",
    "in a row",
    "× lavax",
    "processor time",
    "× lavax",
    "GFLOP/s",
    "GB/s",
    "of the limit",
    "MiB at once",
)


def table(measurements: Sequence[Measurement], limits: Limits) -> str:
    """A Markdown table, one line per workload and library."""
    of_lavax = {m.workload.name: m for m in measurements if m.library == LAVAX and not m.problem}
    return markdown(HEAD, [_row(m, of_lavax.get(m.workload.name), limits) for m in measurements])


def _row(m: Measurement, of_lavax: Measurement | None, limits: Limits) -> list[str]:
    if m.problem:
        return [m.workload.name, m.library, m.problem, *[""] * (len(HEAD) - 3)]
    differ = median(m.in_row) < DIFFERENCE * median(m.waited)
    return [
        m.workload.name,
        m.library,
        spread(m.waited),
        spread(m.in_row).partition(" (")[0] if differ else "",
        f"{median(m.waited) / median(of_lavax.waited):.2f}" if of_lavax else "",
        spread(m.processors).partition(" (")[0],
        f"{median(m.processors) / median(of_lavax.processors):.2f}" if of_lavax else "",
        f"{m.operations_per_second / 1e9:.3g}",
        f"{m.bytes_per_second / 1e9:.3g}",
        f"{100 * limits.seconds(m.workload) / m.seconds:.3g} %",
        "" if m.peak_bytes is None else f"{m.peak_bytes / 2**20:.3g}",
    ]


def summary(measurements: Sequence[Measurement], limits: Limits) -> str:
    """The limits, and the libraries' mean times over lavax's."""
    copy, product = limits.copy / 1e9, limits.product / 1e9
    lines = [f"A copy on the device: {copy:.3g} GB/s; the best product: {product:.4g} GFLOP/s."]
    waited = over_first(measurements, LAVAX, lambda m: m.waited)
    processors = over_first(measurements, LAVAX, lambda m: m.processors)
    for library, ratio in waited.items():
        shares = f"{ratio:.2f} times lavax's time, {processors[library]:.2f} times its processor time"
        lines.append(f"{library}: {shares} (geometric means of what both can run).")
    return "\n".join(lines)


def write_json(path: Path, run: dict[str, Any], measurements: Sequence[Measurement], limits: Limits) -> None:
    """All measurements; `run` says where and when."""
    rows = [
        {
            "workload": m.workload.name,
            "library": m.library,
            "problem": m.problem,
            "waited_seconds": m.waited,
            "in_row_seconds": m.in_row,
            "processor_seconds": m.processors,
            "operations": m.workload.operations,
            "bytes": m.workload.nbytes,
            "peak_bytes": m.peak_bytes,
            "fraction_of_limit": None if m.problem else limits.seconds(m.workload) / m.seconds,
        }
        for m in measurements
    ]
    known = {"copy_bytes_per_second": limits.copy, "product_operations_per_second": limits.product}
    path.write_text(json.dumps({**run, "limits": known, "measurements": rows}, indent=1), encoding="utf-8")


def draw(path: Path, title: str, measurements: Sequence[Measurement]) -> None:
    """Each library's time over lavax's, a line per workload. Raises ImportError without matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    of_lavax = {m.workload.name: median(m.waited) for m in measurements if m.library == LAVAX and not m.problem}
    names = list(of_lavax)[::-1]
    figure, axes = pyplot.subplots(figsize=(9, 1 + 0.28 * len(names)), layout="constrained")
    for library in dict.fromkeys(m.library for m in measurements if m.library != LAVAX):
        shown = [m for m in measurements if m.library == library and not m.problem and m.workload.name in of_lavax]
        ratios = [median(m.waited) / of_lavax[m.workload.name] for m in shown]
        axes.plot(ratios, [names.index(m.workload.name) for m in shown], "o", label=library, alpha=0.8)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_yticks(range(len(names)), names)
    axes.grid(axis="both", alpha=0.25)
    axes.set_xlabel("time over lavax's: to the right of the line lavax is faster")
    axes.set_title(title, fontsize="medium")
    axes.legend(loc="best", fontsize="small")
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
