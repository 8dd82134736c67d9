"""Copies and fills in place of shaders: results, wherever arrays lie, and which maps become copies."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.map.as_copies import COPIED
from lavax.backends.vulkan.plan.plan import Copies, Plan
from lavax.backends.vulkan.plan.profile import GENERIC_GPU
from lavax.backends.vulkan.run import copied
from lavax.base import counters
from lavax.ir import Graph
from tests.backends.vulkan.emit.emission import plan_of
from tests.backends.vulkan.emit.strided.strided_products import cpu_device
from tests.backends.vulkan.run.execution import backend

_RANDOM = np.random.default_rng(3)
X = _RANDOM.standard_normal((130, 260), np.float32)
LONG = X.reshape(-1)

# name: a function of arrays, its arguments, and how many dispatches of its program have copies
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...], int]] = {
    "rotation": (lambda numpy, x: numpy.roll(x, 7), (LONG,), 1),
    "rows": (lambda numpy, x: x[3:100], (X,), 1),
    "parts of rows": (lambda numpy, x: x[1:-1, 3:-4], (X,), 1),
    "tiles": (lambda numpy, x: numpy.tile(x, 11), (LONG[:5000],), 1),
    "repeated rows": (lambda numpy, x: numpy.repeat(x, 3, axis=0), (X,), 1),
    "columns joined": (lambda numpy, x: numpy.concatenate([x, x[:, :200]], axis=1), (X,), 1),
    "long parts joined": (lambda numpy, x, y: numpy.concatenate([x, y * 2, x]), (LONG, LONG), 2),
    "padded": (lambda numpy, x: numpy.pad(x, 2, constant_values=-3), (X,), 1),
    "padded truth values": (lambda numpy, x: numpy.pad(x, 2, constant_values=True), (X > 0,), 1),
    "padded halves": (lambda numpy, x: numpy.pad(x, 2, constant_values=1.5), (X.astype(np.float16),), 1),
    "bytes": (lambda numpy, x: x[5:], ((X.reshape(-1) * 50).astype(np.int8)[: 1 << 15 | 9],), 1),
    "columns": (lambda numpy, x: x[:, 5:50], (X,), 0),
    "reversed": (lambda numpy, x: x[::-1], (LONG,), 0),
    "small": (lambda numpy, x: x[5:], (LONG[:8000],), 0),
    "computed": (lambda numpy, x: x[5:] + 1, (LONG,), 0),
}


def _copies_of(plan: Plan) -> list[Copies]:
    return [dispatch.copies for dispatch in plan.dispatches if dispatch.copies is not None]


def _copies_on_cpu(graph: Graph) -> list[Copies]:
    return _copies_of(cpu_device().lower(graph).plan)


def _may_copy() -> bool:
    """Whether the device at hand reads arrays through descriptors of ranges, as CPU drivers do."""
    return backend().profile.descriptor_range_bytes > 0


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_and_which_are_copies(name: str) -> None:
    function, arguments, number = FUNCTIONS[name]
    graph = lx.trace(lambda *given: function(lnp, *given))(*arguments)
    assert len(_copies_on_cpu(graph)) == (number if _may_copy() else 0)
    assert not _copies_of(plan_of(graph, GENERIC_GPU))
    found = lx.compile(lambda *given: function(lnp, *given))(*map(lnp.asarray, arguments))
    np.testing.assert_array_equal(np.asarray(found), function(np, *arguments))


def test_a_scatter_copies_its_array_first() -> None:
    places, numbers = np.array([5, 7, 5, 900], np.int32), np.array([1, 2, 3, 4], np.float32)
    graph = lx.trace(lambda x, i, u: x.at[i].add(u))(LONG, places, numbers)
    if not _may_copy():
        pytest.skip("arrays are copied on CPU drivers only")
    (copies,) = _copies_on_cpu(graph)
    assert copies.nbytes == LONG.nbytes and not copies.fills
    found = lx.compile(lambda x, i, u: x.at[i].add(u))(*map(lnp.asarray, (LONG, places, numbers)))
    expected = LONG.copy()
    np.add.at(expected, places, numbers)
    np.testing.assert_allclose(np.asarray(found), expected)


def test_a_scatter_to_zeros_fills_first() -> None:
    places = np.array([5, 7, 5, 900], np.int32)
    graph = lx.trace(lambda i: lnp.full(20000, 2.5, "float32").at[i].add(1))(places)
    if not _may_copy():
        pytest.skip("arrays are copied on CPU drivers only")
    (copies,) = _copies_on_cpu(graph)
    assert [fill.word for fill in copies.fills] == [0x40200000] and not copies.copies
    found = lx.compile(lambda i: lnp.full(20000, 2.5, "float32").at[i].add(1))(lnp.asarray(places))
    expected = np.full(20000, 2.5, np.float32)
    np.add.at(expected, places, 1)
    np.testing.assert_array_equal(np.asarray(found), expected)


def test_a_donated_array_stays_where_it_is() -> None:
    place = np.array([5], np.int32)
    function = lx.compile(lambda x, i: (x.at[i].set(1.0), lnp.roll(x, 3)), donate_argnums=0)
    given = lnp.asarray(LONG) + 0
    first, second = function(given, lnp.asarray(place))
    expected = LONG.copy()
    expected[5] = 1
    np.testing.assert_array_equal(np.asarray(first), expected)
    np.testing.assert_array_equal(np.asarray(second), np.roll(LONG, 3))


def test_copies_between_dispatches_wait_for_them() -> None:
    function = lx.compile(lambda x: lnp.roll(lnp.sin(x) @ x.T, 1, axis=0) @ x)
    found = function(lnp.asarray(X))
    expected = np.roll(np.sin(X) @ X.T, 1, axis=0) @ X
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4, atol=1e-3)


def test_a_loop_of_dispatches_copies_in_each_turn() -> None:
    wide = _RANDOM.standard_normal((300, 400), np.float32)
    found = lx.compile(lambda x: lx.lax.fori_loop(0, 5, lambda _, y: lnp.roll(y, 7) * 0.5 + x, x))(lnp.asarray(wide))
    expected = wide
    for _ in range(5):
        expected = np.roll(expected, 7) * np.float32(0.5) + wide
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5)


def test_a_branch_that_copies_is_chosen_by_its_condition() -> None:
    function = lx.compile(lambda p, x: lx.lax.cond(p, lambda y: lnp.roll(y, 9), lambda y: y[::-1], x))
    for chosen, expected in ((True, np.roll(LONG, 9)), (False, LONG[::-1])):
        np.testing.assert_array_equal(np.asarray(function(lnp.asarray(chosen), lnp.asarray(LONG))), expected)


def _recordings(calls: Callable[[], None]) -> int:
    before = counters.counts["recordings"]
    calls()
    return counters.counts["recordings"] - before


def test_arrays_may_lie_anywhere_and_a_place_that_was_seen_is_recorded() -> None:
    function = lx.compile(lambda x: lnp.roll(x, 5))
    arrays = [lnp.asarray(LONG + number) + 0 for number in range(4)]
    kept = [function(array) for array in arrays]
    for number, result in enumerate(kept):
        np.testing.assert_array_equal(np.asarray(result), np.roll(LONG + number, 5))
    del kept, result

    def calls() -> None:
        for _ in range(3):
            for number, array in enumerate(arrays):
                np.testing.assert_array_equal(np.asarray(function(array)), np.roll(LONG + number, 5))

    calls()
    assert _recordings(calls) == 0


def test_a_program_that_is_recorded_in_vain_gets_its_shaders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copied, "MOST_CREDIT", 3)
    short = LONG[: COPIED.results // 4]
    function = lx.compile(lambda x: lnp.roll(x, 6))
    arrays = [lnp.asarray(short + number) + 0 for number in range(8)]

    def calls() -> None:
        kept = [function(array) for array in arrays]
        for number, result in enumerate(kept):
            np.testing.assert_array_equal(np.asarray(result), np.roll(short + number, 6))

    # The first one may follow none, and the last one is that of the shaders.
    assert _recordings(calls) <= 1 + 3 + 1
    assert _recordings(calls) == 0


def test_a_profile_times_copies() -> None:
    given = lnp.asarray(LONG)
    compiled = lx.compile(lambda x: lnp.roll(lnp.cumsum(x), 5)).lower(given).compile()
    profile = compiled.profile(given)
    assert all(kernel.seconds > 0 for kernel in profile.kernels.values())
