"""PyTorch, eager and compiled, in strict float32."""
from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from benchmarks.peers.peer import Run
from benchmarks.workloads import Arguments, Workload
from benchmarks.workloads.library import Library
from benchmarks.workloads.trees import leaves_of, map_tree, with_leaves

_NUMPY = SimpleNamespace(
    einsum=torch.einsum,
    exp=torch.exp,
    log=torch.log,
    max=torch.amax,
    mean=torch.mean,
    sqrt=torch.sqrt,
    sum=torch.sum,
    tanh=torch.tanh,
    transpose=torch.permute,
)


class TorchLibrary(Library):
    """`compiled` is applied to each separate program: a function, or a loss whose gradient is taken.

    PyTorch's gradients are taken outside of compiled functions, so a function with gradients is compiled in parts.
    """

    numpy = _NUMPY

    def __init__(self, compiled: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        self.compiled = compiled
        self.has_gradients = False

    def softmax(self, x: Any) -> Any:
        return functional.softmax(x, -1)

    def layer_norm(self, x: Any, scale: Any, shift: Any) -> Any:
        return functional.layer_norm(x, scale.shape, scale, shift)

    def cross_entropy(self, scores: Any, labels: Any) -> Any:
        return functional.cross_entropy(scores, labels)

    def attention(self, q: Any, k: Any, v: Any, causal: bool = False) -> Any:
        by_head = (x.transpose(1, 2) for x in (q, k, v))
        return functional.scaled_dot_product_attention(*by_head, is_causal=causal).transpose(1, 2)

    def convolution(self, x: Any, kernel: Any) -> Any:
        return functional.conv2d(x, kernel, padding="same")

    def scatter_add(self, target: Any, places: Any, updates: Any) -> Any:
        return target.index_add(0, places, updates)

    def relu(self, x: Any) -> Any:
        return functional.relu(x)

    def value_and_grad(self, function: Callable[..., Any]) -> Callable[..., Any]:
        self.has_gradients = True
        function = self.compiled(function)

        def run(first: Any, *rest: Any) -> Any:
            first = map_tree(lambda leaf: leaf.detach().requires_grad_(), first)
            value = function(first, *rest)
            gradients = torch.autograd.grad(value, leaves_of(first))
            return value.detach(), with_leaves(first, gradients)

        return run

    def descend(self, parameters: Any, gradients: Any, rate: float) -> Any:
        return with_leaves(parameters, torch._foreach_add(leaves_of(parameters), leaves_of(gradients), alpha=-rate))

    def adam(self, parameters: Any, gradients: Any, first: Any, second: Any) -> Any:
        p, g, m, v = (leaves_of(tree) for tree in (parameters, gradients, first, second))
        m = torch._foreach_lerp(m, g, 0.1)
        v = torch._foreach_mul(v, 0.999)
        torch._foreach_addcmul_(v, g, g, value=0.001)
        roots = torch._foreach_sqrt(v)
        torch._foreach_add_(roots, 1e-8)
        p = torch._foreach_addcdiv(p, m, roots, value=-1e-3)
        return tuple(with_leaves(parameters, leaves) for leaves in (p, m, v))


class TorchPeer:
    def __init__(self, name: str, device: str, compiled: Callable[..., Any]) -> None:
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        self.name = name
        self.version = f"{torch.__version__} {device}"
        self._device = device
        self._compiled = compiled

    def prepare(self, workload: Workload, arguments: Arguments) -> Run:
        arguments = map_tree(self._on_device, arguments)
        library = TorchLibrary(self._compiled)
        function = workload.define(library)
        if not library.has_gradients:
            function = self._compiled(function)
        return Run(
            lambda: function(*arguments),
            self._wait,
            lambda results: [leaf.cpu().numpy() for leaf in leaves_of(results)],
            lambda: self._peak_bytes(lambda: function(*arguments)),
        )

    def _on_device(self, array: np.ndarray) -> torch.Tensor:
        indices = array.dtype.kind == "i"  # which PyTorch wants in 64 bits
        return torch.tensor(array, dtype=torch.int64 if indices else None, device=self._device)

    def _wait(self, results: Any) -> None:
        if self._device == "cuda":
            torch.cuda.synchronize()

    def _peak_bytes(self, call: Callable[[], Any]) -> int | None:
        if self._device != "cuda":
            return None
        call()
        torch.cuda.reset_peak_memory_stats()
        call()
        return torch.cuda.max_memory_allocated()


def torch_peers(on_gpu: bool) -> list[TorchPeer]:
    """PyTorch eager and compiled; none if lavax runs on a GPU and PyTorch cannot."""
    if on_gpu and not torch.cuda.is_available():
        return []
    device = "cuda" if on_gpu else "cpu"
    torch._dynamo.config.recompile_limit = 1000
    return [
        TorchPeer("PyTorch", device, lambda function: function),
        TorchPeer("torch.compile", device, torch.compile),
    ]
