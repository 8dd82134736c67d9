"""The operations, each defined in one place; importing this package fills the table `OPERATIONS`."""
from lavax.ir.ops import (
    call,
    contraction,
    cumulative,
    elementwise,
    indexing,
    marker,
    movement,
    named_axes,
    reduction,
    region,
    sorting,
    source,
)

__all__ = [
    "call",
    "contraction",
    "cumulative",
    "elementwise",
    "indexing",
    "marker",
    "movement",
    "named_axes",
    "reduction",
    "region",
    "sorting",
    "source",
]
