"""One device after the other."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lavax.backends.vulkan.backend import VulkanBackend
from lavax.base import config
from lavax.tracer.values.backend import in_use, register


@contextmanager
def using_device(index: int | str) -> Iterator[Any]:
    """A context in which everything runs on that device of `lavax.devices()`; gives its description.

    Arrays stay on their device: make those that are used inside the context there. Raises DeviceError if there is no
    such device.
    """
    before = in_use.runtime
    with config.use_device(str(index)):
        factory = register(VulkanBackend)
        try:
            backend = VulkanBackend()
            register(lambda: backend)
            yield backend.default_device()
        finally:
            register(factory)
            in_use.runtime = before
