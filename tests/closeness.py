"""The comparison of what float32 gives with what it should be."""
from __future__ import annotations

from typing import Any

import numpy as np


def close(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    """Whether numbers of size 1 differ by no more than rounding: 1e-5 is that of some hundred operations in a row, of
    6e-8 each. Where what is computed is conditioned worse, `tolerance` says so."""
    np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance)
