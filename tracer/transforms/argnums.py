"""The arguments to differentiate by, and trees of their structure."""
from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from lavax.base.errors import NonFloatArgumentError
from lavax.ir.location import user_error
from lavax.tracer.calls.call import CallStructure
from lavax.tracer.calls.signature import Signature, whole_numbers
from lavax.tracer.pytrees.pytree import TreeDef, unflatten
from lavax.tracer.transforms.arguments import Arguments, Concerned

Argnums = int | Sequence[int]


@dataclass(frozen=True)
class Chosen:
    """The arguments to differentiate by: their structures, and the graph inputs of their leaves."""

    structures: tuple[TreeDef, ...]
    inputs: tuple[int, ...]
    single: bool  # argnums was one number: the result is one tree, not a tuple

    def trees(self, leaves: Sequence[Any]) -> Any:
        """One tree per argument, of its structure, with these leaves."""
        remaining = iter(leaves)
        found = tuple(unflatten(structure, _take(remaining, structure.leaf_count)) for structure in self.structures)
        return found[0] if self.single else found


def _take(leaves: Iterator[Any], count: int) -> list[Any]:
    return list(islice(leaves, count))


def leaves_at(argnums: Argnums, transformation: str, signature: Signature) -> Concerned:
    """The leaves of the positional arguments numbered `argnums`; numbers without an argument have none."""
    what = f"{transformation} of {signature.function}: argnums"

    def found(call: CallStructure) -> Collection[int]:
        count = len(call.positional.children)
        return call.leaves_of({n % count for n in whole_numbers(argnums, what) if -count <= n < count}, ())

    return found


def choose(argnums: Argnums, arguments: Arguments, transformation: str) -> Chosen:
    """The positional arguments numbered `argnums`; negative numbers count from the end.

    Raises TypeError for a number without an argument and for a repeated one, and NonFloatArgumentError if one of the
    arguments holds anything but floats.
    """
    structures = arguments.call.positional.children
    what = f"{transformation} of {arguments.signature.function}"
    numbers = whole_numbers(argnums, f"{what}: argnums")
    for number in numbers:
        if not -len(structures) <= number < len(structures):
            raise TypeError(
                f"{what}: argnums={number}, but the call has {len(structures)} positional arguments; "
                "arguments to differentiate by are passed by position"
            )
    positions = [number % len(structures) for number in numbers]
    if len(set(positions)) != len(positions) or not positions:
        raise TypeError(f"{what}: argnums={argnums!r} must be different arguments, at least one")
    inputs = tuple(_float_inputs(arguments, positions, what))
    return Chosen(tuple(structures[position] for position in positions), inputs, isinstance(argnums, int))


def _float_inputs(arguments: Arguments, positions: Sequence[int], what: str) -> Iterator[int]:
    """The graph inputs of these arguments' leaves, in the order of the arguments."""
    input_of = {leaf: number for number, leaf in enumerate(arguments.inputs)}
    for position in positions:
        for leaf in arguments.call.leaves_of([position], ()):
            held = arguments.leaves[leaf]
            if leaf not in input_of or not held.type.dtype.is_float:
                name = arguments.call.names(arguments.signature)[leaf]
                found = held.type if leaf in input_of else f"{held!r:.40} of type {type(held).__name__}"
                raise user_error(
                    NonFloatArgumentError,
                    f"{what} by {name}, which is {found}: derivatives exist by float arguments only. "
                    "Pass floats (3.0, not 3), or choose other arguments with argnums",
                )
            yield input_of[leaf]
