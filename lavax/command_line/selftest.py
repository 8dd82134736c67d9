"""`lavax selftest`: checks of the chosen device in a process of their own, and a block of text to report.

A driver that crashes or hangs takes that process with it; the check is then reported, and the others go on in another.
"""
from __future__ import annotations

import argparse
import json
import os
import platform
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np

from lavax.base import config
from lavax.base.quick_dataclasses import dataclass
from lavax.command_line.errors import UsageError
from lavax.command_line.output import say

SECONDS = 55.0  # of all checks; with the start of the processes, a minute
PATIENCE = 20.0  # the seconds after which a check that is not done hangs
_MARKS = {"passed": "ok", "failed": "FAILED", "left out": "left out"}
_ISSUES = "the project's issue tracker"


@dataclass(frozen=True)
class Outcome:
    """A check's name, "passed", "failed" or "left out", and why or how well."""

    name: str
    state: str
    words: str = ""
    seconds: float = 0.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the command."""
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"what does not fit is left out ({SECONDS:.0f})")
    parser.add_argument("--only", action="append", metavar="CHECK", help="run this check")
    parser.add_argument("--list", action="store_true", help="name the checks")
    parser.add_argument("--in-this-process", action="store_true", help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> int:
    """Checks the device that LAVAX_DEVICE chooses; returns 1 if a check failed. Raises DeviceError without a device."""
    from lavax.command_line.conformance import CHECKS

    unknown = [name for name in options.only or () if name not in CHECKS]
    if unknown:
        raise UsageError(f"there is no check {', '.join(unknown)}; there are {', '.join(CHECKS)}")
    names = options.only or list(CHECKS)
    if options.list:
        for name in names:
            say(name)
        return 0
    if options.in_this_process:
        return _run_checks(names)
    facts = machine()
    outcomes = []
    for found in _in_other_processes(names, options.seconds):
        outcomes.append(found)
        say(_line(found))
    say()
    say(report(facts, outcomes))
    return 1 if any(found.state == "failed" for found in outcomes) else 0


def machine() -> dict[str, str]:
    """What a report needs to know of the machine. Raises DeviceError without a device."""
    from lavax.backends.vulkan import glslang
    from lavax.tracer.tracing.placement import default_device

    device = default_device()
    return {
        "lavax": config.VERSION,
        "device": f"{device.name} ({device.kind}, {device.memory_bytes / 2**30:.1f} GiB)",
        "driver": device.driver,
        "system": platform.platform(),
        "Python": f"{platform.python_version()}, NumPy {np.__version__}",
        "glslang": glslang.version() if glslang.available() else "not built in: the program on PATH",
        "settings": ", ".join(config.chosen_settings()) or "none",
    }


def report(facts: dict[str, str], outcomes: Sequence[Outcome]) -> str:
    """The block to report: what the machine is, and every check that did not pass."""
    passed = [found for found in outcomes if found.state == "passed"]
    failed = [found for found in outcomes if found.state == "failed"]
    lines = [f"{name}: {value}" for name, value in facts.items()]
    lines.append(f"checks: {len(passed)} of {len(outcomes)} passed, {len(failed)} failed")
    lines += [_line(found) for found in outcomes if found.state != "passed"]
    lines += [_line(found) for found in passed if found.name == "measured limits"]
    verdict = (
        f"This device computes what it should. If something else is wrong, report it to {_ISSUES} with this block:"
        if not failed
        else f"This device fails {len(failed)} of the checks. Please report it to {_ISSUES} with this block:"
    )
    return "\n".join([verdict, "", "```", *lines, "```"])


def _line(found: Outcome) -> str:
    words = found.words.splitlines() or [""]
    first = f"{_MARKS[found.state]:8}  {found.name:28}  {words[0]}".rstrip()
    return "\n".join([first, *(f"          {line}" for line in words[1:])])


def _run_checks(names: Sequence[str]) -> int:
    """In the other process: a line of JSON before each check and one after it."""
    from lavax.command_line.conformance import outcome

    for name in names:
        _send(name, "began", "")
        try:
            _send(name, "passed", outcome(name))
        except Exception as error:
            _send(name, "failed", f"{type(error).__name__}: {error}")
    return 0


def _send(name: str, state: str, words: str) -> None:
    say(json.dumps({"name": name, "state": state, "words": words}))


def _in_other_processes(names: Sequence[str], seconds: float) -> Iterator[Outcome]:
    """The outcome of each check, in order. A process that dies is replaced for the checks that are left."""
    end = time.monotonic() + seconds
    left = list(names)
    with tempfile.TemporaryDirectory() as folder:
        os.putenv("LAVAX_CACHE", folder)  # for those processes, not for this one: they are to compile
        while left and time.monotonic() < end:
            for found in _until_it_dies(left, end):
                left.remove(found.name)
                yield found
    yield from (Outcome(name, "left out", "there was no time for it") for name in left)


def command_for(names: Sequence[str]) -> list[str]:
    """The words that run these checks in another process."""
    only = [word for name in names for word in ("--only", name)]
    return [sys.executable, "-m", "lavax", "selftest", "--in-this-process", *only]


def _until_it_dies(names: Sequence[str], end: float) -> Iterator[Outcome]:
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command_for(names), stdout=subprocess.PIPE, stderr=errors, text=True)
        assert process.stdout is not None
        try:
            yield from _outcomes(process.stdout, names[0], end)
        except _DeathError as death:
            process.kill()
            code = process.wait()
            errors.seek(0)
            yield _of_death(death, code, errors.read().splitlines()[-5:])
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def _of_death(death: _DeathError, code: int, said: Sequence[str]) -> Outcome:
    """What became of the check that was running; `said` are the last lines that the process wrote."""
    if death.hangs and death.seconds < PATIENCE:
        return Outcome(death.name, "left out", "the time was up", death.seconds)
    ending = f"signal {-code}" if code < 0 else f"exit code {code}"
    words = f"it hangs: nothing for {PATIENCE:.0f} s" if death.hangs else f"the process died ({ending})"
    return Outcome(death.name, "failed", "\n".join([words, *said]), death.seconds)


class _DeathError(Exception):
    """The process ended in a check, or `hangs`; the check and how long it ran."""

    def __init__(self, name: str, hangs: bool, seconds: float) -> None:
        self.name, self.hangs, self.seconds = name, hangs, seconds


def _said(line: str) -> dict[str, Any] | None:
    """What the process says in a line; None if it is not its own."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and {"name", "state", "words"} <= found.keys() else None


def _outcomes(stream: IO[str], name: str, end: float) -> Iterator[Outcome]:
    """What the process says. Raises _DeathError if it ends in a check, or says nothing for too long."""
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read() -> None:
        for line in stream:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    began, is_running = time.monotonic(), True
    while True:
        patience = min(PATIENCE, end - began)
        try:
            line = lines.get(timeout=max(0.0, began + patience - time.monotonic()))
        except queue.Empty:
            raise _DeathError(name, True, time.monotonic() - began) from None
        if line is None:
            if is_running:
                raise _DeathError(name, False, time.monotonic() - began)
            return
        said = _said(line)
        if said is None:  # a driver's own words
            continue
        name, is_running = said["name"], said["state"] == "began"
        if not is_running:
            yield Outcome(name, said["state"], said["words"], time.monotonic() - began)
        began = time.monotonic()

