"""The small interface through which the tracer reaches a backend, and the one that is in use."""
from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Protocol, TypeAlias

import numpy as np

from lavax.base import config
from lavax.base.errors import DeviceError
from lavax.base.recent import Recent
from lavax.ir import Graph, TensorType
from lavax.passes.reports import Cost, Memory, Profile

Buffer: TypeAlias = Any  # memory on the device, filled or about to be: an object of the backend's own class


class Program(Protocol):
    """Runs a graph: one buffer an input, in order; gives one buffer an output, each of its own.

    Asynchronous. Only the buffer of a donated input may come back as an output's.
    """

    def __call__(self, *buffers: Buffer) -> Sequence[Buffer]: ...

    def run(self, buffers: Sequence[Buffer]) -> Sequence[Buffer]: ...  # the same, for buffers of the inputs' types

    def cost(self) -> Cost: ...

    def memory(self) -> Memory: ...

    def profile(self, *buffers: Buffer) -> Profile: ...  # gives nothing away


class LoweredProgram(Protocol):
    """A graph on its way to the device."""

    def as_text(self, stage: str) -> str: ...

    def compile(self) -> Program: ...


class Backend(Protocol):
    """What a device can do. `lower` works where there is none."""

    def lower(
        self, graph: Graph, donated: tuple[int, ...] = (), eager: bool = False, tune: bool = False
    ) -> LoweredProgram: ...

    def upload(self, array: np.ndarray) -> Buffer: ...

    def download(self, buffer: Buffer, type: TensorType) -> np.ndarray: ...

    def wait(self, buffer: Buffer) -> None: ...

    def devices(self) -> list[Any]: ...

    def default_device(self) -> Any: ...


# How many programs are kept for functions that run outside `compile`, which are traced at every call. Compiled
# functions keep their own. A program may hold much memory of the device, and megabytes of the driver's.
RECENT_PROGRAMS = 256


@dataclass(eq=False)
class Runtime:
    """A backend and everything that was compiled for it."""

    backend: Backend
    programs: Recent[Program] = field(default_factory=lambda: Recent(RECENT_PROGRAMS))
    operations: dict[Hashable, Any] = field(default_factory=dict)  # eager operations, see lavax.tracer.eager
    scalars: dict[Hashable, Buffer] = field(default_factory=dict)  # numbers that programs only read
    refuses_nans: bool = field(default_factory=config.debug_nans)  # asked once: eager operations are short


@dataclass(eq=False)
class InUse:
    """What `runtime` gives, or None before it is first asked: for those who look at every call."""

    runtime: Runtime | None = None


_lock = Lock()
_factory: Callable[[], Backend] | None = None
in_use = InUse()


def register(factory: Callable[[], Backend] | None) -> Callable[[], Backend] | None:
    """Makes `factory` the one that gives the backend, called when one is first needed; returns the one before it."""
    global _factory
    with _lock:
        before, _factory, in_use.runtime = _factory, factory, None
    return before


def runtime() -> Runtime:
    """The backend in use with its caches. Raises DeviceError where none is registered."""
    found = in_use.runtime
    if found is None:
        with _lock:
            if _factory is None:
                raise DeviceError("no backend is registered: lavax.tracer.backend.register(factory) gives one")
            found = in_use.runtime = in_use.runtime or Runtime(_factory())
    return found


def active() -> Backend:
    """The backend in use."""
    return runtime().backend
