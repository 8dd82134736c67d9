"""Caches that are empty: for tests of what is compiled, and when."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lavax.backends.vulkan.backend import VulkanBackend
from lavax.backends.vulkan.compile.shader_compiler import forget_compiled
from lavax.base import config
from lavax.tracer.values.backend import Runtime, in_use, runtime


@contextmanager
def fresh_caches(folder: str | Path) -> Iterator[Path]:
    """A context in which nothing has been compiled yet: `folder` is the cache on disk, and those in memory are empty.

    The device stays the same, and so do arrays. What functions compile within the context is compiled again after it.
    """
    before = runtime()
    _forget(before)
    with config.cache_in(Path(folder)):
        in_use.runtime = Runtime(before.backend)
        try:
            yield Path(folder)
        finally:
            in_use.runtime = before
            _forget(before)


def _forget(current: Runtime) -> None:
    forget_compiled()
    if isinstance(current.backend, VulkanBackend) and "device" in vars(current.backend):  # it has been opened
        current.backend.device.pipelines.forget()
