"""Functions over the named axes of `vmap`."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lavax.numpy as lnp
from lavax.numpy._core.errors import shape_error
from lavax.tracer.pytrees import pytree
from lavax.tracer.transforms import named_axes
from lavax.tracer.transforms.named_axes import AxisNames, axis_index, axis_size

__all__ = [
    "all_gather", "all_to_all", "axis_index", "axis_size", "pbroadcast", "pmax", "pmean", "pmin", "ppermute",
    "pshuffle", "psum", "psum_scatter", "pswapaxes",
]  # fmt: skip


def _whole(name: str, groups: Any) -> None:
    if groups is not None:
        raise ValueError(f"lax.{name}: axis_index_groups must be None: all elements of an axis belong together here")


def psum(x: Any, axis_name: AxisNames, *, axis_index_groups: None = None) -> Any:
    """The sum of each leaf over a named axis."""
    _whole("psum", axis_index_groups)
    return named_axes.psum(x, axis_name)


def pmean(x: Any, axis_name: AxisNames, *, axis_index_groups: None = None) -> Any:
    """The mean of each leaf over a named axis."""
    _whole("pmean", axis_index_groups)
    return named_axes.pmean(x, axis_name)


def pmax(x: Any, axis_name: AxisNames, *, axis_index_groups: None = None) -> Any:
    """The greatest value of each leaf over a named axis."""
    _whole("pmax", axis_index_groups)
    return named_axes.pmax(x, axis_name)


def pmin(x: Any, axis_name: AxisNames, *, axis_index_groups: None = None) -> Any:
    """The least value of each leaf over a named axis."""
    _whole("pmin", axis_index_groups)
    return named_axes.pmin(x, axis_name)


def all_gather(
    x: Any, axis_name: str, *, axis_index_groups: None = None, axis: int = 0, tiled: bool = False, to: str = "varying"
) -> Any:
    """The values of all elements of a named axis along a new axis, or joined along one with `tiled`."""
    _whole("all_gather", axis_index_groups)
    return named_axes.all_gather(x, axis_name, axis, tiled)


def _of_source(gathered: Any, sources: Sequence[int | None], axis_name: str) -> Any:
    """For each element of the axis the value of its source, 0 without one."""
    own = axis_index(axis_name)
    table = lnp.asarray([-1 if each is None else each for each in sources], dtype=lnp.int32)[own]
    return lnp.where(table >= 0, lnp.take(gathered, lnp.maximum(table, 0), axis=0), lnp.zeros_like(gathered[0]))


def ppermute(x: Any, axis_name: str, perm: Sequence[tuple[int, int]]) -> Any:
    """Each element's value goes where `perm`, pairs (source, destination), says; 0 where nothing goes."""
    size = axis_size(axis_name)
    sources: list[int | None] = [None] * size
    for source, target in perm:
        if not 0 <= source < size or not 0 <= target < size or sources[target] is not None:
            raise ValueError(f"lax.ppermute: perm has pairs of numbers below {size}, each once, got {list(perm)}")
        sources[target] = source
    return pytree.map(lambda leaf: _of_source(named_axes.all_gather(leaf, axis_name), sources, axis_name), x)


def pshuffle(x: Any, axis_name: str, perm: Sequence[int]) -> Any:
    """Element i gets the value of element perm[i]."""
    return ppermute(x, axis_name, [(source, target) for target, source in enumerate(perm)])


def pbroadcast(x: Any, axis_name: str, source: int) -> Any:
    """All elements get the value of one."""
    return pytree.map(lambda leaf: named_axes.all_gather(leaf, axis_name)[source], x)


def all_to_all(
    x: Any, axis_name: str, split_axis: int, concat_axis: int, *, axis_index_groups: None = None, tiled: bool = False
) -> Any:
    """Each element's value is divided along `split_axis`, part i goes to element i, and the parts that arrive are
    stacked along `concat_axis`, or joined along it with `tiled`. Raises ShapeError if the axis cannot be divided."""
    _whole("all_to_all", axis_index_groups)
    size = axis_size(axis_name)

    def exchanged(leaf: Any) -> Any:
        extent = lnp.shape(leaf)[split_axis]
        if extent % size or (not tiled and extent != size):
            raise shape_error(f"lax.all_to_all: axis {split_axis} of extent {extent} for {size} of {axis_name!r}")
        everything = named_axes.all_gather(leaf, axis_name)  # [source, …]
        own, part = axis_index(axis_name), extent // size
        places = own * part + lnp.arange(part, dtype=lnp.int32)
        mine = lnp.take(everything, places, axis=split_axis % leaf.ndim + 1, mode="clip")
        if tiled:
            return lnp.concatenate([mine[source] for source in range(size)], axis=concat_axis)
        return lnp.moveaxis(lnp.squeeze(mine, split_axis % leaf.ndim + 1), 0, concat_axis)

    return pytree.map(lambda leaf: exchanged(lnp.asarray(leaf)), x)


def pswapaxes(x: Any, axis_name: str, axis: int, *, axis_index_groups: None = None) -> Any:
    """Exchanges a named axis with a positional one."""
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def psum_scatter(
    x: Any, axis_name: str, *, scatter_dimension: int = 0, axis_index_groups: None = None, tiled: bool = False
) -> Any:
    """The part of the sum over a named axis that is the element's own along `scatter_dimension`."""
    _whole("psum_scatter", axis_index_groups)
    size = axis_size(axis_name)

    def own_part(leaf: Any) -> Any:
        total = named_axes.psum(leaf, axis_name)
        extent = total.shape[scatter_dimension]
        if extent % size or (not tiled and extent != size):
            raise shape_error(f"lax.psum_scatter: axis {scatter_dimension} of extent {extent} for {size} elements")
        part = extent // size
        places = axis_index(axis_name) * part + lnp.arange(part, dtype=lnp.int32)
        mine = lnp.take(total, places, axis=scatter_dimension, mode="clip")
        return mine if tiled else lnp.squeeze(mine, scatter_dimension)

    return pytree.map(lambda leaf: own_part(lnp.asarray(leaf)), x)
