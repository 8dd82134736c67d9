"""Pipelines made from GLSL by the extension's own threads, which never ask for the interpreter's lock.

A shader's pipeline otherwise asks for it some twenty times, and each time stops the thread that writes further shaders.
"""
from __future__ import annotations

import os
import weakref
from collections.abc import Iterable
from typing import Any

from lavax.backends.vulkan import glslang
from lavax.base.quick_dataclasses import dataclass

# The extension's names of changes that are made to modules (`shader_compiler.CHANGES`).
CHANGES = ("brain_floats", "exact_floats", "ordered_floats")


@dataclass(frozen=True)
class Driver:
    """A device, its cache of pipelines, and three of its functions, all as numbers."""

    device: int
    cache: int
    create_module: int
    destroy_module: int
    create_pipelines: int


@dataclass(frozen=True)
class Made:
    """A pipeline's handle as a number and its SPIR-V module, and the seconds that glslang and the driver took."""

    pipeline: int
    spirv: bytes
    compiler_seconds: float
    driver_seconds: float


class Workers:
    """Threads that make pipelines; one is started when there is work that no other is free for.

    For one thread of Python's at a time, and for the process that made it.
    """

    def __init__(self, driver: Driver) -> None:
        extension = glslang.started()
        self._ffi, self._lib = extension.ffi, extension.lib
        self._driver = self._driver_in_c(driver)
        self._threads = self._lib.new_workers(os.cpu_count() or 1)
        if self._threads == self._ffi.NULL:
            raise MemoryError("no memory for threads that make pipelines")
        self._process = os.getpid()
        self._kept: list[Any] = [self._driver]
        self._left = weakref.finalize(self, _leave, self._lib, self._threads, self._process, self._kept)
        self._left.atexit = False

    def begin(
        self, source: str, spirv: bytes | None, changes: Iterable[str], info: int, module_offset: int, kept: Any
    ) -> Any:
        """Has a pipeline made soon of a shader's GLSL, or of its module if that is there; None if no thread starts.

        `info` is the address of the pipeline's description as the driver reads it, in which the module is set at that
        offset; `kept` lives as long as threads may read it, also where an interrupt comes before `end`. `changes` of
        CHANGES are made to the module of GLSL, in their order there.
        """
        ffi, lib = self._ffi, self._lib
        if self._threads == ffi.NULL or self._is_elsewhere():
            return None
        bits = sum(getattr(lib, change) for change in set(changes))
        module = spirv or b""
        where = ffi.cast("void *", info)
        self._kept.append(kept)
        begun = lib.begin_pipeline(
            self._threads, self._driver, source.encode(), bits, module, len(module), where, module_offset
        )
        return None if begun == ffi.NULL else begun

    def made(self, begun: Any) -> Made | None:
        """What was begun, when it is there; None in a forked process, or if it was not made, or `end` came first."""
        if self._is_elsewhere():
            return None
        found = self._lib.wait_for_pipeline(self._threads, begun)
        if not found.made:
            return None
        spirv = bytes(self._ffi.buffer(found.words, found.count * 4))
        return Made(found.pipeline, spirv, found.compiler_seconds, found.driver_seconds)

    def end(self) -> None:
        """Begins nothing more, and waits for what is begun. `made` may still be asked."""
        if not self._is_elsewhere():
            self._lib.end_workers(self._threads)

    def drop(self) -> None:
        """After `end`: frees all memory."""
        self._left.detach()
        if not self._is_elsewhere():
            self._lib.drop_workers(self._threads)
            self._threads = self._ffi.NULL

    def _is_elsewhere(self) -> bool:
        """Whether this is a forked process, which has none of the threads: nobody would end what is waited for."""
        return os.getpid() != self._process

    def _driver_in_c(self, driver: Driver) -> Any:
        found = self._ffi.new("pipeline_driver *")
        found.device = self._ffi.cast("void *", driver.device)
        found.cache = driver.cache
        for name in ("create_module", "destroy_module", "create_pipelines"):
            setattr(found, name, self._ffi.cast("void *", getattr(driver, name)))
        return found


def _leave(lib: Any, threads: Any, process: int, kept: list[Any]) -> None:
    """Ends and frees threads that nobody refers to any more; what they read is kept until then."""
    if os.getpid() == process:
        lib.end_workers(threads)
        lib.drop_workers(threads)
    kept.clear()


def available() -> bool:
    """Whether the extension has such threads: one that was built by an earlier version has none."""
    lib = glslang.started().lib
    return all(hasattr(lib, name) for name in ("begin_pipeline", *CHANGES))
