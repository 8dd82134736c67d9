"""Quantised tensors: the file `graph.quant` says which numbers their integers stand for (NNEF 1.0, chapter 5)."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lavax.base.errors import ONNXError
from lavax.onnx.nnef.text import Call, quantizations

_LARGEST_TEXT = 1 << 26  # bytes


def quantizations_of(folder: Path) -> Mapping[str, Call]:
    """How each tensor that `graph.quant` names is quantised; none without the file."""
    path = folder / "graph.quant"
    if not path.is_file():
        return {}
    if path.stat().st_size > _LARGEST_TEXT:
        raise ONNXError(f"onnx.load_nnef: {path} has more than {_LARGEST_TEXT} bytes")
    try:
        return quantizations(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ONNXError(f"onnx.load_nnef: {path} is no text in UTF-8: {error}") from None


def dequantized(integers: np.ndarray, call: Call | None, name: str) -> np.ndarray:
    """The numbers that a variable's integers stand for. Raises ONNXError if nothing says it."""
    if call is None or call.operation not in _ALGORITHMS:
        said = "nothing in graph.quant says" if call is None else f"{call.operation!r} is not known, which says"
        raise ONNXError(
            f"onnx.load_nnef: {name!r} has quantised integers, but {said} which numbers they stand for; write "
            f"linear_quantize or zero_point_linear_quantize for it"
        )
    try:
        return _ALGORITHMS[call.operation](integers, **call.named).astype(np.float32)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise ONNXError(f"onnx.load_nnef: graph.quant, line {call.line}: {call.operation}: {error}") from None


def _linear(integers: np.ndarray, min: Any, max: Any, bits: int, **others: Any) -> np.ndarray:
    """2^bits steps from `min` to `max`."""
    low = np.float64(min)
    steps = (1 << int(bits)) - 1
    return np.asarray(low + integers.astype(np.float64) * ((np.float64(max) - low) / steps))


def _by_zero_point(integers: np.ndarray, zero_point: Any, scale: Any, **others: Any) -> np.ndarray:
    return np.asarray((integers.astype(np.float64) - np.float64(zero_point)) * np.float64(scale))


_ALGORITHMS: dict[str, Callable[..., np.ndarray]] = {
    "linear_quantize": _linear,
    "zero_point_linear_quantize": _by_zero_point,
}
