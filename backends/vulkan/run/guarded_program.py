"""Programs under memory discipline (`config.guard_memory`): what was never written is NaN, and no write goes too far.

Before a call, its temporaries and fresh results are filled with bytes of ones, which are NaN as floats of any width and
the lowest negative or the largest number as integers. So a result that depends on memory that nothing wrote is wrong at
once, and in every run. The bytes between the end of each array and the end of its piece of memory are guards: they hold
a pattern, which is checked when the call is done. Calls wait for the device, one by one. Memory that the host does not
see is left as it is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lavax.backends.vulkan.api.api import ffi
from lavax.backends.vulkan.compile.ahead import Ahead
from lavax.backends.vulkan.compile.pipelines import Pipeline
from lavax.backends.vulkan.device.device import Device
from lavax.backends.vulkan.memory.memory import Buffer
from lavax.backends.vulkan.plan.plan import Plan, Shader
from lavax.backends.vulkan.run.estimate import Rates
from lavax.backends.vulkan.run.program import Program
from lavax.base.errors import DeviceError

_UNWRITTEN, _GUARD = 0xFF, 0xA5


class GuardedProgram(Program):
    """A program whose calls are checked. Raises DeviceError where one wrote behind an array."""

    def __init__(
        self,
        device: Device,
        plan: Plan,
        rates: Callable[[], Rates] | None = None,
        ahead: Ahead[Shader, Pipeline] | None = None,
    ) -> None:
        super().__init__(device, plan, rates, ahead)
        self._one_call = threading.Lock()  # calls of other threads share the temporaries
        self._allocate = self._allocate_unwritten

    def run(self, buffers: Sequence[Buffer], claim: Callable[[], None] | None = None) -> list[Buffer]:
        """As Program.run, but returns when the results are there."""
        with self._one_call:
            self._queue.drain()
            own = self._resources
            for buffer in own.arena:
                _fill(buffer, 0, buffer.nbytes, _UNWRITTEN)
            held = {id(buffer): buffer for buffer in (*buffers, *own.arena, *filter(None, own.constants))}
            _set_guards(held.values())
            results = super().run(buffers, claim)
            self._queue.drain()
            held |= {id(buffer): buffer for buffer in results}
            for buffer in held.values():
                self._check(buffer)
        return results

    def _allocate_unwritten(self, sizes: Sequence[int]) -> list[Buffer]:
        results = self.device.arrays.allocate_all(sizes)
        for buffer in results:
            _fill(buffer, 0, buffer.nbytes, _UNWRITTEN)
        _set_guards(results)
        return results

    def _check(self, buffer: Buffer) -> None:
        guard = _guard_of(buffer)
        expected = bytes((_GUARD,)) * len(guard)
        if guard != expected:
            first = next(at for at, byte in enumerate(guard) if byte != _GUARD)
            names = ", ".join(dispatch.name for dispatch in self.plan.dispatches)
            raise DeviceError(
                f"A program wrote {first} bytes behind an array of {buffer.nbytes} bytes. Its dispatches are {names}. "
                "This is a fault of lavax: please report it with the program's text, as_text('kernels')."
            )


def _is_visible(buffer: Buffer) -> bool:
    return bool(buffer.piece.block.host != ffi.NULL)


def _bytes(buffer: Buffer, start: int, end: int) -> Any:
    return ffi.buffer(buffer.host_pointer() + start, end - start)


def _fill(buffer: Buffer, start: int, end: int, byte: int) -> None:
    if end > start and _is_visible(buffer):
        _bytes(buffer, start, end)[:] = bytes((byte,)) * (end - start)


def _set_guards(buffers: Iterable[Buffer]) -> None:
    for buffer in buffers:
        _fill(buffer, buffer.nbytes, buffer.piece.size, _GUARD)


def _guard_of(buffer: Buffer) -> bytes:
    """The bytes behind an array, none where the host does not see them."""
    if not _is_visible(buffer) or buffer.piece.size <= buffer.nbytes:
        return b""
    return bytes(_bytes(buffer, buffer.nbytes, buffer.piece.size))
