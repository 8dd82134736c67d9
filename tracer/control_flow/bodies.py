"""Functions traced as branches and bodies, and the types on which they must agree."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lavax.base.errors import ControlFlowTypeError
from lavax.ir import TensorType, int32
from lavax.ir.location import user_error
from lavax.tracer.calls.signature import require_function
from lavax.tracer.pytrees.pytree import TreeDef, flatten, paths, unflatten
from lavax.tracer.tracing.convert import lift
from lavax.tracer.tracing.tracing import Input, Traced, trace_function
from lavax.tracer.values.abstract import Abstract
from lavax.tracer.values.value import Value

INDEX = TensorType((), int32)  # the type of counters, and of the number of a branch


def flattened(trees: Sequence[Any]) -> tuple[list[Value], list[TreeDef]]:
    """The leaves of all trees as values, and the structure of each tree."""
    leaves: list[Value] = []
    structures = []
    for tree in trees:
        found, structure = flatten(tree)
        leaves += [lift(leaf) for leaf in found]
        structures.append(structure)
    return leaves, structures


def trace_body(
    function: Callable[..., Any], structures: Sequence[TreeDef], kinds: Sequence[Abstract], name: str
) -> Traced:
    """Traces `function`, which takes one pytree per structure, for leaves of the given kinds. Keeps its effects.

    Messages call the function `name` ("scan body"). Raises TypeError if it is not a function.
    """
    require_function(function, f"{name} must be a function")

    def call(tracers: list[Value]) -> Any:
        arguments, position = [], 0
        for structure in structures:
            arguments.append(unflatten(structure, tracers[position : position + structure.leaf_count]))
            position += structure.leaf_count
        return function(*arguments)

    inputs = [Input(f"x{number}", kind) for number, kind in enumerate(kinds)]
    return trace_function(call, inputs, name, keep_effects=True)


def output_types(traced: Traced) -> list[TensorType]:
    """The types of the results, followed by those of the values that effects take."""
    return [output.type for output in traced.graph.outputs]


def require_same(
    who: str, given: TreeDef, types: Sequence[TensorType], whom: str, structure: TreeDef, wanted: Sequence[TensorType]
) -> None:
    """Raises ControlFlowTypeError, naming `who` and `whom`, if their results differ in structure or types."""
    if given != structure:
        raise user_error(
            ControlFlowTypeError, f"{who} gives the structure {given}, but {whom} has {structure}: they must agree"
        )
    for place, type, expected in zip(paths(structure), types, wanted, strict=False):
        if type != expected:
            where = f" at {place}" if place else ""
            raise user_error(
                ControlFlowTypeError,
                f"{who} gives {type}{where}, but {whom} has {expected}: cast or reshape one of them so that they agree",
            )
