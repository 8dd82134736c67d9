"""Convolutions of ResNet-50 and their gradients, with windows as the rows or as the columns of their products.

Run as `python -m benchmarks.limits.convolutions [CONVOLUTION ...]`, with convolutions such as 1x256x14x14*256x3x3/1:
images of examples × channels × height × width, kernels of channels × height × width, and the stride. It prints GFLOP/s
by the time of the processors, the least of interleaved calls, with a product of 512 × 512 × 512 in the same turns: on a
CPU driver that rate is the limit. The basis of emit/contract/windows.py.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

import lavax as lx
from lavax.backends.vulkan.backend import VulkanBackend
from lavax.backends.vulkan.emit.contract.windows import windows_as_rows

CONVOLUTIONS = (
    "1x3x224x224*64x7x7/2", "1x64x56x56*64x3x3/1", "1x128x28x28*128x3x3/1", "1x256x14x14*256x3x3/1",
    "1x512x7x7*512x3x3/1", "1x256x28x28*256x3x3/2", "1x64x56x56*256x1x1/1", "1x256x56x56*64x1x1/1",
    "1x128x28x28*512x1x1/1", "1x256x14x14*1024x1x1/1", "1x1024x14x14*256x1x1/1", "1x2048x7x7*512x1x1/1",
)  # fmt: skip
CHOICES: Mapping[str, Callable[..., bool]] = {
    "rows": lambda *_: True,
    "columns": lambda *_: False,
    "as chosen": windows_as_rows,
}
_ROUNDS = 7


@dataclass(frozen=True)
class Convolution:
    image: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: int

    def __call__(self, x: Any, w: Any) -> Any:
        return lx.nn.conv(x, w, self.stride, self.kernel[-1] // 2)

    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Of the images, the kernels and the result."""
        outer, *window = self.kernel
        kernels = (outer, self.image[1], *window)
        pixels = (-(-extent // self.stride) for extent in self.image[2:])
        return self.image, kernels, (self.image[0], outer, *pixels)

    def operations(self) -> int:
        _, kernels, result = self.shapes()
        return 2 * int(np.prod(kernels)) * int(np.prod(result)) // kernels[0]


def convolution_of(text: str) -> Convolution:
    """The convolution of a text such as 1x256x14x14*256x3x3/1. Raises ValueError."""
    image, _, rest = text.partition("*")
    kernel, _, stride = rest.partition("/")
    return Convolution(tuple(map(int, image.split("x"))), tuple(map(int, kernel.split("x"))), int(stride))


def _functions(convolution: Convolution) -> dict[str, Callable[..., Any]]:
    """The convolution and its gradients, of images, kernels and the result's cotangent."""
    return {
        "value": lambda x, w, _: convolution(x, w),
        "by images": lambda x, w, cotangent: lx.vjp(lambda x: convolution(x, w), x)[1](cotangent)[0],
        "by kernels": lambda x, w, cotangent: lx.vjp(lambda w: convolution(x, w), w)[1](cotangent)[0],
    }


def _call(function: Callable[..., Any], shapes: Sequence[tuple[int, ...]], choice: str) -> Callable[[], Any]:
    """A call of the function with random arrays of these shapes, after one that compiles."""
    random, backend = np.random.default_rng(0), VulkanBackend()
    graph = lx.trace(function)(*(lx.ShapeDtype(shape, "float32") for shape in shapes))
    with patch("lavax.backends.vulkan.target.windows_as_rows", CHOICES[choice]):
        program = backend.lower(graph).compile()
    buffers = [backend.upload(random.standard_normal(node.shape, np.float32)) for node in graph.inputs]

    def call() -> None:
        for result, node in zip(program(*buffers), graph.outputs, strict=True):
            backend.download(result, node.type)

    call()
    return call


def _least_times(calls: Sequence[Callable[[], Any]]) -> list[float]:
    """The least seconds that processors work for each call."""
    least = [float("inf")] * len(calls)
    for _ in range(_ROUNDS):
        for number, call in enumerate(calls):
            start = time.process_time()
            call()
            least[number] = min(least[number], time.process_time() - start)
    return least


def measure(text: str) -> str:
    """A row of the table for each of the convolution and its gradients."""
    convolution, product = convolution_of(text), (512, 512)
    rows = []
    for name, function in _functions(convolution).items():
        calls = [_call(function, convolution.shapes(), choice) for choice in CHOICES]
        calls.append(_call(lambda x, y: x @ y, (product, product), "columns"))
        *taken, limit = _least_times(calls)
        rates = [convolution.operations() / seconds / 1e9 for seconds in taken]
        rows.append(f"| {text:24} | {name:10} |" + "".join(f" {rate:9.1f} |" for rate in (*rates, 2**28 / limit / 1e9)))
    return "\n".join(rows)


def main() -> None:
    print(f"| {'convolution':24} | {'of it':10} |" + "".join(f" {name:9} |" for name in (*CHOICES, "product")))
    for text in sys.argv[1:] or CONVOLUTIONS:
        print(measure(text), flush=True)


if __name__ == "__main__":
    main()
