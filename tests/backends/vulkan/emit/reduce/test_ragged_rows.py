"""Rows that begin between vectors of four: a CPU driver reads and writes their whole vectors, and their ends singly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.backends.vulkan.emit.reduce.choose import choose_schedule
from lavax.backends.vulkan.emit.reduce.ragged import RaggedRows
from lavax.backends.vulkan.emit.reduce.row_schedule import RowSchedule
from lavax.backends.vulkan.plan.profile import CPU_DRIVER
from lavax.backends.vulkan.target import target_of
from lavax.passes.build.inline import inline_calls
from lavax.passes.kernels.commands import steps_of
from lavax.passes.kernels.index import ZERO
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import simplify
from tests.backends.vulkan.run.execution import assert_agrees

RANDOM = np.random.default_rng(12)
TARGET = target_of(CPU_DRIVER, 1 << 34, 1 << 31)


def _layer_norm(x: Any, gain: Any, bias: Any) -> Any:
    centred = x - lnp.mean(x, -1, keepdims=True)
    return centred / lnp.sqrt(lnp.mean(centred * centred, -1, keepdims=True) + 1e-5) * gain + bias


# Each is given rows, a row, and integers, one for each row, that are less than a row's length.
PROGRAMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sums": lambda x, row, at: lnp.sum(x, -1),
    "extrema beside sums": lambda x, row, at: (lnp.max(x, -1), lnp.min(x, -1) + lnp.sum(x * x, -1)),
    "softmax": lambda x, row, at: nn.softmax(x, -1),
    "layer norm": lambda x, row, at: _layer_norm(x, row, row * 2.0),
    "its gradient": lambda x, row, at: lx.grad(lambda x, row: lnp.sum(lnp.sin(_layer_norm(x, row, row))), (0, 1))(
        x, row
    ),
    "cross-entropy": lambda x, row, at: -lnp.take_along_axis(nn.log_softmax(x, -1), at[..., None], -1)[..., 0],
    "a row turned round": lambda x, row, at: lnp.sum(x[..., ::-1] * row, -1),
    "parts of rows": lambda x, row, at: (lnp.sum(x[..., 1:] * x[..., :-1], -1), lnp.max(x[..., 3:], -1)),
    "rows beside sums": lambda x, row, at: (x + lnp.sum(x, -1, keepdims=True), lnp.sum(lnp.abs(x), -1)),
    "true elements": lambda x, row, at: (lnp.any(x > 2.5, -1), lnp.sum(x > 0.0, -1)),
    "the next rows": lambda x, row, at: (nn.softmax(lnp.roll(x, -1, -2), -1), lnp.max(lnp.roll(x, -1, -2), -1)),
    "rows beside the next ones": lambda x, row, at: nn.softmax(x + lnp.roll(x, -1, -2), -1),
    "nothing of its own": lambda x, row, at: lnp.sum(lnp.broadcast_to(row, x.shape), -1) + x[..., 0],
}
SHAPES = ((64, 67), (33, 129), (33, 130), (4, 15, 50))  # by address; by descriptor, beyond the last row too; batches


def _arguments(shape: tuple[int, ...]) -> list[np.ndarray]:
    x, row = RANDOM.normal(size=shape).astype("f"), RANDOM.normal(size=shape[-1:]).astype("f")
    return [x, row, RANDOM.integers(0, shape[-1], shape[:-1]).astype("int32")]


def _schedules(function: Callable[..., Any], *arguments: Any) -> list[RowSchedule]:
    graph = simplify(inline_calls(lx.trace(function)(*arguments)))
    kernels = [step.kernel for step in steps_of(schedule(prepare(graph, TARGET), target=TARGET).steps)]
    return [choose_schedule(kernel, CPU_DRIVER, lifted=False) for kernel in kernels if kernel.kind == "row"]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_results_of_rows(name: str, shape: tuple[int, ...]) -> None:
    arguments = _arguments(shape)
    assert_agrees(simplify(inline_calls(lx.trace(PROGRAMS[name])(*arguments))), arguments, ulps=16.0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32", "uint8"])
@pytest.mark.parametrize("shape", [(66, 99)], ids=str)
def test_results_of_other_elements(dtype: str, shape: tuple[int, ...]) -> None:
    x = lnp.asarray(RANDOM.integers(0, 9, shape)).astype(dtype)

    def results(x: Any) -> Any:
        return x + lnp.max(x, -1, keepdims=True), lnp.sum(x.astype("float32"), -1), lnp.max(x, -1)

    whole, sums, most = lx.compile(results)(x)
    numbers = np.asarray(x.astype("float32"))
    np.testing.assert_array_equal(np.asarray(whole.astype("float32")), numbers + numbers.max(-1, keepdims=True))
    np.testing.assert_array_equal(np.asarray(sums.astype("float32")), numbers.sum(-1))
    np.testing.assert_array_equal(np.asarray(most.astype("float32")), numbers.max(-1))


def test_rows_in_loops() -> None:
    x, weights = RANDOM.normal(size=(63, 65)).astype("f"), RANDOM.normal(size=(65, 65)).astype("f") / 16.0

    def turns(x: Any, weights: Any) -> Any:
        v = lx.lax.fori_loop(0, 5, lambda _, v: lnp.tanh(weights @ v), lnp.ones(65))
        return lx.lax.fori_loop(0, 5, lambda _, y: nn.softmax(y * 3.0, -1) + x, x), v

    assert_agrees(simplify(inline_calls(lx.trace(turns)(x, weights))), [x, weights], ulps=32.0)


def test_donated_rows_are_written_in_place() -> None:
    x = RANDOM.normal(size=(65, 101)).astype("f")
    normed = lx.compile(lambda x: x / lnp.sum(lnp.abs(x), -1, keepdims=True), donate_argnums=0)(lx.device_put(x))
    expected = x.astype("d") / np.abs(x.astype("d")).sum(-1, keepdims=True)
    np.testing.assert_allclose(np.asarray(normed), expected, rtol=3e-6)


def test_nothing_is_written_behind_the_last_row() -> None:
    """With 65 rows three of the last four do not exist; in one array, what they would write is another result's."""
    x = RANDOM.normal(size=(65, 101)).astype("f")
    rows, sums = lx.compile(lambda x: (nn.softmax(x, -1) * 2.0, lnp.sum(x, -1)))(x)
    others = [np.asarray(lx.compile(lambda x, k=k: nn.softmax(x, -1) * k)(x)) for k in (3.0, 4.0, 5.0)]
    weights = np.exp(x.astype("d"))
    weights /= weights.sum(-1, keepdims=True)
    for found, factor in zip((np.asarray(rows), *others), (2.0, 3.0, 4.0, 5.0), strict=True):
        np.testing.assert_allclose(found, weights * factor, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(sums), x.astype("d").sum(-1), rtol=1e-4, atol=1e-4)


