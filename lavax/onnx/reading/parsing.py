"""Files and bytes as graphs in plain Python. The onnx package parses; here everything it leaves open is checked."""
from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np

from lavax.base.errors import ONNXError
from lavax.base.quick_dataclasses import dataclass
from lavax.onnx.reading.graph import Graph, Input, Node
from lavax.onnx.reading.package import onnx_package
from lavax.onnx.reading.tensors import array_of, dense, numpy_dtype

DEEPEST = 24  # graphs within graphs
_POINTER = b"version https://git-lfs"
_LARGEST_CHECKED = 1 << 28  # bytes; the package's checker copies the model
# Runtimes let the rank of an input or output be unknown; they have operators of their own without a domain; and an
# operator that a later opset replaced still has its meaning.
_TOLERATED = (
    "Field 'shape' of 'type' is required", "No Op registered for", "is deprecated in domain_version of",
    "should be stored in",  # the checker looks for external data in the process's folder; here they are checked anyway
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Parsed:
    """A model's graph, and its functions by domain and name."""

    graph: Graph
    functions: Mapping[tuple[str, str], Graph]
    opsets: Mapping[str, int]


def model_of(source: str | os.PathLike[str] | bytes) -> tuple[Any, Path | None]:
    """The ModelProto of a file or of bytes, and the file's folder. Raises ONNXError for what is no whole model."""
    folder, what = None, "what was given"
    if isinstance(source, (bytes, bytearray, memoryview)):
        content = bytes(source)
    else:
        path = Path(source)
        folder, what = path.parent, str(path)
        content = path.read_bytes()
    if content.startswith(_POINTER):
        raise ONNXError(f"onnx.load: {what} is a pointer of Git LFS, not the model: fetch it with `git lfs pull`")
    package = onnx_package()
    try:
        model = package.load_model_from_string(content)
    except Exception as error:  # protobuf's DecodeError, which is another class in each of its implementations
        raise ONNXError(f"onnx.load: {what} is no ONNX model, or not a whole one: {error}") from None
    if not model.HasField("graph") or not model.opset_import:
        raise ONNXError(f"onnx.load: {what} holds no graph or names no opset, so it is no ONNX model")
    return model, folder


def broken_rule(model: Any) -> str | None:
    """What the onnx package's checker says against a model, if it says anything."""
    if model.ByteSize() > _LARGEST_CHECKED or _has_external_data(model):
        return None
    try:
        onnx_package().checker.check_model(model)
    except Exception as error:
        is_tolerated = any(text in str(error) for text in _TOLERATED)
        return None if is_tolerated else f"onnx.load: the model breaks a rule of ONNX: {error}"
    return None


def _has_external_data(model: Any) -> bool:
    external = onnx_package().TensorProto.EXTERNAL
    return any(tensor.data_location == external for tensor in model.graph.initializer)


def parsed(model: Any, folder: Path | None) -> Parsed:
    """The graphs of a ModelProto. Raises ONNXError for graphs that are not in order, names that are not there, …"""
    opsets = {entry.domain if entry.domain != "ai.onnx" else "": entry.version for entry in model.opset_import}
    functions = {}
    for function in model.functions:
        own = {entry.domain if entry.domain != "ai.onnx" else "": entry.version for entry in function.opset_import}
        functions[(function.domain, function.name)] = function_graph(function, {**opsets, **own}, folder)
    reader = _Reader(opsets, folder)
    return Parsed(reader.graph(model.graph, frozenset(), 0), functions, opsets)


def function_graph(function: Any, opsets: Mapping[str, int], folder: Path | None = None) -> Graph:
    """A FunctionProto as a graph; attributes that name the function's own stay `Reference`s."""
    reader = _Reader(opsets, folder)
    inputs = tuple(Input(name, None) for name in function.input)
    outputs = tuple(Input(name, None) for name in function.output)
    nodes = reader.nodes(function.node, frozenset(function.input), 0)
    defaults = {entry.name: reader.attribute(entry, frozenset(), 0) for entry in function.attribute_proto}
    graph = Graph(function.name, inputs, outputs, {}, nodes)
    return _with_defaults(graph, defaults)


@dataclass(frozen=True)
class Reference:
    """An attribute of a function's node that takes the value of the function's attribute `name`."""

    name: str
    default: Any = None


def specialised(graph: Graph, given: Mapping[str, Any]) -> Graph:
    """A function's graph with its references replaced by attributes; what is not given is left out."""

    def value_of(value: Any) -> Any:
        if isinstance(value, Reference):
            return given.get(value.name, value.default)
        return specialised(value, given) if isinstance(value, Graph) else value

    return _mapped(graph, value_of)


def _with_defaults(graph: Graph, defaults: Mapping[str, Any]) -> Graph:
    def value_of(value: Any) -> Any:
        if isinstance(value, Reference):
            return replace(value, default=defaults.get(value.name))
        return _with_defaults(value, defaults) if isinstance(value, Graph) else value

    return _mapped(graph, value_of) if defaults else graph


def _mapped(graph: Graph, value_of: Callable[[Any], Any]) -> Graph:
    nodes = []
    for node in graph.nodes:
        found = {name: value_of(value) for name, value in node.attributes.items()}
        nodes.append(replace(node, attributes={name: value for name, value in found.items() if value is not None}))
    return replace(graph, nodes=tuple(nodes))


@dataclass
class _Reader:
    """Reads graphs of one set of opsets."""

    opsets: Mapping[str, int]
    folder: Path | None
    _count: int = field(default=0)

    def graph(self, proto: Any, around: frozenset[str], depth: int) -> Graph:
        """A GraphProto within graphs that define the names `around`."""
        if depth > DEEPEST:
            raise ONNXError(f"onnx.load: graph {proto.name!r} lies more than {DEEPEST} graphs deep")
        tensors = {tensor.name: array_of(tensor, self.folder) for tensor in proto.initializer}
        tensors |= {sparse.values.name: dense(sparse, self.folder) for sparse in proto.sparse_initializer}
        _check_names([*tensors, *(info.name for info in (*proto.input, *proto.output))])
        inputs = tuple(map(_described, proto.input))
        known = frozenset(tensors) | {given.name for given in inputs}
        nodes = self.nodes(proto.node, around | known, depth)
        graph = Graph(proto.name, inputs, tuple(map(_described, proto.output)), tensors, nodes)
        for name in graph.output_names:
            if name not in graph.own_names and name not in around:
                raise ONNXError(f"onnx.load: graph {proto.name!r} has the output {name!r}, which nothing computes")
        return graph

    def nodes(self, protos: Any, known: frozenset[str], depth: int) -> tuple[Node, ...]:
        """Nodes in the order of the file, in which each must stand after those it reads."""
        names, found = set(known), []
        made_somewhere = {name for proto in protos for name in proto.output}
        for proto in protos:
            node = self._node(proto, frozenset(names), depth)
            for name in node.inputs:
                if name and name not in names:
                    why = "later, or by itself (a cycle)" if name in made_somewhere else "nowhere"
                    raise ONNXError(f"onnx.load: {node} reads {name!r}, which is computed {why}")
            for name in node.outputs:
                if name and name in names and name not in known:
                    raise ONNXError(f"onnx.load: {node} computes {name!r}, which another node has computed")
            names.update(node.outputs)
            found.append(node)
        return tuple(found)

    def _node(self, proto: Any, known: frozenset[str], depth: int) -> Node:
        self._count += 1
        _check_names([proto.name, proto.op_type, proto.domain, *proto.input, *proto.output])
        _check_names([entry.name for entry in proto.attribute])
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        name = proto.name or f"{proto.op_type}_{self._count}"
        attributes = {entry.name: self.attribute(entry, known, depth) for entry in proto.attribute}
        opset = self.opsets.get(domain, 1)
        version = _version(domain, proto.op_type, opset)
        return Node(name, domain, proto.op_type, opset, version, tuple(proto.input), tuple(proto.output), attributes)

    def attribute(self, entry: Any, known: frozenset[str], depth: int) -> Any:
        """An attribute's value: a number, a string, an array, a graph, or a tuple of such."""
        kinds = onnx_package().AttributeProto
        if entry.ref_attr_name:
            return Reference(entry.ref_attr_name)
        if entry.type == kinds.STRING:
            return _text(entry.s)
        if entry.type == kinds.STRINGS:
            return tuple(map(_text, entry.strings))
        if entry.type == kinds.TENSOR:
            return array_of(entry.t, self.folder)
        if entry.type == kinds.SPARSE_TENSOR:
            return dense(entry.sparse_tensor, self.folder)
        if entry.type == kinds.GRAPH:
            return self.graph(entry.g, known, depth + 1)
        if entry.type == kinds.TYPE_PROTO:
            return _described(entry.tp, entry.name)
        value = onnx_package().helper.get_attribute_value(entry)
        return tuple(value) if isinstance(value, (list, tuple)) or hasattr(value, "__len__") else value


def _version(domain: str, operator: str, opset: int) -> int:
    try:
        since: int = onnx_package().defs.get_schema(operator, opset, domain).since_version
    except Exception:  # an operator that the package does not know
        return opset
    return since


def _check_names(names: Iterable[Any]) -> None:
    """Some implementations of protobuf give what is no text as bytes."""
    for name in names:
        if not isinstance(name, str):
            raise ONNXError(f"onnx.load: a name is no text in UTF-8: {name!r:.80}")


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise ONNXError(f"onnx.load: an attribute is no text in UTF-8: {content!r:.80}") from None


def _described(info: Any, name: str = "") -> Input:
    """A ValueInfoProto, or a TypeProto with a name."""
    kind = getattr(info, "type", info)
    name = name or info.name
    is_optional = kind.HasField("optional_type")
    if is_optional:
        kind = kind.optional_type.elem_type
    is_sequence = kind.HasField("sequence_type")
    if is_sequence:
        kind = kind.sequence_type.elem_type
    if not kind.HasField("tensor_type"):
        return Input(name, None, None, is_sequence, is_optional)
    tensor = kind.tensor_type
    dtype = numpy_dtype(tensor.elem_type) if tensor.elem_type else None
    shape = None
    if tensor.HasField("shape"):
        shape = tuple(
            int(extent.dim_value) if extent.HasField("dim_value") else (extent.dim_param or None)
            for extent in tensor.shape.dim
        )
    return Input(name, np.dtype(dtype) if dtype is not None else None, shape, is_sequence, is_optional)
