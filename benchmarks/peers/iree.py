"""IREE's Vulkan backend, on programs that JAX traces."""
from __future__ import annotations

from importlib.metadata import version
from typing import Any

import iree.compiler
import iree.runtime
import jax
import numpy as np
from iree.runtime import BufferUsage, HalFence, MemoryType

from benchmarks.peers.jax import JaxLibrary
from benchmarks.peers.peer import Run
from benchmarks.workloads import Arguments, Workload
from benchmarks.workloads.trees import leaves_of

# Host memory that a device takes over must start at a multiple of this.
PAGE = 4096


class IreePeer:
    def __init__(self) -> None:
        self.name = "IREE"
        self.version = f"{version('iree-base-compiler')} vulkan"
        self._device = iree.runtime.get_device("vulkan")

    def prepare(self, workload: Workload, arguments: Arguments) -> Run:
        lowered = jax.jit(workload.define(JaxLibrary()), keep_unused=True).lower(*arguments)
        binary = iree.compiler.compile_str(
            str(lowered.compiler_ir("stablehlo")), input_type="stablehlo", target_backends=["vulkan-spirv"]
        )
        context = iree.runtime.SystemContext(config=iree.runtime.Config(device=self._device))
        module = iree.runtime.VmModule.copy_buffer(context.instance, binary)
        context.add_vm_module(module)
        function = context.modules[module.name].main
        leaves = [iree.runtime.asdevicearray(self._device, _aligned(leaf)) for leaf in leaves_of(arguments)]
        return Run(lambda: function(*leaves), lambda results: None, self._read)  # a call returns when it is done

    def _read(self, results: Any) -> list[np.ndarray]:
        return [self._on_host(result) for result in (results if isinstance(results, (tuple, list)) else [results])]

    def _on_host(self, result: Any) -> np.ndarray:
        """Copies to memory of the device, because it cannot take over NumPy's memory, which is not aligned."""
        source = result._buffer_view.get_buffer()
        staging = self._device.allocator.allocate_buffer(
            memory_type=int(MemoryType.HOST_LOCAL | MemoryType.DEVICE_VISIBLE),
            allowed_usage=int(BufferUsage.TRANSFER_TARGET | BufferUsage.MAPPING_SCOPED),
            allocation_size=source.byte_length(),
        )
        semaphore = self._device.create_semaphore(0)
        self._device.queue_copy(
            source,
            staging,
            wait_semaphores=HalFence.create_at(semaphore, 0),
            signal_semaphores=HalFence.create_at(semaphore, 1),
        )
        HalFence.create_at(semaphore, 1).wait()
        return np.array(staging.map().asarray(result._buffer_view.shape, result.dtype))


def _aligned(array: np.ndarray) -> np.ndarray:
    """A copy that starts at a page boundary."""
    memory = np.empty(array.nbytes + PAGE, np.uint8)
    start = -memory.ctypes.data % PAGE
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
