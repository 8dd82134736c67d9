"""Checkpoints of training: a file per step, of which the last ones and the best are kept."""
from __future__ import annotations

import json
import math
import os
import re
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import numpy as np

from lavax.base.quick_dataclasses import dataclass
from lavax.io.atomic import remove_unfinished
from lavax.io.json_files import parsed_json
from lavax.io.safetensors import SafetensorsFile, write_safetensors
from lavax.io.trees import fitted, named_arrays, structure_of

__all__ = ["Checkpoint", "CheckpointManager"]

Tree = TypeVar("Tree")
_NAME = re.compile(r"step_(\d+)\.safetensors")


@dataclass(frozen=True)
class Checkpoint(Generic[Tree]):
    """What `restore` found: the step, the arrays, and whatever was saved with them."""

    step: int
    tree: Tree
    extra: Any


class CheckpointManager:
    """Checkpoints in a folder, each a safetensors file `step_N.safetensors` that is whole or not there.

        with io.CheckpointManager("run", keep=3) as checkpoints:
            checkpoints.save(step, (model, state), extra=loader.state())
        found = io.CheckpointManager("run").restore(like=(model, state))

    `keep` counts the latest ones that stay; with `best` "min" or "max", the one with the least or greatest `metric`
    stays as well. `save` waits for the arrays and copies them to the host's memory, so that the next step may donate
    them, and returns; a thread of its own writes the file. An error while writing is raised by the next call of any
    method. A folder has one manager at a time: a new one removes what a killed one left half written.
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int = 3, best: str | None = None) -> None:
        if keep < 1:
            raise ValueError(f"CheckpointManager: keep must be at least 1, got {keep}")
        if best not in (None, "min", "max"):
            raise ValueError(f"CheckpointManager: best is 'min', 'max' or None, got {best!r}")
        self.folder = Path(folder)
        self._keep, self._best = keep, best
        remove_unfinished(self.folder)
        self._writer = ThreadPoolExecutor(1, "lavax checkpoints")
        self._pending: Future[None] | None = None

    def steps(self) -> list[int]:
        """The steps of all checkpoints that are there, in order."""
        self.wait()
        return self._steps()

    def best_step(self) -> int | None:
        """The step of the checkpoint with the best metric, of those that are there; None if none has a metric."""
        self.wait()
        return self._best_step()

    def save(self, step: int, tree: Any, *, extra: Any = None, metric: float | None = None, wait: bool = False) -> None:
        """Saves the arrays of a pytree, and `extra`, anything that JSON can hold, such as the position in the data.

        Waits for an earlier save first. With `wait`, returns when the file is there. Raises TypeError, with the path,
        for a leaf that is neither array nor number.
        """
        if step < 0:
            raise ValueError(f"CheckpointManager.save: the step must not be negative, got {step}")
        self.wait()
        arrays = {name: _snapshot(array) for name, array in named_arrays(tree).items()}
        about = {"step": str(step), "extra": json.dumps(extra), **structure_of(tree)}
        if metric is not None:
            about["metric"] = repr(float(metric))
        self._pending = self._writer.submit(self._write, step, arrays, about)
        if wait:
            self.wait()

    def restore(self, like: Tree, step: int | None = None) -> Checkpoint[Tree]:
        """The latest checkpoint, or that of `step`, in the structure of `like` and with its kinds of leaves.

        Raises FileNotFoundError if it is not there, ValueError with the differing path if it does not fit `like`.
        """
        found = self.steps()
        if not found:
            raise FileNotFoundError(f"{self.folder}: there is no checkpoint")
        chosen = found[-1] if step is None else step
        if chosen not in found:
            raise FileNotFoundError(f"{self.folder}: there is no checkpoint of step {step}; there are {found}")
        path = self._path(chosen)
        file = SafetensorsFile(path)
        extra = parsed_json(path, file.metadata.get("extra", "null"), object)
        return Checkpoint(chosen, fitted(path, file, like), extra)

    def wait(self) -> None:
        """Returns when everything is written. Raises the error of the last save, if there was one."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def close(self) -> None:
        """Waits, and ends the thread."""
        try:
            self.wait()
        finally:
            self._writer.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, step: int, arrays: dict[str, Any], about: dict[str, str]) -> None:
        write_safetensors(self._path(step), arrays, about)
        steps = self._steps()
        kept = {*steps[-self._keep :], step, self._best_step() if self._best else step}
        for old in steps:
            if old not in kept:
                self._path(old).unlink(missing_ok=True)

    def _best_step(self) -> int | None:
        about = {step: SafetensorsFile(self._path(step)).metadata.get("metric") for step in self._steps()}
        metrics = {step: float(metric) for step, metric in about.items() if metric is not None}
        numbers = {step: metric for step, metric in metrics.items() if not math.isnan(metric)}
        choose = max if self._best == "max" else min
        return choose(numbers, key=numbers.__getitem__) if numbers else None

    def _steps(self) -> list[int]:
        matches = (_NAME.fullmatch(path.name) for path in self.folder.glob("step_*.safetensors"))
        return sorted(int(match[1]) for match in matches if match)

    def _path(self, step: int) -> Path:
        return self.folder / f"step_{step}.safetensors"


def _snapshot(array: Any) -> np.ndarray:
    """The numbers of an array, which later writes to it do not change. What comes from the device is a copy already."""
    return np.array(array) if isinstance(array, (np.ndarray, np.generic)) else np.asarray(array)
