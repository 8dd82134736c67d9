"""Both modes through functions with custom derivatives, and through checkpoints, which are recomputed."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from lavax.base.errors import CustomRuleError
from lavax.ir.graph import Graph, Node, graph_of, input_node, substitute, topological, with_operands
from lavax.passes.build.builder import build, computed_after, zeros
from lavax.passes.build.control_flow import item, parts_of
from lavax.passes.build.inline import inline
from lavax.passes.differentiate.dependence import depends_on
from lavax.passes.differentiate.linear_calls import with_bodies_of_calls
from lavax.passes.differentiate.values_of_rules import rule_of, with_values_of_rules

Maybe = Sequence[Node | None]


def _refuse_outer(node: Node, matters: Sequence[bool]) -> None:
    """Raises an error if a value matters that the function captured from outside: rules do not cover it."""
    count = node.attrs["arguments"]
    for operand, needed in zip(node.operands[count:], matters[count:], strict=True):
        if needed:
            raise CustomRuleError(
                f"a {node.op} function uses a value {operand.type} from outside that is being differentiated by, of "
                "which its rule knows nothing: pass it as an argument, or make it one with lavax.closure_convert"
                + (f"\n  at {node.location}" if node.location else "")
            )


def _float_positions(node: Node) -> list[int]:
    """The positions of float arguments: rules have tangents and cotangents for these."""
    return [p for p, operand in enumerate(node.operands[: node.attrs["arguments"]]) if operand.dtype.is_inexact]


def _cotangents_given(node: Node, cotangents: Maybe) -> list[Node]:
    """One cotangent per float result."""
    pairs = zip(cotangents, parts_of(node), strict=True)
    return [zeros(type) if cotangent is None else cotangent for cotangent, type in pairs if type.dtype.is_inexact]


def _pulled_back(node: Node, given: Sequence[Node]) -> list[Node]:
    """The result of a custom_vjp function's rules for the cotangents of its float results."""
    residuals = inline(rule_of(node, "forward"), node.operands)[len(parts_of(node)) :]
    return inline(rule_of(node, "backward"), (*residuals, *given))


def custom_vjp_backwards(node: Node, cotangents: Maybe, matters: Sequence[bool]) -> list[Node | None]:
    _refuse_outer(node, matters)
    found: list[Node | None] = [None] * len(node.operands)
    for position, gradient in zip(
        _float_positions(node), _pulled_back(node, _cotangents_given(node, cotangents)), strict=True
    ):
        found[position] = gradient if matters[position] else None
    return found


def custom_vjp_forwards(node: Node, tangents: Maybe) -> tuple[Node, list[Node | None]]:
    """Transposes the backward rule, which is linear in the cotangents."""
    _refuse_outer(node, [tangent is not None for tangent in tangents])
    floats = [type for type in parts_of(node) if type.dtype.is_inexact]
    cotangents = [input_node(f"cotangent{number}", type) for number, type in enumerate(floats)]
    pulled = _pulled_back(node, cotangents)
    seeds = [tangents[position] for position in _float_positions(node)]
    return node, _at_floats(node, _transposed(node, "backward rule", pulled, cotangents, seeds))


def custom_jvp_forwards(node: Node, tangents: Maybe) -> tuple[Node, list[Node | None]]:
    _refuse_outer(node, [tangent is not None for tangent in tangents])
    given = [tangents[position] or zeros(node.operands[position].type) for position in _float_positions(node)]
    return node, _at_floats(node, _pushed(node, given))


def custom_jvp_backwards(node: Node, cotangents: Maybe, matters: Sequence[bool]) -> list[Node | None]:
    """Transposes the rule, which is linear in the tangents."""
    _refuse_outer(node, matters)
    floats = _float_positions(node)
    directions = {p: input_node(f"tangent{p}", node.operands[p].type) for p in floats if matters[p]}
    pushed = _pushed(node, [directions.get(p) or zeros(node.operands[p].type) for p in floats])
    seeds = [
        cotangent for cotangent, type in zip(cotangents, parts_of(node), strict=True) if type.dtype.is_inexact
    ]
    found: list[Node | None] = [None] * len(node.operands)
    pulled = _transposed(node, "rule", pushed, list(directions.values()), seeds)
    for position, gradient in zip(directions, pulled, strict=True):
        found[position] = gradient
    return found


