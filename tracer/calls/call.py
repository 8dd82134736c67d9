"""The arguments of one call: the traced ones and the static ones."""
from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from lavax.base.errors import DtypeError, StaticArgumentError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.location import user_error, without_line
from lavax.tracer.calls.signature import Signature, leaf_names
from lavax.tracer.pytrees.pytree import TreeDef, flatten, key_leaves, unflatten

# Position of an argument (or name, if it was passed by keyword), its class, and its value: 1, 1.0 and True are equal,
# but need different programs.
Static = tuple[int | str, type, Any]


@dataclass(frozen=True)
class ChosenArguments:
    """Some parameters of a function, by position and by the name under which they may be passed."""

    positions: frozenset[int]
    names: frozenset[str]


def chosen_arguments(
    signature: Signature, numbers: int | Sequence[int] | None, names: str | Sequence[str] | None, what: str
) -> ChosenArguments:
    """The parameters with these numbers or names; each is chosen whether it is passed by position or by name.

    `what` begins the options' names, such as "static" in static_argnums. Raises ValueError if there is no such
    parameter.
    """
    positions = set(signature.positions(() if numbers is None else numbers, f"{what}_argnums"))
    named = {names} if isinstance(names, str) else set(names or ())
    signature.check_names(named, f"{what}_argnames")
    named |= {signature.positional[p] for p in positions if p < len(signature.positional)}
    positions |= {p for p, name in enumerate(signature.positional) if name in named}
    return ChosenArguments(frozenset(positions), frozenset(named))


def parted(
    static: ChosenArguments, signature: Signature, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], tuple[Static, ...]]:
    """The traced positional arguments, the traced keyword arguments, and the static arguments.

    Raises StaticArgumentError if a static argument cannot be hashed.
    """
    statics: list[Static] = [(p, type(arg), arg) for p, arg in enumerate(args) if p in static.positions]
    statics += [(name, type(kwargs[name]), kwargs[name]) for name in sorted(static.names.intersection(kwargs))]
    for place, cls, value in statics:
        try:
            hash(value)
        except TypeError:
            name = signature.name_at(place) if isinstance(place, int) else place
            raise user_error(
                StaticArgumentError,
                f"the static argument {name} of {signature.function} is a {cls.__name__}, which cannot be hashed: "
                "pass something hashable (a tuple for a list, a frozen dataclass), or do not make it static",
            ) from None
    rest = tuple(arg for p, arg in enumerate(args) if p not in static.positions)
    return rest, {name: arg for name, arg in kwargs.items() if name not in static.names}, tuple(statics)


@dataclass(frozen=True)
class CallStructure:
    """How the leaves of a call's traced arguments are rebuilt into arguments."""

    positional: TreeDef  # of the tuple of traced positional arguments
    keywords: TreeDef | None  # of the dict of traced keyword arguments, if there are any
    statics: tuple[Static, ...]

    @property
    def leaf_count(self) -> int:
        """The number of leaves of the traced arguments."""
        return self.positional.leaf_count + (0 if self.keywords is None else self.keywords.leaf_count)

    def key_leaves(self) -> list[bool]:
        """For each leaf whether it has the words of random keys."""
        return key_leaves(self.positional) + ([] if self.keywords is None else key_leaves(self.keywords))

    def arguments(self, leaves: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of the user's function."""
        count = self.positional.leaf_count
        args = list(unflatten(self.positional, leaves[:count]))
        kwargs = {} if self.keywords is None else unflatten(self.keywords, leaves[count:])
        for place, _, value in self.statics:  # in rising order of positions
            if isinstance(place, int):
                args.insert(place, value)
            else:
                kwargs[place] = value
        return args, kwargs

    def positions(self) -> list[int]:
        """The positions of the traced positional arguments in the call."""
        fixed = {place for place, _, _ in self.statics}
        total = len(self.positional.children) + sum(isinstance(place, int) for place in fixed)
        return [position for position in range(total) if position not in fixed]

    def names(self, signature: Signature) -> list[str]:
        """One name per leaf, for the graph's inputs and for messages."""
        named = [
            (signature.name_at(position), child)
            for position, child in zip(self.positions(), self.positional.children, strict=True)
        ]
        if self.keywords is not None:
            named += list(zip(self.keywords.data, self.keywords.children, strict=True))
        return leaf_names(named)

    def leaves_of(self, positions: Collection[int], keywords: Collection[str]) -> list[int]:
        """The numbers of the leaves of the arguments at `positions` or passed as one of `keywords`."""
        chosen = [position in positions for position in self.positions()]
        children = list(self.positional.children)
        if self.keywords is not None:
            chosen += [name in keywords for name in self.keywords.data]
            children += self.keywords.children
        owners = [mine for mine, child in zip(chosen, children, strict=True) for _ in range(child.leaf_count)]
        return [leaf for leaf, mine in enumerate(owners) if mine]


def call_of(
    args: Sequence[Any], kwargs: Mapping[str, Any], statics: tuple[Static, ...] = ()
) -> tuple[CallStructure, list[Any]]:
    """The structure of a call's traced arguments, and their leaves."""
    leaves, positional = flatten(tuple(args))
    if not kwargs:
        return CallStructure(positional, None, statics), leaves
    more, keywords = flatten(dict(kwargs))
    return CallStructure(positional, keywords, statics), leaves + more


def named_conversion(
    convert: Callable[[Any], Any], leaves: Sequence[Any], call: CallStructure, signature: Signature
) -> list[Any]:
    """`convert` of each leaf; if it raises DtypeError, the message names the argument."""
    converted = []
    for position, leaf in enumerate(leaves):
        try:
            converted.append(convert(leaf))
        except DtypeError as error:
            raise user_error(
                DtypeError,
                f"argument {call.names(signature)[position]} of {signature.function}: {without_line(error)}. If it is "
                "a setting and not data, name its argument in static_argnames",
            ) from None
    return converted
