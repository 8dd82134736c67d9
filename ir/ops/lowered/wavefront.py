"""Loops that take their turns together: scans and what lies between them, as a graph (passes/schedule/wavefront.py)."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lavax.base.errors import ShapeError
from lavax.ir.operation import Attributes, Operation, define
from lavax.ir.types import TensorType, tuple_of


def _infer(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    """The operands are the body's inputs, the results its outputs."""
    body = attrs["body"]
    if tuple(node.type for node in body.inputs) != tuple(operands):
        raise ShapeError(f"wavefront: the body takes {[node.type for node in body.inputs]}, got {list(operands)}")
    return tuple_of(tuple(node.type for node in body.outputs))


def _evaluate(arrays: Sequence[Any], attrs: Attributes, type: TensorType, dtype: np.dtype) -> Any:
    from lavax.ir.interpreter import run_nodes  # the interpreter runs this operation in turn

    body = attrs["body"]
    return tuple(run_nodes(body, dict(zip(body.inputs, arrays, strict=True)), dtype))


define(Operation("wavefront", "lowered", _infer, _evaluate, ("body",)))
