from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from lavax.backends.vulkan.backend import VulkanBackend
from lavax.backends.vulkan.device.device import get_device
from lavax.backends.vulkan.measure import kept_rates
from lavax.backends.vulkan.measure.kept_rates import rates_of
from lavax.backends.vulkan.measure.limits import measure_rates
from lavax.backends.vulkan.measure.timing import TimedWork
from lavax.backends.vulkan.run.estimate import PROCESSORS, SLOW_DEVICE, Rates
from lavax.base import config

RATES = Rates(3e9, 5e11, 2e-5)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Rates]:
    """What measurements give, one by one."""
    left = [RATES]
    monkeypatch.setattr(kept_rates, "measure_rates", lambda device: left.pop(0))
    return left


def test_rates_are_measured_once(tmp_path: Path, measured: list[Rates]) -> None:
    with config.cache_in(tmp_path):
        assert [rates_of(get_device()), rates_of(get_device())] == [RATES, RATES]
    assert not measured


OTHERS = {
    "old": lambda record: [record[0] - 8 * 24 * 3600.0, *record[1:]],
    "of tomorrow": lambda record: [record[0] + 24 * 3600.0, *record[1:]],
    "short": lambda record: record[:-1],
    "long": lambda record: [*record, 1.0],
    "of texts": lambda record: list(map(str, record)),
    "negative": lambda record: [*record[:-1], -1.0],
    "infinite": lambda record: [record[0], float("inf"), *record[2:]],
    "no number": lambda record: [record[0], float("nan"), *record[2:]],
    "no list": lambda record: record[0],
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_record_is_measured_again(name: str, tmp_path: Path, measured: list[Rates]) -> None:
    changed = json.dumps(OTHERS[name]([time.time(), 1e9, 1e9, 1e-5])).encode()
    assert kept_rates._read(changed, time.time()) is None
    with config.cache_in(tmp_path):
        rates_of(get_device())
        measured.append(Rates(1.0, 1.0, 1.0))
        assert rates_of(get_device()) == RATES
        (record,) = (tmp_path / "rates").iterdir()
        record.write_bytes(record.read_bytes()[:-1])
        assert rates_of(get_device()) == Rates(1.0, 1.0, 1.0)


def test_a_device_that_cannot_be_measured_leaves_no_record(tmp_path: Path, measured: list[Rates]) -> None:
    measured[:] = [SLOW_DEVICE, RATES]
    with config.cache_in(tmp_path):
        assert [rates_of(get_device()), rates_of(get_device())] == [SLOW_DEVICE, RATES]


def test_measured_rates_are_those_of_a_device() -> None:
    """Within what any machine does that runs this, however busy it is."""
    rates = measure_rates(get_device())
    assert 1e7 < rates.copy < 1e13
    assert 1e8 < rates.arithmetic < 1e15
    assert 1e-8 < rates.dispatch < 1e-1


def test_rates_that_a_call_waits_for_take_few_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy, small dispatches and arithmetic: each runs once to warm up, and twice to be measured."""
    runs: list[TimedWork] = []
    run = TimedWork.run
    monkeypatch.setattr(TimedWork, "run", lambda work: runs.append(work) or run(work))
    measure_rates(get_device())
    assert len(set(runs)) == 3
    assert [runs.count(work) for work in dict.fromkeys(runs)] == [3, 3, 3]


def test_a_driver_of_processors_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_rates, "measure_rates", lambda device: pytest.fail("it was measured"))
    backend = VulkanBackend()
    if backend.device.profile.kind != "cpu":
        pytest.skip("the device is no processor")
    assert backend.rates() == PROCESSORS
