"""Branches chosen on the device: cond and switch. Names and arguments are JAX's."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lavax.base.errors import ConcretizationError, DtypeError, ShapeError
from lavax.ir import int32
from lavax.ir.location import user_error
from lavax.tracer.compiled.executable import apply_graph
from lavax.tracer.control_flow.bodies import INDEX, flattened, output_types, require_same, trace_body
from lavax.tracer.control_flow.branch_effects import emit_branch, with_all_effects
from lavax.tracer.control_flow.captures import with_common_captures
from lavax.tracer.control_flow.recording import apply_control_flow
from lavax.tracer.pytrees.pytree import unflatten
from lavax.tracer.tracing.bind import bind
from lavax.tracer.tracing.convert import constant, lift
from lavax.tracer.tracing.effects import emit_again
from lavax.tracer.tracing.tracing import Traced
from lavax.tracer.values.value import Value


def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """`true_fun(*operands)` if `pred`, a scalar, is true (not zero), else `false_fun(*operands)`.

    Both functions return pytrees of the same structure, shapes and dtypes; only one runs. Raises ControlFlowTypeError
    if they differ, DtypeError if the predicate is complex, ShapeError if it is not a scalar.
    """
    predicate = lift(pred)
    if predicate.shape != ():
        raise user_error(
            ShapeError,
            f"cond: the predicate must be a scalar, got {predicate.type}; for a choice by element use where",
        )
    if predicate.type.dtype.is_complex:
        raise user_error(DtypeError, f"cond: the predicate must be real, got {predicate.type}")
    if predicate.type.dtype.kind != "bool":
        predicate = bind("not_equal", predicate, constant(0, predicate.type))
    return _branch("cond", bind("cast", predicate, type=INDEX), (false_fun, true_fun), operands)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """`branches[index](*operands)`; an index outside the range is moved to its nearer end.

    All branches return pytrees of the same structure, shapes and dtypes; only one runs. Raises ControlFlowTypeError
    if they differ, ShapeError if the index is not a scalar or there are no branches.
    """
    number = lift(index)
    if number.shape != () or not number.type.dtype.is_integer:
        raise user_error(ShapeError, f"switch: the index must be an integer scalar, got {number.type}")
    if not isinstance(branches, Sequence):
        raise user_error(TypeError, f"switch: branches must be a sequence of functions, got {branches!r:.80}")
    if not branches:
        raise user_error(ShapeError, "switch: needs at least one branch")
    as_index = number if number.type.dtype == int32 else bind("cast", number, type=INDEX)
    return _branch("switch", as_index, tuple(branches), operands)


def _branch(name: str, index: Value, functions: Sequence[Callable[..., Any]], operands: Sequence[Any]) -> Any:
    leaves, structures = flattened(operands)
    kinds = [leaf.abstract for leaf in leaves]
    traced = [
        trace_body(function, structures, kinds, f"{name} branch {number}") for number, function in enumerate(functions)
    ]
    for number, each in enumerate(traced[1:], 1):
        who = f"{name}: branch {number}"
        require_same(who, each.structure, output_types(each), "branch 0", traced[0].structure, output_types(traced[0]))
    known = _known(index)
    if known is not None:
        number = min(max(known, 0), len(traced) - 1)
        results = _run_known(traced, number, leaves)
        emit_again(traced[number].effects, results[traced[number].structure.leaf_count :])
    else:
        results = _run_switch(with_all_effects(traced), index, leaves)
        emit_branch([each.effects for each in traced], index, results[traced[0].structure.leaf_count :])
    return unflatten(traced[0].structure, results[: traced[0].structure.leaf_count])


def _run_known(traced: Sequence[Traced], number: int, leaves: Sequence[Value]) -> list[Value]:
    """The results of one branch; each is weak only if it is weak in all branches."""
    chosen = traced[number]
    (graph,), captured = with_common_captures([chosen], len(leaves))
    weak = [*_common_weakness(traced), *chosen.weak[chosen.structure.leaf_count :]]
    return apply_graph(graph, [*leaves, *captured], weak)


def _run_switch(traced: Sequence[Traced], index: Value, leaves: Sequence[Value]) -> list[Value]:
    """The results of the branch that `index` chooses on the device."""
    graphs, captured = with_common_captures(traced, len(leaves))
    types = output_types(traced[0])
    weak = _common_weakness(traced)
    weak += [False] * (len(types) - len(weak))
    return apply_control_flow("switch", [index, *leaves, *captured], types, weak, branches=graphs)


def _common_weakness(traced: Sequence[Traced]) -> list[bool]:
    """For each leaf of the result: whether it is weak in all branches."""
    count = traced[0].structure.leaf_count
    return [all(each.weak[position] for each in traced) for position in range(count)]


def _known(index: Value) -> int | None:
    """The number behind an index if it is known now, so that the branch is chosen while tracing."""
    try:
        return int(index)
    except ConcretizationError:
        return None
