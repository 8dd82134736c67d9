"""Rows and sums so long that one invocation must not go through them alone: some drivers end long loops silently."""
from __future__ import annotations

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from tests.backends.vulkan.run.execution import backend_with, run

RANDOM = np.random.default_rng(0)


def test_a_long_column_is_summed_whole() -> None:
    x = RANDOM.integers(-3, 4, (70_001, 260)).astype(np.float32)
    np.testing.assert_array_equal(lx.compile(lambda x: lnp.sum(x, axis=0))(x), x.sum(0, dtype=np.float64))


def test_a_long_row_of_many_is_one_workgroup_s_on_a_gpu() -> None:
    """On a CPU driver, where a row is a subgroup's at most, long rows go in parts whatever their number. Where rows
    begin between vectors, what is left of them behind whole parts is a kernel's of its own."""
    x = RANDOM.integers(-3, 4, (260, 70_001)).astype(np.float32)
    graph = lx.compile(lambda x: lnp.sum(x, axis=1)).lower(x).optimized
    for device, kernels in ((backend_with(kind="gpu"), 1), (backend_with(kind="cpu"), 3)):
        assert len(device.lower(graph).plan.dispatches) == kernels
        (found,) = run(graph, [x], device=device)
        np.testing.assert_array_equal(found, x.sum(1, dtype=np.float64))


def test_a_long_contraction_is_summed_whole() -> None:
    left = RANDOM.integers(-1, 2, (3, 280_003)).astype(np.float32)
    right = RANDOM.integers(-1, 2, (280_003, 5)).astype(np.float32)
    expected = left.astype(np.float64) @ right.astype(np.float64)
    np.testing.assert_array_equal(lx.compile(lambda a, b: a @ b)(left, right), expected)


def test_a_long_row_has_its_first_extremum() -> None:
    x = RANDOM.normal(size=600_001).astype(np.float32)
    assert int(lx.compile(lambda x: lnp.argmax(x))(x)) == x.argmax()
    x[400_000] = np.nan
    assert int(lx.compile(lambda x: lnp.argmin(x))(x)) == 400_000


JOINS = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


def scattered(join: str, array: np.ndarray, positions: np.ndarray, updates: np.ndarray) -> np.ndarray:
    result = array.copy()
    if join == "set":
        result[positions] = updates
    else:
        JOINS[join].at(result, positions, updates)
    return result


# There are no sums and products of truth values.
JOINED = [(join, dtype) for join in (*JOINS, "set") for dtype in ("int8", "uint32", "float32")]
JOINED += [(join, "bool") for join in (*JOINS, "set") if join not in ("add", "multiply")]


@pytest.mark.parametrize(("join", "dtype"), JOINED)
@pytest.mark.parametrize("count", [3, 50, 3000])
def test_few_updates_of_a_long_line(join: str, dtype: str, count: int) -> None:
    array = RANDOM.integers(1, 3, 200_000).astype(dtype)
    positions = RANDOM.integers(0, 200_000, count)
    positions[: count // 2] = RANDOM.choice([0, 7, 199_999], count // 2)
    updates = RANDOM.integers(1, 3, count).astype(dtype)
    if join == "multiply":
        updates[: count // 2] = 1  # whole numbers without an end
    found = getattr(lnp.asarray(array).at[positions], join)(updates)
    np.testing.assert_array_equal(found, scattered(join, array, positions, updates))


@pytest.mark.parametrize("join", ["add", "set", "max"])
@pytest.mark.parametrize("width", [1, 3])
def test_many_updates_of_one_place(join: str, width: int) -> None:
    array = np.zeros((100_000, width), np.float32)
    positions = np.full(70_000, 77_777)
    positions[::1000] = 5
    updates = RANDOM.integers(-3, 4, (70_000, width)).astype(np.float32)
    found = getattr(lnp.asarray(array).at[positions], join)(updates)
    np.testing.assert_array_equal(found, scattered(join, array, positions, updates))


def test_many_updates_of_many_lines() -> None:
    array, positions = np.zeros((3, 4100), np.float32), RANDOM.integers(0, 3, 66_000)
    found = lnp.asarray(array).at[positions].add(1.0)
    np.testing.assert_array_equal(found, np.repeat(np.bincount(positions)[:, None], 4100, axis=1))


def test_a_batch_of_updates_of_long_lines() -> None:
    array, positions = np.zeros((3, 70_000), np.float32), RANDOM.integers(0, 70_000, (3, 40))
    positions[:, ::4] = 69_999
    updates = RANDOM.integers(-3, 4, (3, 40)).astype(np.float32)
    found = lx.vmap(lambda x, i, u: x.at[i].add(u))(array, positions, updates)
    expected = [scattered("add", *row) for row in zip(array, positions, updates, strict=True)]
    np.testing.assert_array_equal(found, expected)


def test_a_long_line_that_is_given_up_or_carried_by_a_loop() -> None:
    array, positions = np.zeros(100_000, np.float32), RANDOM.integers(0, 100_000, 40)

    def added(x: lx.Array) -> lx.Array:
        return x.at[positions].add(1.0)

    once = scattered("add", array, positions, np.ones(40, np.float32))
    np.testing.assert_array_equal(lx.compile(added, donate_argnums=0)(lnp.asarray(array)), once)
    thrice = lx.compile(lambda x: lx.fori_loop(0, 3, lambda i, x: added(x), x), donate_argnums=0)
    np.testing.assert_array_equal(thrice(lnp.asarray(array)), 3 * once)


def test_the_gradient_of_a_read_of_a_long_table() -> None:
    table = RANDOM.integers(-3, 4, (1_000_000, 2)).astype(np.float32)
    rows = RANDOM.integers(0, 1_000_000, 10)
    rows[5:] = rows[0]
    weights = RANDOM.integers(-3, 4, (10, 2)).astype(np.float32)
    slope = lx.grad(lambda t: 2.0 * lnp.sum(weights * t[rows]))(table)
    np.testing.assert_array_equal(slope, scattered("add", np.zeros_like(table), rows, 2 * weights))


def test_sums_by_place_are_the_same_bits_on_every_run() -> None:
    positions, updates = RANDOM.integers(0, 90_000, 100_000), RANDOM.normal(size=100_000).astype(np.float32)
    positions[::3] = 4
    add = lx.compile(lambda i, u: lnp.zeros(90_000).at[i].add(u))
    first = np.asarray(add(positions, updates))
    np.testing.assert_array_equal(first.view(np.int32), np.asarray(add(positions, updates)).view(np.int32))
    exact = scattered("add", np.zeros(90_000), positions, updates)
    scale = scattered("add", np.zeros(90_000), positions, np.abs(updates))
    # A chunk of 128 updates, of folded chunks, and of chunks of those, one after the other.
    np.testing.assert_array_less(np.abs(first - exact), 3 * 128 * 2.0**-24 * scale + 1e-30)