def test_as_many_rows_are_shared_as_are_whole_vectors_together() -> None:
    shapes = {length: np.zeros((128, length), "f") for length in (100, 101, 102, 103)}
    found = {length: _schedules(lambda x: nn.softmax(x, -1), x) for length, x in shapes.items()}
    assert [getattr(each, "together", 0) for (each,) in found.values()] == [1, 4, 2, 4]
    assert [isinstance(each, RaggedRows) for (each,) in found.values()] == [False, True, True, True]
    (parts,) = _schedules(lambda x: lnp.sum(x[:, :99], -1), np.zeros((128, 100), "f"))
    assert isinstance(parts, RaggedRows) and parts.together == 1


@pytest.mark.parametrize("length", range(32, 48))
@pytest.mark.parametrize("offset", range(4))
def test_each_element_of_a_row_is_in_one_step_or_at_an_end(length: int, offset: int) -> None:
    rows = RaggedRows(members=8, element_width=4, local=8, subgroup=8, length=length, stride=length, offset=offset)
    assert 0 <= rows.ends <= rows.members
    for number in range(rows.together):
        before = rows.element_of(number, ZERO).constant
        assert (offset + number * length + before) % 4 == 0
        assert before + 4 * rows.vectors + (rows.ends - before) == length and before <= rows.ends


def test_few_short_and_searched_rows_are_not_shared_so() -> None:
    few = _schedules(lambda x: lnp.sum(x, -1), np.zeros((6, 101), "f"))
    short = _schedules(lambda x: lnp.sum(x, -1), np.zeros((4096, 31), "f"))
    searched = _schedules(lambda x: lnp.argmax(x, -1), np.zeros((128, 101), "f"))
    assert not any(isinstance(each, RaggedRows) for each in (*few, *short, *searched))


@pytest.mark.parametrize(("length", "functions"), [(101, 2), (101, 16), (102, 5), (102, 16)])
def test_rows_with_many_functions_are_not_shared_so(length: int, functions: int) -> None:
    """Each row of a subgroup would have its own code: a driver compiled 25 sines for six seconds, in place of 0.2."""

    def rows(x: Any) -> Any:
        y = x
        for number in range(functions):
            y = lnp.sin(y * (number + 2.0))
        return y - lnp.sum(y, -1, keepdims=True)

    found = _schedules(rows, np.zeros((256, length), "f"))
    assert any(isinstance(each, RaggedRows) for each in found) == (functions < 16)


# Each with the schedules of its kernels: whether rows begin between vectors.
LONG: dict[str, tuple[Callable[[Any], Any], tuple[int, ...], list[bool]]] = {
    "sums": (lambda x: lnp.sum(x, -1), (8, 100_001), [True, True, False]),
    "extrema of seven rows": (lambda x: lnp.max(x, -1), (7, 70_003), [False, False, False]),
    "batches": (lambda x: lnp.sum(x * x, -1), (2, 4, 40_002), [True, True, False]),
    "one row": (lambda x: lnp.sum(x), (100_001,), [False, False]),
    "sums of slices": (lambda x: lnp.sum(x[:, 1:], -1), (64, 801), [True]),
    "sums of slices that begin at vectors": (lambda x: lnp.sum(x[:, 4:], -1), (64, 804), [False]),
    "slices of rows that are written": (lambda x: x[:, 1:] - lnp.mean(x[:, 1:], -1, keepdims=True), (64, 801), [False]),
}


@pytest.mark.parametrize("name", LONG)
def test_parts_of_long_rows_and_slices(name: str) -> None:
    """Parts and slices of as many elements as vectors have, which begin between them as their rows do."""
    function, shape, ragged = LONG[name]
    x = RANDOM.normal(size=shape).astype("f")
    assert [isinstance(found, RaggedRows) for found in _schedules(function, x)] == ragged
    assert_agrees(simplify(inline_calls(lx.trace(function)(x))), [x], ulps=16.0)
