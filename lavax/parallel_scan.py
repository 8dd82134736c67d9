"""Scans with an associative operation."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lavax.numpy as lnp
from lavax.base.errors import ControlFlowTypeError
from lavax.ir.location import user_error
from lavax.numpy._core.axes import normal_axis
from lavax.numpy._core.errors import shape_error
from lavax.scan_forms import Combine, scanned
from lavax.tracer.calls.signature import require_function
from lavax.tracer.pytrees.pytree import TreeDef, flatten, unflatten
from lavax.tracer.tracing.convert import lift
from lavax.tracer.values.value import Value


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """All partial results of an associative `fn` along `axis`: e0, fn(e0, e1), fn(fn(e0, e1), e2), …

    `elems` is a pytree of arrays with one extent n along `axis`, and so is the result. `fn` takes two such trees with
    any extent along that axis, combines them elementwise, and returns one; it is called at most 2 log2(n) times, and
    computes at most 2 n elements. One operation alone, such as `lnp.maximum`, is scanned by its cumulative operation.
    With `reverse` the last element comes first: fn(e[n-1], e[n-2]), … Raises ShapeError if the extents differ,
    ControlFlowTypeError if `fn` returns another structure, other shapes or dtypes.
    """
    require_function(fn, "associative_scan takes a function")
    leaves, structure = flatten(elems)
    values = [lift(leaf) for leaf in leaves]
    if not values:
        return elems
    axes = [normal_axis("associative_scan", axis, value.type) for value in values]
    extents = {value.shape[along] for value, along in zip(values, axes, strict=True)}
    if len(extents) != 1:
        raise shape_error(f"associative_scan: extents along axis {axis} must agree, got {sorted(extents)}")
    fronted = [lnp.moveaxis(value, along, 0) for value, along in zip(values, axes, strict=True)]
    if reverse:
        fronted = [lnp.flip(value, 0) for value in fronted]
    found = scanned(_combine(fn, structure, axes), fronted)
    if reverse:
        found = [lnp.flip(value, 0) for value in found]
    return unflatten(structure, [lnp.moveaxis(value, 0, along) for value, along in zip(found, axes, strict=True)])


def _combine(fn: Callable[[Any, Any], Any], structure: TreeDef, axes: list[int]) -> Combine:
    """`fn` on the leaves, whose scanned axis is in front."""

    def as_tree(values: list[Value]) -> Any:
        return unflatten(structure, [lnp.moveaxis(value, 0, along) for value, along in zip(values, axes, strict=True)])

    def combine(first: list[Value], second: list[Value]) -> list[Value]:
        leaves, given = flatten(fn(as_tree(first), as_tree(second)))
        if given is not structure:
            raise user_error(
                ControlFlowTypeError, f"associative_scan: fn gives the structure {given!r}, elems have {structure!r}"
            )
        results = [lnp.moveaxis(lift(leaf), along, 0) for leaf, along in zip(leaves, axes, strict=True)]
        for result, value in zip(results, second, strict=True):
            if result.type != value.type:
                raise user_error(
                    ControlFlowTypeError,
                    f"associative_scan: fn gives {result.type}, it was given {value.type} (scanned axis in front): "
                    "it must keep shapes and dtypes",
                )
        return results

    return combine
