"""Jacobians and Hessians: pullbacks and pushforwards of all unit vectors at once."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lavax.base.errors import DtypeError
from lavax.ir import Graph
from lavax.ir.graph import Node, graph_of, substitute
from lavax.ir.location import user_error
from lavax.ir.types import TensorType
from lavax.passes.batch import batch
from lavax.passes.batch.batch_rule import from_front
from lavax.passes.build.builder import cast, equal, index_type, iota, reshape
from lavax.passes.differentiate import jvp, vjp
from lavax.passes.simplify import simplify
from lavax.tracer.calls.signature import require_function, signature_of
from lavax.tracer.calls.wrapping import wraps
from lavax.tracer.pytrees.pytree import unflatten
from lavax.tracer.transforms.argnums import Argnums, Chosen, choose, fault_of_result, leaves_at, require_differentiable
from lavax.tracer.transforms.arguments import Arguments
from lavax.tracer.transforms.transformed_call import TransformedCall, run_finished, transformed_call

# From the traced graph and the inputs to differentiate by, to one derivative per pair of an output and such an input,
# as nodes over the graph's inputs, ordered by output, then by input.
_Derivatives = Callable[[Graph, int, Sequence[int]], list[Node]]


def jacrev(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """A function of the same arguments that returns the Jacobian of `fun`, by reverse mode.

    It computes one pullback per result. The Jacobian is a tree of the result's structure, with a tree of the structure
    of the argument `argnums` at each leaf (for a sequence, a tuple of them); the leaf for a result of shape r and an
    argument of shape a has shape (*r, *a). With `has_aux`, `fun` returns `(value, aux)` and this `(jacobian,
    aux)`. Best if there are fewer results than arguments. With `allow_int` the argument may hold integers, too, at
    which the Jacobian has zeros of NumPy's dtype float0. With `holomorphic` argument and result are complex, and so is
    the Jacobian. Raises NonFloatArgumentError if the argument is not float, DtypeError if the result is not.
    """
    return _jacobian(fun, argnums, has_aux, "jacrev", _by_pullbacks, holomorphic, allow_int)


def jacfwd(
    fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """As `jacrev`, by forward mode: one pushforward per argument. Best if there are fewer arguments than results."""
    return _jacobian(fun, argnums, has_aux, "jacfwd", _by_pushforwards, holomorphic)


def hessian(
    fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """A function of the same arguments that returns the second derivatives of `fun`, forward over reverse.

    For an argument of shape a and a result of shape r, the Hessian has shape (*r, *a, *a). Arguments, trees and errors
    as in `jacrev`.
    """
    gradients = _jacobian(fun, argnums, has_aux, "hessian", _by_pullbacks, holomorphic)
    return _jacobian(gradients, argnums, has_aux, "hessian", _by_pushforwards, holomorphic)


def _jacobian(
    function: Callable[..., Any],
    argnums: Argnums,
    has_aux: bool,
    transformation: str,
    derivatives: _Derivatives,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    require_function(function, f"{transformation} takes a function")
    signature = signature_of(function, transformation)
    concerned = leaves_at(argnums, transformation, signature)

    @wraps(function)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        def by(arguments: Arguments) -> tuple[int, ...]:
            return choose(argnums, arguments, transformation, allow_int).inputs

        call = transformed_call(function, args, kwargs, transformation, has_aux, by, concerned)
        chosen = choose(argnums, call.arguments, transformation, allow_int)
        what = f"{transformation} of {signature.function}"
        require_differentiable(what, chosen, call.arguments.values, holomorphic, derivatives is _by_pushforwards)
        _require_floats(call, what, holomorphic, derivatives is _by_pushforwards)
        traced = simplify(call.graph)
        count = len(call.results)
        found = derivatives(traced, count, chosen.inputs)
        whole = graph_of(traced.inputs, (*found, *traced.outputs[count:]))
        by_argument = [call.arguments.values[number].weak for number in chosen.inputs]
        forward = derivatives is _by_pushforwards
        weak = [result if forward else each for result in call.traced.weak[:count] for each in by_argument]
        weak += call.traced.weak[count:]
        outputs = run_finished(whole, call.values, weak)
        matrices = _tree(call, chosen, outputs[: len(found)])
        auxiliary = call.auxiliary.rebuilt(outputs[len(found) :])
        return (matrices, auxiliary) if has_aux else matrices

    return jacobian


def _tree(call: TransformedCall, chosen: Chosen, leaves: Sequence[Any]) -> Any:
    width = len(chosen.inputs)
    rows = [
        chosen.trees(leaves[number * width : (number + 1) * width], result.shape)
        for number, result in enumerate(call.results)
    ]
    return unflatten(call.structure, rows)


def _require_floats(call: TransformedCall, what: str, holomorphic: bool, forward: bool) -> None:
    """The results that a mode differentiates: a pushforward of a real argument may be complex, a pullback may not."""
    for node in call.results:
        fault = None if forward and not holomorphic else fault_of_result(node.type, holomorphic)
        if node.dtype.is_inexact and fault is not None:
            raise user_error(DtypeError, f"{what}: {fault}")
        if not node.dtype.is_inexact:
            raise user_error(
                DtypeError,
                f"{what}: the result must be made of floats, but it "
                f"holds {node.type}. Return values that are not to be differentiated as aux, with has_aux=True",
            )


def _by_pullbacks(graph: Graph, count: int, by: Sequence[int]) -> list[Node]:
    found: list[Node] = []
    for output in graph.outputs[:count]:
        pulled = vjp(graph_of(graph.inputs, (output,)), by)
        for column, position in zip(_for_unit_vectors(pulled, 1), by, strict=True):
            found.append(reshape(column, (*output.shape, *graph.inputs[position].shape)))
    return found


def _by_pushforwards(graph: Graph, count: int, by: Sequence[int]) -> list[Node]:
    columns: list[list[Node]] = []
    values = graph_of(graph.inputs, graph.outputs[:count])
    for position in by:
        argument = graph.inputs[position]
        pushed = _for_unit_vectors(jvp(values, (position,)), count)
        columns.append([_behind(row, row.shape[1:], argument.shape) for row in pushed])
    return [column[number] for number in range(count) for column in columns]


def _behind(rows: Node, result: Sequence[int], argument: Sequence[int]) -> Node:
    """From one row per element of the argument to the axes of the result, then those of the argument."""
    return reshape(from_front(rows, len(result)), (*result, *argument))


def _for_unit_vectors(graph: Graph, skipped: int) -> list[Node]:
    """The outputs of `graph` after the first `skipped`, for every unit vector as its last input, stacked in front."""
    *fixed, direction = graph.inputs
    size = direction.type.size
    wanted = simplify(graph_of(graph.inputs, graph.outputs[skipped:]))
    batched = batch(wanted, [*[None] * len(fixed), 0], [0] * len(wanted.outputs), size)
    units = reshape(_identity(size, direction.type), (size, *direction.shape))
    found = substitute(batched, {**{node: node for node in fixed}, batched.inputs[-1]: units})
    return [found[output] for output in batched.outputs]


def _identity(size: int, type: TensorType) -> Node:
    positions = index_type((size, size))
    return cast(equal(iota(positions, 0), iota(positions, 1)), type.dtype)
