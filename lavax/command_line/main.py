"""`lavax` on the command line: finds the command, runs it, and turns its end into an exit code.

Exit codes: 0, all is well; 1, something failed, such as a check of `selftest`; 2, the words of the command line do not
make sense; 130, interrupted.
"""
from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from lavax.base import config
from lavax.base.errors import LavaxError
from lavax.base.quick_dataclasses import dataclass
from lavax.command_line import bench, cache, devices, dump, run_model, selftest
from lavax.command_line.errors import UsageError, UserCodeError

_DESCRIPTION = "lavax: plain Python functions, traced, differentiated and compiled to Vulkan compute programs."
FAILED, MISUSED, INTERRUPTED = 1, 2, 130


@dataclass(frozen=True)
class Command:
    """`summary` is its line in the help; `add_options` declares its options; `run` returns the exit code."""

    summary: str
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


COMMANDS = {
    "devices": Command("what each Vulkan driver offers, and which schedules it gets", devices.add_options, devices.run),
    "selftest": Command("check this device in at most a minute; what to report", selftest.add_options, selftest.run),
    "cache": Command("compiled shaders on disk: where, how large; clear them", cache.add_options, cache.run),
    "dump": Command("a function at every stage on its way to the device", dump.add_options, dump.run),
    "run": Command("an ONNX model on arrays from files", run_model.add_options, run_model.run),
    "bench": Command("how fast this device is, or a function on it", bench.add_options, bench.run),
}


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    found = argparse.ArgumentParser(prog="lavax", description=_DESCRIPTION)
    found.add_argument("--version", action="version", version=f"lavax {config.VERSION}")
    commands = found.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        command.add_options(commands.add_parser(name, help=command.summary, description=f"{command.summary}."))
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command in `words`, by default those of this process; returns the exit code."""
    options = parser().parse_args(words)
    try:
        return COMMANDS[options.command].run(options)
    except UsageError as error:
        return _complain(options.command, str(error), MISUSED)
    except UserCodeError as error:
        return _complain(options.command, str(error), FAILED)
    except LavaxError as error:
        return _complain(options.command, f"{type(error).__name__}: {error}", FAILED)
    except KeyboardInterrupt:
        return _complain(options.command, "interrupted", INTERRUPTED)
    except BrokenPipeError:  # the reader, such as `head`, has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else closing it at exit fails once more
        return 0


def _complain(command: str, message: str, code: int) -> int:
    sys.stderr.write(f"lavax {command}: {message}\n")
    return code
