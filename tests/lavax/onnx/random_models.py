"""Random graphs of ONNX: each node is one of many kinds, with operands and attributes that fit the shapes."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.lavax.onnx.building import model, node

UNARY = ("Abs", "Ceil", "Cos", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish",
         "Neg", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Softplus", "Softsign", "Tanh")  # fmt: skip
BINARY = ("Add", "Sub", "Mul", "Max", "Min", "Mean", "Sum")
REDUCTIONS = ("ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "ReduceSumSquare",
              "ReduceLogSumExp")  # fmt: skip
_MOST = 4096  # elements of a value


@dataclass
class Drawing:
    """A model that grows; `shapes` are those of its floating values by name."""

    rng: np.random.Generator
    nodes: list[Any] = field(default_factory=list)
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    inputs: dict[str, np.ndarray] = field(default_factory=dict)

    def pick(self, condition: Callable[[tuple[int, ...]], bool] = lambda shape: True) -> str | None:
        """A value whose shape fulfils the condition, a late one more likely."""
        found = [name for name, shape in self.shapes.items() if condition(shape)]
        return found[-1 - min(int(self.rng.geometric(0.3)) - 1, len(found) - 1)] if found else None

    def weight(self, *shape: int) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = (self.rng.normal(size=shape) / np.sqrt(max(np.prod(shape[1:]), 1))).astype(np.float32)
        return name

    def whole(self, *numbers: int) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = np.array(numbers, np.int64)
        return name

    def add(self, operator: str, inputs: str, shape: tuple[int, ...], **attributes: Any) -> None:
        name = f"v{len(self.nodes)}"
        self.nodes.append(node(operator, inputs, name, **attributes))
        if int(np.prod(shape)) <= _MOST and 0 not in shape:
            self.shapes[name] = shape


def _unary(d: Drawing) -> None:
    x = d.pick()
    assert x is not None
    d.add(str(d.rng.choice(UNARY)), x, d.shapes[x])


def _binary(d: Drawing) -> None:
    x = d.pick()
    assert x is not None
    y = d.pick(lambda shape: _broadcasts(shape, d.shapes[x]))
    assert y is not None
    d.add(str(d.rng.choice(BINARY)), f"{x} {y}", np.broadcast_shapes(d.shapes[x], d.shapes[y]))


def _broadcasts(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    try:
        return int(np.prod(np.broadcast_shapes(one, other))) <= _MOST
    except ValueError:
        return False


def _reduction(d: Drawing) -> None:
    x = d.pick(lambda shape: len(shape) > 0)
    if x is None:
        return
    shape = d.shapes[x]
    axes = sorted(d.rng.choice(len(shape), d.rng.integers(1, len(shape) + 1), replace=False).tolist())
    keep = int(d.rng.integers(2))
    left = tuple(1 if k in axes else n for k, n in enumerate(shape) if keep or k not in axes)
    given = [axis - len(shape) if d.rng.integers(2) else axis for axis in axes]
    d.add(str(d.rng.choice(REDUCTIONS)), f"{x} {d.whole(*given)}", left, keepdims=keep)


def _softmax(d: Drawing) -> None:
    x = d.pick(lambda shape: len(shape) > 0)
    if x is not None:
        axis = int(d.rng.integers(-len(d.shapes[x]), len(d.shapes[x])))
        d.add(str(d.rng.choice(["Softmax", "LogSoftmax"])), x, d.shapes[x], axis=axis)


def _product(d: Drawing) -> None:
    x = d.pick(lambda shape: len(shape) >= 2)
    if x is not None:
        n = int(d.rng.integers(1, 9))
        d.add("MatMul", f"{x} {d.weight(d.shapes[x][-1], n)}", (*d.shapes[x][:-1], n))


def _convolution(d: Drawing) -> None:
    x = d.pick(lambda shape: len(shape) in (3, 4) and min(shape[2:]) >= 3)
    if x is None:
        return
    batch, channels, *extents = d.shapes[x]
    size, stride, dilation = (int(d.rng.integers(1, 3)) for _ in range(3))
    groups = channels if d.rng.integers(2) else 1
    pads = d.rng.integers(0, 2, 2 * len(extents)).tolist()
    made = [
        (n + pads[k] + pads[k + len(extents)] - dilation * (size - 1) - 1) // stride + 1 for k, n in enumerate(extents)
    ]
    out = groups * int(d.rng.integers(1, 3))
    w, b = d.weight(out, channels // groups, *[size] * len(extents)), d.weight(out)
    d.add("Conv", f"{x} {w} {b}", (batch, out, *made), group=groups, pads=pads, strides=[stride] * len(extents),
          dilations=[dilation] * len(extents), kernel_shape=[size] * len(extents))  # fmt: skip


def _pool(d: Drawing) -> None:
    x = d.pick(lambda shape: len(shape) in (3, 4) and min(shape[2:]) >= 3)
    if x is None:
        return
    batch, channels, *extents = d.shapes[x]
    size, stride = int(d.rng.integers(2, 4)), int(d.rng.integers(1, 3))
    made = [(n - size) // stride + 1 for n in extents]
    operator = str(d.rng.choice(["MaxPool", "AveragePool"]))
    rank = len(extents)
    d.add(operator, x, (batch, channels, *made), kernel_shape=[size] * rank, strides=[stride] * rank)


def _movement(d: Drawing) -> None:
    x = d.pick(lambda shape: len(shape) > 0)
    if x is None:
        return
    shape, rank = d.shapes[x], len(d.shapes[x])
    match int(d.rng.integers(7)):
        case 0:
            order = d.rng.permutation(rank).tolist()
            d.add("Transpose", x, tuple(shape[k] for k in order), perm=order)
        case 1:
            d.add("Reshape", f"{x} {d.whole(-1, shape[-1])}", (int(np.prod(shape[:-1])), shape[-1]))
        case 2:
            axis, start = int(d.rng.integers(rank)), int(d.rng.integers(2))
            step = int(d.rng.integers(1, 3))
            left = (*shape[:axis], len(range(shape[axis])[start::step]), *shape[axis + 1 :])
            bounds = " ".join(d.whole(number) for number in (start, np.iinfo(np.int64).max, axis, step))
            d.add("Slice", f"{x} {bounds}", left)
        case 3:
            axis = int(d.rng.integers(rank))
            d.add("Concat", f"{x} {x}", (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :]), axis=axis)
        case 4:
            pads = d.rng.integers(0, 2, 2 * rank).tolist()
            wide = tuple(n + pads[k] + pads[k + rank] for k, n in enumerate(shape))
            d.add("Pad", f"{x} {d.whole(*pads)}", wide)
        case 5:
            axis = int(d.rng.integers(rank))
            at = d.rng.integers(-shape[axis], shape[axis], 3).tolist()
            d.add("Gather", f"{x} {d.whole(*at)}", (*shape[:axis], 3, *shape[axis + 1 :]), axis=axis)
        case _:
            d.add("Unsqueeze", f"{x} {d.whole(0)}", (1, *shape))


def _normalisation(d: Drawing) -> None:
    x = d.pick(lambda shape: len(shape) >= 2 and shape[-1] > 1)
    if x is not None:
        n = d.shapes[x][-1]
        # Rows of equal elements, as padding makes them, show the rounding of their mean over the root of epsilon.
        d.add("LayerNormalization", f"{x} {d.weight(n)} {d.weight(n)}", d.shapes[x], epsilon=0.01)


KINDS = (_unary, _unary, _binary, _reduction, _softmax, _product, _convolution, _pool, _movement, _normalisation)


def random_model(seed: int, count: int = 12) -> tuple[bytes, dict[str, np.ndarray]]:
    """A model of about `count` nodes, and inputs for it. Its outputs are the values that nothing reads."""
    d = Drawing(np.random.default_rng(seed))
    for name, shape in (("x", (2, 3, 6, 5)), ("y", (4, 5))):
        d.inputs[name], d.shapes[name] = d.rng.normal(size=shape).astype(np.float32), shape
    for _ in range(count):
        KINDS[int(d.rng.integers(len(KINDS)))](d)
    read = {name for each in d.nodes for name in each.input}
    ends = {name: ("f4", shape) for name, shape in d.shapes.items() if name not in read and name not in d.inputs}
    given = {name: ("f4", value.shape) for name, value in d.inputs.items()}
    return model(d.nodes, given, ends, d.weights), d.inputs
