"""How large types and how deep graphs may be, so that what comes from a file is refused before work begins."""
from __future__ import annotations

from lavax.ir.types import TensorType, TupleType

MOST_AXES = 64  # as in NumPy
MOST_ELEMENTS = (1 << 63) - 1
MOST_NESTED = 64  # graphs within graphs: passes call themselves for inner ones


def fault_of_type(type: TensorType) -> str | None:
    """Why no value can have this type; None if one can."""
    if isinstance(type, TupleType):
        return next((fault for part in type.parts if (fault := fault_of_type(part))), None)
    if type.rank > MOST_AXES:
        return f"{type.rank} axes are more than the {MOST_AXES} that a value may have"
    if max(type.shape, default=0) > MOST_ELEMENTS or type.size > MOST_ELEMENTS:
        return f"{type!s:.80} has more elements than the 2^63 - 1 that a value may have"
    return None
