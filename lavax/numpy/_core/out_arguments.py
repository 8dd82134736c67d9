"""The argument `out`, which is there so that the arguments behind it have NumPy's places."""
from __future__ import annotations

from typing import Any


def refuse_out(name: str, out: Any) -> None:
    """Raises NotImplementedError unless `out` is None, as in JAX."""
    if out is not None:
        raise NotImplementedError(f"{name}: out must be None: functions make new arrays; assign the result instead")
