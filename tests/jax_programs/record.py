"""Writes recorded.json, by JAX: `python -m tests.jax_programs.record`."""
from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any

from tests.jax_programs.comparing import arrays_of, in_few_numbers, size_of
from tests.jax_programs.switch import FILES, FOLDER, programs_in

RECORD = FOLDER.parent / "recorded.json"


def main() -> None:
    """Runs every program with JAX."""
    recorded: dict[str, Any] = {"jax": version("jax")}
    for file in FILES:
        for name, program in programs_in(file, "jax").items():
            recorded[f"{file}.{name}"] = {
                place: [str(array.dtype), list(array.shape), float(f"{size_of(array):.3g}"), *in_few_numbers(array)]
                for place, array in arrays_of(program()).items()
            }
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in recorded.items()]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
