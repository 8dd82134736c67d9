"""Reductions over the named axes of `vmap`."""
from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod
from types import MappingProxyType
from typing import Any

from lavax.base.errors import ShapeError, UnboundAxisError
from lavax.ir.default_dtypes import default_float
from lavax.ir.location import user_error
from lavax.ir.types import TensorType, float32, int32
from lavax.tracer.pytrees.pytree import map
from lavax.tracer.tracing.bind import bind
from lavax.tracer.tracing.convert import constant, lift
from lavax.tracer.values.array import Array
from lavax.tracer.values.value import Value

AxisNames = str | Sequence[str]

_sizes: ContextVar[Mapping[str, int]] = ContextVar("lavax_named_axes", default=MappingProxyType({}))


@contextmanager
def named_axis(name: str | None, size: int) -> Iterator[None]:
    """A context in which the axis `name` has the extent `size`."""
    if name is None:
        yield
        return
    token = _sizes.set({**_sizes.get(), name: size})
    try:
        yield
    finally:
        _sizes.reset(token)


def axis_size(axis_name: AxisNames) -> int:
    """The number of elements of the axis, or of several together. Raises UnboundAxisError if no `vmap` names it."""
    return prod(_size(name, "axis_size") for name in _names(axis_name))


def psum(tree: Any, axis_name: AxisNames) -> Any:
    """The sum of each leaf over the elements of a named axis; the same for all elements.

    `axis_name` is a name given to `vmap`, or several. A Python number n gives n times the axis's extent. Raises
    UnboundAxisError if no enclosing `vmap` has an axis of that name.
    """
    names = _names(axis_name)
    return map(lambda leaf: _sum(leaf, names), tree)


def pmean(tree: Any, axis_name: AxisNames) -> Any:
    """The mean of each leaf over the elements of a named axis, as `psum`. Integers are averaged as floats."""
    names = _names(axis_name)

    def mean(leaf: Any) -> Value:
        value = lift(leaf)
        if not value.type.dtype.is_inexact:
            held = default_float() if value.type.dtype.bits == 64 else float32
            value = bind("cast", value, type=value.type.with_dtype(held))
        total = _over(value, names, "axis_sum", "pmean")
        return bind("divide", total, constant(float(axis_size(names)), total.type))

    return map(mean, tree)


def pmax(tree: Any, axis_name: AxisNames) -> Any:
    """The greatest value of each leaf over the elements of a named axis, as `psum`. Equal ones share the gradient."""
    names = _names(axis_name)
    return map(lambda leaf: _over(lift(leaf), names, "axis_max", "pmax"), tree)


def pmin(tree: Any, axis_name: AxisNames) -> Any:
    """The least value of each leaf over the elements of a named axis, as `psum`. Equal ones share the gradient."""
    names = _names(axis_name)
    return map(lambda leaf: _over(lift(leaf), names, "axis_min", "pmin"), tree)


def axis_index(axis_name: AxisNames) -> Value:
    """The position of the element along a named axis, i32[]; along several, the last of which moves fastest.

    Raises UnboundAxisError as `psum`.
    """
    sizes = {name: _size(name, "axis_index") for name in _names(axis_name)}
    position = constant(0, TensorType((), int32))
    for place, (name, size) in enumerate(sizes.items()):
        along = bind("axis_index", name=name)
        stride = constant(size, position.type)
        position = bind("add", bind("multiply", position, stride), along) if place else along
    return position


def all_gather(tree: Any, axis_name: AxisNames, axis: int = 0, tiled: bool = False) -> Any:
    """The values of all elements of a named axis, or of several, stacked along a new axis `axis` of each leaf.

    With `tiled` they are concatenated along the existing axis `axis`. Raises UnboundAxisError as `psum`, ShapeError if
    there is no such axis.
    """
    sizes = {name: _size(name, "all_gather") for name in _names(axis_name)}
    size = prod(sizes.values())

    def gather(leaf: Any) -> Value:
        value = gathered = lift(leaf)
        for name in reversed(sizes):
            gathered = bind("axis_gather", gathered, name=name, size=sizes[name])
        if len(sizes) != 1:
            gathered = bind("reshape", gathered, type=value.type.with_shape((size, *value.shape)))
        rank = gathered.ndim - tiled
        if not -rank <= axis < rank:
            raise user_error(ShapeError, f"all_gather: axis {axis} is not an axis of a result of {rank} axes")
        position = axis % rank
        order = (*range(1, position + 1), 0, *range(position + 1, gathered.ndim))
        moved = bind("transpose", gathered, axes=order)
        if not tiled:
            return moved
        shape = (*moved.shape[:position], size * moved.shape[position + 1], *moved.shape[position + 2 :])
        return bind("reshape", moved, type=moved.type.with_shape(shape))

    return map(gather, tree)


def _names(axis_name: object) -> tuple[str, ...]:
    if isinstance(axis_name, str):
        return (axis_name,)
    if not isinstance(axis_name, Iterable) or any(not isinstance(name, str) for name in axis_name):
        raise user_error(TypeError, f"axis_name must be a name or a tuple of names, got {axis_name!r:.80}")
    return tuple(axis_name)


def _size(name: str, what: str) -> int:
    sizes = _sizes.get()
    if name not in sizes:
        known = f"the axes here are {', '.join(builtins.map(repr, sizes))}" if sizes else "there are no named axes here"
        raise user_error(
            UnboundAxisError,
            f"{what} over the axis {name!r}, which is not bound: {known}. Call it inside a function that is mapped "
            f"with vmap(…, axis_name={name!r})",
        )
    return sizes[name]


def _sum(leaf: Any, names: Sequence[str]) -> Any:
    if isinstance(leaf, (int, float)):
        return leaf * axis_size(names)
    return _over(lift(leaf), names, "axis_sum", "psum")


def _over(value: Value, names: Sequence[str], op: str, what: str) -> Value:
    for name in names:
        _size(name, what)
        value = bind(op, value, name=name)
    return value if names or not isinstance(value, Array) else value.twin(value.weak)