def refuse_host_call(node: Node) -> CustomRuleError:
    """The error of a derivative that goes through a call of the host."""
    return CustomRuleError(
        f"{node.attrs['function'].name} has no derivative: lavax does not see what a function on the host computes. "
        "Call it in a function with custom_vjp or custom_jvp, or pass it stop_gradient of its arguments"
        + (f"\n  at {node.location}" if node.location else "")
    )


def host_call_forwards(node: Node, tangents: Maybe) -> tuple[Node, list[Node | None]]:
    parts = parts_of(node)
    if any(type.dtype.is_inexact for type in parts):
        raise refuse_host_call(node)
    return node, [None] * len(parts)  # integers have no derivative


def host_call_backwards(node: Node, cotangents: Maybe, matters: Sequence[bool]) -> list[Node | None]:
    if any(matters):
        raise refuse_host_call(node)
    return [None] * len(node.operands)


def _transposed(
    node: Node, rule: str, results: Sequence[Node], sources: Sequence[Node], seeds: Maybe
) -> list[Node]:
    """The other mode of a rule that gives `results` for `sources`. Raises CustomRuleError if it is not linear."""
    from lavax.passes.differentiate.forward import transpose_linear  # forward mode uses these rules

    inputs = tuple(dict.fromkeys((*sources, *node.operands)))
    results = with_bodies_of_calls(graph_of(inputs, results), [each in sources for each in inputs]).outputs
    found = transpose_linear(results, sources, seeds, node.operands)
    behind = (*node.operands, *(seed for seed in seeds if seed is not None))
    if depends_on(found, sources, behind):
        mode, given = ("forward", "cotangents") if node.op == "custom_vjp" else ("reverse", "tangents")
        raise CustomRuleError(
            f"{mode} mode through a {node.op} function is the transpose of its {rule}, which has to be linear in its "
            f"{given}, and is not: give the function a rule for {mode} mode "
            f"({'custom_jvp' if mode == 'forward' else 'custom_vjp'}), or take its derivative in the other mode"
            + (f"\n  at {node.location}" if node.location else "")
        )
    # Transposed loops still have the sources among what they read, though no result depends on them.
    body = Graph((*sources, *behind), tuple(topological(found, stop=(*sources, *behind))), tuple(found))
    fixed = {each: each for each in behind} | {source: zeros(source.type) for source in sources}
    known = substitute(body, fixed)
    return [known[each] for each in found]


def _pushed(node: Node, tangents: Sequence[Node]) -> list[Node]:
    """The tangents of the float results of a custom_jvp function."""
    return inline(rule_of(node, "rule"), (*node.operands, *tangents))[len(parts_of(node)) :]


def _at_floats(node: Node, found: Sequence[Node]) -> list[Node | None]:
    """One entry per result; None for those that are not floats."""
    remaining = iter(found)
    return [next(remaining) if type.dtype.is_inexact else None for type in parts_of(node)]


def checkpoint_forwards(node: Node, tangents: Maybe) -> tuple[Node, list[Node | None]]:
    """Computes the tangents in a separate checkpoint, so that their gradient recomputes the values it needs."""
    from lavax.passes.differentiate.forward import jvp  # forward mode uses these rules

    body = node.attrs["body"]
    wrt = [position for position, tangent in enumerate(tangents) if tangent is not None]
    whole = jvp(body, wrt)
    pushing = graph_of(whole.inputs, whole.outputs[len(body.outputs) :])
    operands = (*node.operands, *(tangent for tangent in tangents if tangent is not None))
    pushed = build("checkpoint", *operands, keep=node.attrs["keep"], body=pushing, named=0)
    return node, _at_floats(node, [item(pushed, number) for number in range(len(pushing.outputs))])


def custom_vmap_forwards(node: Node, tangents: Maybe) -> tuple[Node, list[Node | None]]:
    """The tangents are those of the body, which say nothing of batches."""
    from lavax.passes.differentiate.forward import jvp  # forward mode uses these rules

    body = node.attrs["body"]
    whole = jvp(body, [position for position, tangent in enumerate(tangents) if tangent is not None])
    operands = (*node.operands, *(tangent for tangent in tangents if tangent is not None))
    return node, _at_floats(node, inline(whole, operands)[len(body.outputs) :])


