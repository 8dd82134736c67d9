"""Where numbers about training go, and tables of them."""
from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from lavax.io.atomic import replaced


class Log(Protocol):
    """What `fit` writes to."""

    def begin(self, step: int) -> None:
        """Training begins behind `step`: what is there of later steps is no longer true."""
        ...

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Takes values that belong to `step`."""
        ...


class CSVLog:
    """A table with a column for each value, empty where a row has none. Training that is resumed goes on in it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._names: list[str] = ["step"]

    def begin(self, step: int) -> None:
        """Keeps the rows up to `step`."""
        rows = [row for row in self.rows() if float(row["step"]) <= step] if self.path.exists() else []
        self._rewrite(rows)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Adds a row. New names become new columns."""
        new = [name for name in values if name not in self._names]
        if new or not self.path.exists():
            rows = self.rows() if self.path.exists() else []
            self._names += new
            self._rewrite(rows)
        with open(self.path, "a", newline="", encoding="utf-8") as file:
            csv.DictWriter(file, self._names, restval="").writerow({"step": step, **values})

    def rows(self) -> list[dict[str, str]]:
        """What is in the file."""
        with open(self.path, newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            found = list(reader)
            self._names = list(reader.fieldnames or ["step"])
        return found

    def _rewrite(self, rows: list[dict[str, str]]) -> None:
        with replaced(self.path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self._names, restval="")
            writer.writeheader()
            writer.writerows(rows)
