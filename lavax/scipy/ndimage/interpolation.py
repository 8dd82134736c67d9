"""Arrays sampled at coordinates that are not whole."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import lavax.numpy as lnp
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.values.value import Value


def _mirrored(place: Value, size: int) -> Value:
    """…, 2, 1, 0, 1, 2, …: about the middle of the edge's element."""
    period = max(2 * (size - 1), 1)
    folded = lnp.mod(place, period)
    return lnp.minimum(folded, period - folded) if size > 1 else lnp.zeros_like(place)


def _reflected(place: Value, size: int) -> Value:
    """…, 1, 0, 0, 1, …: about the edge."""
    folded = lnp.mod(place, 2 * size)
    return lnp.minimum(folded, 2 * size - 1 - folded)


# The element that stands for one outside, by the mode.
_MODES: dict[str, Callable[[Value, int], Value]] = {
    "constant": lambda place, size: lnp.clip(place, 0, size - 1),
    "nearest": lambda place, size: lnp.clip(place, 0, size - 1),
    "wrap": lambda place, size: lnp.mod(place, size),
    "mirror": _mirrored,
    "reflect": _reflected,
}


def _neighbours(coordinate: Value, order: int) -> list[tuple[Value, Any]]:
    """The elements between which a coordinate lies, with their weights."""
    if order == 0:
        away = lnp.where(coordinate < 0, lnp.ceil(coordinate - 0.5), lnp.floor(coordinate + 0.5))
        return [(lnp.astype(away, "int32"), 1.0)]
    below = lnp.floor(coordinate)
    above = coordinate - below
    place = lnp.astype(below, "int32")
    return [(place, 1 - above), (place + 1, above)]


def map_coordinates(
    input: ArrayLike,
    coordinates: ArrayLike | Sequence[ArrayLike],
    order: int,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
) -> Value:
    """`input` at `coordinates`, one array per axis of `input`: `order` 0 takes the nearest element, 1 is linear.

    Outside, `mode` says what elements are: "constant" `cval`, "nearest" the edge's, "wrap" those from the other side,
    "mirror" and "reflect" those mirrored about the last element or about the edge. The result has the shape of a
    coordinate and the dtype of `input`; whole numbers are rounded. Gradients flow to `input` and to coordinates. Raises
    ShapeError for another number of coordinates, ValueError for another order or mode.
    """
    value = as_value(input)
    if mode not in _MODES:
        raise ValueError(f"map_coordinates: mode must be one of {', '.join(_MODES)}, got {mode!r}")
    if order not in (0, 1):
        raise ValueError(f"map_coordinates: order must be 0 or 1, got {order}")
    given = [as_floating(coordinate) for coordinate in coordinates]  # type: ignore[union-attr]
    if len(given) != value.ndim:
        raise shape_error(f"map_coordinates: {value.type} needs {value.ndim} coordinates, got {len(given)}")
    given = lnp.broadcast_arrays(*given)
    total: Any = None
    for corner in itertools.product(*(_neighbours(coordinate, order) for coordinate in given)):
        places = [place for place, _ in corner]
        found: Any = value[tuple(_MODES[mode](p, size) for p, size in zip(places, value.shape, strict=True))]
        if mode == "constant":
            for place, size in zip(places, value.shape, strict=True):
                found = lnp.where((place < 0) | (place >= size), cval, found)
        for _, weight in corner:
            found = found * weight
        total = found if total is None else total + found
    if total is None:
        return value
    return lnp.astype(lnp.round(total) if value.type.dtype.is_integer else total, value.dtype)