def custom_vmap_backwards(node: Node, cotangents: Maybe, matters: Sequence[bool]) -> list[Node | None]:
    return _backward_of(inline(node.attrs["body"], node.operands), node.operands, node.operands, cotangents, matters)


def checkpoint_backwards(node: Node, cotangents: Maybe, matters: Sequence[bool]) -> list[Node | None]:
    """Recomputes the body after a barrier that waits for the cotangents, and differentiates it there."""
    given = [cotangent for cotangent in cotangents if cotangent is not None and cotangent.type.size]
    if not given:
        return [None] * len(node.operands)
    again = [computed_after(operand, given[0]) for operand in node.operands]
    outputs = _computed_again(node, again, given[0])
    known = tuple(dict.fromkeys((*again, *node.operands, given[0])))  # kept values read what was there before
    return _backward_of(outputs, again, known, cotangents, matters)


def _backward_of(
    outputs: Sequence[Node], operands: Sequence[Node], known: Sequence[Node], cotangents: Maybe, matters: Sequence[bool]
) -> list[Node | None]:
    """The cotangents of the `operands` that matter, from which, and from what is `known`, `outputs` are computed."""
    from lavax.passes.differentiate import reverse  # reverse mode uses these rules

    known = tuple(dict.fromkeys(known))
    # One operand may stand at several places: each gets what is due to all, but once.
    first = {operand: place for place, operand in reversed(list(enumerate(operands)))}
    needed_places = [place for place, operand in enumerate(operands) if matters[place] and first[operand] == place]
    sources = [operands[place] for place in needed_places]
    repeated = Graph(known, tuple(topological(outputs, stop=known)), tuple(outputs))
    repeated = reverse.with_kept_values(repeated, sources)
    seeds: dict[Node, Node] = {}
    for output, cotangent in zip(repeated.outputs, cotangents, strict=True):
        if cotangent is not None:
            seeds[output] = build("add", seeds[output], cotangent) if output in seeds else cotangent
    found = reverse.backward(repeated, sources, seeds)
    outside = [*known, *(cotangent for cotangent in cotangents if cotangent is not None), *seeds.values()]
    found = _with_known_values(found, repeated, outside)
    taken = reverse.through_rules(repeated, sources)
    if taken:
        found = list(with_values_of_rules(graph_of(dict.fromkeys(outside), found), taken).outputs)
    gradients = dict(zip(needed_places, found, strict=True))
    return [gradients.get(place) for place in range(len(operands))]


def _with_known_values(gradients: Sequence[Node], repeated: Graph, outside: Sequence[Node]) -> list[Node]:
    """The gradients, in which kept values are read in place of those that would be computed again.

    The gradient of an exponential reads the exponential.
    """
    made = {value.operands[0]: value for value in repeated.nodes if value.op == "known_value"}
    if not made:
        return list(gradients)
    fixed = {value: value for value in (*outside, *repeated.nodes)} | made
    graph = Graph(tuple(fixed), tuple(topological(gradients, stop=tuple(fixed))), tuple(gradients))
    changed = substitute(graph, fixed)
    return [changed.get(gradient, gradient) for gradient in gradients]


def _is_kept(node: Node) -> Callable[[Node], bool]:
    """Whether the gradient of a checkpoint need not compute a node of its body again."""
    outputs = node.attrs["body"].outputs
    named = frozenset(outputs[len(outputs) - node.attrs["named"] :])
    ops = frozenset({"dot", "conv"} if node.attrs["keep"] == "dots" else ())
    return lambda value: value.op in ops or value in named


def _computed_again(node: Node, again: Sequence[Node], after: Node) -> list[Node]:
    """The outputs of a checkpoint's body on `again`, the repeated operands; kept values are computed from its own.

    A kept value is still differentiated by its operands: it is the known value of the same operation on `again`.
    """
    body, is_kept = node.attrs["body"], _is_kept(node)
    first: dict[Node, Node] = dict(zip(body.inputs, node.operands, strict=True))
    second: dict[Node, Node] = dict(zip(body.inputs, again, strict=True))
    for value in body.nodes:
        first[value] = with_operands(value, tuple(first[operand] for operand in value.operands))
        second[value] = with_operands(value, tuple(second[operand] for operand in value.operands))
        if is_kept(value):
            second[value] = build("known_value", second[value], computed_after(first[value], after))
    return [second[output] for output in body.outputs]
