"""Branches and loops that stay on the device: cond, switch, while_loop, fori_loop, scan, map.

Each traces its functions to graphs and records one node that holds them. Names and arguments are JAX's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lavax.base.errors import ConcretizationError, ControlFlowTypeError, DtypeError, ShapeError
from lavax.ir import TensorType, bool_, int32
from lavax.ir.location import user_error
from lavax.tracer.calls.signature import require_function
from lavax.tracer.compiled.executable import apply_graph
from lavax.tracer.control_flow.branch_effects import emit_branch, with_all_effects
from lavax.tracer.control_flow.loop_log import emit_log, empty_log, entered
from lavax.tracer.control_flow.regions import apply_region, trace_body, with_common_captures
from lavax.tracer.pytrees.pytree import TreeDef, flatten, paths, unflatten
from lavax.tracer.tracing.bind import bind, with_weak
from lavax.tracer.tracing.convert import constant, lift
from lavax.tracer.tracing.effects import Effect, emit_again, emit_for_each, take_effects
from lavax.tracer.tracing.tracing import Traced, without_effects
from lavax.tracer.values.abstract import Abstract, abstract
from lavax.tracer.values.value import Value

_INDEX = TensorType((), int32)


def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """`true_fun(*operands)` if `pred`, a scalar, is true (not zero), else `false_fun(*operands)`.

    Both functions give pytrees of the same structure, shapes and dtypes; only one runs. Raises ControlFlowTypeError
    where they differ, ShapeError for a predicate that is no scalar.
    """
    predicate = lift(pred)
    if predicate.shape != ():
        raise user_error(
            ShapeError,
            f"cond: the predicate must be a scalar, got {predicate.type}; for a choice by element use where",
        )
    if predicate.type.dtype.kind != "bool":
        predicate = bind("not_equal", predicate, constant(0, predicate.type))
    return _branch("cond", bind("cast", predicate, type=_INDEX), (false_fun, true_fun), operands)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """`branches[index](*operands)`; an index outside the range is moved to its nearer end.

    All branches give pytrees of the same structure, shapes and dtypes; only one runs. Raises ControlFlowTypeError
    where they differ, ShapeError for an index that is no scalar or for no branches.
    """
    number = lift(index)
    if number.shape != () or not number.type.dtype.is_integer:
        raise user_error(ShapeError, f"switch: the index must be an integer scalar, got {number.type}")
    if not isinstance(branches, Sequence):
        raise user_error(TypeError, f"switch: branches must be a sequence of functions, got {branches!r:.80}")
    if not branches:
        raise user_error(ShapeError, "switch: needs at least one branch")
    as_index = number if number.type.dtype == int32 else bind("cast", number, type=_INDEX)
    return _branch("switch", as_index, tuple(branches), operands)


def _branch(name: str, index: Value, functions: Sequence[Callable[..., Any]], operands: Sequence[Any]) -> Any:
    leaves, structures = _flattened(operands)
    kinds = [leaf.abstract for leaf in leaves]
    traced = [
        trace_body(function, structures, kinds, f"{name} branch {number}") for number, function in enumerate(functions)
    ]
    for number, each in enumerate(traced[1:], 1):
        who = f"{name}: branch {number}"
        _require_same(who, each.structure, _types(each), "branch 0", traced[0].structure, _types(traced[0]))
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
    """The results of one branch, as weak as those of all."""
    chosen = traced[number]
    (graph,), captured = with_common_captures([chosen], len(leaves))
    weak = [*_common_weakness(traced), *chosen.weak[chosen.structure.leaf_count :]]
    return apply_graph(graph, [*leaves, *captured], weak)


def _run_switch(traced: Sequence[Traced], index: Value, leaves: Sequence[Value]) -> list[Value]:
    """The results of the branch that the index chooses on the device."""
    graphs, captured = with_common_captures(traced, len(leaves))
    types = _types(traced[0])
    weak = _common_weakness(traced)
    weak += [False] * (len(types) - len(weak))
    return apply_region("switch", [index, *leaves, *captured], types, weak, branches=graphs)


def _common_weakness(traced: Sequence[Traced]) -> list[bool]:
    """For each leaf of the result: whether it is weak in all branches."""
    count = traced[0].structure.leaf_count
    return [all(each.weak[position] for each in traced) for position in range(count)]


def _known(index: Value) -> int | None:
    """The number behind an index, where it can be had: then the branch is chosen now."""
    try:
        return int(index)
    except ConcretizationError:
        return None


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """Repeats `value = body_fun(value)` while `cond_fun(value)` is true; gives the last value.

    `body_fun` gives a pytree of the structure, shapes and dtypes that it takes. How often it runs may depend on
    the data. Forward mode only: reverse mode needs a scan. Raises ControlFlowTypeError where the types differ or the
    condition is not a scalar truth value.
    """
    return _while("while_loop", cond_fun, body_fun, init_val)


def _while(name: str, cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """The loop of `while_loop`; `name` is whose it is, for messages."""
    values, (structure,) = _flattened([init_val])
    body, values = _steady(name, body_fun, [structure], values, [])
    condition = trace_body(cond_fun, [structure], [value.abstract for value in values], f"{name} condition")
    asked = _types(without_effects(condition))
    if asked != [TensorType((), bool_)]:
        found = ", ".join(str(type) for type in asked)
        raise user_error(
            ControlFlowTypeError, f"{name}: cond_fun must give a scalar bool, got {found or 'nothing'}"
        )
    if condition.effects or body.effects:
        return _logged_loop(cond_fun, body_fun, unflatten(structure, values), condition, body)
    graphs, captured = with_common_captures([condition, body], len(values))
    types, weak = [value.type for value in values], [value.weak for value in values]
    results = apply_region("while", [*values, *captured], types, weak, condition=graphs[0], body=graphs[1])
    return unflatten(structure, results)


def _logged_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any, condition: Traced, body: Traced
) -> Any:
    """The loop, which also carries what is to be done on the host: in each turn what the condition does, then the
    body. The condition that ends it is computed once more outside."""
    effects: list[Effect] = []

    def running(state: Any) -> Any:
        found = cond_fun(state[0])
        take_effects()
        return found

    def turn(state: Any) -> Any:
        value, (turns, log) = state
        cond_fun(value)
        after = body_fun(value)
        effects[:], shown = take_effects()
        return after, (bind("add", turns, constant(1, _INDEX)), entered(log, turns, shown))

    types = [*_types(condition)[1:], *_types(body)[body.structure.leaf_count :]]
    start = (init_val, (constant(0, _INDEX), empty_log(types)))
    value, (turns, log) = while_loop(running, turn, start)
    emit_log(effects, turns, log)
    if condition.effects:
        cond_fun(value)
    return value


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
) -> tuple[Any, Any]:
    """Goes through the leading axis of `xs`: `carry, y = f(carry, x)` for each x; gives the last carry and all ys.

    `xs` is a pytree of arrays with one leading extent, or None with `length` steps; the ys are stacked along a new
    leading axis. With `reverse` it goes from the last to the first. `unroll` steps are written out in each turn of
    the loop. The body is compiled once, whatever the length. Raises ControlFlowTypeError where the carry changes
    its structure, shapes or dtypes, ShapeError where the leading extents differ.
    """
    return _scan("scan", f, init, xs, length, reverse, unroll)


def _scan(
    name: str,
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
) -> tuple[Any, Any]:
    """The loop of `scan`; `name` is whose it is, for messages."""
    carries, (carry_structure,) = _flattened([init])
    sequences, (sequence_structure,) = _flattened([xs])
    steps = _length(name, sequences, length)
    if unroll > 1 and steps % unroll == 0 and steps:
        return _unrolled_scan(f, init, xs, steps, reverse, unroll)
    slices = [abstract(each.type.with_shape(each.shape[1:]), each.weak) for each in sequences]
    body, carries = _steady(name, f, [carry_structure, sequence_structure], carries, slices)
    graphs, captured = with_common_captures([body], len(carries) + len(sequences))
    outputs = _types(body)
    types = [*outputs[: len(carries)], *(type.with_shape((steps, *type.shape)) for type in outputs[len(carries) :])]
    results = apply_region(
        "scan",
        [*carries, *sequences, *captured],
        types,
        body.weak,
        carries=len(carries),
        sequences=len(sequences),
        length=steps,
        reverse=bool(reverse),
        body=graphs[0],
    )
    last, stacked = body.structure.children
    count = body.structure.leaf_count
    emit_for_each(body.effects, results[count:], steps, -1 if reverse else 1)
    return unflatten(last, results[: len(carries)]), unflatten(stacked, results[len(carries) : count])


def _unrolled_scan(
    f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, steps: int, reverse: bool, unroll: int
) -> tuple[Any, Any]:
    """A scan over groups of `unroll` elements, whose body goes through a group in Python."""
    leaves, structure = flatten(xs)
    turns = steps // unroll
    grouped = [_reshaped(lift(leaf), (turns, unroll, *lift(leaf).shape[1:])) for leaf in leaves]

    def body(carry: Any, group: Any) -> tuple[Any, Any]:
        parts, _ = flatten(group)
        found: list[Any] = [None] * unroll
        for step in range(unroll)[:: -1 if reverse else 1]:
            carry, found[step] = f(carry, unflatten(structure, [_element(part, step) for part in parts]))
        columns, inner = zip(*(flatten(each) for each in found), strict=True)
        return carry, unflatten(inner[0], [_stacked(column) for column in zip(*columns, strict=True)])

    last, stacked = scan(body, init, unflatten(structure, grouped), turns, reverse)
    parts, inner = flatten(stacked)
    return last, unflatten(inner, [_reshaped(part, (steps, *part.shape[2:])) for part in parts])


def _reshaped(value: Value, shape: tuple[int, ...]) -> Value:
    return bind("reshape", value, type=value.type.with_shape(shape))


def _element(value: Value, position: int) -> Value:
    start = (position, *(0 for _ in value.shape[1:]))
    limit = (position + 1, *value.shape[1:])
    part = bind("slice", value, start=start, limit=limit, stride=(1,) * len(value.shape))
    return _reshaped(part, value.shape[1:])


def _stacked(parts: Sequence[Any]) -> Value:
    values = [lift(part) for part in parts]
    return bind("concatenate", *(_reshaped(value, (1, *value.shape)) for value in values), axis=0)


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """`for i in range(lower, upper): value = body_fun(i, value)`; gives the last value.

    With Python or NumPy integers as bounds it is a scan, which has reverse mode; with others a while_loop. Raises
    DtypeError for bounds that are no integer scalars, ControlFlowTypeError where the body does not give what it takes.
    """
    require_function(body_fun, "fori_loop body must be a function")
    if isinstance(lower, (int, np.integer)) and isinstance(upper, (int, np.integer)):
        lower, upper = int(lower), int(upper)
        first = constant(lower, _INDEX)

        def step(state: Any, _: Any) -> tuple[Any, None]:
            counter, value = state
            return (bind("add", counter, constant(1, _INDEX)), body_fun(counter, value)), None

        (_, result), _ = _scan("fori_loop", step, (first, init_val), None, length=max(upper - lower, 0))
        return result
    start, end = (_bound(*each) for each in (("lower", lower), ("upper", upper)))

    def running(state: Any) -> Value:
        return bind("less", state[0], end)

    def body(state: Any) -> tuple[Any, Any]:
        counter, value = state
        return bind("add", counter, constant(1, counter.type)), body_fun(counter, value)

    if start.type != end.type:
        start, end = (value if value.type == _INDEX else bind("cast", value, type=_INDEX) for value in (start, end))
    return _while("fori_loop", running, body, (with_weak(start, False), init_val))[1]


def _bound(name: str, given: Any) -> Value:
    value = lift(given)
    if value.shape or not value.type.dtype.is_integer:
        raise user_error(DtypeError, f"fori_loop: {name} must be an integer scalar, got {value.type}")
    return value


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """`f` of each element along the leading axis of `xs`, one after the other; the results stacked.

    Raises ShapeError where leading extents differ.
    """
    require_function(f, "map takes a function")
    return _scan("map", lambda _, x: (None, f(x)), None, xs)[1]


# What the functions above share.


def _flattened(trees: Sequence[Any]) -> tuple[list[Value], list[TreeDef]]:
    leaves: list[Value] = []
    structures = []
    for tree in trees:
        found, structure = flatten(tree)
        leaves += [lift(leaf) for leaf in found]
        structures.append(structure)
    return leaves, structures


def _types(traced: Traced) -> list[TensorType]:
    return [output.type for output in traced.graph.outputs]


def _length(name: str, sequences: Sequence[Value], length: int | None) -> int:
    if length is not None and not isinstance(length, (int, np.integer)):
        raise user_error(DtypeError, f"{name}: length must be an integer, got {length!r:.40}")
    if any(not sequence.shape for sequence in sequences):
        raise user_error(ShapeError, f"{name}: xs must have a leading axis to go along; a scalar has none")
    extents = {sequence.shape[0] for sequence in sequences} | ({length} if length is not None else set())
    if len(extents) != 1:
        given = ", ".join(str(extent) for extent in sorted(extents))
        raise user_error(
            ShapeError, f"{name}: leading extents and length must agree, got {given or 'neither xs nor length'}"
        )
    return extents.pop()


def _steady(
    name: str, function: Callable[..., Any], structures: list[TreeDef], carried: list[Value], others: list[Abstract]
) -> tuple[Traced, list[Value]]:
    """The traced body, and what is carried into the first step: weak numbers become what the body makes of them.

    With two structures the body gives a pair, whose first part is carried. Raises ControlFlowTypeError where it does
    not give what it takes.
    """
    body = trace_body(function, structures, [*(value.abstract for value in carried), *others], f"{name} body")
    given = body.structure
    if len(structures) == 2:
        if len(given.children) != 2:
            raise user_error(ControlFlowTypeError, f"{name}: the body must give a pair (carry, y), got {given}")
        given = given.children[0]
    if given == structures[0]:
        settled = [
            _settled(value, type, weak) for value, type, weak in zip(carried, _types(body), body.weak, strict=False)
        ]
        if any(new is not old for new, old in zip(settled, carried, strict=True)):
            return _steady(name, function, structures, settled, others)
    _require_same(f"{name}: the body", given, _types(body), "what it takes", structures[0], [v.type for v in carried])
    return body, carried


def _settled(value: Value, type: TensorType, weak: bool) -> Value:
    """A weak number yields to what the body makes of it."""
    if not value.weak or value.shape != type.shape:
        return value
    if value.type != type:
        return bind("cast", value, type=type)
    return value if weak else with_weak(value, False)


def _require_same(
    who: str, given: TreeDef, types: Sequence[TensorType], whom: str, structure: TreeDef, wanted: Sequence[TensorType]
) -> None:
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
