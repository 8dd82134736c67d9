"""LAPACK on the host, for what the device has no routine: the arrays go there and back in a callback."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lavax.ir.types import TensorType
from lavax.tracer.transforms.callbacks import pure_callback
from lavax.tracer.values.value import Value


def on_host(
    routine: Callable[..., Sequence[np.ndarray]],
    results: Sequence[tuple[int, ...]],
    *operands: Value,
    real: Sequence[bool] | None = None,
) -> tuple[Value, ...]:
    """The results of `routine` on each matrix of a batch, computed in float64; matrices are the last two axes.

    `results` are the shapes for one matrix of each operand; all operands have the same batch. The results have the
    dtype of the operands: what is complex for real operands becomes NaN; of complex ones `real` says which results are
    real. A routine that fails gives NaN, too.
    """
    stack, held = operands[0].shape[:-2], operands[0].type.dtype
    kinds = [held.part if is_real else held for is_real in real or [not held.is_complex] * len(results)]
    precise = np.complex128 if held.is_complex else np.float64

    def run(*arrays: np.ndarray) -> list[np.ndarray]:
        batch = arrays[0].shape[:-2]
        found = [np.full((*batch, *s), np.nan, k.numpy) for s, k in zip(results, kinds, strict=True)]
        for index in np.ndindex(*batch):
            parts = _attempt(routine, [np.asarray(array[index], precise) for array in arrays])
            for whole, part in zip(found, parts or (), strict=parts is not None):
                whole[index] = part if np.iscomplexobj(whole) else _real(part)
        return found

    shapes = [TensorType((*stack, *s), k) for s, k in zip(results, kinds, strict=True)]  # of 64 bits as they are
    made: Any = pure_callback(run, shapes, *operands, vmap_method="broadcast_all")
    return tuple(made)


def _attempt(routine: Callable[..., Sequence[np.ndarray]], arrays: list[np.ndarray]) -> Sequence[np.ndarray] | None:
    if not all(np.isfinite(array).all() for array in arrays):
        return None
    try:
        return routine(*arrays)
    except np.linalg.LinAlgError:
        return None


def _real(part: np.ndarray) -> Any:
    """The array, or NaN where it is not real."""
    array = np.asarray(part)
    if array.dtype.kind != "c":
        return array
    return np.where(array.imag == 0, array.real, np.nan)


def scipy_lapack(function: str) -> Any:
    """SciPy's module of LAPACK's routines, for `function`. Raises ImportError, which says what to install."""
    return scipy_linalg(function).lapack


def scipy_linalg(function: str) -> Any:
    """SciPy's module of linear algebra, for `function`. Raises ImportError, which says what to install."""
    try:
        return importlib.import_module("scipy.linalg")
    except ImportError:
        raise ImportError(f"{function} runs on the host by SciPy, which is not installed: pip install scipy") from None
