"""Rows of all pairs of two arrays: an invocation of a CPU driver has a tile of them, which share what they read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.reduce.choose import choose_schedule
from lavax.backends.vulkan.emit.reduce.row_schedule import RowSchedule
from lavax.backends.vulkan.emit.reduce.tiles import TiledRows
from lavax.backends.vulkan.plan.profile import CPU_DRIVER
from lavax.backends.vulkan.target import target_of
from lavax.passes.build.inline import inline_calls
from lavax.passes.kernels.commands import steps_of
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import simplify
from tests.backends.vulkan.emit.emission import dispatch_of, main_of

RANDOM = np.random.default_rng(11)
TARGET = target_of(CPU_DRIVER, 1 << 34, 1 << 31)
# Each is given arrays [rows, length] and [columns, length].
PAIRS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "distances": lambda np, x, y: np.sqrt(np.sum((x[:, None] - y[None]) ** 2, -1)),
    "least sums": lambda np, x, y: np.min(x[:, :, None] + y.T[None], 1),
    "greatest differences": lambda np, x, y: np.max(np.abs(x[:, None] - y[None]), -1),
    "places": lambda np, x, y: np.argmin(np.abs(x[:, None] - y[None]), -1),
    "two results": lambda np, x, y: np.sum(np.cos(x[:, None] * y[None]), -1) / np.max(x[:, None] + y[None], -1),
    "sums beside an epilogue": lambda np, x, y: np.sum(np.abs(x[:, None] - y[None]), -1) * x[:, :1] + y[:, 0],
    "equal elements": lambda np, x, y: np.sum(np.round(x[:, None]) == np.round(y[None]), -1),
}


def _arrays(rows: int, columns: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    return RANDOM.normal(size=(rows, length)).astype("f"), RANDOM.normal(size=(columns, length)).astype("f")


def _schedules(function: Callable[..., Any], *arguments: Any) -> list[RowSchedule]:
    graph = simplify(inline_calls(lx.trace(function)(*arguments)))
    kernels = [step.kernel for step in steps_of(schedule(prepare(graph, TARGET), target=TARGET).steps)]
    return [choose_schedule(kernel, CPU_DRIVER, lifted=False) for kernel in kernels if kernel.kind == "row"]


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize(("rows", "columns", "length"), [(24, 64, 40), (27, 65, 33), (64, 128, 5), (30, 44, 129)])
def test_results_of_pairs(name: str, rows: int, columns: int, length: int) -> None:
    x, y = _arrays(rows, columns, length)
    found = np.asarray(lx.compile(lambda x, y: PAIRS[name](lnp, x, y))(x, y))
    expected = PAIRS[name](np, x.astype("d"), y.astype("d"))
    np.testing.assert_allclose(found, expected, rtol=3e-6, atol=3e-6 * np.abs(expected).max())


def test_batches_of_pairs() -> None:
    x, y = RANDOM.normal(size=(3, 20, 8)).astype("f"), RANDOM.normal(size=(3, 36, 8)).astype("f")
    distances = lx.compile(lx.vmap(lambda x, y: lnp.sum((x[:, None] - y[None]) ** 2, -1)))
    expected = ((x.astype("d")[:, :, None] - y[:, None]) ** 2).sum(-1)
    np.testing.assert_allclose(np.asarray(distances(x, y)), expected, rtol=2e-6)


@pytest.mark.parametrize(("rows", "columns", "lines"), [(24, 64, 4), (27, 65, 3), (30, 100, 6), (30, 64, 6)])
def test_lines_of_a_tile(rows: int, columns: int, lines: int) -> None:
    (found,) = _schedules(lambda x, y: PAIRS["least sums"](lnp, x, y), *_arrays(rows, columns, 40))
    assert isinstance(found, TiledRows)
    assert (found.lines, found.columns, found.row_width) == (lines, columns, 1 if columns % 4 else 4)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: lnp.max(x, -1),  # what each row reads is its own
        lambda x: lnp.max(x, 1),
        lambda x: x - lnp.max(x, -1, keepdims=True),  # rows are written
        lambda x: lnp.max(x[:, :1, :1] + x[:1, :1, :], -1),  # rows lie along one axis
    ],
)
def test_other_rows_have_no_tiles(function: Callable[[Any], Any]) -> None:
    found = _schedules(function, RANDOM.normal(size=(64, 64, 40)).astype("f"))
    assert found and not any(isinstance(each, TiledRows) for each in found)


def test_a_tile_reads_once_what_its_rows_share() -> None:
    """Four elements of one array, one for each line, and a vector of the other make sixteen sums."""
    x, y = RANDOM.normal(size=(24, 40)).astype("f"), RANDOM.normal(size=(40, 64)).astype("f")
    graph = lx.trace(lambda x, y: lnp.min(x[:, :, None] + y[None], 1))(x, y)
    loop = main_of(dispatch_of(graph, CPU_DRIVER)).partition("for (int k")[2].partition("\n    }")[0]
    assert loop.count("F32(p0).data[") == 4 and loop.count("(p1") == 1
    assert loop.count("lx_minimum(") == 4
