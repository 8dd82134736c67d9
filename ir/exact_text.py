"""Texts of numbers that are equal for the same number only, for keys and printed graphs."""
from __future__ import annotations

import math
from typing import Any


def exact_text(value: Any) -> str:
    """`repr(value)`, which tells 0.0 from -0.0 and 1 from True, but with the sign of a NaN, too: `-nan`."""
    if isinstance(value, complex) and value != value:
        return f"complex({exact_text(value.real)}, {exact_text(value.imag)})"
    return "-nan" if isinstance(value, float) and value != value and math.copysign(1, value) < 0 else repr(value)
