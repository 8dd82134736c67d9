"""The devices of these tests: one as it is, and one whose memory is treated as invisible to the host. And a tile."""
from __future__ import annotations

from collections.abc import Iterator

import pytest

from lavax.backends.vulkan.device import validation
from lavax.backends.vulkan.device.device import Device, get_device
from lavax.backends.vulkan.device.instance import choose_device
from lavax.backends.vulkan.emit.contract import kernel as contract
from lavax.backends.vulkan.emit.contract.tiles import BroadcastTile, broadcast_tile
from lavax.backends.vulkan.emit.strided import kernel as strided
from lavax.backends.vulkan.emit.strided.element_tile import ElementTile
from lavax.base import config
from tests.backends.vulkan.emit.strided.strided_products import cpu_device


@pytest.fixture
def on_a_cpu_driver() -> None:
    """Skips the test on other devices, whose schedules are others."""
    if get_device().profile.kind != "cpu":
        pytest.skip("schedules of CPU drivers")


@pytest.fixture(scope="session")
def staged_device() -> Iterator[Device]:
    device = Device(choose_device(config.device_selector()), local_only=True)
    yield device
    before = len(validation.messages())
    device.close()
    assert validation.messages()[before:] == [], "closing a device leaves nothing behind"


@pytest.fixture(params=["mapped", "staged"])
def device(request: pytest.FixtureRequest, staged_device: Device) -> Device:
    return get_device() if request.param == "mapped" else staged_device


@pytest.fixture(
    params=[(0, 1), (4, 2), None], ids=["one vector", "two vectors, a lane without rows", "single elements"]
)
def tile(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> BroadcastTile | ElementTile:
    """A tile of four rows a lane, but perhaps for the last one, or of single elements, which every contraction gets."""
    lanes = cpu_device().profile.subgroup_size
    fewer, vectors = request.param or (0, 1)
    found = broadcast_tile((4 * lanes - fewer, vectors), lanes)
    own = None if request.param else ElementTile(2 * lanes, 3 * lanes, lanes)
    monkeypatch.setattr(contract, "choose_schedule", lambda *_: found)
    monkeypatch.setattr(strided, "element_tile", lambda *_: own)
    return own or found
