"""Errors of array functions: each message names the function that the user called, and ends with the user's line."""
from __future__ import annotations

from lavax.base.errors import ArrayIndexError, AxisError, DtypeError, NumberRangeError, ShapeError, ZeroStepError
from lavax.ir.location import for_user


def shape_error(message: str) -> ShapeError:
    """A ShapeError, with the user's line."""
    return ShapeError(for_user(message))


def axis_error(message: str) -> AxisError:
    """An AxisError, with the user's line."""
    return AxisError(for_user(message))


def dtype_error(message: str) -> DtypeError:
    """A DtypeError, with the user's line."""
    return DtypeError(for_user(message))


def range_error(message: str) -> NumberRangeError:
    """A NumberRangeError, with the user's line."""
    return NumberRangeError(for_user(message))


def zero_step_error(message: str) -> ZeroStepError:
    """A ZeroStepError, with the user's line."""
    return ZeroStepError(for_user(message))


def index_error(message: str) -> ArrayIndexError:
    """An IndexError, with the user's line."""
    return ArrayIndexError(for_user(message))
