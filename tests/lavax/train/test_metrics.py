"""Means and rates, by a clock of the test's own."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lavax import train
from lavax.train import metrics
from lavax.train.metrics import LateMetrics, means, named

pytestmark = pytest.mark.usefixtures("reference_backend")


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(metrics, "time", found)
    return found


def test_the_first_step_and_pauses_are_left_out_of_the_rate(clock: Clock) -> None:
    late = LateMetrics(every=2, lag=1, unit="tokens")
    found: list[Any] = []
    for step in range(1, 8):
        clock.now += 100 if step == 1 else 1  # the first one compiles
        late.add(step, {"loss": np.float32(step)}, 64)
        found += late.due(step)
        if step == 4:
            found += late.rest()
            clock.now += 1000  # an evaluation
            late.restart_clock()
    found += late.rest(unfinished=True)
    assert [(step, row["loss"]) for step, row in found] == [(2, 1.5), (4, 3.5), (6, 5.5), (7, 7.0)]
    # Of steps 1 and 2 only 2 counts, in the two seconds until step 3 was submitted; then two in one, two in three.
    assert [row.get("tokens per second") for _, row in found] == [64 / 2, 128 / 1, 128 / 3, None]


def test_a_step_that_was_under_way_in_a_pause_is_not_timed(clock: Clock) -> None:
    late = LateMetrics(every=3, lag=0, unit="examples")
    for step in (1, 2):
        late.add(step, {}, 10)
    assert late.rest() == []
    clock.now += 50
    late.restart_clock()
    clock.now += 2
    late.add(3, {}, 10)
    assert late.due(3) == [(3, {"examples per second": 5.0})]


def test_names_of_metrics() -> None:
    assert named(1.5) == {"loss": 1.5}
    assert named({"loss": 1, "by": {"kind": 2}, "both": (3, 4)}) == {"loss": 1, "by/kind": 2, "both/0": 3, "both/1": 4}
    with pytest.raises(ValueError, match=r"the step's metrics must be scalars: a has the shape \(2,\)"):
        named({"a": np.zeros(2)})


def test_means_are_of_those_that_have_a_value() -> None:
    assert means([({"a": 1.0}, 1), ({"a": 4.0, "b": 2.0}, 2)]) == {"a": 3.0, "b": 2.0}


def test_evaluation_needs_batches() -> None:
    with pytest.raises(ValueError, match="evaluate: the data have no batches"):
        train.evaluate(lambda state, batch: 0.0, None, [])


def test_memory_in_use_is_that_of_the_backend() -> None:
    assert train.memory_in_use() == 0
