"""The dtypes that optimizers compute and keep: never fewer than 32 bits, unless the user says so."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax.tracer.pytrees import pytree


def wide_dtype(leaf: Any) -> Any:
    """float32 for float16 and bfloat16, otherwise the dtype of `leaf`."""
    dtype = lnp.asarray(leaf).dtype
    narrow = lnp.issubdtype(dtype, lnp.floating) and lnp.finfo(dtype).bits < 32
    return lnp.float32 if narrow else dtype


def wide(leaf: Any) -> Any:
    """`leaf` in float32 if it is float16 or bfloat16, otherwise as it is."""
    value = lnp.asarray(leaf)
    dtype = wide_dtype(value)
    return value if value.dtype == dtype else lnp.astype(value, dtype)


def wide_tree(tree: Any) -> Any:
    """`tree` with every float16 and bfloat16 leaf in float32."""
    return pytree.map(wide, tree)


def full_like(tree: Any, value: Any, dtype: Any = None) -> Any:
    """Arrays filled with `value`, of the shapes of `tree`; in `dtype`, or in float32 where `tree` has fewer bits."""
    return pytree.map(lambda leaf: lnp.full(lnp.shape(leaf), value, dtype or wide_dtype(leaf)), tree)


def zeros_like(tree: Any, dtype: Any = None) -> Any:
    """Zeros of the shapes of `tree`; in `dtype`, or in float32 where `tree` has fewer bits."""
    return full_like(tree, 0, dtype)


def ones_like(tree: Any, dtype: Any = None) -> Any:
    """Ones of the shapes of `tree`; in `dtype`, or in float32 where `tree` has fewer bits."""
    return full_like(tree, 1, dtype)


def cast(tree: Any, dtype: Any = None) -> Any:
    """The leaves of `tree` in `dtype`; None leaves them as they are."""
    return tree if dtype is None else pytree.map(lambda leaf: lnp.astype(lnp.asarray(leaf), dtype), tree)


def cast_like(tree: Any, other: Any) -> Any:
    """The leaves of `tree` in the dtypes of those of `other`."""
    return pytree.map(lambda leaf, model: lnp.astype(lnp.asarray(leaf), lnp.asarray(model).dtype), tree, other)
