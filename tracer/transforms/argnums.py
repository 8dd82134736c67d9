"""The arguments to differentiate by, and trees of their structure."""
from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lavax.base.errors import NonFloatArgumentError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir import TensorType
from lavax.ir.location import user_error
from lavax.tracer.calls.call import CallStructure
from lavax.tracer.calls.signature import Signature, whole_numbers
from lavax.tracer.pytrees.pytree import TreeDef, unflatten
from lavax.tracer.tracing.float0 import zeros
from lavax.tracer.transforms.arguments import Arguments, Concerned
from lavax.tracer.values.value import Value

Argnums = int | Sequence[int]


@dataclass(frozen=True)
class Chosen:
    """The arguments to differentiate by: their structures, and the graph inputs of their leaves."""

    structures: tuple[TreeDef, ...]
    inputs: tuple[int, ...]
    discrete: Mapping[int, tuple[int, ...]]  # which of the leaves hold integers or bools, and their shapes
    single: bool  # argnums was one number: the result is one tree, not a tuple

    def trees(self, derivatives: Sequence[Any], result: tuple[int, ...] = ()) -> Any:
        """One tree per argument, of its structure, with these derivatives of a result of shape `result`.

        Leaves that hold integers have float0's zeros.
        """
        remaining = iter(derivatives)
        places = itertools.count()
        found = tuple(
            unflatten(
                structure,
                [
                    zeros((*result, *self.discrete[place])) if place in self.discrete else next(remaining)
                    for place in itertools.islice(places, structure.leaf_count)
                ],
            )
            for structure in self.structures
        )
        return found[0] if self.single else found


def leaves_at(argnums: Argnums, transformation: str, signature: Signature) -> Concerned:
    """The leaves of the positional arguments numbered `argnums`; numbers without an argument have none."""
    what = f"{transformation} of {signature.function}: argnums"

    def found(call: CallStructure) -> Collection[int]:
        count = len(call.positional.children)
        return call.leaves_of({n % count for n in whole_numbers(argnums, what) if -count <= n < count}, ())

    return found


def require_differentiable(
    what: str, chosen: Chosen, values: Sequence[Value], holomorphic: bool, forward: bool
) -> None:
    """Raises NonFloatArgumentError unless these arguments have derivatives of the kind asked for.

    Those of a holomorphic function are complex. Without `holomorphic`, forward mode takes real arguments only: a small
    change of a complex one has a direction, so that one derivative does not tell its effect.
    """
    for position in chosen.inputs:
        type = values[position].type
        if holomorphic and not type.dtype.is_complex:
            raise user_error(
                NonFloatArgumentError,
                f"{what}: with holomorphic=True arguments to differentiate by are complex, got {type}: convert it, by "
                "x.astype('complex64')",
            )
        if forward and not holomorphic and type.dtype.is_complex:
            raise user_error(
                NonFloatArgumentError,
                f"{what}: {type} is complex. Set holomorphic=True if the function is complex differentiable, or "
                "differentiate by the real and the imaginary part, as two arguments",
            )


def fault_of_result(type: TensorType, holomorphic: bool) -> str | None:
    """Why a result has no derivatives of the kind asked for, as the end of a message; None if it has them."""
    if holomorphic:
        return None if type.dtype.is_complex else f"with holomorphic=True the result is complex, but it gave {type}"
    if type.dtype.is_complex:
        return (
            f"the result is real, but it gave {type}. Set holomorphic=True if the function is complex differentiable, "
            "or return its real part, imaginary part or length"
        )
    return None


def choose(argnums: Argnums, arguments: Arguments, transformation: str, allow_int: bool = False) -> Chosen:
    """The positional arguments numbered `argnums`; negative numbers count from the end.

    Raises TypeError for a number without an argument and for a repeated one, and NonFloatArgumentError if one of the
    arguments holds anything but floats, or with `allow_int` anything but numbers.
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
    input_of = {leaf: number for number, leaf in enumerate(arguments.inputs)}
    leaves = [leaf for position in positions for leaf in arguments.call.leaves_of([position], ())]
    inputs, discrete = [], {}
    for place, leaf in enumerate(leaves):
        if leaf in input_of and arguments.leaves[leaf].type.dtype.is_inexact:
            inputs.append(input_of[leaf])
        elif leaf in input_of and allow_int:
            discrete[place] = arguments.leaves[leaf].shape
        else:
            raise _non_float(arguments, leaf, leaf in input_of, what)
    chosen = tuple(structures[position] for position in positions)
    return Chosen(chosen, tuple(inputs), discrete, isinstance(argnums, int))


def _non_float(arguments: Arguments, leaf: int, is_number: bool, what: str) -> Exception:
    held = arguments.leaves[leaf]
    name = arguments.call.names(arguments.signature)[leaf]
    found = held.type if is_number else f"{held!r:.40} of type {type(held).__name__}"
    return user_error(
        NonFloatArgumentError,
        f"{what} by {name}, which is {found}: derivatives exist by float arguments only. "
        "Pass floats (3.0, not 3), or choose other arguments with argnums",
    )
