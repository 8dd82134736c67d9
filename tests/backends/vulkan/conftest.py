"""The devices of these tests: one as it is, and one whose memory is treated as invisible to the host."""
from __future__ import annotations

from collections.abc import Iterator

import pytest

from lavax import config
from lavax.backends.vulkan import validation
from lavax.backends.vulkan.device import Device, get_device
from lavax.backends.vulkan.instance import choose_device


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
