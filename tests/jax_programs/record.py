"""Writes what JAX gives: `python -m tests.jax_programs.record`, or `... record arrays draws` for some files.

recorded.json is of all programs but those with 64 bits enabled, whose is recorded_doubles.json.
"""
from __future__ import annotations

import json
import sys
from importlib.metadata import version
from typing import Any

from tests.jax_programs.comparing import arrays_of, in_few_numbers, size_of
from tests.jax_programs.switch import DOUBLES, FILES, FOLDER, names_in, programs_in

RECORD = FOLDER.parent / "recorded.json"
RECORD_OF_DOUBLES = FOLDER.parent / "recorded_doubles.json"
DIGITS = 14  # of numbers in the latter


def record_of_doubles() -> dict[str, Any]:
    """What JAX gives for every program with 64 bits enabled."""
    import jax

    with jax.enable_x64(True):
        return {
            name: {
                place: [str(array.dtype), list(array.shape), size_of(array), *in_few_numbers(array, DIGITS)]
                for place, array in arrays_of(program()).items()
            }
            for name, program in programs_in("doubles", "jax", DOUBLES).items()
        }


def record_of(file: str) -> dict[str, Any]:
    """What JAX gives for every program of a file."""
    return {
        f"{file}.{name}": {
            place: [str(array.dtype), list(array.shape), float(f"{size_of(array):.3g}"), *in_few_numbers(array)]
            for place, array in arrays_of(program()).items()
        }
        for name, program in programs_in(file, "jax").items()
    }


def main(chosen: list[str]) -> None:
    """Runs the programs of the chosen files with JAX, and keeps what is recorded of the others."""
    lines = [f"{json.dumps(name)}: {json.dumps(values)}" for name, values in record_of_doubles().items()]
    RECORD_OF_DOUBLES.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    known = json.loads(RECORD.read_text(encoding="utf-8"))
    for file in chosen:
        known = {key: value for key, value in known.items() if not key.startswith(f"{file}.")} | record_of(file)
    keys = [f"{file}.{name}" for file in FILES for name in names_in(file)]
    lines = [f"{json.dumps(key)}: {json.dumps(known[key])}" for key in keys]
    RECORD.write_text("{\n" + ",\n".join([f'"jax": "{version("jax")}"', *lines]) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:] or FILES)
