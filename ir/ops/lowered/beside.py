"""Lines that lie beside each other in what a last step of a Fourier transform writes.

A result of lines [b, n, …] holds them one behind the other. With `beside` = c, so many lines that follow each other lie
beside each other instead, as [b/c, n, c, …]: lines along another axis than the last one, of which c are neighbours.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lavax.base.errors import ShapeError
from lavax.ir.operation import Attributes
from lavax.ir.types import TensorType

BESIDE = {"beside": 1}

Evaluate = Callable[[Sequence[np.ndarray], Attributes, TensorType, np.dtype], np.ndarray]


def check_beside(name: str, attrs: Attributes, lines: int) -> None:
    if lines % attrs["beside"]:
        raise ShapeError(f"{name}: beside is a divisor of {lines}, the number of lines, not {attrs['beside']}")
    if attrs["beside"] > 1 and attrs.get("folded"):
        raise ShapeError(f"{name}: lines in the order of cosine transforms do not lie beside each other")


def put_beside(evaluate: Evaluate, words: int) -> Evaluate:
    """Evaluates a step, whose first operand has the lines along its first axis, and puts the lines of its result
    beside each other, if it is to. Their numbers have so many words."""

    def evaluated(
        arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
    ) -> np.ndarray:
        found = evaluate(arrays, attrs, type, dtype)
        count = attrs["beside"]
        if count == 1:
            return found
        lines = found.reshape(arrays[0].shape[0] // count, count, -1, words)
        return np.swapaxes(lines, 1, 2).reshape(type.shape)

    return evaluated
