"""The interface between the tracer and a backend, and the backend in use."""
from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import field
from threading import Lock
from typing import Any, Protocol, TypeAlias

import numpy as np

from lavax.base import config
from lavax.base.errors import DeviceError
from lavax.base.quick_dataclasses import dataclass
from lavax.base.recent import Recent
from lavax.ir import Graph, TensorType
from lavax.passes.reports import Cost, Memory, Profile
from lavax.tracer.values.program_cache import ProgramCache

Buffer: TypeAlias = Any  # memory on the device, possibly in flight: an object of the backend's own class


class Run(Protocol):
    """A program for buffers of the inputs' types.

    `claim` is called when nothing else is left to do before it, for one run at a time. If it raises, nothing runs.
    """

    def __call__(self, buffers: Sequence[Buffer], claim: Callable[[], None] | None = None) -> Sequence[Buffer]: ...


class Program(Protocol):
    """Runs a graph: takes one buffer per input, in order; returns one buffer per output, all distinct.

    Asynchronous. Only the buffer of a donated input may be returned as that of an output.
    """

    def __call__(self, *buffers: Buffer) -> Sequence[Buffer]: ...

    @property
    def run(self) -> Run: ...

    def cost(self) -> Cost: ...

    def memory(self) -> Memory: ...

    def profile(self, *buffers: Buffer) -> Profile: ...  # donates nothing


class LoweredProgram(Protocol):
    """A graph lowered to the device, not yet compiled."""

    def as_text(self, stage: str) -> str: ...

    def memory(self) -> Memory: ...

    def compile(self) -> Program: ...


class Backend(Protocol):
    """The operations of a device. `lower` works without one."""

    def lower(
        self, graph: Graph, donated: tuple[int, ...] = (), eager: bool = False, tune: bool = False
    ) -> LoweredProgram: ...

    def upload(self, array: np.ndarray) -> Buffer: ...

    def download(self, buffer: Buffer, type: TensorType) -> np.ndarray: ...

    def wait(self, buffer: Buffer) -> None: ...

    def devices(self) -> list[Any]: ...

    def default_device(self) -> Any: ...

    def busy_invocations(self) -> int: ...  # how many elements it computes at once, about

    def bytes_in_use(self) -> int: ...

    def release_memory(self) -> None: ...


# The number of programs kept for functions that run outside `compile`, which are traced at every call. Compiled
# functions keep their own. A program may hold much device memory, and megabytes of the driver's.
RECENT_PROGRAMS = 256


_OPERATIONS = 8  # eager operations, of all kinds, are kept as the programs of so many functions


@dataclass(eq=False)
class Runtime:
    """A backend and everything that was compiled for it."""

    backend: Backend
    programs: Recent[Program] = field(default_factory=lambda: Recent(RECENT_PROGRAMS))
    operations: ProgramCache[Any] = field(default_factory=lambda: ProgramCache(_OPERATIONS))
    scalars: dict[Hashable, Buffer] = field(default_factory=dict)  # scalars that programs only read
    refuses_nans: bool = field(default_factory=config.debug_nans)  # asked once: eager operations are short


@dataclass(eq=False)
class InUse:
    """The result of `runtime`, or None before its first call: for code that checks it on every call."""

    runtime: Runtime | None = None


_lock = Lock()
_factory: Callable[[], Backend] | None = None
in_use = InUse()


def register(factory: Callable[[], Backend] | None) -> Callable[[], Backend] | None:
    """Sets the `factory` that makes the backend when one is first needed; returns the previous factory."""
    global _factory
    with _lock:
        before, _factory, in_use.runtime = _factory, factory, None
    return before


def runtime() -> Runtime:
    """The backend in use with its caches. Raises DeviceError if none is registered."""
    found = in_use.runtime
    if found is None:
        with _lock:
            if _factory is None:
                raise DeviceError(
                    "no backend is registered: register one by lavax.tracer.values.backend.register(factory)"
                )
            found = in_use.runtime = in_use.runtime or Runtime(_factory())
    return found


def active() -> Backend:
    """The backend in use."""
    return runtime().backend
