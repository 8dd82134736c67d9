"""Calls of Python functions on the host, which the device cannot run: programs are divided at them."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lavax.base.errors import ShapeError
from lavax.ir.operation import Attributes, Operation, define
from lavax.ir.types import TensorType, TupleType, tuple_of


def _infer(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    if not isinstance(declared, TupleType) or not declared.parts:
        raise ShapeError(f"host_call has several results, so its type is a tuple, got {declared}")
    results = attrs["function"].results
    return declared if results is None else tuple_of(results(operands))


def _evaluate(arrays: Sequence[Any], attrs: Attributes, type: TensorType, dtype: np.dtype) -> Any:
    return tuple(attrs["function"].call(arrays))


define(Operation("host_call", "region", _infer, _evaluate, ("function",), typed=True))
