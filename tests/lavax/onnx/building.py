"""Small models for the tests, written with onnx.helper."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from lavax.onnx.reading.package import onnx_package

Described = Mapping[str, tuple[str, Sequence[int | str] | None]]  # a name's element type and shape


def node(operator: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    """A node; names are separated by blanks, and "-" is one that is left out."""
    names = [["" if name == "-" else name for name in names.split()] for names in (inputs, outputs)]
    return onnx_package().helper.make_node(operator, *names, **attributes)


def graph(nodes: Sequence[Any], inputs: Described, outputs: Described, weights: Mapping[str, Any] | None = None) -> Any:
    """A graph, for a model or an attribute."""
    package = onnx_package()
    tensors = [package.numpy_helper.from_array(np.asarray(value), name) for name, value in (weights or {}).items()]
    describe = package.helper.make_tensor_value_info
    described = [
        [describe(name, _element_type(dtype), shape) for name, (dtype, shape) in of.items()]
        for of in (inputs, outputs)
    ]
    return package.helper.make_graph(list(nodes), "graph", *described, tensors)


def model(
    nodes: Sequence[Any], inputs: Described, outputs: Described, weights: Mapping[str, Any] | None = None,
    opset: int = 21, **others: int,
) -> bytes:  # fmt: skip
    """A model as bytes; `others` are the opsets of other domains, with _ for the dots."""
    helper = onnx_package().helper
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(n.replace("_", "."), v) for n, v in others.items())]
    made = helper.make_model(graph(nodes, inputs, outputs, weights), opset_imports=opsets, ir_version=10)
    return bytes(made.SerializeToString())


def _element_type(dtype: str) -> int:
    return int(onnx_package().helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def run_reference(data: bytes | str, inputs: Mapping[str, Any]) -> list[np.ndarray]:
    """The outputs of a model, as bytes or at a path, by onnxruntime. Skips the test if it is not there."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="compares with onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(inputs)))
