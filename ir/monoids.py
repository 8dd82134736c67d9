"""The monoids that operations fold with: the identity and join of each reduction, cumulative operation and scatter."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import FIELDS, NUMBERS, DType


@dataclass(frozen=True)
class Monoid:
    """An associative operation on two values, and its identity."""

    reduction: str  # its name as an operation over axes
    join: str | None  # its name as an elementwise operation, if there is one
    kinds: tuple[str, ...]  # of the dtypes that it is defined for
    identity: Callable[[DType], float | int | bool]
    function: np.ufunc


_TABLE = (
    Monoid("sum", "add", FIELDS, lambda dtype: dtype.number(0), np.add),
    Monoid("prod", "multiply", FIELDS, lambda dtype: dtype.number(1), np.multiply),
    Monoid("max", "maximum", (*NUMBERS, "bool"), lambda dtype: dtype.lowest, np.maximum),
    Monoid("min", "minimum", (*NUMBERS, "bool"), lambda dtype: dtype.highest, np.minimum),
    Monoid("logsumexp", None, ("float",), lambda dtype: dtype.lowest, np.logaddexp),
)

MONOIDS: dict[str, Monoid] = {monoid.reduction: monoid for monoid in _TABLE}
BY_JOIN: dict[str, Monoid] = {monoid.join: monoid for monoid in _TABLE if monoid.join is not None}
# The monoids that are also reductions over axes; the graph has no such operation for logsumexp.
REDUCTIONS: dict[str, Monoid] = {name: monoid for name, monoid in MONOIDS.items() if monoid.join is not None}
