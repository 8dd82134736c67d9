"""Policies: in which dtypes parameters are kept, computations run, and results are given (Micikevicius et al. 2018)."""
from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import lavax.numpy as lnp
from lavax.base.quick_dataclasses import dataclass
from lavax.nn.modules.batch_norm import BatchNormState
from lavax.optim.tree.precision import wide_tree
from lavax.tracer.pytrees import pytree
from lavax.tracer.transforms.grad import value_and_grad as plain_value_and_grad

_DTYPES: dict[str, Any] = {
    "float64": lnp.float64,
    "float32": lnp.float32,
    "bfloat16": lnp.bfloat16,
    "float16": lnp.float16,
    "full": lnp.float32,
    "half": lnp.float16,
    "f64": lnp.float64,
    "f32": lnp.float32,
    "bf16": lnp.bfloat16,
    "f16": lnp.float16,
}
_PARTS = ("params", "compute", "output")
_EXAMPLE = "params=float32,compute=bfloat16,output=float32"


@dataclass(frozen=True)
class Policy:
    """Dtypes of parameters, of computation and of results; only float leaves of trees are ever cast."""

    params: Any
    compute: Any
    output: Any

    @classmethod
    def parse(cls, text: str) -> Policy:
        """The policy of "params=float32,compute=bfloat16,output=float32", or of one dtype for all: "bfloat16".

        Short names (f32, bf16, f16, full, half; p, c, o for the parts) will do. A part that is not named has the dtype
        of the parameters, and these are float32 if not named. Raises ValueError for anything else.
        """
        pieces = [piece.strip() for piece in text.split(",")]
        if len(pieces) == 1 and "=" not in pieces[0]:
            dtype = _dtype(pieces[0], text)
            return cls(dtype, dtype, dtype)
        found: dict[str, Any] = {}
        for piece in pieces:
            name, _, dtype_name = piece.partition("=")
            part = _part(name.strip(), text)
            if part in found:
                raise ValueError(f"Policy.parse: {part} is given twice in {text!r}")
            found[part] = _dtype(dtype_name.strip(), text)
        params = found.get("params", lnp.float32)
        return cls(params, found.get("compute", params), found.get("output", params))

    def cast_to_param(self, tree: Any) -> Any:
        """The float leaves of `tree` in the dtype of parameters."""
        return cast_floats(tree, self.params)

    def cast_to_compute(self, tree: Any) -> Any:
        """The float leaves of `tree` in the dtype of computation."""
        return cast_floats(tree, self.compute)

    def cast_to_output(self, tree: Any) -> Any:
        """The float leaves of `tree` in the dtype of results."""
        return cast_floats(tree, self.output)

    def with_output_dtype(self, dtype: Any) -> Policy:
        """The same policy with another dtype of results."""
        return Policy(self.params, self.compute, dtype)

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function` with its arguments cast to the dtype of computation, and its result to that of results."""

        @wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = self.cast_to_compute((args, kwargs))
            return self.cast_to_output(function(*args, **kwargs))

        return wrapped


def _part(name: str, text: str) -> str:
    for part in _PARTS:
        if name in (part, part[0]):
            return part
    raise ValueError(f"Policy.parse: {name!r} in {text!r} is none of {', '.join(_PARTS)}; write it as {_EXAMPLE!r}")


def _dtype(name: str, text: str) -> Any:
    if name not in _DTYPES:
        known = ", ".join(_DTYPES)
        raise ValueError(f"Policy.parse: {name!r} in {text!r} is none of {known}; an example is {_EXAMPLE!r}")
    return _DTYPES[name]


def cast_floats(tree: Any, dtype: Any) -> Any:
    """`tree` with its float arrays in `dtype`. Integers, booleans, Python numbers and all else stay as they are.

    So do the running statistics of batch norms: rounded in every step they would drift, and variances leave float16.
    """

    def cast(leaf: Any) -> Any:
        held = getattr(leaf, "dtype", None)
        if held is None or not lnp.issubdtype(held, lnp.floating) or held == dtype:
            return leaf
        return lnp.astype(lnp.asarray(leaf), dtype)

    return pytree.map(cast, tree, is_leaf=_is_running)


def _is_running(part: Any) -> bool:
    return isinstance(part, BatchNormState)


def value_and_grad(
    loss: Callable[..., Any], policy: Policy, loss_scale: Any = None, has_aux: bool = False
) -> Callable[..., tuple[Any, Any]]:
    """`lx.value_and_grad(loss)` for the first argument under a policy; the gradients are float32 at least.

    Parameters and arguments are cast to the dtype of computation. The cast is part of what is differentiated, so the
    gradients are those of the parameters as they are kept. With a `loss_scale` the loss is multiplied with it (in
    float32) before differentiation; value and gradients come unscaled. Check the gradients with `all_finite` and adjust
    the scale.
    """

    def scaled(params: Any, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = policy.cast_to_compute((args, kwargs))
        found = loss(policy.cast_to_compute(params), *args, **kwargs)
        value, aux = found if has_aux else (found, None)
        value = wide_tree(value)
        return value if loss_scale is None else loss_scale.scale(value), (value, aux)

    def computed(params: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        # Gradients have the dtype of what they are taken by: that is float32 also where parameters are kept in less.
        (_, (value, aux)), gradient = plain_value_and_grad(scaled, has_aux=True)(wide_tree(params), *args, **kwargs)
        if loss_scale is not None:
            gradient = loss_scale.unscale(gradient)
        value = policy.cast_to_output(value)
        return ((value, policy.cast_to_output(aux)) if has_aux else value), gradient

    return computed
