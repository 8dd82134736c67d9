"""`vmap`: a function of one element as a function of many."""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lavax.base.errors import TreeMismatchError, VmapAxisError
from lavax.ir.location import user_error
from lavax.passes.batch import batch, differing_outputs
from lavax.passes.simplify import simplify
from lavax.tracer.calls.call import CallStructure
from lavax.tracer.calls.signature import signature_of
from lavax.tracer.calls.wrapping import wraps
from lavax.tracer.pytrees.pytree import TreeDef, broadcast_prefix, key_leaves, paths, unflatten
from lavax.tracer.tracing.effects import emit_for_each
from lavax.tracer.tracing.float0 import with_float0_of_each
from lavax.tracer.tracing.tracing import Input, trace_function
from lavax.tracer.transforms.arguments import Arguments, arguments_of
from lavax.tracer.transforms.named_axes import named_axis
from lavax.tracer.transforms.transformed_call import run_finished
from lavax.tracer.values.abstract import abstract
from lavax.tracer.values.value import Value

Axes = Any  # an int, None, or a tree prefix of the arguments or results with these at its leaves


def vmap(
    fun: Callable[..., Any],
    in_axes: Axes = 0,
    out_axes: Axes = 0,
    axis_name: str | None = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
) -> Callable[..., Any]:
    """A function that applies `fun` to all elements along an axis at once.

    `in_axes`: the mapped axis of each argument: an int for all, or a tuple with an entry per positional argument, which
    is an int, None (the argument is the same for all elements) or a prefix of the argument's tree with these at its
    leaves. Negative axes count from the end. Keyword arguments are mapped along their first axis. `out_axes`: the
    position of the mapped axis in the results, likewise; None for a result that is the same for all. `axis_name`: a
    name for the axis, for `psum` and the like inside `fun`. `axis_size`: the extent, which is required if no argument
    is mapped. `spmd_axis_name` is taken as JAX takes it, and changes nothing: there is one device, so the mapped axis
    is not divided among several. Raises VmapAxisError for axes that do not fit the arguments, and for arguments of
    different extents.
    """
    signature = signature_of(fun, "vmap")
    given: object = axis_name
    if given is not None and not (isinstance(given, str) and re.fullmatch(r"\w+", given)):
        raise user_error(
            VmapAxisError, f"vmap: axis_name must be a word of letters, digits and underscores, got {axis_name!r}"
        )

    def mapped_leaves(call: CallStructure) -> set[int]:
        return {leaf for leaf, axis in enumerate(_leaf_axes(in_axes, call, signature.function)) if axis is not None}

    @wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        arguments = arguments_of(signature, args, kwargs, mapped_leaves)
        axes = _input_axes(in_axes, arguments)
        size = _extent(axes, axis_size, arguments)
        values = arguments.values

        def run(tracers: list[Value]) -> Any:
            positional, keywords = arguments.with_values(tracers)
            return fun(*positional, **keywords)

        with named_axis(axis_name, size):
            inputs = _element_inputs(arguments, axes)
            traced = trace_function(run, inputs, f"vmap of {signature.function}", keep_effects=True)
        graph = simplify(traced.graph)
        all_axes = [*axes, *[None] * len(traced.captured)]
        structure = traced.structure
        result_axes = _output_axes(out_axes, structure, signature.function)
        differs = differing_outputs(graph, all_axes, size, axis_name)
        _check_same(result_axes, differs[: len(result_axes)], structure, signature.function)
        counted = [
            _counted(axis, node.type.rank + 1 - is_key, "a result", signature.function)
            for axis, node, is_key in zip(result_axes, graph.outputs, key_leaves(structure), strict=False)
        ]
        counted += [0] * (len(graph.outputs) - len(counted))
        batched = batch(graph, all_axes, counted, size, axis_name)
        outputs = run_finished(batched, [*values, *traced.captured], traced.weak)
        emit_for_each(traced.effects, outputs[len(result_axes) :], size)
        result = unflatten(structure, outputs[: len(result_axes)])
        return with_float0_of_each(
            result, structure, size, lambda whole: _output_axes(out_axes, whole, signature.function)
        )

    return mapped


def _is_axis(part: Any) -> bool:
    return part is None or (isinstance(part, int) and not isinstance(part, bool))


