"""The order of the greatest elements on the device: selected by subgroups, from blocks of long rows, or sorted."""
from __future__ import annotations

import numpy as np
import pytest

from lavax.backends.vulkan.backend import VulkanBackend
from lavax.passes.prepare.decompose import selection
from lavax.passes.prepare.pipeline import prepare
from tests.backends.vulkan.run.execution import backend, backend_with, run
from tests.backends.vulkan.test_decompositions import graph

RANDOM = np.random.default_rng(5)


def order_of_greatest(x: np.ndarray, count: int) -> np.ndarray:
    """Along the last axis, NaN first, equal elements as they come."""
    keys = x.astype(np.float64)
    return np.argsort(-np.where(np.isnan(keys), np.inf, keys), axis=-1, kind="stable")[..., :count]


def assert_selected(x: np.ndarray, count: int, device: VulkanBackend | None = None, eager: bool = False) -> None:
    program = graph("top_order", [x], axis=x.ndim - 1, count=count, signed_zeros=False)
    (found,) = run(program, [x], device=device, eager=eager)
    np.testing.assert_array_equal(found, order_of_greatest(x, count))


@pytest.fixture(name="device", params=["subgroups", "blocks"])
def device_of(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> VulkanBackend:
    """The device's own way, or that of others, which takes rows that tests can afford for long ones."""
    if request.param == "subgroups":
        return backend()
    monkeypatch.setattr(selection, "_SHORTEST", 16)
    monkeypatch.setattr(selection, "_PART", 4)
    return backend_with(subgroup_shuffle=False)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint32", "uint8", "bool"])
@pytest.mark.parametrize("values", [1, 3, 1000])  # few values: many ties
def test_they_are_those_of_a_stable_sort(values: int, dtype: str, device: VulkanBackend) -> None:
    for length, count in ((16, 1), (97, 3), (64, 16), (203, 50), (40, 40), (700, 100)):
        assert_selected(RANDOM.integers(0, values, (2, length)).astype(dtype), count, device)


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint64"])
def test_of_64_bits(dtype: str) -> None:
    if dtype == "float64" and not backend().profile.float64:
        pytest.skip("the device has no float64")
    assert_selected(RANDOM.integers(0, 100, (2, 600)).astype(dtype), 9)


def test_the_least_integer_is_an_element() -> None:
    least = np.full((2, 75), np.iinfo(np.int32).min, np.int32)
    assert_selected(least, 70)
    least[0, 30] += 1
    assert_selected(least, 3)


def test_nan_infinities_and_zeros_of_both_signs(device: VulkanBackend) -> None:
    x = RANDOM.integers(-2, 2, (4, 72)).astype(np.float32)
    x[0, ::7], x[1, 3:], x[2], x[3, ::2] = np.nan, -np.inf, -np.inf, -0.0
    assert_selected(x, 9, device)
    assert_selected(x, 60, device)


@pytest.mark.parametrize("ascending", [True, False])
def test_rows_in_order(ascending: bool) -> None:
    """All of the greatest elements are in one lane's part, or in one block."""
    x = np.sort(RANDOM.normal(size=(2, 5000)).astype(np.float32))
    assert_selected(x if ascending else x[:, ::-1].copy(), 100)


def test_more_elements_between_the_bound_and_the_greatest_than_there_is_room_for() -> None:
    """Every 128th element is small, so that the maxima of groups are a bound that most elements reach."""
    x = np.where(np.arange(4096) // 8 % 16 < 15, RANDOM.normal(size=4096), -9).astype(np.float32)
    x[np.arange(4096) % 128 < 64] += 10
    assert_selected(x[None], 128)


@pytest.mark.parametrize("count", [1, 40, 128, 129, 2000])
def test_long_rows(count: int) -> None:
    assert_selected(RANDOM.normal(size=(2, 9001)).astype(np.float32), count)


@pytest.mark.parametrize("length", [64, 67, 400])
def test_in_eager_programs(length: int) -> None:
    assert_selected(RANDOM.integers(0, 50, (3, length)).astype(np.float32), 20, eager=True)


def test_without_selection_only_maxima_and_chosen_blocks_are_sorted() -> None:
    x = np.zeros((1, 4096), np.float32)
    target = backend_with(kind="cpu", subgroup_shuffle=False).target
    assert target.sorting.most_selected == 0
    prepared = prepare(graph("top_order", [x], axis=1, count=4, signed_zeros=False), target)
    sorts = [node for node in prepared.nodes if node.op == "sort_runs"]
    assert max(node.shape[-1] for node in sorts) <= 128


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
@pytest.mark.parametrize(
    ("values", "length", "count", "kernels"),
    [(5, 16, 1, 1), (9, 300, 200, 1), (1, 700, 100, 1), (1000, 3001, 128, 1), (7, 20_000, 256, 1), (30, 70_000, 9, 2)],
)
def test_workgroups_of_gpus_select(dtype: str, values: int, length: int, count: int, kernels: int) -> None:
    """Short rows are stored at once; of long ones digits are counted, down to those of places where many are equal."""
    x, gpu = RANDOM.integers(0, values, (2, length)).astype(dtype), backend_with(kind="gpu")
    nodes = prepare(graph("top_order", [x], axis=1, count=count, signed_zeros=False), gpu.target).nodes
    assert [node.op for node in nodes].count("select_greatest") == kernels
    assert not {"sort_runs", "move_by_digit"} & {node.op for node in nodes}
    assert_selected(x, count, gpu)


@pytest.mark.parametrize("eager", [False, True])
def test_gpus_select_among_special_values(eager: bool) -> None:
    x = RANDOM.normal(size=(4, 1201)).astype(np.float32)
    x[0, ::7], x[1, 3:], x[2], x[3, ::2] = np.nan, -np.inf, -np.inf, -0.0
    for count in (9, 250):
        assert_selected(x, count, backend_with(kind="gpu"), eager)
