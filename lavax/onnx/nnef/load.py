"""NNEF models as functions: a text of calls, and a file for each variable."""
from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from lavax.base.errors import ONNXError
from lavax.base.quick_dataclasses import dataclass
from lavax.onnx.evaluation import Evaluator
from lavax.onnx.library import Library
from lavax.onnx.model import Model
from lavax.onnx.needs import Needs
from lavax.onnx.nnef.fragments import Expansion
from lavax.onnx.nnef.operators import DOMAIN, ENTRIES, OPERATIONS
from lavax.onnx.nnef.quantization import dequantized, quantizations_of
from lavax.onnx.nnef.standard import standard
from lavax.onnx.nnef.tensors import tensor_of
from lavax.onnx.nnef.text import Call, Name, parsed
from lavax.onnx.operators.operator import REQUIRED
from lavax.onnx.reading.graph import Graph, Input, Node

_VERSION = 1
_DEFAULTS = {"bias": 0.0, "offset": 0.0, "scale": 1.0}  # of tensors that may be left out
_LARGEST_TEXT = 1 << 26  # bytes
_KINDS = {"integer": "int32", "logical": "bool"}


def load_nnef(folder: str | os.PathLike[str]) -> Model:
    """The NNEF model in a folder, `graph.nnef` in flat syntax and the variables' tensor files beside it.

    As `load` gives an ONNX model; its parameters are the floating variables. The operations are those that have a
    meaning in ONNX, and the fragments that the file defines. Integers that stand for quantised numbers become these
    numbers, as `graph.quant` says. Needs no other package. Raises ONNXError for what is damaged, and for operations
    that are not supported, all of which it names.
    """
    place = Path(folder)
    path = place / "graph.nnef"
    if path.stat().st_size > _LARGEST_TEXT:
        raise ONNXError(f"onnx.load_nnef: {path} has more than {_LARGEST_TEXT} bytes")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ONNXError(f"onnx.load_nnef: {path} is no text in UTF-8: {error}") from None
    graph = _Reader(place, quantizations_of(place)).graph(text)
    library = Library({}, own=ENTRIES)
    needs = Needs(library)
    needs.find(graph)
    if needs.problems:
        listed = "".join(f"\n  {problem}" for problem in reversed(needs.problems))
        raise ONNXError(f"onnx.load_nnef: the model cannot be run, for {len(needs.problems)} reasons:{listed}")
    return Model(graph, frozenset(), False, Evaluator(library, needs))


