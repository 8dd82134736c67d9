"""The training loop."""
from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any

from lavax.data.loader import Loader
from lavax.data.sources import size_of
from lavax.io.checkpoints import CheckpointManager
from lavax.tracer.tracing.placement import device_put
from lavax.train.interruption import noticed_interrupts
from lavax.train.logs import Log
from lavax.train.metrics import LateMetrics, means, memory_in_use, named
from lavax.train.progress import ProgressBar
from lavax.train.state import StepFunction

LearningRate = float | Callable[[int], Any]


@dataclass(frozen=True, eq=False)
class Fitted:
    """What `fit` returns.

    `history` has what was logged: dicts with "step" and the values. `interrupted`: Ctrl-C ended it before its end.
    """

    state: Any
    step: int
    history: list[dict[str, float]]
    interrupted: bool


def fit(
    step: StepFunction,
    state: Any,
    data: Iterable[Any],
    *,
    steps: int | None = None,
    log_every: int = 10,
    logs: Sequence[Log] = (),
    progress: bool = True,
    learning_rate: LearningRate | None = None,
    unit: str = "examples",
    units_of: Callable[[Any], int] = size_of,
    evaluate: Callable[[Any], Mapping[str, float]] | None = None,
    evaluate_every: int | None = None,
    checkpoints: CheckpointManager | None = None,
    checkpoint_every: int | None = None,
    resume: bool = True,
    lag: int = 2,
) -> Fitted:
    """Calls `state, metrics = step(state, batch)` for the batches of `data`, and logs, evaluates and saves on the way.

        step = train.training_step(loss, optimizer)
        state = train.initial_state(model, optimizer)
        fitted = train.fit(step, state, loader, steps=1000, checkpoints=io.CheckpointManager("run"))

    `step` is a compiled function, which may donate its state; `metrics` is a scalar, the loss, or a dict of scalars.
    `data` is a `data.Loader` or any iterable of batches. It is gone through again until `steps` steps are done, counted
    from the very beginning of training; without `steps`, it is gone through once.

    Logs: every `log_every` steps, the means of the metrics since the last time, the rate in `unit` per second
    (`units_of(batch)` counts them; the first step, which compiles, is left out), the device memory in use, and the
    `learning_rate`, a number or a function of the step. `logs` are such as `CSVLog` and `TensorBoardLog`. The numbers
    are read `lag` steps late, so that the device always has work.

    Every `evaluate_every` steps and at the end, `evaluate(state)` returns values, which are logged as "eval/...".

    `checkpoints` saves the state, and the position of `data`, every `checkpoint_every` steps and at the end; the
    evaluation's "loss" at that step, if there is one, decides which is best. Training goes on behind the latest
    checkpoint, with the same numbers as if it had not stopped; with `resume=False` there must not be one. Ctrl-C ends
    training after the step at hand, and saves; a second Ctrl-C raises KeyboardInterrupt at once.

    Raises ValueError for counts below one, for metrics that are no scalars, for `data` without batches, and for a
    checkpoint to resume from if `data` cannot go to its position; and whatever `step` and `data` raise.
    """
    counts = dict(log_every=log_every, evaluate_every=evaluate_every, checkpoint_every=checkpoint_every)
    for name, count in counts.items():
        if count is not None and count < 1:
            raise ValueError(f"fit: {name} must be at least 1, got {count}")
    done = 0
    earlier = checkpoints.steps() if checkpoints is not None else []
    if checkpoints is not None and earlier:
        if not resume:
            raise ValueError(
                f"fit: with resume=False training begins anew, but {checkpoints.folder} has checkpoints of the steps "
                f"{earlier}, which a later run would go on from: use another folder, or remove them"
            )
        found = checkpoints.restore(state)
        _restore_position(data, found.extra, found.step)
        state, done = found.tree, found.step
    bar = ProgressBar(_total(data, steps, done)) if progress else None
    outputs: list[Log] = [*logs, *([bar] if bar is not None else [])]
    loop = _Loop(state, done, LateMetrics(log_every, lag, unit), outputs, learning_rate)
    for output in outputs:
        output.begin(done)
    is_due = _Schedule(evaluate_every, evaluate is not None), _Schedule(checkpoint_every, checkpoints is not None)
    try:
        interrupted = _run(loop, step, data, steps, units_of, evaluate, checkpoints, is_due, bar)
    finally:
        if bar is not None:
            bar.close()
    return Fitted(loop.state, loop.done, loop.history, interrupted)


@dataclass(frozen=True)
class _Schedule:
    """When something is to be done: every so many steps if it is `wanted`, and at the end."""

    every: int | None
    wanted: bool

    def at(self, step: int) -> bool:
        return self.wanted and self.every is not None and step % self.every == 0


