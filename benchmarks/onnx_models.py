"""Models in ONNX files, in lavax and, where it is installed, in onnxruntime on the same machine."""
from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np

import lavax as lx
from benchmarks import figure
from benchmarks.figure import Figure

_ROUNDS = 9
_PROVIDERS = {"CPUExecutionProvider": "onnxruntime, CPU", "CUDAExecutionProvider": "onnxruntime, CUDA"}


@dataclass
class Builder:
    """A model of ONNX that grows node by node, with random weights."""

    nodes: list[Any] = field(default_factory=list)
    weights: list[Any] = field(default_factory=list)
    random: Any = field(default_factory=lambda: np.random.default_rng(3))

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """The name of a new node's output."""
        from onnx import helper

        output = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def weight(self, *shape: int, numbers: Any = None) -> str:
        """The name of a weight; its numbers keep the size of what it multiplies, or are given."""
        from onnx import numpy_helper

        name = f"w{len(self.weights)}"
        if numbers is None:
            fan = max(int(np.prod(shape[1:])) if len(shape) == 4 else shape[0], 1)
            numbers = (self.random.normal(size=shape) / np.sqrt(fan)).astype(np.float32)
        self.weights.append(numpy_helper.from_array(np.asarray(numbers), name))
        return name

    def model(self, shape: Sequence[int], output: str) -> bytes:
        """The file's bytes, for an input `x`."""
        from onnx import TensorProto, helper

        given = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        made = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "benchmark", [given], [made], self.weights)
        opsets = [helper.make_opsetid("", 20)]
        return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString())


def _normalized_convolution(to: Builder, x: str, inner: int, outer: int, size: int, stride: int = 1) -> str:
    conv = to.add("Conv", x, to.weight(outer, inner, size, size), strides=[stride] * 2, pads=[size // 2] * 4)
    ones, zeros = np.ones(outer, np.float32), np.zeros(outer, np.float32)
    statistics = [to.weight(numbers=numbers) for numbers in (ones, zeros, zeros, ones)]
    return to.add("BatchNormalization", conv, *statistics)


def resnet_50(pixels: int = 224) -> tuple[bytes, Mapping[str, np.ndarray]]:
    """He et al. 2016, with batch normalisations as nodes of their own."""
    to = Builder()
    x = to.add("Relu", _normalized_convolution(to, "x", 3, 64, 7, 2))
    x = to.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for stage, (count, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
        for block in range(count):
            stride = 2 if block == 0 and stage else 1
            inner = to.add("Relu", _normalized_convolution(to, x, channels, width, 1))
            inner = to.add("Relu", _normalized_convolution(to, inner, width, width, 3, stride))
            inner = _normalized_convolution(to, inner, width, 4 * width, 1)
            aside = x if block else _normalized_convolution(to, x, channels, 4 * width, 1, stride)
            x, channels = to.add("Relu", to.add("Add", inner, aside)), 4 * width
    flat = to.add("Flatten", to.add("GlobalAveragePool", x))
    out = to.add("Gemm", flat, to.weight(channels, 1000), to.weight(1000))
    shape = (1, 3, pixels, pixels)
    return to.model(shape, out), {"x": to.random.normal(size=shape).astype(np.float32)}


def encoder(layers: int = 4, width: int = 256, heads: int = 4, tokens: int = 128) -> tuple[bytes, Mapping[str, Any]]:
    """The layers of BERT (Devlin et al. 2019), in the nodes that exporters write."""
    to, x, size = Builder(), "x", width // heads
    by_head, flat = (to.weight(numbers=np.array(shape)) for shape in ((1, tokens, heads, size), (1, tokens, width)))
    half, one, root = (to.weight(numbers=np.float32(value)) for value in (0.5, 1, np.sqrt(2)))
    scale = to.weight(numbers=np.float32(np.sqrt(size)))

    def dense(x: str, inner: int, outer: int) -> str:
        return to.add("Add", to.add("MatMul", x, to.weight(inner, outer)), to.weight(outer))

    def normal(x: str, aside: str) -> str:
        ends = [to.weight(numbers=np.full(width, value, np.float32)) for value in (1, 0)]
        return to.add("LayerNormalization", to.add("Add", x, aside), *ends, axis=-1)

    for _ in range(layers):
        q, k, v = (to.add("Reshape", dense(x, width, width), by_head) for _ in range(3))
        scores = to.add("MatMul", to.add("Transpose", q, perm=[0, 2, 1, 3]), to.add("Transpose", k, perm=[0, 2, 3, 1]))
        weights = to.add("Softmax", to.add("Div", scores, scale), axis=-1)
        read = to.add("MatMul", weights, to.add("Transpose", v, perm=[0, 2, 1, 3]))
        joined = to.add("Reshape", to.add("Transpose", read, perm=[0, 2, 1, 3]), flat)
        x = normal(dense(joined, width, width), x)
        wide = dense(x, width, 4 * width)
        gate = to.add("Add", to.add("Erf", to.add("Div", wide, root)), one)
        x = normal(dense(to.add("Mul", to.add("Mul", wide, gate), half), 4 * width, width), x)
    shape = (1, tokens, width)
    return to.model(shape, x), {"x": to.random.normal(size=shape).astype(np.float32)}


MODELS: Mapping[str, Callable[[], tuple[bytes, Mapping[str, np.ndarray]]]] = {
    "BERT-like, 4 layers of 256, 128 tokens": encoder,
    "ResNet-50, 224 × 224": resnet_50,
}


def measure() -> Sequence[Figure]:
    """Models in ONNX files: a call with one input, in lavax and in onnxruntime on a CPU and through CUDA.

    The time of the processors is the least of all calls. Other programs on the machine change it less than the time
    that passes.
    """
    figures = []
    for name, build in MODELS.items():
        data, inputs = build()
        calls = {"lavax": _in_lavax(data, inputs), **_in_onnxruntime(data, inputs)}
        for runtime, times in _interleaved(calls).items():
            passed, worked = zip(*times, strict=True)
            value = f"{figure.spread(passed)}; processors {min(worked) * 1e3:.3g} ms"
            figures.append(Figure(f"{name}: {runtime}", value))
    return figures


def _in_lavax(data: bytes, inputs: Mapping[str, np.ndarray]) -> Callable[[], Any]:
    model = lx.onnx.load(data)
    call = lx.compile(lambda parameters, x: next(iter(model(parameters, x=x).values())))
    parameters = model.parameters
    return lambda: np.asarray(call(parameters, inputs["x"]))


def _in_onnxruntime(data: bytes, inputs: Mapping[str, np.ndarray]) -> dict[str, Callable[[], Any]]:
    """A call for each provider that is there. Threads that wait do not spin, so the processors' time is work."""
    if find_spec("onnxruntime") is None:
        return {}
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")

    def call(provider: str) -> Callable[[], Any]:
        session = onnxruntime.InferenceSession(data, options, providers=[provider])
        return lambda: session.run(None, dict(inputs))

    there = onnxruntime.get_available_providers()
    return {name: call(provider) for provider, name in _PROVIDERS.items() if provider in there}


def _interleaved(calls: Mapping[str, Callable[[], Any]]) -> dict[str, list[tuple[float, float]]]:
    """Seconds that pass, and that processors work, for each call, in turn, after a call of each that compiles."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    for number in range(_ROUNDS + 1):
        for name, call in calls.items():
            start, worked = time.perf_counter(), time.process_time()
            call()
            if number:
                times[name].append((time.perf_counter() - start, time.process_time() - worked))
    return times
