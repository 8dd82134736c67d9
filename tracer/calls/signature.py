"""The parameter names of a user's function, and the names of graph inputs that follow from them."""
from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.location import user_error
from lavax.tracer.pytrees.pytree import TreeDef, paths


@dataclass(frozen=True)
class Signature:
    """The positional parameters of a function, and whether it takes more."""

    function: str
    positional: tuple[str, ...]
    rest: str | None  # of `*rest`
    keywords: frozenset[str]
    any_keyword: bool

    def name_at(self, position: int) -> str:
        """The name of the positional argument at `position`."""
        if position < len(self.positional):
            return self.positional[position]
        return f"{self.rest or 'arg'}.{position - len(self.positional)}"

    def positions(self, wanted: int | Sequence[int], option: str) -> tuple[int, ...]:
        """`wanted` as positions from the front, in rising order.

        Raises ValueError for a position that does not exist, TypeError for anything but integers.
        """
        count = len(self.positional)
        found = set()
        for number in whole_numbers(wanted, option):
            position = number + count if number < 0 else number
            if position < 0 or (position >= count and self.rest is None):
                raise ValueError(f"{option}={number}: {self.function} has {count} positional parameters")
            found.add(position)
        return tuple(sorted(found))

    def check_names(self, names: Iterable[str], option: str) -> None:
        """Raises ValueError for a name that no parameter has."""
        for name in names:
            if name not in self.keywords and not self.any_keyword:
                raise ValueError(f"{option}={name!r}: {self.function} has no such parameter")


_NAMED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def whole_numbers(given: int | Sequence[int], option: str) -> tuple[int, ...]:
    """One integer or several, as a tuple. Raises TypeError, which names `option`, for anything else."""
    numbers = tuple(given) if isinstance(given, Iterable) else (given,)
    for number in numbers:
        if not isinstance(number, int):
            raise user_error(TypeError, f"{option} must be an integer or a tuple of integers, got {given!r:.80}")
    return numbers


def require_function(function: Any, requirement: str) -> None:
    """Raises TypeError, which begins with `requirement`, if `function` cannot be called."""
    if not callable(function):
        raise user_error(TypeError, f"{requirement}, got {function!r:.80}")


def signature_of(function: Callable[..., Any], transformation: str) -> Signature:
    """The signature of `function`, which `transformation` was given.

    If a function hides its signature, its arguments are called arg.0, arg.1, … Raises TypeError if it is not a
    function, or one that yields.
    """
    require_function(function, f"{transformation} takes a function")
    if inspect.isgeneratorfunction(function):
        raise user_error(TypeError, f"{transformation} takes a function that returns; {function!r:.80} yields")
    name = function_name(function)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return Signature(name, (), "arg", frozenset(), True)
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)
    return Signature(
        name,
        tuple(p.name for p in parameters if p.kind in _NAMED),
        rest,
        frozenset(p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)),
        any(p.kind is p.VAR_KEYWORD for p in parameters),
    )


def function_name(function: Callable[..., Any]) -> str:
    """The name of a function in messages."""
    return getattr(function, "__qualname__", None) or type(function).__qualname__


def leaf_names(arguments: Iterable[tuple[str, TreeDef]]) -> list[str]:
    """One name per leaf of named arguments, such as `params.w1` or `xs.0`, in the syntax of graph texts."""
    taken: dict[str, int] = {}
    return [_unique(_clean(path), taken) for name, treedef in arguments for path in paths(treedef, name)]


def _clean(path: str) -> str:
    cleaned = re.sub(r"[^\w.]", "_", path)
    return cleaned if re.match(r"[A-Za-z_]", cleaned) else f"_{cleaned}"


def _unique(name: str, taken: dict[str, int]) -> str:
    while name in taken:
        taken[name] += 1
        name = f"{name}_{taken[name]}"
    taken[name] = 0
    return name
