"""Masks in keys: arrays of truth values, and single ones, which are masks without axes."""
from __future__ import annotations

from typing import Any

import numpy as np

from lavax.base.errors import ConcretizationError, NonConcreteBooleanIndexError
from lavax.ir.location import user_error
from lavax.ir.types import bool_
from lavax.numpy._core.movement import reshaped
from lavax.numpy._core.operands import holds_values
from lavax.tracer.values.value import Value


def parts_of(key: Any) -> tuple[Any, ...]:
    """The parts of a key; a tuple within a key is positions along an axis, as a list is."""
    if not isinstance(key, tuple):
        return (key,)
    return tuple(list(part) if isinstance(part, tuple) else part for part in key)


def is_mask(part: Any) -> bool:
    """Whether a part of a key is an array of truth values, with axes."""
    if isinstance(part, Value):
        return part.type.dtype == bool_ and part.ndim > 0
    if isinstance(part, list) and not holds_values(part):
        part = np.asarray(part)
    return isinstance(part, np.ndarray) and part.dtype.kind == "b" and part.ndim > 0


def is_truth(part: Any) -> bool:
    """Whether a part of a key, or a key, is one truth value."""
    if isinstance(part, Value):
        return part.type.dtype == bool_ and not part.ndim
    return isinstance(part, (bool, np.bool_)) or (
        isinstance(part, np.ndarray) and part.dtype.kind == "b" and not part.ndim
    )


def holds_truths(key: Any) -> bool:
    """Whether a part of a key is one truth value."""
    return any(map(is_truth, parts_of(key)))


def axes_used(part: Any) -> int:
    """The number of axes that a part of a key indexes."""
    if part is None or part is Ellipsis or is_truth(part):
        return 0
    return int(np.ndim(part)) if is_mask(part) else 1


def computed_mask_error(cause: ConcretizationError) -> NonConcreteBooleanIndexError:
    """The error for a mask whose truth values are not known."""
    return user_error(
        NonConcreteBooleanIndexError,
        "the shape of x[mask] depends on the mask's truth values: choose by where(mask, x, y), or give the number of "
        f"entries as x[nonzero(mask, size=…)]\n{cause}"
    )


def with_axes_of_truths(array: Value, key: Any) -> tuple[Value, Any]:
    """The array with an axis of extent 1 for each truth value in the key, and the key with positions along it.

    So a truth value is broadcast with the other positions, as in NumPy: where it is true it names one entry, else none.
    Raises NonConcreteBooleanIndexError if it is computed while tracing, because the shape depends on it.
    """
    parts = parts_of(key)
    try:
        truths = [bool(part) for part in parts if is_truth(part)]
    except ConcretizationError as error:
        raise computed_mask_error(error) from None
    if not truths:
        return array, key
    if truths == [True] and all(part is None or is_truth(part) or _is_range(part) for part in parts):
        return array, tuple(None if is_truth(part) else part for part in parts)
    shape, axis, found, rewritten = list(array.shape), 0, iter(truths), []
    for place, part in enumerate(parts):
        if part is Ellipsis:
            axis = len(shape) - sum(map(axes_used, parts[place + 1 :]))
        elif is_truth(part):
            shape.insert(axis, 1)
            part = np.zeros(int(next(found)), np.int32)
            axis += 1
        else:
            axis += axes_used(part)
        rewritten.append(part)
    return reshaped(array, tuple(shape)), tuple(rewritten)


def _is_range(part: Any) -> bool:
    return part is Ellipsis or isinstance(part, slice)
