"""What is said where complex numbers become real ones."""
from __future__ import annotations

from typing import Any

import numpy as np

from lavax.ir.location import user_error, warn_user
from lavax.ir.types import DType


def tell_dropped_parts(name: str, given: DType, held: DType, data: Any = None) -> None:
    """NumPy's warning where numbers of the dtype `given` become those of `held`; truth values are of both parts.

    Raises TypeError if `data` are Python's complex numbers, which NumPy does not make real ones of.
    """
    if given.is_complex and held.kind not in ("complex", "bool"):
        if _is_complex_in_python(data):
            raise user_error(TypeError, f"{name}: {data!r:.40} has imaginary parts, which {held.user_name} cannot hold")
        warn_user(np.exceptions.ComplexWarning, f"{name}: the imaginary parts are dropped; x.real says so")


def _is_complex_in_python(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return any(_is_complex_in_python(each) for each in x)
    return isinstance(x, complex) and not isinstance(x, np.generic)
