"""Steps in a row, and what is done between them."""
from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import field
from itertools import islice
from typing import Any

from lavax.base.quick_dataclasses import dataclass
from lavax.data.loader import Loader
from lavax.io.checkpoints import CheckpointManager
from lavax.train.interruption import noticed_interrupts
from lavax.train.logs import Log
from lavax.train.metrics import LateMetrics, memory_in_use, named
from lavax.train.progress import ProgressBar
from lavax.train.state import StepFunction

Evaluation = Callable[[Any], Mapping[str, float]]
LearningRate = float | Callable[[int], Any]


@dataclass(eq=False)
class Loop:
    """Training from `done` steps on. The fields are what `fit` says of its arguments of these names."""

    step: StepFunction
    state: Any
    done: int
    data: Iterable[Any]
    steps: int | None
    units_of: Callable[[Any], int]
    late: LateMetrics
    logs: Sequence[Log]
    bar: ProgressBar | None
    learning_rate: LearningRate | None
    evaluation: Evaluation | None
    evaluate_every: int | None
    checkpoints: CheckpointManager | None
    checkpoint_every: int | None
    history: list[dict[str, float]] = field(default_factory=list)
    _evaluated: tuple[int, Mapping[str, float]] = (-1, {})  # the last evaluation's step, and its values
    _saved: int = -1  # the step of the last checkpoint

    def run(self) -> bool:
        """Runs to the end; returns whether Ctrl-C ended it before that."""
        for log in self._logs():
            log.begin(self.done)
        self._saved = self.done
        with noticed_interrupts() as interrupt, closing(_batches(self.data, self.steps, self.done)) as batches:
            for batch in batches:
                self._take(batch)
                if _is_due(self.done, self.evaluate_every):
                    self._evaluate()
                if _is_due(self.done, self.checkpoint_every):
                    self._save()
                if interrupt.is_set():
                    break
            interrupted = interrupt.is_set() and self.done != self.steps
            self._write_all(self.late.rest(unfinished=True))
            if not interrupted:
                self._evaluate()
            self._save()
            if self.checkpoints is not None:
                self.checkpoints.wait()
        return interrupted

    def _take(self, batch: Any) -> None:
        """Submits a step, and writes the metrics of earlier ones that are due."""
        units = self.units_of(batch)
        result: Any = self.step(self.state, batch)
        if not isinstance(result, tuple) or len(result) != 2:
            raise ValueError(f"fit: step must return (state, metrics), got {type(result).__name__}")
        self.state, metrics = result
        self.done += 1
        if self.bar is not None:
            self.bar.advance()
        self.late.add(self.done, named(metrics), units)
        self._write_all(self.late.due(self.done))

    def _evaluate(self) -> None:
        if self.evaluation is None or self._evaluated[0] == self.done:
            return
        self._write_all(self.late.rest())
        values = {name: float(value) for name, value in self.evaluation(self.state).items()}
        self._evaluated = self.done, values
        self._write(self.done, {f"eval/{name}": value for name, value in values.items()})
        self.late.restart_clock()

    def _save(self) -> None:
        if self.checkpoints is None or self._saved == self.done:
            return
        self._write_all(self.late.rest())
        step, values = self._evaluated
        metric = values.get("loss") if step == self.done else None
        position = self.data.state() if hasattr(self.data, "state") else None
        self.checkpoints.save(self.done, self.state, extra={"data": position}, metric=metric)
        self._saved = self.done
        self.late.restart_clock()

    def _write_all(self, groups: Iterable[tuple[int, dict[str, float]]]) -> None:
        rate = self.learning_rate
        for step, values in groups:
            if rate is not None:
                values["learning rate"] = float(rate(step - 1) if callable(rate) else rate)
            self._write(step, {**values, "device memory": float(memory_in_use())})

    def _write(self, step: int, values: Mapping[str, float]) -> None:
        self.history.append({"step": step, **values})
        for log in self._logs():
            log.write(step, values)

    def _logs(self) -> Sequence[Log]:
        return self.logs if self.bar is None else [*self.logs, self.bar]


def _is_due(step: int, every: int | None) -> bool:
    return every is not None and step % every == 0


def _batches(data: Iterable[Any], steps: int | None, done: int) -> Generator[Any, None, None]:
    """The batches of the steps that are left; over and over again if their number is given."""
    if steps is None:
        yield from data
        return
    left = steps - done
    if isinstance(data, Loader):
        with closing(data.batches()) as batches:
            yield from islice(batches, max(left, 0))
        return
    while left > 0:
        before = left
        for batch in islice(data, left):
            left -= 1
            yield batch
        if left == before:
            raise ValueError(
                f"fit: the data have no more batches after {steps - left} of {steps} steps: "
                "an iterator can be gone through once only, a list or a data.Loader again and again"
            )
