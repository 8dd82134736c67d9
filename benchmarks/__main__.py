"""Runs the benchmarks that the command line names, or all of them."""
from __future__ import annotations

import argparse
import platform
from collections.abc import Callable, Sequence

import lavax as lx
from benchmarks import algorithms, compile_time, digits, overhead
from benchmarks.figure import Figure, as_table

BENCHMARKS: dict[str, Callable[[], Sequence[Figure]]] = {
    "algorithms": algorithms.measure,
    "compile-time": compile_time.measure,
    "digits": digits.measure,
    "overhead": overhead.measure,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    known = ", ".join(BENCHMARKS)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {known}; all if none is given")
    parser.add_argument("--list", action="store_true", help="name the benchmarks and what they measure")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {known}")
    if options.list:
        for name, measure in BENCHMARKS.items():
            print(f"{name:10} {(measure.__doc__ or '').splitlines()[0]}")
        return
    device = lx.default_device()
    print(f"{device.name}, {device.driver}; Python {platform.python_version()}")
    for name in options.names or BENCHMARKS:
        print(f"\n{name}\n{as_table(BENCHMARKS[name]())}", flush=True)


if __name__ == "__main__":
    main()
