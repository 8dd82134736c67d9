"""Shapes that depend on data: one number is read from the device."""
from __future__ import annotations

from lavax.base.errors import ConcretizationError
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.number_arguments import whole_number
from lavax.tracer.values.value import Value


def length_of(name: str, count: Value, size: int | None, advice: str) -> int:
    """The number of entries of a result: `size`, or the number `count`, which must be known.

    Raises ConcretizationError, with `advice`, if it is not.
    """
    if size is not None:
        length = whole_number("size", size)
        if length < 0:
            raise shape_error(f"{name}: size={size} is not a number of entries")
        return length
    try:
        return int(count)
    except ConcretizationError as error:
        raise ConcretizationError(
            f"{name}: the shape of its result depends on data, which compile does not know yet: {advice}\n{error}"
        ) from None
