"""Scans with an associative operation, in a number of steps that is logarithmic in the length."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lavax.numpy as lnp
from lavax.base.errors import ControlFlowTypeError
from lavax.ir.location import user_error
from lavax.numpy._core.axes import normal_axis
from lavax.numpy._core.errors import shape_error
from lavax.tracer.calls.signature import require_function
from lavax.tracer.pytrees.pytree import TreeDef, flatten, unflatten
from lavax.tracer.tracing.convert import lift
from lavax.tracer.values.value import Value

Combine = Callable[[list[Value], list[Value]], list[Value]]


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """All partial results of an associative `fn` along `axis`: e0, fn(e0, e1), fn(fn(e0, e1), e2), …

    `elems` is a pytree of arrays with one extent n along `axis`, and so is the result. `fn` takes two such trees with
    any extent along that axis, combines them elementwise, and returns one; it is called about 2 log2(n) times, on
    2 n elements in all. With `reverse` the last element comes first: fn(e[n-1], e[n-2]), … Raises ShapeError if the
    extents differ, ControlFlowTypeError if `fn` returns another structure, other shapes or dtypes.
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
    scanned = _scanned(_combine(fn, structure, axes), fronted)
    if reverse:
        scanned = [lnp.flip(value, 0) for value in scanned]
    return unflatten(structure, [lnp.moveaxis(value, 0, along) for value, along in zip(scanned, axes, strict=True)])


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


def _scanned(combine: Combine, values: list[Value]) -> list[Value]:
    """Neighbours are combined, these half as many results scanned, and the remaining positions filled in."""
    count = values[0].shape[0]
    if count < 2:
        return values
    pairs = combine([value[: count - 1 : 2] for value in values], [value[1::2] for value in values])
    odd = _scanned(combine, pairs)
    if count == 2:
        return [_joined(value[:1], later) for value, later in zip(values, odd, strict=True)]
    before = [value[: (count - 1) // 2] for value in odd]
    between = combine(before, [value[2::2] for value in values])
    even = [_joined(value[:1], later) for value, later in zip(values, between, strict=True)]
    return [_interleaved(first, second) for first, second in zip(even, odd, strict=True)]


def _joined(first: Value, second: Value) -> Value:
    return lnp.concatenate([first, second], axis=0)


def _interleaved(even: Value, odd: Value) -> Value:
    """even[0], odd[0], even[1], …; there may be one more in `even`."""
    count = odd.shape[0]
    paired = lnp.reshape(lnp.stack([even[:count], odd], axis=1), (2 * count, *odd.shape[1:]))
    return paired if even.shape[0] == count else _joined(paired, even[count:])
