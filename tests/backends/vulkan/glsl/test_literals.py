"""Numbers as GLSL text: exactly the value, whatever was written before."""
from __future__ import annotations

import math

import numpy as np
import pytest

from lavax.backends.vulkan.glsl.expressions import literal
from lavax.ir.types import DTYPES, DType, float32, float64


@pytest.mark.parametrize(("dtype", "unit"), [(float32, ""), (float64, "lf")], ids=str)
def test_equal_numbers_that_are_not_the_same_have_texts_of_their_own(dtype: DType, unit: str) -> None:
    """Texts of floats are kept: 0, -0 and False are equal as keys, and so are 1 and True."""
    for _ in range(2):
        assert literal(0.0, dtype) == literal(False, dtype) == f"0.0{unit}"
        assert literal(-0.0, dtype) == f"(-0.0{unit})"
        assert literal(1, dtype) == literal(True, dtype) == literal(np.float32(1), dtype) == f"1.0{unit}"
        assert literal(math.nan, dtype) == literal(math.nan, dtype)


def test_a_number_is_rounded_to_its_dtype() -> None:
    for _ in range(2):
        found = {name: literal(0.1, DTYPES[name]) for name in ("f64", "f32", "f16", "bf16")}
        assert found == {"f64": "0.1lf", "f32": "0.1", "f16": "0.099975586", "bf16": "0.100097656"}
