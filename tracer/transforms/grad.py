"""Gradients of functions."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lavax.base.errors import NonScalarGradError
from lavax.ir.graph import graph_of
from lavax.ir.location import user_error
from lavax.passes.differentiate import differentiate
from lavax.passes.simplify import remove_stop_gradient, simplify
from lavax.tracer.calls.signature import signature_of
from lavax.tracer.calls.wrapping import wraps
from lavax.tracer.compiled.executable import apply_graph
from lavax.tracer.pytrees.pytree import map
from lavax.tracer.tracing.bind import bind, with_weak
from lavax.tracer.tracing.convert import is_numeric, lift
from lavax.tracer.tracing.trace import active_trace
from lavax.tracer.tracing.tracing import trace_function
from lavax.tracer.transforms.argnums import Argnums, choose, fault_of_result, leaves_at, require_differentiable
from lavax.tracer.transforms.arguments import Auxiliary, arguments_of, auxiliary_parts
from lavax.tracer.values.array import Array
from lavax.tracer.values.value import Value


def value_and_grad(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., tuple[Any, Any]]:
    """A function of the same arguments that returns `(function(...), gradient)`.

    The gradient is by the argument `argnums`, of the same structure, shapes and dtypes; for a sequence, a tuple of
    gradients. With `has_aux`, `fun` returns `(value, aux)`, where aux is anything that is not differentiated; the
    first part of the result is then that pair. With `allow_int` arguments may hold integers and bools, too: their
    gradients are arrays of NumPy's dtype float0, which has no numbers. Other arguments keep their numbers, so that
    Python may choose by them.

    The gradient by complex z = x + iy is ∂f/∂x − i·∂f/∂y, as in JAX: steps that lower the value go along its conjugate.
    With `holomorphic` arguments and value are complex, and the gradient is the complex derivative. Raises
    NonScalarGradError if the value is not a float scalar (with `holomorphic`, a complex one), NonFloatArgumentError if
    an argument to differentiate by holds anything but floats and complex numbers.
    """
    run = _transformed(fun, argnums, has_aux, "value_and_grad", True, holomorphic, allow_int)

    @wraps(fun)
    def value_and_gradient(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        value, auxiliary, found = run(args, kwargs)
        return ((value, auxiliary) if has_aux else value), found

    return value_and_gradient


def grad(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """A function of the same arguments that returns the gradient of `fun`; with `has_aux`, `(gradient, aux)`.

    Arguments and errors as in `value_and_grad`.
    """
    run = _transformed(fun, argnums, has_aux, "grad", False, holomorphic, allow_int)

    @wraps(fun)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        _, auxiliary, found = run(args, kwargs)
        return (found, auxiliary) if has_aux else found

    return gradient


def _transformed(
    function: Callable[..., Any],
    argnums: Argnums,
    has_aux: bool,
    transformation: str,
    with_value: bool,
    holomorphic: bool,
    allow_int: bool,
) -> Callable[[Sequence[Any], dict[str, Any]], tuple[Any, Any, Any]]:
    """From arguments to value (without `with_value` None, and not computed), auxiliary result and gradient."""
    signature = signature_of(function, transformation)

    def transformed(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, Any, Any]:
        arguments = arguments_of(signature, args, kwargs, leaves_at(argnums, transformation, signature))
        chosen = choose(argnums, arguments, transformation, allow_int)
        by = chosen.inputs
        values = arguments.values
        what = f"{transformation} of {signature.function}"
        require_differentiable(what, chosen, values, holomorphic, forward=False)
        rest = Auxiliary()

        def run(tracers: list[Value]) -> list[Value]:
            positional, keywords = arguments.with_values(tracers)
            result = function(*positional, **keywords)
            value, auxiliary = auxiliary_parts(result, signature, transformation) if has_aux else (result, None)
            return [_scalar(value, what, holomorphic), *rest.hold(auxiliary)]

        traced = trace_function(run, arguments.as_inputs(dict.fromkeys(by, True)), what)
        first = 0 if with_value else 1
        graph = differentiate(simplify(traced.graph), by)
        graph = graph_of(graph.inputs, graph.outputs[first:])
        if active_trace() is None:
            graph = remove_stop_gradient(graph)
        weak = [*traced.weak, *(values[position].weak for position in by)][first:]
        outputs = apply_graph(graph, [*values, *traced.captured], weak)
        first_gradient = len(outputs) - len(by)
        found = chosen.trees(outputs[first_gradient:])
        return outputs[0] if with_value else None, rest.rebuilt(outputs[1 - first : first_gradient]), found

    return transformed


def stop_gradient(x: Any) -> Any:
    """The same values, as constants for all derivatives."""
    return map(_stopped, x)


def _stopped(leaf: Any) -> Value:
    value = lift(leaf)
    return value.twin(value.weak) if isinstance(value, Array) else with_weak(bind("stop_gradient", value), value.weak)


def _scalar(result: Any, what: str, holomorphic: bool) -> Value:
    """The function's value. Raises NonScalarGradError, which begins with `what`, if it is not a float scalar.

    With `holomorphic` it must be complex.
    """
    if is_numeric(result):
        value = lift(result)
        fault = fault_of_result(value.type, holomorphic)
        if not value.shape and value.type.dtype.is_inexact and fault is None:
            return value
        if not value.shape and fault is not None:
            raise user_error(NonScalarGradError, f"{what}: {fault}")
        found, advice = str(value.type), "take lavax.numpy.sum or mean of it, or use lavax.jacrev or lavax.vmap"
        if not value.shape:
            advice = "integers and bools have no derivative; cast to float32 if it is meant as a number"
    else:
        found = f"a {type(result).__name__}"
        advice = "return the loss alone, or (loss, aux) with has_aux=True"
    raise user_error(
        NonScalarGradError,
        f"{what} needs a function whose result is a float scalar, f32[], but it gave {found}: {advice}",
    )
