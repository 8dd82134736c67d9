"""The operations, each defined in one place; importing this package fills the table `OPERATIONS`."""
from lavax.ir.ops import contraction, elementwise, indexing, movement, reduction, region, source

__all__ = ["contraction", "elementwise", "indexing", "movement", "reduction", "region", "source"]
