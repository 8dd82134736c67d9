"""JAX with jit, on its default device, in strict float32."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from benchmarks.peers.peer import Run
from benchmarks.workloads import Arguments, Workload
from benchmarks.workloads.library import Library
from benchmarks.workloads.trees import leaves_of


class JaxLibrary(Library):
    numpy = jax.numpy

    def softmax(self, x: Any) -> Any:
        return jax.nn.softmax(x)

    def attention(self, q: Any, k: Any, v: Any, causal: bool = False) -> Any:
        return jax.nn.dot_product_attention(q, k, v, is_causal=causal)

    def convolution(self, x: Any, kernel: Any) -> Any:
        return jax.lax.conv(x, kernel, (1, 1), "SAME")

    def relu(self, x: Any) -> Any:
        return jax.nn.relu(x)

    def value_and_grad(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return jax.value_and_grad(function)


class JaxPeer:
    def __init__(self, on_gpu: bool) -> None:
        if on_gpu:  # else it takes most of the device's memory at once, from the others too
            jax.config.update("jax_pjrt_client_create_options", {"preallocate": False})
        jax.config.update("jax_default_matmul_precision", "highest")
        self.name = "JAX"
        self.version = f"{jax.__version__} {jax.default_backend()}"

    def prepare(self, workload: Workload, arguments: Arguments) -> Run:
        arguments = jax.device_put(arguments)
        function = jax.jit(workload.define(JaxLibrary()))
        return Run(
            lambda: function(*arguments),
            jax.block_until_ready,
            lambda results: [np.asarray(leaf) for leaf in leaves_of(results)],
            lambda: _peak_bytes(function, arguments),
        )


def _peak_bytes(function: Any, arguments: tuple[Any, ...]) -> int | None:
    found = function.lower(*arguments).compile().memory_analysis()
    if found is None:
        return None
    parts = ("argument_size_in_bytes", "output_size_in_bytes", "temp_size_in_bytes")
    return sum(int(getattr(found, part)) for part in parts)
