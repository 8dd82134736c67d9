"""The operations, each defined in one place; importing this package fills the table `OPERATIONS`."""
from lavax.ir.ops import (
    call,
    contraction,
    cumulative,
    elementwise,
    indexing,
    linear_algebra,
    marker,
    movement,
    named_axes,
    reduction,
    region,
    sorting,
    source,
    window,
)

__all__ = [
    "call",
    "contraction",
    "cumulative",
    "elementwise",
    "indexing",
    "linear_algebra",
    "marker",
    "movement",
    "named_axes",
    "reduction",
    "region",
    "sorting",
    "source",
    "window",
]
