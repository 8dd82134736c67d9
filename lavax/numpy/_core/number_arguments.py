"""Integer and real arguments as users give them."""
from __future__ import annotations

import operator
from typing import Any

from lavax.base.errors import LavaxError
from lavax.numpy._core.errors import dtype_error


def whole_number(what: str, given: Any) -> int:
    """`given`, a Python or NumPy integer or an array of one, as a Python integer.

    Raises DtypeError, which names the argument by `what`, for anything else, ConcretizationError if the number is not
    known yet.
    """
    try:
        return operator.index(given)
    except LavaxError:
        raise
    except TypeError:
        raise dtype_error(f"{what} must be an integer, got {given!r:.40} of type {type(given).__name__}") from None


def real_number(what: str, given: Any) -> float:
    """`given`, a number or an array of one, as a Python float.

    Raises DtypeError, which names the argument by `what`, for anything else, ConcretizationError if the number is not
    known yet.
    """
    try:
        if not isinstance(given, (str, bytes)):  # Python would parse them
            return float(given)
    except LavaxError:
        raise
    except (TypeError, ValueError):
        pass
    raise dtype_error(f"{what} must be a number, got {given!r:.40} of type {type(given).__name__}")
