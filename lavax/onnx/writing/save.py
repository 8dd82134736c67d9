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
from lavax.onnx.writing import attention, contraction, control_flow, elementwise, fourier, indexing, movement, reduction
from lavax.onnx.writing.portable import portable
from lavax.onnx.writing.writer import File, Rule, Writer, described
from lavax.tracer.compiled.export import exported_for
from lavax.tracer.pytrees.pytree import TreeDef, leaves, paths

OPSET = 21
_IR_VERSION = 10  # the one that came with the opset
_LARGEST_FILE = 1 << 30  # bytes of tensors; more lie in a file beside the model, because protobuf ends at 2 GiB

RULES: dict[str, Rule] = {
    **attention.RULES,
    **contraction.RULES,
    **control_flow.RULES,
    **elementwise.RULES,
    **fourier.RULES,
    **indexing.RULES,
    **movement.RULES,
    **reduction.RULES,
}


def save(
    function: Callable[..., Any], example: Sequence[Any], path: str | os.PathLike[str], *, parameters: Any = None
) -> None:
    """Writes `function`, compiled or not, as an ONNX file of opset 21.

        example = (lx.ShapeDtype((1, 3, 224, 224), "float32"),)
        lx.onnx.save(lambda pixels: model(pixels), example, "classifier.onnx")

    `example` has an argument for each parameter: a pytree of arrays, numbers, or anything with `shape` and `dtype`.
    Their leaves are the file's inputs, named after the parameters (`params.0.weight`); their shapes are fixed. Arrays
    that the function closes over are its initializers. With `parameters`, a pytree of arrays, the function is called
    with it first, and its leaves are initializers, too, named in the same way. The outputs are named `output`, or by
    their places in the result. A complex input or output has its real and imaginary parts along a last axis of 2.

    Raises ONNXError with all operations that have no form in ONNX, such as eigenvalues, and what to do about each;
    SideEffectError if the function prints or calls the host; and ImportError without the onnx package.
    """
    package = onnx_package()
    given = [] if parameters is None else [parameters]
    exported = exported_for(function, *given, *example)
    known = [*map(np.asarray, leaves(parameters))] if given else []
    closed_over = [np.asarray(constant) for constant in exported.constants]
    graph = portable(exported.graph, RULES)
    count = len(graph.inputs) - len(closed_over)
    names = [*(node.name for node in graph.inputs[:count]), *["weight"] * len(closed_over)]
    weights: dict[int, np.ndarray] = {**dict(enumerate(known)), **dict(enumerate(closed_over, count))}
    model = _model(graph, names, weights, _output_names(exported.result), exported.function)
    size = sum(numbers.nbytes for numbers in weights.values())
    place = Path(path)
    if size < _LARGEST_FILE:
        package.checker.check_model(model)
        place.write_bytes(model.SerializeToString())
        return
    package.save_model(
        model, str(place), save_as_external_data=True, all_tensors_to_one_file=True, location=f"{place.name}.data"
    )
    package.checker.check_model(str(place))


def _model(graph: Graph, wanted: list[str], weights: dict[int, np.ndarray], outputs: list[str], name: str) -> Any:
    """The ModelProto of a graph, whose inputs get the names `wanted`; those with a number in `weights` are tensors."""
    package, file = onnx_package(), File(RULES)
    writer = Writer(file)
    inputs = {
        node: file.fresh(given)
        for number, (node, given) in enumerate(zip(graph.inputs, wanted, strict=True))
        if number not in weights
    }
    names = [file.fresh(output) for output in outputs]
    for number, node in enumerate(graph.inputs):
        held = inputs.get(node) or writer.initializer(_in_parts(weights[number]), wanted[number])
        writer.bind(node, held)
    for output, given in zip(writer.write(graph), names, strict=True):
        writer.nodes.append(package.helper.make_node("Identity", [output], [given], name=given))
    nodes, used = _needed(writer.nodes, names)
    proto = package.helper.make_graph(
        [*_constants(file, used), *nodes],
        name,
        [described(given, node.type) for node, given in inputs.items()],
        [described(given, node.type) for given, node in zip(names, graph.outputs, strict=True)],
        [package.numpy_helper.from_array(numbers, key) for key, numbers in file.weights.items() if key in used],
    )
    opsets = [package.helper.make_opsetid("", OPSET)]
    made: Any = package.helper.make_model(
        proto, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="lavax", producer_version=VERSION
    )
    return made


def _constants(file: File, used: set[str]) -> list[Any]:
    """Nodes for the constants that are read."""
    package = onnx_package()
    return [
        package.helper.make_node("Constant", [], [key], name=key, value=package.numpy_helper.from_array(numbers))
        for key, numbers in file.constants.items()
        if key in used
    ]


def _in_parts(numbers: np.ndarray) -> np.ndarray:
    """Real numbers as they are; complex ones with their parts along a last axis."""
    return np.stack([numbers.real, numbers.imag], -1) if np.iscomplexobj(numbers) else numbers


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
