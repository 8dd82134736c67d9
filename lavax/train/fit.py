"""The training loop."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lavax.base.quick_dataclasses import dataclass
from lavax.data.sources import size_of
from lavax.io.checkpoints import CheckpointManager
from lavax.tracer.tracing.placement import device_put
from lavax.train.logs import Log
from lavax.train.loop import Evaluation, LearningRate, Loop
from lavax.train.metrics import LateMetrics, means, named
from lavax.train.progress import ProgressBar
from lavax.train.state import StepFunction


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
    epochs: int | None = None,
    log_every: int = 10,
    logs: Sequence[Log] = (),
    progress: bool = True,
    learning_rate: LearningRate | None = None,
    unit: str = "examples",
    units_of: Callable[[Any], int] = size_of,
    evaluate: Evaluation | None = None,
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
    from the very beginning of training, or `epochs` times; without either, it is gone through once.

    Logs: every `log_every` steps, the means of the metrics since the last time, the rate in `unit` per second
    (`units_of(batch)` counts them, such as `lambda batch: batch[0].size` for tokens; the first step, which compiles, is
    left out), the device memory in use, and the `learning_rate`, a number or a function of the steps done before.
    `logs` are such as `CSVLog` and `TensorBoardLog`. The numbers are read `lag` steps late, so that the device always
    has work.

    Every `evaluate_every` steps and at the end, `evaluate(state)` returns values, which are logged as "eval/...".

    `checkpoints` saves the state, and the position of `data`, every `checkpoint_every` steps and at the end; the
    evaluation's "loss" at that step, if there is one, decides which is best. Training goes on behind the latest
    checkpoint, with the same numbers as if it had not stopped; with `resume=False` there must not be one. Ctrl-C ends
    training after the step at hand, and saves; a second Ctrl-C raises KeyboardInterrupt at once.

    Raises ValueError for counts below one, for metrics that are no scalars, for `data` without batches, and for a
    checkpoint to resume from if `data` cannot go to its position; and whatever `step` and `data` raise.
    """
    for name, count in dict(
        log_every=log_every, evaluate_every=evaluate_every, checkpoint_every=checkpoint_every, epochs=epochs
    ).items():
        if count is not None and count < 1:
            raise ValueError(f"fit: {name} must be at least 1, got {count}")
    if epochs is not None:
        steps = _steps_of(epochs, steps, data)
    state, done = _resumed(state, data, checkpoints, resume)
    bar = ProgressBar(_total(data, steps, done)) if progress else None
    loop = Loop(
        step=step,
        state=device_put(state),
        done=done,
        data=data,
        steps=steps,
        units_of=units_of,
        late=LateMetrics(log_every, lag, unit),
        logs=logs,
        bar=bar,
        learning_rate=learning_rate,
        evaluation=evaluate,
        evaluate_every=evaluate_every,
        checkpoints=checkpoints,
        checkpoint_every=checkpoint_every,
    )
    try:
        interrupted = loop.run()
    finally:
        if bar is not None:
            bar.close()
    return Fitted(loop.state, loop.done, loop.history, interrupted)


def _resumed(state: Any, data: Any, checkpoints: CheckpointManager | None, resume: bool) -> tuple[Any, int]:
    """The state to begin with, and the number of steps that are done; `data` are at their position."""
    earlier = checkpoints.steps() if checkpoints is not None else []
    if checkpoints is None or not earlier:
        return state, 0
    if not resume:
        raise ValueError(
            f"fit: with resume=False training begins anew, but {checkpoints.folder} has checkpoints of the steps "
            f"{earlier}, which a later run would go on from: use another folder, or remove them"
        )
    found = checkpoints.restore(state)
    _restore_position(data, found.extra, found.step)
    return found.tree, found.step


def _restore_position(data: Any, extra: Any, step: int) -> None:
    position = (extra or {}).get("data")
    if position is None or not hasattr(data, "restore"):
        raise ValueError(
            f"fit: there is a checkpoint of step {step}, but the data cannot go to its position: use data.Loader, or "
            "anything else with state() and restore(state)"
        )
    data.restore(position)


def _steps_of(epochs: int, steps: int | None, data: Any) -> int:
    if steps is not None:
        raise ValueError(f"fit: give steps or epochs, not both, got {steps} and {epochs}")
    try:
        return epochs * len(data)
    except TypeError:
        raise ValueError("fit: the data have no length, so say by steps, not by epochs, how long to train") from None


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
