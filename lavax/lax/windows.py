"""Reductions over moving windows, and the shapes that they give."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import lavax.numpy as lnp
from lavax import nn
from lavax.ir.monoids import MONOIDS
from lavax.lax.operands import known_number
from lavax.lax.reductions import JOINS, kind_of
from lavax.lax.shaping import pad
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import as_value
from lavax.tracer.pytrees import pytree
from lavax.tracer.values.value import Value

_POOLS: dict[str, Callable[..., Value]] = {"max": nn.max_pool, "min": nn.min_pool, "sum": nn.sum_pool}


def padtype_to_pads(
    in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int], padding: Any
) -> list[tuple[int, int]]:
    """The numbers (before, after) of each axis that "VALID", "SAME" or "SAME_LOWER" stand for."""
    if not isinstance(padding, str):
        return [(int(before), int(after)) for before, after in padding]
    kind = padding.upper()
    if kind == "VALID":
        return [(0, 0)] * len(in_shape)
    if kind not in ("SAME", "SAME_LOWER"):
        raise ValueError(f"lax: padding is 'VALID', 'SAME', 'SAME_LOWER' or pairs of numbers, got {padding!r}")
    pads = []
    for extent, window, stride in zip(in_shape, window_shape, window_strides, strict=True):
        total = max(0, (-(-extent // stride) - 1) * stride + window - extent)
        less, more = total // 2, total - total // 2
        pads.append((less, more) if kind == "SAME" else (more, less))
    return pads


def spread_by(extent: int, dilation: int) -> int:
    """The extent of elements that are `dilation` apart."""
    return 0 if extent == 0 else (extent - 1) * dilation + 1


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """The shape that `reduce_window` gives."""
    ones = (1,) * len(operand_shape)
    parts = zip(
        operand_shape, window_dimensions, window_strides, padding, base_dilation or ones, window_dilation or ones,
        strict=True,
    )  # fmt: skip
    return tuple(
        max(0, (spread_by(extent, base) + before + after - spread_by(window, dilation)) // stride + 1)
        for extent, window, stride, (before, after), base, dilation in parts
    )


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[..., Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """The elements of each window joined by an associative `computation`, and with `init_value`, which pads, too.

    Operands may be trees, as in `reduce`. Sums and extremes are recognised; others join as many arrays as a window has
    elements.
    """
    leaves, structure = pytree.flatten(operand)
    values, starts = [as_value(leaf) for leaf in leaves], [as_value(leaf) for leaf in pytree.leaves(init_value)]
    shape, rank = values[0].shape, values[0].ndim
    if len(window_dimensions) != rank:
        raise shape_error(f"lax.reduce_window: window_dimensions {tuple(window_dimensions)} for {values[0].type}")
    window, strides = tuple(window_dimensions), tuple(window_strides or (1,) * rank)
    base, dilation = tuple(base_dilation or (1,) * rank), tuple(window_dilation or (1,) * rank)
    spans = [spread_by(extent, step) for extent, step in zip(window, dilation, strict=True)]
    extents = [spread_by(extent, step) for extent, step in zip(shape, base, strict=True)]
    pads = padtype_to_pads(extents, spans, strides, padding)
    config = [(*sides, step - 1) for sides, step in zip(pads, base, strict=True)]
    starts = [lnp.astype(start, value.dtype) for start, value in zip(starts, values, strict=True)]
    kind = kind_of(computation, values[0].dtype) if len(values) == 1 else None
    if kind in _POOLS:
        empty = MONOIDS[kind].identity(values[0].type.dtype)
        filled = pad(values[0], lnp.asarray(empty, dtype=values[0].dtype), config)
        moved = [axis for axis in range(rank) if (window[axis], strides[axis]) != (1, 1)]
        made = filled
        if moved:
            sizes, steps, apart = ([each[axis] for axis in moved] for each in (window, strides, dilation))
            made = _POOLS[kind](filled, sizes, steps, "VALID", apart, axes=moved)
        joined = made if known_number(starts[0]) == empty else JOINS[kind](starts[0], made)
        return pytree.unflatten(structure, [lnp.astype(joined, values[0].dtype)])
    padded = [pad(value, start, config) for value, start in zip(values, starts, strict=True)]
    out = reduce_window_shape_tuple(shape, window, strides, pads, base, dilation)
    made_so_far = [lnp.broadcast_to(start, out) for start in starts]
    for place in itertools.product(*map(range, window)):
        first = [at * step for at, step in zip(place, dilation, strict=True)]
        cut = tuple(
            slice(begin, begin + (count - 1) * step + 1 if count else begin, step)
            for begin, count, step in zip(first, out, strides, strict=True)
        )
        pair = pytree.unflatten(structure, made_so_far), pytree.unflatten(structure, [each[cut] for each in padded])
        made_so_far = pytree.leaves(computation(*pair))
    return pytree.unflatten(structure, made_so_far)
