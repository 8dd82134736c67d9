"""Compares lavax with other installed libraries, and measures lavax alone: the named benchmarks, or all.

`comparison` times workloads in every library that can be imported; the other benchmarks measure lavax alone. The
results of the comparison are also written to a folder, as JSON and as a picture.
"""
from __future__ import annotations

import argparse
import datetime
import platform
from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from pathlib import Path

import lavax as lx
from benchmarks import (
    algorithms,
    comparison_report,
    compile_time,
    digits,
    eager,
    first_call,
    loops,
    onnx_models,
    overhead,
    selection,
    transforms,
)
from benchmarks.architectures.workloads import report as report_architectures
from benchmarks.comparison import Limits, Measurement, best_product, compare
from benchmarks.figure import Figure, as_table
from benchmarks.models.first_calls import report as report_first_calls
from benchmarks.models.report import report as report_models
from benchmarks.ordinary import operations, programs
from benchmarks.peers import LIBRARIES, Peer, find_peers
from benchmarks.workloads import Workload, square_matmul, workloads_for

FIGURES: dict[str, Callable[[], Sequence[Figure]]] = {
    "algorithms": algorithms.measure,
    "compile-time": compile_time.measure,
    "digits": digits.measure,
    "eager": eager.measure,
    "loops": loops.measure,
    "onnx": onnx_models.measure,
    "overhead": overhead.measure,
    "programs": programs.measure,
    "selection": selection.measure,
}
COMPARISONS = {
    "comparison": "Every workload in every library.",
    "first-calls": "Seconds to the first result of a process, with empty and with filled caches, in every library.",
}
# Shown row by row, for the names that match.
REPORTS: dict[str, tuple[str, Callable[..., None]]] = {
    "models": ("Whole models: inference and training in lavax, and in PyTorch on its own GPU.", report_models),
    "architectures": ("Architectures of many kinds, written once for both libraries.", report_architectures),
    "model-first-calls": ("First calls of training steps of whole models, by stage.", report_first_calls),
    "operations": ("Single functions beside PyTorch on its own GPU.", operations.report),
    "fft": ("Fourier transforms over SciPy's time on a processor, or over a copy's on a GPU.", transforms.report),
}
SECONDS, QUICK_SECONDS = 1.5, 0.3  # for each library and workload


def main() -> None:
    options = _options()
    device = lx.default_device()
    large = device.kind == "discrete"
    if options.list:
        _list(large)
        return
    print(f"{device.name}, {device.driver}; Python {platform.python_version()}")
    names = options.names or [*COMPARISONS, *REPORTS, *FIGURES]
    peers: list[Peer] = []
    if not COMPARISONS.keys().isdisjoint(names):
        peers = find_peers(large, lambda *why: print("without", ": ".join(why)), options.library or LIBRARIES)
    for name in names:
        print(f"\n{name}", flush=True)
        if name == "comparison":
            _compare(_chosen(large, options.only), peers, QUICK_SECONDS if options.quick else SECONDS, options.out)
        elif name == "first-calls":
            print(first_call.table([peer.name for peer in peers], options.quick), flush=True)
        elif name in REPORTS:
            REPORTS[name][1](options.only, options.quick, lambda table: print(table, flush=True))
        else:
            print(as_table(FIGURES[name]()), flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    known = [*COMPARISONS, *REPORTS, *FIGURES]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}; all if none is given")
    only = "compare these workloads, models or transforms; matmul* are several"
    library = f"of {', '.join(LIBRARIES)}; all if not given"
    parser.add_argument("--only", action="append", metavar="WORKLOAD", help=only)
    parser.add_argument("--library", action="append", metavar="NAME", help=library)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--list", action="store_true", help="name the benchmarks and the workloads")
    parser.add_argument("--out", type=Path, default=Path("out"), help="the folder for JSON and picture (out)")
    options = parser.parse_args()
    for kind, given, there in (("benchmark", options.names, known), ("library", options.library or [], LIBRARIES)):
        unknown = [name for name in given if name not in there]
        if unknown:
            parser.error(f"there is no {kind} {', '.join(unknown)}; there are {', '.join(there)}")
    return options


def _list(large: bool) -> None:
    for name, text in (COMPARISONS | {name: text for name, (text, _) in REPORTS.items()}).items():
        print(f"{name:24} {text}")
    for name, measure in FIGURES.items():
        print(f"{name:24} {(measure.__doc__ or '').splitlines()[0]}")
    print("\nworkloads of the comparison:")
    for workload in workloads_for(large):
        millions, mebibytes = workload.operations / 1e6, workload.nbytes / 2**20
        print(f"{workload.name:24} {millions:10.4g} million operations {mebibytes:10.4g} MiB")


def _chosen(large: bool, patterns: Sequence[str] | None) -> list[Workload]:
    """The selected workloads; the first one gives the device's limit of arithmetic."""
    wanted = workloads_for(large)
    if patterns:
        wanted = [w for w in wanted if any(fnmatch(w.name, pattern) for pattern in patterns)]
    limit = square_matmul(large)
    return [limit, *(workload for workload in wanted if workload.name != limit.name)]


def _compare(workloads: Sequence[Workload], peers: Sequence[Peer], seconds: float, folder: Path) -> None:
    from lavax.backends.vulkan.device.device import get_device  # late: these open the device
    from lavax.backends.vulkan.measure.limits import copy_rate

    copies = [copy_rate(get_device())]
    found: list[Measurement] = []

    def limits() -> Limits:
        return Limits(max(copies), best_product(found))

    def report(measured: Sequence[Measurement]) -> None:
        found.extend(measured)
        print(comparison_report.table(measured, limits()), flush=True)

    compare(workloads, peers, seconds, report)
    copies.append(copy_rate(get_device()))
    print(f"\nAll, by the limits of the whole run:\n\n{comparison_report.table(found, limits())}")
    print(f"\n{comparison_report.summary(found, limits())}")
    device = lx.default_device()
    run = {
        "date": datetime.date.today().isoformat(),
        "device": device.name,
        "driver": device.driver,
        "python": platform.python_version(),
        "libraries": {peer.name: peer.version for peer in peers},
    }
    folder.mkdir(parents=True, exist_ok=True)
    comparison_report.write_json(folder / "benchmarks.json", run, found, limits())
    try:
        comparison_report.draw(folder / "benchmarks.png", f"{device.name}, {run['date']}", found)
    except ImportError:
        print("no picture: it takes matplotlib (pip install lavax[examples])")


if __name__ == "__main__":
    main()
