"""Optimizers that see complex parameters as pairs of real ones."""
from __future__ import annotations

from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.optim.transforms.transformation import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    with_extra_args_support,
)
from lavax.optim.tree.precision import wide
from lavax.tracer import bind
from lavax.tracer.pytrees import pytree


class SplitRealAndImaginaryArrays(NamedTuple):
    """A complex array as two real ones."""

    real: Any
    imaginary: Any


class SplitRealAndImaginaryState(NamedTuple):
    """The state of the optimizer within, of real arrays."""

    inner_state: Any


def split_real_and_imaginary(inner: GradientTransformation) -> GradientTransformationExtraArgs:
    """`inner` on real and imaginary parts, each an array of its own; real parameters pass as they are.

    Gradients are to be conjugated before, as for all optimizers. Losses that `inner` is given (`value_fn`) still get
    what it made of the parameters, which are pairs.
    """
    held = with_extra_args_support(inner)

    def init(params: Any) -> SplitRealAndImaginaryState:
        return SplitRealAndImaginaryState(held.init(_split(params)))

    def update(updates: Any, state: SplitRealAndImaginaryState, params: Any = None, **extra_args: Any) -> Any:
        parts = None if params is None else _split(params)
        new, following = held.update(_split(updates), state.inner_state, parts, **extra_args)
        return pytree.map(_joined, new, is_leaf=_is_pair), SplitRealAndImaginaryState(following)

    return GradientTransformationExtraArgs(init, update)


def _split(tree: Any) -> Any:
    def parts(leaf: Any) -> Any:
        return SplitRealAndImaginaryArrays(lnp.real(leaf), lnp.imag(leaf)) if lnp.iscomplexobj(leaf) else leaf

    return pytree.map(parts, tree)


def _is_pair(part: Any) -> bool:
    return isinstance(part, SplitRealAndImaginaryArrays)


def _joined(part: Any) -> Any:
    return bind("complex", wide(part.real), wide(part.imaginary)) if _is_pair(part) else part