@dataclass
class _Reader:
    folder: Path
    quantized: Mapping[str, Call]
    inputs: dict[str, Input] = field(default_factory=dict)
    tensors: dict[str, np.ndarray] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    known: set[str] = field(default_factory=set)

    def graph(self, text: str) -> Graph:
        found = parsed(text)
        known = {name: own for name, own in standard().items() if name not in found.fragments}
        expansion = Expansion({**known, **found.fragments})
        for statement in (each for whole in found.statements for each in expansion.expanded(whole)):
            taken = [name for name in statement.names if name in self.known]
            if taken:
                raise ONNXError(f"onnx.load_nnef: line {statement.line}: {taken[0]!r} has a value already")
            self.assign(statement.names, statement.value, statement.line)
            self.known.update(statement.names)
        missing = [name for name in (*found.inputs, *found.outputs) if name not in self.known]
        if missing:
            raise ONNXError(f"onnx.load_nnef: nothing gives a value to {', '.join(missing)}")
        unfed = [name for name in found.inputs if name not in self.inputs]
        if unfed:
            raise ONNXError(f"onnx.load_nnef: the inputs {', '.join(unfed)} are not external")
        inputs = tuple(self.inputs[name] for name in found.inputs)
        outputs = tuple(Input(name, None) for name in found.outputs)
        return Graph(found.name, inputs, outputs, self.tensors, tuple(self.nodes))

    def assign(self, names: tuple[str, ...], value: Any, line: int) -> None:
        if isinstance(value, Name):
            value = Call("copy", (value,), {}, line)
        if not isinstance(value, Call):
            raise ONNXError(f"onnx.load_nnef: line {line}: expected a call behind {names[0]!r} =")
        match value.operation:
            case "external":
                shape = tuple(extent or None for extent in _argument(value, "shape"))
                self.inputs[names[0]] = Input(names[0], np.dtype(_KINDS.get(value.kind, "float32")), shape)
            case "variable":
                tensor, is_quantised = tensor_of(self.folder, str(_argument(value, "label")))
                if is_quantised:
                    tensor = dequantized(tensor, self.quantized.get(names[0]), names[0])
                shape = tuple(_argument(value, "shape"))
                if tensor.shape != shape:
                    raise ONNXError(
                        f"onnx.load_nnef: line {line}: {names[0]!r} has the shape {shape}, its file {tensor.shape}"
                    )
                self.tensors[names[0]] = tensor
            case "constant":
                self.tensors[names[0]] = self.constant(value, line)
            case _:
                self.node(names, value)

    def constant(self, call: Call, line: int) -> np.ndarray:
        shape, value = tuple(_argument(call, "shape")), _argument(call, "value")
        numbers = np.asarray(value, _KINDS.get(call.kind, "float32")).reshape(-1)
        if numbers.size not in (1, prod(shape)) or prod(shape) > max(numbers.size, 1 << 20):
            raise ONNXError(f"onnx.load_nnef: line {line}: a constant of shape {shape} has {numbers.size} numbers")
        return np.broadcast_to(numbers, (prod(shape),)).reshape(shape)

    def node(self, names: tuple[str, ...], call: Call) -> None:
        operation = OPERATIONS.get(call.operation)
        given: dict[str, Any] = dict(call.named)
        node_name = f"{names[0]}, line {call.line}"
        if operation is None:  # named with all others that are missing, by Needs
            self.nodes.append(Node(node_name, DOMAIN, call.operation, _VERSION, _VERSION, (), names, {}))
            return
        order = (*operation.tensors, *operation.attributes)
        if len(call.positional) > len(order):
            raise ONNXError(f"onnx.load_nnef: line {call.line}: {call.operation} takes {len(order)} arguments")
        given.update(zip(order, call.positional, strict=False))
        inputs: list[str] = []
        for tensor in operation.tensors:
            value = given.pop(tensor, _DEFAULTS.get(tensor, REQUIRED))
            if value is REQUIRED:
                raise ONNXError(f"onnx.load_nnef: line {call.line}: {call.operation} needs the argument {tensor!r}")
            parts = value if isinstance(value, tuple) else (value,)
            inputs += [self.read(part, call) for part in parts]
        self.nodes.append(Node(node_name, DOMAIN, call.operation, _VERSION, _VERSION, tuple(inputs), names, given))

    def read(self, value: Any, call: Call) -> str:
        """The name of a value that a call reads: of another call's result, too, or of a number."""
        if isinstance(value, Name):
            if value.text not in self.known:
                raise ONNXError(f"onnx.load_nnef: line {call.line}: {value.text!r} has no value yet")
            return value.text
        name = f"{call.operation}.{len(self.known)}.{len(self.nodes)}"
        if isinstance(value, Call):
            self.assign((name,), value, call.line)
        elif isinstance(value, (bool, int, float)):
            self.tensors[name] = np.asarray(value, None if isinstance(value, bool) else np.float32)
        else:
            raise ONNXError(f"onnx.load_nnef: line {call.line}: {value!r:.40} is no tensor")
        self.known.add(name)
        return name


def _argument(call: Call, name: str) -> Any:
    order = {"external": ("shape",), "variable": ("shape", "label"), "constant": ("shape", "value")}[call.operation]
    place = order.index(name)
    if name in call.named:
        return call.named[name]
    if place < len(call.positional):
        return call.positional[place]
    raise ONNXError(f"onnx.load_nnef: line {call.line}: {call.operation} needs the argument {name!r}")
