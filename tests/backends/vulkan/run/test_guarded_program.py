"""Under memory discipline nothing depends on what memory held, and what is written behind an array is noticed."""
from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from lavax.backends.vulkan.backend import VulkanBackend
from lavax.backends.vulkan.device.device import Device
from lavax.backends.vulkan.device.instance import choose_device
from lavax.backends.vulkan.plan.plan import Plan, Result
from lavax.backends.vulkan.run.guarded_program import GuardedProgram
from lavax.backends.vulkan.run.program import Program
from lavax.base import config
from lavax.base.errors import DeviceError
from lavax.ir import interpret
from tests.backends.vulkan.emit.shaders import ADD, ADD_ONE, dispatch
from tests.backends.vulkan.run.execution import run
from tests.fuzz import compare
from tests.fuzz.compare import differences
from tests.fuzz.noise import IllConditionedError
from tests.fuzz.programs import program
from tests.random_graphs import WITH_REGIONS, random_graph

COUNT = 100
BYTES = 4 * COUNT
VALUES = np.arange(COUNT, dtype=np.float32)


@pytest.fixture(scope="module")
def guarded_device() -> Iterator[Device]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAVAX_GUARD_MEMORY", "1")
        device = Device(choose_device(config.device_selector()))
        if not device.arrays.type.host_visible:
            pytest.skip("the host does not see the device's memory")
        yield device
        device.close()


@pytest.fixture(autouse=True)
def under_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAVAX_GUARD_MEMORY", "1")


@pytest.fixture(scope="module")
def guarded(guarded_device: Device) -> VulkanBackend:
    backend = VulkanBackend()
    backend.device = guarded_device
    return backend


def _floats(device: Device, plan: Plan) -> list[np.ndarray]:
    results = Program(device, plan)(device.transfer.upload(VALUES))
    return [device.transfer.download(result, BYTES).view(np.float32) for result in results]


def test_programs_are_as_they_were_without_the_setting(monkeypatch: pytest.MonkeyPatch, guarded_device: Device) -> None:
    plan = Plan((BYTES,), (Result(BYTES, None),), (), (), 0, (dispatch(ADD_ONE, (0, 1), COUNT),))
    assert type(Program(guarded_device, plan)) is GuardedProgram
    monkeypatch.delenv("LAVAX_GUARD_MEMORY")
    assert type(Program(guarded_device, plan)) is Program


def test_what_nothing_wrote_is_nan(guarded_device: Device) -> None:
    """A result that only half is written, and a sum with a temporary that is not."""
    half = dispatch(ADD_ONE, (0, 1), COUNT // 2)
    (result,) = _floats(guarded_device, Plan((BYTES,), (Result(BYTES, None),), (), (), 0, (half,)))
    assert np.isnan(result[-1]) and result[0] == 1
    from_nothing = dispatch(ADD, (0, 2, 1), COUNT)
    (result,) = _floats(guarded_device, Plan((BYTES,), (Result(BYTES, None),), (), (0,), 512, (from_nothing,)))
    assert np.isnan(result).all()


def test_a_write_behind_a_result_is_noticed(guarded_device: Device) -> None:
    plan = Plan((BYTES,), (Result(BYTES - 4, None),), (), (), 0, (dispatch(ADD_ONE, (0, 1), COUNT),))
    with pytest.raises(DeviceError, match=f"wrote 0 bytes behind an array of {BYTES - 4} bytes"):
        Program(guarded_device, plan)(guarded_device.transfer.upload(VALUES))


@pytest.mark.parametrize("seed", range(6))
def test_exact_graphs_of_branches_and_loops(seed: int, guarded: VulkanBackend) -> None:
    graph, arrays = random_graph(seed, operations=WITH_REGIONS)
    for got, want in zip(run(graph, arrays, device=guarded), interpret(graph, *arrays), strict=True):
        np.testing.assert_array_equal(got, want.astype(got.dtype))


@pytest.mark.parametrize("number", range(500, 506))
def test_random_programs(number: int, guarded: VulkanBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(compare.ENGINES, "guarded", lambda graph, arrays: run(graph, arrays, device=guarded))
    try:
        drawn = program(number)
        wanted = drawn.expected()
    except IllConditionedError:
        pytest.skip("its results hang on roundings")
    assert differences(["guarded"], drawn.graph, drawn.arrays, wanted) == []
