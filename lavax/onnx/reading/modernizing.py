"""Models of old opsets as newer ones: the onnx package converts them, and what it leaves as it was is mended here."""
from __future__ import annotations

from typing import Any

from lavax.base.errors import ONNXError
from lavax.onnx.reading.package import onnx_package

OLDEST = 13  # models of older opsets are converted to this one
FIRST_NEAREST = "of opset 10"  # which elements Resize reads before it has a choice: up if it shrinks, else down
_FIRST_CHOICE = 11  # the opset from which on Resize says where its elements lie


def modern(model: Any) -> Any:
    """The model in opset 13 or newer: older ones are converted by the onnx package. Raises ONNXError."""
    opset = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), None)
    if opset is None or opset >= OLDEST:
        return model
    import onnx.version_converter  # rarely needed

    try:
        converted = onnx.version_converter.convert_version(_of_rows(model), OLDEST)
    except Exception as error:
        raise ONNXError(
            f"onnx.load: the model has opset {opset}; the onnx package could not convert it to {OLDEST}: {error}"
        ) from None
    if opset < _FIRST_CHOICE:
        _keep_places(converted.graph)
    return converted


def _of_rows(model: Any) -> Any:
    """The model with each Hardmax on rows: before opset 13 it chose one of all elements behind its axis."""
    made, helper = type(model)(), onnx_package().helper
    made.CopyFrom(model)
    nodes = []
    for number, node in enumerate(made.graph.node):
        if node.op_type != "Hardmax" or node.domain not in ("", "ai.onnx"):
            nodes.append(node)
            continue
        axis = next((entry.i for entry in node.attribute if entry.name == "axis"), 1)
        shape, rows, chosen = (f"{node.output[0]}/{part}{number}" for part in ("shape", "rows", "chosen"))
        nodes += [
            helper.make_node("Shape", [node.input[0]], [shape]),
            helper.make_node("Flatten", [node.input[0]], [rows], axis=axis),
            helper.make_node("Hardmax", [rows], [chosen], node.name, axis=1),
            helper.make_node("Reshape", [chosen, shape], [node.output[0]]),
        ]
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    return made


def _keep_places(graph: Any) -> None:
    """Before Resize had a choice, elements began at multiples of the scale, which the converter does not write down."""
    for node in graph.node:
        if node.op_type == "Resize" and not any(entry.name.startswith("coordinate") for entry in node.attribute):
            make = onnx_package().helper.make_attribute
            node.attribute.append(make("coordinate_transformation_mode", "asymmetric"))
            node.attribute.append(make("nearest_mode", FIRST_NEAREST))
