"""Window strides, dilations and paddings of convolution and pooling, given per axis or for all axes."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from lavax.ir.types import TensorType
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.number_arguments import whole_number

PerAxis: TypeAlias = int | Sequence[int]
Padding: TypeAlias = (
    Literal["VALID", "SAME", "SAME_LOWER", "valid", "same"] | int | Sequence[int] | Sequence[tuple[int, int]]
)


def per_axis(name: str, what: str, given: PerAxis, count: int) -> tuple[int, ...]:
    """`given` for each of `count` axes, at least 1 everywhere. Raises ShapeError."""
    entries = given if isinstance(given, Sequence) else [given] * count
    numbers = tuple(whole_number(what, entry) for entry in entries)
    if len(numbers) != count or min((*numbers, 1)) < 1:
        raise shape_error(f"{name}: {what} must be a positive number, or one for each of {count} axes, got {given}")
    return numbers


def span_of(window: int, dilation: int) -> int:
    """The number of elements from the first to the last of a window."""
    return (window - 1) * dilation + 1


def paddings(
    name: str, given: Padding, extents: Sequence[int], spans: Sequence[int], strides: Sequence[int]
) -> list[tuple[int, int]]:
    """(before, after) of each axis.

    "VALID" is none. "SAME" gives ceil(extent / stride) windows, half of the padding on each side; if it is odd, the
    extra element comes after, with "SAME_LOWER" before. Strings may be in lower case, too. Else a number for all sides,
    or per axis a number or a pair; negative ones cut. Raises ShapeError, or ValueError for another string.
    """
    if isinstance(given, str):
        own = given.upper()
        if own not in ("VALID", "SAME", "SAME_LOWER"):
            raise ValueError(f"{name}: padding is 'VALID', 'SAME', 'SAME_LOWER' or numbers, got {given!r}")
        totals = [
            0 if own == "VALID" else max((-(-extent // stride) - 1) * stride + span - extent, 0)
            for extent, span, stride in zip(extents, spans, strides, strict=True)
        ]
        halves = [(total // 2, total - total // 2) for total in totals]
        return [pair[::-1] for pair in halves] if own == "SAME_LOWER" else halves
    entries = list(given) if isinstance(given, Sequence) else [given] * len(extents)
    pairs = [tuple(entry) if isinstance(entry, Sequence) else (entry, entry) for entry in entries]
    if len(pairs) != len(extents) or any(len(pair) != 2 for pair in pairs):
        raise shape_error(f"{name}: padding must be a pair for each of {len(extents)} axes, got {given}")
    return [(whole_number("padding", before), whole_number("padding", after)) for before, after in pairs]


def require_window_axes(name: str, type: TensorType, count: int) -> None:
    """Raises ShapeError if a value has fewer than `count` axes."""
    if type.rank < count:
        raise shape_error(f"{name}: a window of {count} axes needs as many, got {type}")