def _input_axes(in_axes: Axes, arguments: Arguments) -> list[int | None]:
    """The mapped axis of each number among the arguments, counted from the front."""
    call, function = arguments.call, arguments.signature.function
    of_leaves = _leaf_axes(in_axes, call, function)
    names = call.names(arguments.signature)
    numeric = set(arguments.inputs)
    keys = call.key_leaves()
    for leaf, axis in enumerate(of_leaves):
        if axis is not None and leaf not in numeric:
            held = arguments.leaves[leaf]
            raise user_error(
                VmapAxisError,
                f"vmap of {function}: {names[leaf]} is {held!r:.40} of type {type(held).__name__}, which has no axes: "
                "give None for it in in_axes",
            )
    return [
        _counted(of_leaves[leaf], value.ndim - keys[leaf], f"{names[leaf]}: {value.type}", function)
        for leaf, value in zip(arguments.inputs, arguments.values, strict=True)
    ]


def _leaf_axes(in_axes: Axes, call: CallStructure, function: str) -> list[int | None]:
    """The mapped axis of each leaf of the arguments, as it is given."""
    prefix = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    count = len(call.positional.children)
    if isinstance(prefix, tuple) and len(prefix) != count:
        raise user_error(
            VmapAxisError,
            f"vmap of {function}: in_axes={in_axes!r} has {len(prefix)} entries, but the call has {count} positional "
            "arguments: give one entry for each, or one int for all",
        )
    try:
        of_leaves = broadcast_prefix(prefix, call.positional, _is_axis)
    except TreeMismatchError as error:
        raise user_error(
            VmapAxisError,
            f"vmap of {function}: in_axes must begin like the tuple of arguments, with an int or None at its leaves: "
            f"{error}"
        ) from None
    if call.keywords is not None:
        of_leaves += [0] * call.keywords.leaf_count
    return of_leaves


def _counted(axis: int | None, rank: int, what: str, function: str) -> int | None:
    """An axis, counted from the front."""
    if axis is None:
        return None
    if not -rank <= axis < rank:
        raise user_error(
            VmapAxisError,
            f"vmap of {function}: axis {axis} is not an axis of {what}, which has {rank}. Choose another axis, or "
            "give None for values that are the same for all elements",
        )
    return axis % rank


def _extent(axes: Sequence[int | None], given: int | None, arguments: Arguments) -> int:
    """The number of elements."""
    function = arguments.signature.function
    names = arguments.call.names(arguments.signature)
    found: dict[int, list[str]] = {}
    if given is not None:
        if not isinstance(given, (int, np.integer)):
            raise user_error(VmapAxisError, f"vmap of {function}: axis_size must be an integer, got {given!r:.40}")
        found[given] = ["axis_size"]
    for leaf, axis in zip(arguments.inputs, axes, strict=True):
        if axis is not None:
            type = arguments.leaves[leaf].type
            found.setdefault(type.shape[axis], []).append(f"{names[leaf]}: {type} along axis {axis}")
    if not found:
        raise user_error(
            VmapAxisError,
            f"vmap of {function}: no argument is mapped (in_axes is None for all), so the number of elements is not "
            "known: give axis_size",
        )
    if len(found) > 1:
        listed = "; ".join(f"{extent} by {', '.join(whose)}" for extent, whose in sorted(found.items()))
        raise user_error(
            VmapAxisError,
            f"vmap of {function}: the mapped axes have different extents: {listed}. Choose axes of one extent with "
            "in_axes, with None for values that are the same for all elements",
        )
    return next(iter(found))


def _element_inputs(arguments: Arguments, axes: Sequence[int | None]) -> list[Input]:
    """The inputs of the function of one element; only unmapped inputs have known numbers."""
    inputs = []
    for whole, axis in zip(arguments.as_inputs(), axes, strict=True):
        if axis is None:
            inputs.append(whole)
            continue
        type = whole.abstract.type
        shape = (*type.shape[:axis], *type.shape[axis + 1 :])
        inputs.append(Input(whole.name, abstract(type.with_shape(shape), whole.abstract.weak)))
    return inputs


def _output_axes(out_axes: Axes, structure: TreeDef, function: str) -> list[int | None]:
    try:
        return broadcast_prefix(out_axes, structure, _is_axis)
    except TreeMismatchError as error:
        raise user_error(
            VmapAxisError,
            f"vmap of {function}: out_axes must begin like the result, with an int or None at its leaves: {error}"
        ) from None


def _check_same(axes: Sequence[int | None], differs: Sequence[bool], structure: TreeDef, function: str) -> None:
    for axis, other, path in zip(axes, differs, paths(structure), strict=True):
        if axis is None and other:
            raise user_error(
                VmapAxisError,
                f"vmap of {function}: out_axes is None for the result{f' at {path}' if path else ''}, but it "
                "differs between elements: give the axis where they are to be stacked, or reduce it with psum",
            )
