"""Errors of array functions: each message ends with the user's own line."""
from __future__ import annotations

from lavax.errors import ArrayIndexError, DtypeError, ShapeError
from lavax.ir.location import user_location


def _located(message: str) -> str:
    location = user_location()
    return f"{message}\n  at {location}" if location else message


def shape_error(message: str) -> ShapeError:
    """A ShapeError to be raised, with the user's line."""
    return ShapeError(_located(message))


def dtype_error(message: str) -> DtypeError:
    """A DtypeError to be raised, with the user's line."""
    return DtypeError(_located(message))


def index_error(message: str) -> ArrayIndexError:
    """An IndexError to be raised, with the user's line."""
    return ArrayIndexError(_located(message))
