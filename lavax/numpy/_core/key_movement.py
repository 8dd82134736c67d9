"""Functions that move elements, applied to arrays of random keys: each word of a key moves as the key does."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from lavax.ir.location import named
from lavax.ir.types import uint32
from lavax.numpy._core.errors import dtype_error
from lavax.tracer.pytrees import key_trees
from lavax.tracer.pytrees.pytree import unflatten
from lavax.tracer.tracing.convert import is_numeric
from lavax.tracer.transforms.vmap import vmap
from lavax.tracer.values.key_array import KeyArray, KeyDtype, KeyOperandError
from lavax.tracer.values.value import Value

# Parameters whose elements are moved, besides those for which keys are given.
_MOVED = frozenset(
    ("arr", "cases", "choicelist", "choices", "default", "fill_value", "new", "on_false", "on_true", "update")
    + ("updates", "val", "values", "x", "y")
)
_Function = TypeVar("_Function", bound=Callable[..., Any])


def moves_keys(function: _Function) -> _Function:
    """A decorator: `function`, which moves elements and computes nothing with them, takes and returns keys, too."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except KeyOperandError:
            return _moved(function, args, kwargs)

    named(call, function.__name__, function.__doc__ or "")
    return call  # type: ignore[return-value]


def _moved(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The function of each word. Positions, masks and settings are the same for all."""
    _require_keys(function, args, kwargs)
    leaves, structure = key_trees.flatten((tuple(args), kwargs))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, KeyArray)]
    if not places:
        return function(*args, **kwargs)  # keys in what is no pytree: the error again

    def of_word(*words: Value) -> Any:
        given = list(leaves)
        for place, word in zip(places, words, strict=True):
            given[place] = word
        positional, keywords = unflatten(structure, given)
        return function(*positional, **keywords)

    found = vmap(of_word, in_axes=-1, out_axes=-1)(*(leaves[place].words for place in places))
    return key_trees.map(KeyArray, found)


def _require_keys(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Raises DtypeError if an argument whose elements are moved has numbers: it would give them for words of keys."""
    for name, given in inspect.signature(function).bind(*args, **kwargs).arguments.items():
        found = key_trees.leaves(given)
        moved = name in _MOVED or any(isinstance(leaf, KeyArray) for leaf in found)
        for leaf in found:
            if moved and is_numeric(leaf) and not isinstance(leaf, KeyArray):
                raise dtype_error(f"{function.__name__}: random keys go with keys alone, got numbers for {name}")


def makes_keys(function: _Function) -> _Function:
    """A decorator: `function` of a shape and a dtype, which may be that of keys: then it makes their words."""

    @functools.wraps(function)
    def call(shape: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(dtype, KeyDtype):
            return function(shape, dtype, *args, **kwargs)
        extents = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        return KeyArray(function((*extents, 2), uint32, *args, **kwargs))

    named(call, function.__name__, function.__doc__ or "")
    return call  # type: ignore[return-value]


def moved_index(function: Callable[..., Any], keys: KeyArray, key: Any) -> KeyArray:
    """`keys[key]`, given the function that indexes arrays: the words are the last axis, which is taken whole."""
    items = key if isinstance(key, tuple) else (key,)
    if any(item is Ellipsis for item in items):
        return KeyArray(function(keys.words, (*items, slice(None))))
    return KeyArray(function(keys.words, (*items, Ellipsis, slice(None))))


def same_keys(x: Any, y: Any, equal: Callable[[Value, Value], Value], all: Callable[..., Value]) -> Value:
    """Whether keys are the same, each of one array as that of another; both broadcast. Raises DtypeError for others."""
    if not (isinstance(x, KeyArray) and isinstance(y, KeyArray)):
        raise dtype_error("keys are compared with keys alone: numbers are none")
    rank = max(x.ndim, y.ndim)
    words = [each.words[(None,) * (rank - each.ndim)] for each in (x, y)]
    return all(equal(*words), -1)
