"""Whether the device at hand tells denormal numbers from zeros; Vulkan leaves that to it."""
from __future__ import annotations

import functools

import numpy as np

import lavax.numpy as lnp


@functools.cache
def are_flushed() -> bool:
    """Whether a comparison takes the smallest positive number for zero."""
    return not bool(np.asarray(lnp.asarray(np.float32(1e-45)) > 0))
