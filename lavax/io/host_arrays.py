"""Arrays between files and the device, with exactly the numbers they have."""
from __future__ import annotations

from typing import Any

import numpy as np

from lavax.ir import DType
from lavax.ir.types import dtype_of_data
from lavax.tracer.tracing.convert import array_of
from lavax.tracer.values.array import Array, with_weakness


def device_array(numbers: np.ndarray, dtype: Any = None, weak: bool = False) -> Array:
    """`numbers` on the device, converted to `dtype` on the way, without another copy on the host if there is no need.

    Without `dtype` they keep their own, 64 bits included. Raises DtypeError for a dtype that the device has not.
    """
    held = dtype if isinstance(dtype, DType) else dtype_of_data(numbers.dtype if dtype is None else dtype)
    array = array_of(numbers, held, borrow=True)
    _ = array.buffer
    return with_weakness(array, weak)
