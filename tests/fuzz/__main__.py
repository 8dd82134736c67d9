"""`python -m tests.fuzz`: random programs for so many seconds; goes on where it stopped, or from a number."""
from __future__ import annotations

import argparse
import os
import sys
from itertools import count
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="how long to run")
    parser.add_argument("--start", type=int, help="the number of the first program (default: where it stopped)")
    parser.add_argument("--step", type=int, default=1, help="every so many numbers, to share them between processes")
    parser.add_argument("--share", type=float, default=1.0, help="how often devices run; 0: interpreters alone")
    parser.add_argument("--folder", type=Path, default=Path("out/fuzz"), help="where differences are written")
    chosen = parser.parse_args()
    os.environ.setdefault("LAVAX_VERIFY", "1")
    from tests.fuzz.run import next_number, run

    start = next_number(chosen.folder) if chosen.start is None else chosen.start
    report = run(count(start, chosen.step), chosen.seconds, chosen.folder, chosen.share)
    print(f"\n{report}")
    return min(len(report.found), 1)


if __name__ == "__main__":
    sys.exit(main())