class _Loop:
    """The state of the loop, and what it writes."""

    def __init__(
        self, state: Any, done: int, late: LateMetrics, outputs: Sequence[Log], learning_rate: LearningRate | None
    ) -> None:
        self.state, self.done = device_put(state), done
        self.late = late
        self.history: list[dict[str, float]] = []
        self._outputs, self._learning_rate = outputs, learning_rate
        self._evaluated: tuple[int, Mapping[str, float]] = (-1, {})
        self._saved = done

    def take(self, step: StepFunction, batch: Any, units: int) -> None:
        result: Any = step(self.state, batch)
        if not isinstance(result, tuple) or len(result) != 2:
            raise ValueError(f"fit: step must return (state, metrics), got {type(result).__name__}")
        self.state, metrics = result
        self.done += 1
        self.late.add(self.done, named(metrics), units)
        self._write_trained(self.late.due(self.done))

    def finish(self) -> None:
        self._write_trained(self.late.rest(unfinished=True))

    def evaluate(self, evaluate: Callable[[Any], Mapping[str, float]]) -> None:
        if self._evaluated[0] == self.done:
            return
        self._write_trained(self.late.rest())
        values = {name: float(value) for name, value in evaluate(self.state).items()}
        self._evaluated = self.done, values
        self._write(self.done, {f"eval/{name}": value for name, value in values.items()})
        self.late.restart_clock()

    def save(self, checkpoints: CheckpointManager, data: Any, wait: bool = False) -> None:
        if self._saved != self.done:
            self._write_trained(self.late.rest())
            at, values = self._evaluated
            metric = values.get("loss") if at == self.done else None
            position = data.state() if hasattr(data, "state") else None
            checkpoints.save(self.done, self.state, extra={"data": position}, metric=metric)
            self._saved = self.done
            self.late.restart_clock()
        if wait:
            checkpoints.wait()

    def _write_trained(self, groups: list[tuple[int, dict[str, float]]]) -> None:
        for step, values in groups:
            if self._learning_rate is not None:
                rate = self._learning_rate
                values["learning rate"] = float(rate(step - 1) if callable(rate) else rate)
            self._write(step, {**values, "device memory": float(memory_in_use())})

    def _write(self, step: int, values: Mapping[str, float]) -> None:
        self.history.append({"step": step, **values})
        for output in self._outputs:
            output.write(step, values)


def _run(
    loop: _Loop,
    step: StepFunction,
    data: Iterable[Any],
    steps: int | None,
    units_of: Callable[[Any], int],
    evaluate: Callable[[Any], Mapping[str, float]] | None,
    checkpoints: CheckpointManager | None,
    is_due: tuple[_Schedule, _Schedule],
    bar: ProgressBar | None,
) -> bool:
    """Runs the loop to its end; returns whether Ctrl-C ended it."""
    evaluation, saving = is_due
    with noticed_interrupts() as interrupt, closing(_batches(data, steps, loop.done)) as batches:
        for batch in batches:
            loop.take(step, batch, units_of(batch))
            if bar is not None:
                bar.advance()
            if evaluate is not None and evaluation.at(loop.done):
                loop.evaluate(evaluate)
            if checkpoints is not None and saving.at(loop.done):
                loop.save(checkpoints, data)
            if interrupt.is_set():
                break
        stopped = interrupt.is_set() and loop.done != steps
        loop.finish()
        if evaluate is not None and not stopped:
            loop.evaluate(evaluate)
        if checkpoints is not None:
            loop.save(checkpoints, data, wait=True)
    return stopped


def _batches(data: Iterable[Any], steps: int | None, done: int) -> Generator[Any, None, None]:
    """The batches of the steps that are left; over and over again if their number is given."""
    if steps is None:
        yield from data
        return
    left = steps - done
    if isinstance(data, Loader):
        with closing(data.batches()) as batches:
            yield from islice(batches, left)
        return
    while left:
        before = left
        for batch in islice(data, left):
            left -= 1
            yield batch
        if left == before:
            raise ValueError(
                f"fit: the data have no more batches after {steps - left} of {steps} steps: "
                "an iterator can be gone through once only, a list or a data.Loader again and again"
            )


def _restore_position(data: Any, extra: Any, step: int) -> None:
    position = (extra or {}).get("data")
    if position is None or not hasattr(data, "restore"):
        raise ValueError(
            f"fit: there is a checkpoint of step {step}, but the data cannot go to its position: use data.Loader, or "
            "anything else with state() and restore(state)"
        )
    data.restore(position)


def _total(data: Any, steps: int | None, done: int) -> int | None:
    if steps is not None:
        return steps
    try:
        return done + len(data)
    except TypeError:
        return None


def evaluate(metrics: Callable[[Any, Any], Any], state: Any, data: Iterable[Any]) -> dict[str, float]:
    """The means of `metrics(state, batch)` over the batches of `data`, weighted by their numbers of examples.

    `metrics` is best compiled; it returns a scalar, the loss, or a dict of scalars, each the mean over a batch. All
    batches are submitted before the first number is read. Raises ValueError if there are no batches.
    """
    rows = [(named(metrics(state, batch), "evaluate: metrics"), float(size_of(batch))) for batch in data]
    if not rows:
        raise ValueError("evaluate: the data have no batches")
    return means(rows)
