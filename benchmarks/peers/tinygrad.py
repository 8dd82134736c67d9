"""tinygrad with its JIT, on its default device."""
from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import tinygrad
from tinygrad import Device, Tensor, TinyJit

from benchmarks.peers.peer import Run
from benchmarks.workloads import Arguments, Workload
from benchmarks.workloads.library import Library, UnsupportedError
from benchmarks.workloads.trees import leaves_of, with_leaves

_NUMPY = SimpleNamespace(
    einsum=Tensor.einsum,
    exp=Tensor.exp,
    log=Tensor.log,
    max=lambda x, axis=None, keepdims=False: x.max(axis, keepdims),
    maximum=Tensor.maximum,
    mean=lambda x, axis=None, keepdims=False: x.mean(axis, keepdims),
    sqrt=Tensor.sqrt,
    sum=lambda x, axis=None, keepdims=False: x.sum(axis, keepdims),
    tanh=Tensor.tanh,
    transpose=Tensor.permute,
)


class TinygradLibrary(Library):
    numpy = _NUMPY

    def softmax(self, x: Any) -> Any:
        return x.softmax(-1)

    def cross_entropy(self, scores: Any, labels: Any) -> Any:
        return scores.sparse_categorical_crossentropy(labels)

    def attention(self, q: Any, k: Any, v: Any, causal: bool = False) -> Any:
        by_head = (x.transpose(1, 2) for x in (q, k, v))
        return Tensor.scaled_dot_product_attention(*by_head, is_causal=causal).transpose(1, 2)

    def convolution(self, x: Any, kernel: Any) -> Any:
        return x.conv2d(kernel, padding=1)

    def scatter_add(self, target: Any, places: Any, updates: Any) -> Any:
        raise UnsupportedError

    def value_and_grad(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(first: Any, *rest: Any) -> Any:
            value = function(first, *rest)
            return value, with_leaves(first, value.gradient(*leaves_of(first)))

        return run


class TinygradPeer:
    def __init__(self) -> None:
        self.name = "tinygrad"
        self.version = f"{getattr(tinygrad, '__version__', '')} {Device.DEFAULT}".strip()
        (Tensor([1.0]) + 1).realize()  # fails where its compiler is not installed

    def prepare(self, workload: Workload, arguments: Arguments) -> Run:
        function = workload.define(TinygradLibrary())

        @TinyJit
        def run(*leaves: Tensor) -> list[Tensor]:
            results = leaves_of(function(*with_leaves(arguments, leaves)))
            Tensor.realize(*results)
            return results

        leaves = [Tensor(leaf).contiguous().realize() for leaf in leaves_of(arguments)]
        return Run(
            lambda: run(*leaves),
            lambda results: Device[Device.DEFAULT].synchronize(),
            lambda results: [result.numpy() for result in results],
        )
