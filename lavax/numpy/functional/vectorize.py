"""Functions of small arrays, extended to arrays of them."""
from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Collection
from typing import Any

from lavax.base.quick_dataclasses import dataclass
from lavax.numpy._core.broadcasting import broadcast_shapes, broadcast_to
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.movement import reshaped
from lavax.numpy._core.operands import as_value
from lavax.tracer.calls.signature import require_function
from lavax.tracer.pytrees.pytree import flatten, unflatten
from lavax.tracer.transforms.vmap import vmap
from lavax.tracer.values.value import Value

__all__ = ["vectorize"]

_NAME = r"[A-Za-z_]\w*"
_GROUP = rf"\((?:{_NAME}(?:,{_NAME})*)?\)"
_SIGNATURE = re.compile(rf"{_GROUP}(?:,{_GROUP})*->{_GROUP}(?:,{_GROUP})*")


@dataclass(frozen=True)
class _Signature:
    """The names of the core axes of each argument and each result."""

    arguments: tuple[tuple[str, ...], ...]
    results: tuple[tuple[str, ...], ...]


def _parsed(signature: str) -> _Signature:
    text = signature.replace(" ", "")
    if not _SIGNATURE.fullmatch(text):
        raise ValueError(f"vectorize: a signature is written like '(m,n),(n)->(m)', got {signature!r}")
    sides = (re.findall(_GROUP, side) for side in text.split("->"))
    arguments, results = (
        tuple(tuple(name for name in group[1:-1].split(",") if name) for group in side) for side in sides
    )
    return _Signature(arguments, results)


def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Collection[int | str] = frozenset(), signature: str | None = None
) -> Callable[..., Any]:
    """`pyfunc`, a function of scalars, as a function of arrays that broadcast; one program, by `vmap`.

    With `signature`, such as "(m,n),(n)->(m)", it is a function of arrays with these last axes; the axes in front of
    them broadcast. `excluded` are positions of arguments that are passed on unchanged; so are all keyword arguments.
    Raises ShapeError if arguments or results do not have the axes of the signature.
    """
    require_function(pyfunc, "vectorize takes a function")
    known = None if signature is None else _parsed(signature)

    @functools.wraps(pyfunc)
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        places = [place for place in range(len(args)) if place not in excluded]

        def function(*mapped: Value) -> Any:
            given = list(args)
            for place, value in zip(places, mapped, strict=True):
                given[place] = value
            return pyfunc(*given, **kwargs)

        return _over_loops(function, [as_value(args[place]) for place in places], known)

    return vectorized


def _over_loops(function: Callable[..., Any], values: list[Value], signature: _Signature | None) -> Any:
    """The function mapped over all axes other than its core axes, as one axis."""
    ranks = [0] * len(values) if signature is None else _core_ranks(signature, values)
    cores = [value.shape[value.ndim - rank :] for value, rank in zip(values, ranks, strict=True)]
    extents = {} if signature is None else _extents(signature, cores)
    loops = broadcast_shapes(*(value.shape[: value.ndim - rank] for value, rank in zip(values, ranks, strict=True)))
    checked = function if signature is None else _checked(function, signature, extents)
    if not loops:
        return checked(*values)
    flat = [
        reshaped(broadcast_to(value, loops + core), (math.prod(loops), *core))
        for value, core in zip(values, cores, strict=True)
    ]
    leaves, structure = flatten(vmap(checked)(*flat))
    return unflatten(structure, [reshaped(as_value(leaf), loops + leaf.shape[1:]) for leaf in leaves])


def _core_ranks(signature: _Signature, values: list[Value]) -> list[int]:
    if len(values) != len(signature.arguments):
        raise shape_error(f"vectorize: {len(values)} arguments for a signature of {len(signature.arguments)}")
    for value, names in zip(values, signature.arguments, strict=True):
        if value.ndim < len(names):
            raise shape_error(f"vectorize: {value.type} does not have the axes ({','.join(names)})")
    return [len(names) for names in signature.arguments]


def _extents(signature: _Signature, cores: list[tuple[int, ...]]) -> dict[str, int]:
    extents: dict[str, int] = {}
    for names, core in zip(signature.arguments, cores, strict=True):
        for name, extent in zip(names, core, strict=True):
            if extents.setdefault(name, extent) != extent:
                raise shape_error(f"vectorize: the axis {name} is both {extents[name]} and {extent}")
    return extents


def _checked(function: Callable[..., Any], signature: _Signature, extents: dict[str, int]) -> Callable[..., Any]:
    """`function`, whose results must have the axes of the signature."""

    def checked(*values: Value) -> Any:
        found = function(*values)
        results = found if isinstance(found, (tuple, list)) else (found,)
        if len(results) != len(signature.results):
            raise shape_error(f"vectorize: {len(results)} results for a signature of {len(signature.results)}")
        for result, names in zip(map(as_value, results), signature.results, strict=True):
            fits = result.ndim == len(names) and all(
                extents.get(name, extent) == extent for name, extent in zip(names, result.shape, strict=True)
            )
            if not fits:
                raise shape_error(f"vectorize: a result {result.type} does not have the axes ({','.join(names)})")
        return found

    return checked
