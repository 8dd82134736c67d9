"""Functions as ONNX files."""
from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lavax.base.config import VERSION
from lavax.ir.graph import Graph
from lavax.onnx.reading.package import onnx_package
from lavax.onnx.writing import attention, contraction, control_flow, elementwise, indexing, movement, reduction
from lavax.onnx.writing.writer import File, Rule, Writer, described, refuse_operations
from lavax.passes.simplify import remove_stop_gradient
from lavax.tracer.compiled.export import export
from lavax.tracer.pytrees.pytree import TreeDef, paths

OPSET = 21
_IR_VERSION = 10  # the one that came with the opset
_LARGEST_FILE = 1 << 30  # bytes of tensors; more lie in a file beside the model, because protobuf ends at 2 GiB

RULES: dict[str, Rule] = {
    **attention.RULES,
    **contraction.RULES,
    **control_flow.RULES,
    **elementwise.RULES,
    **indexing.RULES,
    **movement.RULES,
    **reduction.RULES,
}


def save(function: Callable[..., Any], example: Sequence[Any], path: str | os.PathLike[str]) -> None:
    """Writes `function`, compiled or not, as an ONNX file of opset 21.

        example = (lx.ShapeDtype((1, 3, 224, 224), "float32"),)
        lx.onnx.save(lambda pixels: model(pixels), example, "classifier.onnx")

    `example` has an argument for each parameter: a pytree of arrays, numbers, or anything with `shape` and `dtype`.
    Their leaves are the file's inputs, named after the parameters (`params.0.weight`); their shapes are fixed. Arrays
    that the function closes over are its initializers. The outputs are named `output`, or by their places in the
    result.

    Raises ONNXError with all operations that have no form in ONNX, such as decompositions of matrices and draws;
    SideEffectError if the function prints or calls the host; and ImportError without the onnx package.
    """
    package = onnx_package()
    exported = export(function, *example)
    graph = remove_stop_gradient(exported.graph)
    refuse_operations([graph], RULES)
    count = len(graph.inputs) - len(exported.constants)
    weights = [np.asarray(constant) for constant in exported.constants]
    model = _model(graph, count, weights, _output_names(exported.result), exported.function)
    size = sum(numbers.nbytes for numbers in weights)
    place = Path(path)
    if size < _LARGEST_FILE:
        package.checker.check_model(model)
        place.write_bytes(model.SerializeToString())
        return
    package.save_model(
        model, str(place), save_as_external_data=True, all_tensors_to_one_file=True, location=f"{place.name}.data"
    )
    package.checker.check_model(str(place))


def _model(graph: Graph, count: int, weights: list[np.ndarray], outputs: list[str], name: str) -> Any:
    """The ModelProto of a graph, whose first `count` inputs are the file's and whose others are weights."""
    package, file = onnx_package(), File(RULES)
    writer = Writer(file)
    arguments, constants = graph.inputs[:count], graph.inputs[count:]
    inputs = [file.fresh(node.name) for node in arguments]
    names = [file.fresh(output) for output in outputs]
    for node, given in zip(arguments, inputs, strict=True):
        writer.bind(node, given)
    for node, numbers in zip(constants, weights, strict=True):
        writer.bind(node, writer.tensor(numbers, name="weight"))
    for output, wanted in zip(writer.write(graph), names, strict=True):
        writer.nodes.append(package.helper.make_node("Identity", [output], [wanted], name=wanted))
    nodes, used = _needed(writer.nodes, names)
    proto = package.helper.make_graph(
        nodes,
        name,
        [described(given, node.type) for given, node in zip(inputs, arguments, strict=True)],
        [described(given, node.type) for given, node in zip(names, graph.outputs, strict=True)],
        [package.numpy_helper.from_array(numbers, key) for key, numbers in file.tensors.items() if key in used],
    )
    opsets = [package.helper.make_opsetid("", OPSET)]
    made: Any = package.helper.make_model(
        proto, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="lavax", producer_version=VERSION
    )
    return made


def _needed(nodes: list[Any], outputs: list[str]) -> tuple[list[Any], set[str]]:
    """The nodes that lead to the outputs, and the names that they read: a rule may leave out what it is made of."""
    used, kept = set(outputs), []
    for node in reversed(nodes):
        if not used.isdisjoint(node.output):
            kept.append(node)
            used.update(_read_by(node))
    return kept[::-1], used


def _read_by(node: Any) -> set[str]:
    """The names that a node and the graphs in it read."""
    inner = (each for attribute in node.attribute if attribute.HasField("g") for each in attribute.g.node)
    return set(node.input).union(*map(_read_by, inner))


def _output_names(result: TreeDef) -> list[str]:
    """The places in the result; numbers alone are no names."""
    found = paths(result)
    return [f"output_{name}" if name[:1].isdigit() else name or "output" for name in found]
