"""Linear and bilinear maps and tables of embeddings, as functions."""
from __future__ import annotations

import lavax.numpy as lnp
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.transforms.grad import stop_gradient
from lavax.tracer.values.value import Value

__all__ = ["bilinear", "embedding", "linear"]


def linear(x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None) -> Value:
    """x·weightᵀ + bias on the last axis: [..., in] with `weight` [out, in] and `bias` [out] to [..., out]."""
    product = lnp.matmul(x, lnp.matrix_transpose(weight))
    return product if bias is None else product + as_value(bias)


def bilinear(x1: ArrayLike, x2: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None) -> Value:
    """Σ x1·weight·x2 + bias: [..., in1] and [..., in2] with `weight` [out, in1, in2] and `bias` [out] to [..., out]."""
    product = lnp.einsum("...i,oij,...j->...o", x1, weight, x2)
    return product if bias is None else product + as_value(bias)


def embedding(x: ArrayLike, weight: ArrayLike, padding_idx: int | None = None) -> Value:
    """The rows of `weight` [count, features] at the integers `x` [...]: [..., features].

    The row `padding_idx` gets no gradients. Indices outside are treated as by `lnp.take`.
    """
    table = as_value(weight)
    if padding_idx is None:
        return lnp.take(table, x, axis=0, mode="promise_in_bounds")
    if not -table.shape[0] <= padding_idx < table.shape[0]:
        raise shape_error(f"embedding: padding_idx={padding_idx} is no row of {table.type}")
    place = padding_idx % table.shape[0]
    indices = as_value(x)
    is_padding = lnp.expand_dims(indices == place, -1)
    found = lnp.take(table, indices, axis=0, mode="promise_in_bounds")
    result: Value = lnp.where(is_padding, stop_gradient(found), found)
    return result
