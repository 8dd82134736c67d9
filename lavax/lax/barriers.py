"""What stands between computations and what looks at them."""
from __future__ import annotations

from typing import Any

from lavax.tracer.pytrees import pytree
from lavax.tracer.tracing.convert import lift
from lavax.tracer.transforms.grad import stop_gradient

__all__ = ["optimization_barrier", "stop_gradient"]


def optimization_barrier(operand: Any, /) -> Any:
    """The arrays of a tree as they are. Passes of lavax keep what numbers are computed from: no barrier is needed."""
    return pytree.map(lift, operand)
