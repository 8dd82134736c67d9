"""The comparison with other libraries: workloads that run, times that are waited for, results that are compared."""
from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import comparison, comparison_report, first_call
from benchmarks.comparison import Limits, Measurement
from benchmarks.first_call import FirstCall
from benchmarks.peers import LIBRARIES, Run, find_peers
from benchmarks.workloads import Workload, square_matmul, workloads_for
from benchmarks.workloads.library import UnsupportedError
from benchmarks.workloads.trees import leaves_of, map_tree, with_leaves

SMALL = Workload("double", lambda library: lambda x: x * 2.0, lambda g: (np.ones(4, np.float32),), 4, 32)


class Doubling:
    """A library that works for a while before its result is there."""

    def __init__(self, name: str, works: float = 0.0, factor: float = 2.0) -> None:
        self.name, self.version = name, "1"
        self._works, self._factor = works, factor

    def prepare(self, workload: Workload, arguments: tuple[Any, ...]) -> Run:
        (x,) = arguments
        wait: Callable[[Any], None] = lambda result: time.sleep(self._works)  # noqa: E731
        return Run(lambda: x * self._factor, wait, lambda result: [result], lambda: 64)


class Unable:
    name, version = "unable", "1"

    def prepare(self, workload: Workload, arguments: tuple[Any, ...]) -> Run:
        raise UnsupportedError


class Broken(Unable):
    name = "broken"

    def prepare(self, workload: Workload, arguments: tuple[Any, ...]) -> Run:
        raise RuntimeError("no such\ninstruction")


@pytest.fixture(scope="module")
def measured() -> list[Measurement]:
    peers = [Doubling("lavax"), Doubling("slow", 0.002), Doubling("wrong", factor=2.1), Unable(), Broken()]
    return comparison.measure(SMALL, peers, 0.01)


def test_work_is_waited_for(measured: Sequence[Measurement]) -> None:
    times = {m.library: m for m in measured}
    assert min(times["slow"].waited) >= 0.002 and min(times["slow"].in_row) >= 0.002
    assert len(times["lavax"].waited) >= comparison.FEWEST_ROUNDS


def test_what_a_library_cannot_do_is_said_or_left_out(measured: Sequence[Measurement]) -> None:
    problems = {m.library: m.problem for m in measured}
    assert problems == {"lavax": "", "slow": "", "wrong": "its results are others", "broken": "RuntimeError: no such"}


def test_the_report(measured: Sequence[Measurement], tmp_path: Path) -> None:
    limits = Limits(1e9, 1e9)
    lines = comparison_report.table(measured, limits).splitlines()
    assert len(lines) == 2 + len(measured) and len(set(map(len, lines))) == 1
    assert "slow" in comparison_report.summary(measured, limits)
    comparison_report.write_json(tmp_path / "found.json", {}, measured, limits)
    assert '"its results are others"' in (tmp_path / "found.json").read_text(encoding="utf-8")


def test_limits_are_of_memory_or_of_products() -> None:
    assert Limits(16.0, 4.0).seconds(SMALL) == 2.0
    assert Limits(32.0, 1.0).seconds(SMALL) == 4.0


def test_the_best_product_is_the_fastest_matmul() -> None:
    product = Workload("matmul-2", SMALL.define, SMALL.draw, 8, 48)
    found = [Measurement(product, "a", [2.0] * 2, [2.0] * 2), Measurement(SMALL, "a", [0.1] * 2, [0.1] * 2)]
    assert comparison.best_product(found) == 4.0


def test_lavax_and_numpy_agree_on_what_both_can_run() -> None:
    """On the cheaper workloads; all of them run in the benchmark itself, which compares results too."""
    peers = find_peers(False, lambda *why: pytest.fail(str(why)), ["lavax", "NumPy"])
    for name in ("call-150", "softmax", "layer-norm", "sum-columns", "gather", "matmul-vector", "adam-150"):
        workload = next(w for w in workloads_for(False) if w.name == name)
        arguments = workload.arguments()
        results = []
        for peer in peers:
            run = peer.prepare(workload, arguments)
            called = run.call()
            run.wait(called)
            results.append(run.read(called))
        assert comparison.agree(*results), name


@pytest.mark.parametrize("large", [False, True])
def test_workloads_are_named_and_counted(large: bool) -> None:
    workloads = workloads_for(large)
    assert len({w.name for w in workloads}) == len(workloads)
    assert all(w.operations > 0 and w.nbytes > 0 for w in workloads)
    assert square_matmul(large).name in {w.name for w in workloads}


def test_trees() -> None:
    tree = {"b": [1, (2, 3)], "a": 4}
    assert leaves_of(tree) == [4, 1, 2, 3]
    assert with_leaves(tree, "abcd") == {"a": "a", "b": ["b", ("c", "d")]}
    assert map_tree(lambda x, y: x + y, tree, tree) == {"a": 8, "b": [2, (4, 6)]}


def test_an_unknown_library_is_not_found() -> None:
    assert find_peers(False, lambda *why: None, []) == []
    assert "lavax" in LIBRARIES


def test_first_calls_are_pairs_with_the_same_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    folders: dict[str, str] = {}
    monkeypatch.setattr(first_call.os, "putenv", folders.__setitem__)

    def call(library: str, name: str) -> FirstCall | None:
        filled = Path(folders["LAVAX_CACHE"], library, name)
        if filled.exists():
            return FirstCall(1.0, 0.5)
        filled.mkdir(parents=True)
        return FirstCall(4.0, 6.0) if library == "able" else None

    monkeypatch.setattr(first_call, "_in_process_of_its_own", call)
    lines = first_call.table(["able", "unable"], quick=True).splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert [row[0] for row in rows[2::2]] == list(first_call.QUICK)
    assert rows[2][1:] == ["able", "4 s", "6 s", "1 s", "0.5 s"]
    assert rows[3][1:] == ["unable", "failed", "", "", ""]


def test_seconds_of_several_calls_are_shown_with_their_range() -> None:
    assert first_call.seconds_text([2.0]) == "2 s"
    assert first_call.seconds_text([3.0, 1.0, 2.0]) == "2 s (1 to 3)"
