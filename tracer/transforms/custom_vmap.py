"""Functions that say themselves how they are mapped."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from lavax.base.errors import CustomRuleError, TreeMismatchError
from lavax.ir import Graph
from lavax.ir.batching_function import BatchingFunction
from lavax.ir.graph import graph_of, input_node, substitute
from lavax.ir.location import user_error
from lavax.passes.build.builder import broadcast
from lavax.tracer.calls.signature import signature_of
from lavax.tracer.control_flow.captures import with_common_captures
from lavax.tracer.control_flow.recording import apply_control_flow
from lavax.tracer.control_flow.scan import scan
from lavax.tracer.pytrees.pytree import broadcast_prefix, flatten, leaves, unflatten
from lavax.tracer.tracing.trace import active_trace
from lavax.tracer.tracing.tracer import identity
from lavax.tracer.tracing.tracing import Input, Traced, trace_function, without_effects
from lavax.tracer.transforms.arguments import Arguments, arguments_of
from lavax.tracer.values.abstract import abstract
from lavax.tracer.values.value import Value

Rule = Callable[..., tuple[Any, Any]]


class custom_vmap:  # noqa: N801  # a decorator, as it is known
    """A function whose batches are computed by a rule; a decorator.

    `f.def_vmap(rule)`: `rule(axis_size, in_batched, *args)` takes the arguments of f, those of a batch with its axis in
    front, and a tuple of their structure that says which these are. It returns f's results for the batch, and which of
    them have its axis in front, as a tree of the results' structure or a beginning of it. Derivatives are those of the
    function itself: inside custom_vjp or custom_jvp, it has both. Raises CustomRuleError if the rule is missing or does
    not fit the function.
    """

    def __init__(self, fun: Callable[..., Any]) -> None:
        self._signature = signature_of(fun, "custom_vmap")
        functools.update_wrapper(self, fun, updated=())
        self._function = fun
        self._rule: Rule | None = None

    def def_vmap(self, vmap_rule: Rule) -> Rule:
        """Sets the rule; also a decorator."""
        self._rule = vmap_rule
        return vmap_rule

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if self._rule is None:
            raise user_error(
                CustomRuleError,
                f"custom_vmap of {self._signature.function}: no rule is given yet; call {self._signature.function}."
                "def_vmap(rule) before it is used",
            )
        bound = inspect.signature(self._function).bind(*args, **kwargs)
        bound.apply_defaults()
        if active_trace() is None or bound.kwargs:
            return self._function(*bound.args, **bound.kwargs)
        arguments = arguments_of(self._signature, bound.args, {})
        what = f"custom_vmap of {self._signature.function}"

        def run(values: list[Value]) -> Any:
            return self._function(*arguments.with_values(values)[0])

        traced = without_effects(trace_function(run, arguments.as_inputs(), what))
        (body,), captured = with_common_captures([traced], len(arguments.values))
        made = functools.partial(_graph_of_batch, self._rule, what, arguments, traced, captured)
        results = apply_control_flow(
            "custom_vmap",
            [*arguments.values, *captured],
            [node.type for node in body.outputs],
            traced.weak,
            body=body,
            batching=BatchingFunction(self._signature.function, made),
        )
        return unflatten(traced.structure, results)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method: the instance is the first argument."""
        return self if instance is None else functools.partial(self, instance)


def _graph_of_batch(
    rule: Rule,
    what: str,
    arguments: Arguments,
    one: Traced,
    captured: Sequence[Value],
    size: int,
    flags: Sequence[bool],
) -> Graph:
    """The graph of the rule for a batch; its operands are the arguments, then the values that the function captured."""
    count = len(arguments.values)
    if any(flags[count:]):
        raise user_error(
            CustomRuleError, f"{what}: it uses a value from outside that is mapped, too: pass it as an argument"
        )
    inputs = [
        Input(each.name, abstract(each.abstract.type.with_shape((size, *each.abstract.type.shape)), each.abstract.weak))
        if flag
        else Input(each.name, each.abstract)
        for each, flag in zip(arguments.as_inputs(), flags, strict=False)
    ]
    batched: list[bool] = []

    def run(values: list[Value]) -> Any:
        marked = [False] * len(arguments.leaves)
        for place, flag in zip(arguments.inputs, flags, strict=False):
            marked[place] = flag
        positional = arguments.with_values(values)[0]
        result = rule(size, unflatten(arguments.call.positional, marked), *positional)
        batched.extend(_flags_of(result, one, what))
        return result[0]

    traced = without_effects(trace_function(run, inputs, f"{what}: the rule"))
    if traced.structure is not one.structure:
        raise user_error(
            CustomRuleError,
            f"{what}: the rule's result is {traced.structure!r}, but the function's is {one.structure!r}",
        )
    return _with_axis_in_front(_taking(traced, inputs, captured, what), batched, one, size, what)


def _flags_of(result: Any, one: Traced, what: str) -> list[bool]:
    """Which results of a rule have the batch axis."""
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise user_error(CustomRuleError, f"{what}: the rule must give (result, which of it is batched)")
    try:
        found = broadcast_prefix(result[1], one.structure, lambda part: isinstance(part, bool))
    except TreeMismatchError as error:
        raise user_error(
            CustomRuleError, f"{what}: which results are batched must begin like the result, with truths: {error}"
        ) from None
    return found


def _taking(traced: Traced, inputs: Sequence[Input], captured: Sequence[Value], what: str) -> Graph:
    """The graph of a rule over its arguments and the values that the function captured, of which it may use some."""
    count = len(inputs)
    outer = [input_node(f"outer{number}", value.type) for number, value in enumerate(captured)]
    known = dict(zip(map(identity, captured), outer, strict=True))
    replaced = {node: node for node in traced.graph.inputs[:count]}
    for value, node in zip(traced.captured, traced.graph.inputs[count:], strict=True):
        if identity(value) not in known:
            raise user_error(
                CustomRuleError,
                f"{what}: the rule uses a value {value.type} from outside that the function does not: pass it as an "
                "argument",
            )
        replaced[node] = known[identity(value)]
    found = substitute(traced.graph, replaced)
    return graph_of([*traced.graph.inputs[:count], *outer], [found[output] for output in traced.graph.outputs])


def _with_axis_in_front(graph: Graph, batched: Sequence[bool], one: Traced, size: int, what: str) -> Graph:
    outputs = []
    for node, has_axis, own in zip(graph.outputs, batched, one.graph.outputs, strict=True):
        expected = own.type.with_shape((size, *own.shape)) if has_axis else own.type
        if node.type != expected:
            raise user_error(CustomRuleError, f"{what}: a result of the rule is {node.type}, where {expected} is due")
        spread = broadcast(node, (size, *node.shape), range(1, node.type.rank + 1))
        outputs.append(node if has_axis else spread)
    return graph_of(graph.inputs, outputs)


def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """A function that vmap calls in a loop, once for each element; a decorator."""
    mapped = custom_vmap(f)

    def rule(axis_size: int, in_batched: Any, *args: Any) -> tuple[Any, Any]:
        given, structure = flatten(args)
        flags = leaves(in_batched)
        rows = [leaf for leaf, flag in zip(given, flags, strict=True) if flag]

        def element(carry: None, row: list[Value]) -> tuple[None, Any]:
            of_batch = iter(row)
            parts = [next(of_batch) if flag else leaf for leaf, flag in zip(given, flags, strict=True)]
            return carry, mapped(*unflatten(structure, parts))

        return scan(element, None, rows, length=axis_size)[1], True

    mapped.def_vmap(rule)
    return mapped
