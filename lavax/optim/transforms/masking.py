"""Transformations of some parameters only."""
from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

from lavax.optim.transforms.transformation import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    set_to_zero,
    with_extra_args_support,
)
from lavax.tracer.pytrees import pytree


class MaskedState(NamedTuple):
    """The state of the transformation that works on part of the parameters."""

    inner_state: Any


class MaskedNode(NamedTuple):
    """Stands where a parameter is left out; it has no leaves."""


class PartitionState(NamedTuple):
    """The state of each group's transformation, by the group's label."""

    inner_states: Mapping[Hashable, Any]


def of_parameters(tree_or_function: Any, params: Any) -> Any:
    """A tree given as itself, or as a function of the parameters. (A module is a tree even if it can be called.)"""
    is_tree = not callable(tree_or_function) or pytree.structure(tree_or_function) is not pytree.LEAF
    return tree_or_function if is_tree else tree_or_function(params)


def masked_tree(tree: Any, mask: Any) -> Any:
    """`tree` with a `MaskedNode` wherever `mask`, or a leaf of it above, is false."""
    return pytree.map(lambda kept, part: part if kept else MaskedNode(), mask, tree)


def masked(inner: GradientTransformation, mask: Any) -> GradientTransformationExtraArgs:
    """Applies `inner` where `mask` is true, and hands on the other updates as they are.

    `mask` is a tree of booleans with the structure of the parameters or a prefix of it, or a function from parameters
    to such a tree.
    """
    held = with_extra_args_support(inner)

    def init(params: Any) -> MaskedState:
        return MaskedState(held.init(masked_tree(params, of_parameters(mask, params))))

    def update(updates: Any, state: MaskedState, params: Any = None, **extra_args: Any) -> tuple[Any, MaskedState]:
        kept = of_parameters(mask, updates)
        part = None if params is None else masked_tree(params, kept)
        new, following = held.update(masked_tree(updates, kept), state.inner_state, part, **extra_args)
        whole = pytree.map(lambda chosen, changed, left: changed if chosen else left, kept, new, updates)
        return whole, MaskedState(following)

    return GradientTransformationExtraArgs(init, update)


def partition(
    transforms: Mapping[Hashable, GradientTransformation], param_labels: Any
) -> GradientTransformationExtraArgs:
    """Groups of parameters with a transformation each, by labels.

    `param_labels` is a tree of labels with the structure of the parameters or a prefix of it, or a function from
    parameters to such a tree. Raises ValueError for a label that `transforms` lacks.
    """
    groups = {label: with_extra_args_support(part) for label, part in transforms.items()}

    def masked_part(label: Hashable, labels: Any) -> GradientTransformationExtraArgs:
        return masked(groups[label], pytree.map(lambda found: found == label, labels))

    def init(params: Any) -> PartitionState:
        labels = of_parameters(param_labels, params)
        unknown = {label for label in pytree.leaves(labels) if label not in groups}
        if unknown:
            names = ", ".join(sorted(map(repr, unknown)))
            raise ValueError(f"partition: no transformation for the labels {names}; there are {list(groups)}")
        return PartitionState({label: masked_part(label, labels).init(params) for label in groups})

    def update(updates: Any, state: PartitionState, params: Any = None, **extra: Any) -> tuple[Any, PartitionState]:
        labels = of_parameters(param_labels, updates)
        following = {}
        for label in groups:
            part = masked_part(label, labels)
            updates, following[label] = part.update(updates, state.inner_states[label], params, **extra)
        return updates, PartitionState(following)

    return GradientTransformationExtraArgs(init, update)


multi_transform = partition


def freeze(mask: Any) -> GradientTransformationExtraArgs:
    """Updates of zero where `mask` is true. To be chained last."""
    return masked(set_to_zero(), mask)


def selective_transform(optimizer: GradientTransformation, *, freeze_mask: Any) -> GradientTransformationExtraArgs:
    """`optimizer` for the parameters where `freeze_mask` is false; the others stay, and cost no state."""

    def labels(params: Any) -> Any:
        return pytree.map(lambda frozen: "freeze" if frozen else "train", of_parameters(freeze_mask, params))

    return partition({"train": optimizer, "freeze": set_to_zero()}, labels)
