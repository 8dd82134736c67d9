"""Random orders, and draws from given entries."""
from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

import numpy as np

import lavax.numpy as lnp
from lavax.ir.location import named
from lavax.numpy._core.application import real_numbers
from lavax.numpy._core.axes import normal_axis
from lavax.numpy._core.errors import dtype_error, shape_error
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import ArrayLike, as_positions, as_value
from lavax.numpy._core.promotion import floating
from lavax.numpy._core.shape_arguments import checked_shape
from lavax.numpy.reductions.cumulative import cumsum
from lavax.numpy.sorting.sorting import argsort
from lavax.random.bits import drawn_bits
from lavax.random.continuous import standard_gumbel, uniform_between
from lavax.random.discrete import randint
from lavax.random.keys import as_key, split
from lavax.random.parameters import at_least_float32
from lavax.tracer import bind
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.key_array import KeyArray
from lavax.tracer.values.value import Value

Given = ParamSpec("Given")


def _orders_keys(name: str) -> Callable[[Callable[Given, Value]], Callable[Given, Value]]:
    """A decorator: a function whose entries are the second argument, `name`, takes an array of random keys there, too.

    The words of a key are a last axis, which moves with its entry. Raises DtypeError for lines of orders of their own.
    """

    def decorate(function: Callable[Given, Value]) -> Callable[Given, Value]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args: Given.args, **kwargs: Given.kwargs) -> Value:
            entries = args[1] if len(args) > 1 else kwargs.get(name)
            if not isinstance(entries, KeyArray):
                return function(*args, **kwargs)
            given = signature.bind(*args, **kwargs)
            if given.arguments.get("independent"):
                raise dtype_error(f"{function.__name__}: random keys are ordered together, not with independent=True")
            axis = normal_axis(function.__name__, given.arguments.get("axis", 0), entries.words.type, entries.ndim)
            given.arguments.update({name: entries.words, "axis": axis})
            return KeyArray(function(*given.args, **given.kwargs))

        named(call, function.__name__, function.__doc__ or "")
        return call

    return decorate


@_orders_keys("x")
@one_program("axis", "independent", either="x")
def permutation(
    key: ArrayLike, x: int | ArrayLike, axis: int = 0, independent: bool = False, *, out_sharding: Any = None
) -> Value:
    """`x` with its entries along `axis` in a random order; for an int, 0 to x - 1.

    With `independent` each line along `axis` has its own order. Sorts by random keys, repeatedly, so that equal keys do
    not matter.
    """
    if isinstance(x, (int, np.integer)) and not isinstance(x, bool):
        return _shuffled(key, lnp.arange(_count("permutation", x)), 0)
    value = as_value(x)
    along = normal_axis("permutation", axis, value.type)
    if independent or value.ndim == 1:
        return _shuffled(key, value, along)
    return lnp.take(value, _shuffled(key, lnp.arange(value.shape[along]), 0), axis=along, mode="promise_in_bounds")


def _shuffled(key: ArrayLike, x: Value, axis: int) -> Value:
    """Sorted by 32-bit keys, repeatedly, until the keys together have three times the bits of all positions."""
    remaining = as_key("permutation", key)
    rounds = math.ceil(3 * math.log(max(1, x.size)) / math.log(2**32 - 1))
    for _ in range(rounds):
        remaining, drawn = split(remaining)
        order = argsort(drawn_bits("permutation", drawn, x.shape), axis=axis)
        x = lnp.take_along_axis(x, order, axis=axis, mode="promise_in_bounds")
    return x


@_orders_keys("a")
@one_program("shape", "replace", "axis", either="a")
def choice(
    key: ArrayLike,
    a: int | ArrayLike,
    shape: int | Sequence[int] = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Value:
    """Entries of `a` along `axis`, or of 0 to a - 1 for an int; `shape` replaces that axis.

    `p` are their probabilities, by default equal; they must sum to 1. `mode` is as in `gumbel`, by which entries are
    drawn without `replace`. Raises ShapeError for draws from nothing, for more draws without `replace` than there are
    entries, and if there are not as many probabilities as entries, DtypeError for complex `p`.
    """
    extents = checked_shape("choice", shape)
    values = None if isinstance(a, (int, np.integer)) and not isinstance(a, bool) else as_value(a)
    if values is None:
        along, count = 0, _count("choice", a)
    else:
        along = normal_axis("choice", axis, values.type)
        count = values.shape[along]
    places = _places(key, count, extents, replace, p, mode)
    return places if values is None else lnp.take(values, places, axis=along, mode="promise_in_bounds")


def _places(
    key: ArrayLike, count: int, shape: tuple[int, ...], replace: bool, p: ArrayLike | None, mode: str | None
) -> Value:
    """Positions below `count`, as drawn by `choice`."""
    draws = math.prod(shape)
    if draws and not count:
        raise shape_error(f"choice: there is nothing to draw {shape} from")
    if not replace and draws > count:
        raise shape_error(f"choice: {draws} draws without replacement from {count} entries")
    if p is None:
        if replace:
            return randint(key, shape, 0, max(count, 1))
        return lnp.reshape(permutation(key, count)[:draws], shape)
    weights = real_numbers("choice: p", p)
    if weights.shape != (count,):
        raise shape_error(f"choice: p must have shape ({count},), one probability an entry, got {weights.type}")
    if replace:
        return _by_weight(key, weights, shape)
    dtype = at_least_float32(floating(weights.type.dtype))
    noisy = lnp.add(standard_gumbel("choice", key, (count,), dtype, mode), lnp.log(weights))
    return lnp.reshape(argsort(lnp.negative(noisy))[:draws], shape)


def _by_weight(key: ArrayLike, weights: Value, shape: tuple[int, ...]) -> Value:
    """The position in the running sum of the weights of a point that is uniform over (0, their sum]."""
    ends = cumsum(weights)
    drawn = uniform_between("choice", key, (math.prod(shape),), dtype=at_least_float32(ends.type.dtype))
    points = lnp.multiply(ends[-1], lnp.subtract(1.0, drawn))
    return lnp.reshape(as_positions(bind("search_sorted", ends, points, right=False)), shape)


def _count(name: str, x: int | ArrayLike) -> int:
    count = whole_number("the number of entries", x)
    if count < 0:
        raise shape_error(f"{name}: {count} is not a number of entries")
    return count
