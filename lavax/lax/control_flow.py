"""Control flow with jax.lax's keywords, over lavax's own."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import lavax.numpy as lnp
from lavax.ir.location import user_error
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import as_value
from lavax.parallel_scan import associative_scan
from lavax.tracer.calls.signature import require_function
from lavax.tracer.control_flow.bodies import flattened, require_same
from lavax.tracer.control_flow.branches import cond as _cond
from lavax.tracer.control_flow.branches import switch as _switch
from lavax.tracer.control_flow.carried import settled
from lavax.tracer.control_flow.fori_loop import fori_loop as _fori_loop
from lavax.tracer.control_flow.scan import map as _map
from lavax.tracer.control_flow.scan import scan as _scan
from lavax.tracer.control_flow.while_loop import while_loop
from lavax.tracer.pytrees import pytree
from lavax.tracer.transforms.vmap import vmap
from lavax.tracer.values.value import Value

__all__ = ["associative_scan", "cond", "fori_loop", "map", "platform_dependent", "scan", "switch", "while_loop"]

_NONE = object()


def cond(
    pred: Any,
    true_fun: Any,
    false_fun: Any,
    *operands: Any,
    operand: Any = _NONE,
    linear: Any = None,
) -> Any:
    """`true_fun(*operands)` if `pred` holds, else `false_fun(*operands)`; `operand` is a single operand by name.

    Five arguments may also be `(pred, true_operand, true_fun, false_operand, false_fun)`. `linear` changes nothing.
    """
    if len(operands) == 2 and callable(false_fun) and callable(operands[1]) and not callable(true_fun):
        of_true, true_function, of_false, false_function = true_fun, false_fun, *operands
        return _cond(pred, lambda x, _: true_function(x), lambda _, x: false_function(x), of_true, of_false)
    given = operands if operand is _NONE else (operand,)
    return _cond(pred, true_fun, false_fun, *given)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any, operand: Any = _NONE) -> Any:
    """The branch with the number `index`, which is moved to the nearest one, of the operands."""
    given = operands if operand is _NONE else (operand,)
    return _switch(index, branches, *given)


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Any, Any]:
    """`lavax.scan`. `unroll=True` is all steps at once; `_split_transpose` is taken, and changes nothing."""
    if unroll < 0:
        raise user_error(ValueError, f"scan: unroll must not be negative, got {unroll}")
    steps = max(1, _steps(xs, length)) if unroll is True else max(1, int(unroll))
    return _scan(f, init, xs, length, reverse, steps)


def _steps(xs: Any, length: int | None) -> int:
    leaves = pytree.leaves(xs)
    return int(length or 0) if not leaves else int(as_value(leaves[0]).shape[0])


def fori_loop(
    lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any, *, unroll: int | bool | None = None
) -> Any:
    """`body_fun(i, value)` for i from `lower` up to `upper`. With `unroll=True` and bounds that are known, no loop is
    made; other numbers change nothing. Raises ControlFlowTypeError if the body does not return the types it takes."""
    if unroll is True and not isinstance(lower, Value) and not isinstance(upper, Value):
        return _unrolled(range(whole_number("lower", lower), whole_number("upper", upper)), body_fun, init_val)
    return _fori_loop(lower, upper, body_fun, init_val)


def _unrolled(numbers: range, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    require_function(body_fun, "fori_loop body must be a function")
    carried, structures = flattened([init_val])
    value = init_val
    for i in numbers:
        value = body_fun(lnp.asarray(i), value)
        found, given = flattened([value])
        if given == structures:  # the first iteration may take Python's numbers
            carried = [settled(old, new.type, new.weak) for old, new in zip(carried, found, strict=True)]
        who, whom = "fori_loop: the body", "its argument"
        require_same(who, given[0], [v.type for v in found], whom, structures[0], [v.type for v in carried])
    return value


def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """`f` of each element along the first axis, one after the other; with `batch_size`, so many at once by `vmap`.

    0 is no batches. Raises ValueError if it is negative.
    """
    if not batch_size:
        return _map(f, xs)
    if batch_size < 0:
        raise user_error(ValueError, f"map: batch_size must not be negative, got {batch_size}")
    count = as_value(pytree.leaves(xs)[0]).shape[0]
    if count == 0:
        return _map(f, xs)
    whole = count // batch_size * batch_size
    parts = []
    if whole:
        batches = pytree.map(
            lambda x: lnp.reshape(as_value(x)[:whole], (-1, batch_size, *as_value(x).shape[1:])), xs
        )
        parts.append(pytree.map(lambda y: lnp.reshape(y, (whole, *y.shape[2:])), _map(vmap(f), batches)))
    if whole < count:
        parts.append(vmap(f)(pytree.map(lambda x: as_value(x)[whole:], xs)))
    return parts[0] if len(parts) == 1 else pytree.map(lambda *each: lnp.concatenate(each), *parts)


def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any:
    """What `default` gives: no platform of JAX's is here. Raises ValueError without it."""
    if default is None:
        raise ValueError(f"lax.platform_dependent: none of {sorted(per_platform)} is here, and there is no default")
    return default(*args)
