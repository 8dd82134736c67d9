"""Functions of the library that run as one program outside a trace, not operation by operation."""
from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from lavax.base.config import check_key_reuse, keeps_64_bits, runs_uncompiled
from lavax.ir.exact_text import exact_text
from lavax.ir.location import named
from lavax.tracer.calls.call import ChosenArguments
from lavax.tracer.calls.signature import Signature, signature_of
from lavax.tracer.compiled.compile import CompiledFunction
from lavax.tracer.tracing.convert import argument
from lavax.tracer.tracing.trace import active_trace
from lavax.tracer.values.array import Array
from lavax.tracer.values.backend import runtime
from lavax.tracer.values.key_array import KeyArray
from lavax.tracer.values.programs import remember

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
_FLOAT32 = struct.Struct("f")
_NONE = ChosenArguments(frozenset(), frozenset())
_NUMBERS = (float, int)  # and truth values
_DATA = (np.ndarray, np.generic, float, int)
_LEAST, _MOST = -(2**31), 2**31 - 1  # of the numbers that an int32 scalar holds


def one_program(
    *settings: str, either: str = "", scalars: bool = False, integers: bool = False
) -> Callable[[Callable[_Given, _Result]], Callable[_Given, _Result]]:
    """A decorator: called outside a trace, the function runs as one program per kind of arguments.

    The parameters named by `settings` (shapes, dtypes, axes) are part of the kind; the one named by `either` is, unless
    it is an array, and with `scalars` all Python numbers are, so that the function sees them as they are. With
    `integers` only Python's integers are, which the function may refuse: any float is an argument of the same program.
    Random keys named `key` are given as their words. Inside a trace, and where operations are to be looked at one by
    one, the function is called as it is; so it is with arguments that fit no scalar or array, so that errors are those
    of the function.
    """

    def decorate(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
        programs: dict[Any, CompiledFunction] = {}
        signature = signature_of(function, "one_program")

        @functools.wraps(function)
        def call(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
            if active_trace() is not None or runs_uncompiled() or check_key_reuse() or runtime().refuses_nans:
                return function(*args, **kwargs)
            names = (*signature.positional[: len(args)], *map(str, kwargs))
            leaves: list[Array] = []
            places: list[Any] = []
            for name, given in zip(names, (*args, *kwargs.values()), strict=False):
                if name == "key" and isinstance(given, KeyArray):
                    given = given.words
                if isinstance(given, Array) and name not in settings:
                    leaves.append(given)
                    places.append(name)
                elif given is None or name in settings or (name == either and not isinstance(given, np.ndarray)):
                    places.append(_setting(name, given))
                elif (scalars and isinstance(given, _NUMBERS)) or (integers and type(given) is int):
                    places.append((*_setting(name, given), exact_text(given)))
                elif isinstance(given, _DATA) and not (type(given) is int and not _LEAST <= given <= _MOST):
                    leaves.append(argument(given))
                    places.append(name)
            if not len(places) == len(names) == len(set(names)) == len(args) + len(kwargs):
                return function(*args, **kwargs)
            if _loses_digits((*args, *kwargs.values()), leaves, names):
                return function(*args, **kwargs)
            try:
                program = programs.get(tuple(places))
            except TypeError:  # a setting that cannot be hashed
                return function(*args, **kwargs)
            if program is None:
                program = remember(programs, tuple(places), _with_settings(function, signature, places))
            return program(*leaves)  # type: ignore[no-any-return]

        named(call, function.__name__, function.__doc__ or "")
        return call

    return decorate


def _loses_digits(given: tuple[Any, ...], leaves: list[Array], names: tuple[str, ...]) -> bool:
    """Whether a Python float, which becomes a float32 argument, is met by numbers of 64 bits."""
    if keeps_64_bits() or all(type(number) is not float or _is_float32(number) for number in given):
        return False
    return "dtype" in names or any(leaf.type.dtype.bits >= 64 for leaf in leaves)


def _is_float32(number: float) -> bool:
    try:
        return number != number or _FLOAT32.unpack(_FLOAT32.pack(number))[0] == number
    except OverflowError:
        return False


def _setting(name: str, given: Any) -> tuple[str, Any, Any]:
    """The setting, with the types that tell 1 from 1.0 and True."""
    if isinstance(given, (list, tuple)):
        return name, tuple(map(type, given)), tuple(given)
    return name, type(given), given


def _with_settings(function: Callable[..., Any], signature: Signature, places: list[Any]) -> CompiledFunction:
    """The compiled function of the arrays alone, in the order of their names in `places`."""
    names = [place if isinstance(place, str) else place[0] for place in places]
    matches = [name == own for name, own in zip(names, signature.positional, strict=False)]
    leading = [*matches, False].index(False)  # some parameters take no names

    def applied(*leaves: Array) -> Any:
        remaining = iter(leaves)
        values = [next(remaining) if isinstance(place, str) else place[2] for place in places]
        return function(*values[:leading], **dict(zip(names[leading:], values[leading:], strict=True)))

    functools.update_wrapper(applied, function, assigned=("__module__", "__name__", "__qualname__"), updated=())
    return CompiledFunction(applied, signature_of(applied, "one_program"), _NONE, _NONE, tune=False, eager=True)
