"""Calls of jax.lax at its edges: other widths, orders, dtypes of indices, and further forms of arguments."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

draw = np.random.default_rng(12)
X = draw.normal(size=(3, 4)).astype(np.float32)
LINE = draw.normal(size=300).astype(np.float32)
BYTES = draw.integers(0, 256, (3, 2, 4), dtype=np.uint8)
SEQUENCE, KERNEL = draw.normal(size=(2, 5, 3)).astype(np.float32), draw.normal(size=(3, 3, 4)).astype(np.float32)

Case = tuple[Callable[..., Any], tuple[Any, ...]]


def elements(lax: Any, x: Any, places: Any, mode: Any) -> Any:
    return lax.gather(x, places, lax.GatherDimensionNumbers((), (0,), (0,)), (1,), mode=mode)


def added(lax: Any, x: Any, places: Any, updates: Any) -> Any:
    return lax.scatter_add(x, places, updates, lax.ScatterDimensionNumbers((), (0,), (0,)))


EDGES: dict[str, Case] = {
    "bitcast_convert_type to bytes": (lambda lax, x: lax.bitcast_convert_type(x, np.uint8), (X,)),
    "bitcast_convert_type to halves": (lambda lax, x: lax.bitcast_convert_type(x, np.int16), (X,)),
    "bitcast_convert_type of bytes": (lambda lax, x: lax.bitcast_convert_type(x, np.int32), (BYTES,)),
    "bitcast_convert_type of bytes to halves": (
        lambda lax, x: lax.bitcast_convert_type(x, np.int16), (BYTES.reshape(3, 4, 2),)
    ),
    "bitcast_convert_type of halves": (
        lambda lax, x: lax.bitcast_convert_type(x, np.uint8), (X.astype(np.float16),)
    ),
    "bitcast_convert_type and back": (
        lambda lax, x: lax.bitcast_convert_type(lax.bitcast_convert_type(x, np.uint8), np.float32), (X,)
    ),
    "broadcast_in_dim in another order": (lambda lax, x: lax.broadcast_in_dim(x, (4, 2, 3), (2, 0)), (X,)),
    "broadcast_in_dim of a scalar": (lambda lax, x: lax.broadcast_in_dim(x, (2, 3), ()), (np.float32(1.5),)),
    **{
        f"gather by {dtype}, {mode}": (
            lambda lax, x, places, mode=mode: elements(lax, x, places, mode), (LINE, np.array([[200], [7]], dtype))
        )
        for dtype in ("uint8", "int16", "uint32")
        for mode in ("clip", "fill")
    },
    "gather by int8 from the end": (
        lambda lax, x, places: elements(lax, x, places, "fill"), (LINE, np.int8([[-1], [100]]))
    ),
    "scatter_add by uint8": (added, (LINE, np.uint8([[200], [250], [200]]), np.float32([1, 2, 3]))),
    "dynamic_slice by uint8": (lambda lax, x, i: lax.dynamic_slice(x, (i,), (3,)), (LINE, np.uint8(200))),
    "cond of two operands": (
        lambda lax, x: lax.cond(x[0, 0] > 0, x, lambda v: v * 2, x + 1, lambda v: v * v), (X,)
    ),
    "scan, transposed as a whole": (
        lambda lax, x: lax.scan(lambda c, row: (c * row, c + row), x[0], x, _split_transpose=False), (X,)
    ),
    "scan, unrolled": (lambda lax, x: lax.scan(lambda c, row: (c * row, c + row), x[0], x, unroll=True), (X,)),
    **{
        f"conv_transpose, consistently padded by {pads}, dilated by {dilation}": (
            lambda lax, x, k, pads=pads, dilation=dilation: lax.conv_transpose(
                x, k, (2,), (pads,), rhs_dilation=(dilation,), use_consistent_padding=True
            ),
            (SEQUENCE, KERNEL),
        )
        for pads in ((1, 2), (0, 1))
        for dilation in (1, 2)
    },
    "conv_general_dilated, sharded": (
        lambda lax, x, k: lax.conv_general_dilated(
            x, k, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"), out_sharding=None
        ),
        (SEQUENCE, KERNEL),
    ),
    "ragged_dot, sharded": (
        lambda lax, x, y: lax.ragged_dot(x, y, np.int32([1, 2]), out_sharding=None),
        (X, np.stack([X.T, 2 * X.T])),
    ),
}  # fmt: skip
