"""The dtypes that optimizers compute and keep: never fewer than 32 bits, unless the user says so."""
from __future__ import annotations

from functools import cache
from typing import Any

import lavax.numpy as lnp
from lavax.base.errors import DtypeError
from lavax.tracer.pytrees import pytree


def wide_dtype(leaf: Any) -> Any:
    """float32 for float16 and bfloat16, otherwise the dtype of `leaf`."""
    return _widened(lnp.asarray(leaf).dtype)


@cache
def _widened(dtype: Any) -> Any:
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


def dtype_for(leaf: Any, dtype: Any = None) -> Any:
    """`dtype`, or `wide_dtype(leaf)` without one. For a complex leaf, a `dtype` of floats means the complex one."""
    if dtype is None or not lnp.iscomplexobj(leaf) or lnp.issubdtype(dtype, lnp.complexfloating):
        return dtype or wide_dtype(leaf)
    return lnp.complex128 if lnp.dtype(dtype) == lnp.float64 else lnp.complex64


def full_like(tree: Any, value: Any, dtype: Any = None) -> Any:
    """Arrays filled with `value`, of the shapes of `tree`; in `dtype`, or in float32 where `tree` has fewer bits."""
    return pytree.map(lambda leaf: lnp.full(lnp.shape(leaf), value, dtype_for(leaf, dtype)), tree)


def sizes_like(tree: Any, value: Any = 0) -> Any:
    """Arrays filled with `value` for squares or sizes of `tree`'s numbers: floats of 32 bits or more, never complex."""
    return pytree.map(lambda leaf: lnp.full(lnp.shape(leaf), value, size_dtype(leaf)), tree)


def size_dtype(leaf: Any) -> Any:
    """The dtype of the sizes of a leaf's numbers: floats of 32 bits or more."""
    return wide(leaf).real.dtype if lnp.iscomplexobj(leaf) else wide_dtype(leaf)


def squared_size(leaf: Any) -> Any:
    """The squares of numbers, in float32 at least; of complex ones the squares of their absolute values."""
    value = wide(leaf)
    if lnp.iscomplexobj(value):
        return lnp.square(value.real) + lnp.square(value.imag)
    return lnp.square(value)


def zeros_like(tree: Any, dtype: Any = None) -> Any:
    """Zeros of the shapes of `tree`; in `dtype`, or in float32 where `tree` has fewer bits."""
    return full_like(tree, 0, dtype)


def ones_like(tree: Any, dtype: Any = None) -> Any:
    """Ones of the shapes of `tree`; in `dtype`, or in float32 where `tree` has fewer bits."""
    return full_like(tree, 1, dtype)


def cast(tree: Any, dtype: Any = None) -> Any:
    """The leaves of `tree` in `dtype`; None leaves them as they are. Complex ones stay complex."""
    if dtype is None:
        return tree
    return pytree.map(lambda leaf: lnp.astype(lnp.asarray(leaf), dtype_for(leaf, dtype)), tree)


def conj(tree: Any) -> Any:
    """`tree` with the imaginary parts of complex leaves negated."""
    return pytree.map(lambda leaf: lnp.conj(leaf) if lnp.iscomplexobj(leaf) else leaf, tree)


def real(tree: Any) -> Any:
    """The real parts of the leaves of `tree`."""
    return pytree.map(lambda leaf: lnp.real(leaf) if lnp.iscomplexobj(leaf) else leaf, tree)


def require_real(name: str, tree: Any) -> None:
    """Raises DtypeError for a tree with complex numbers, for which transformation `name` has no meaning."""
    if any(lnp.iscomplexobj(leaf) for leaf in pytree.leaves(tree)):
        raise DtypeError(
            f"{name}: the parameters must not be complex; split_real_and_imaginary around the optimizer lets it see "
            "their parts",
        )


def cast_like(tree: Any, other: Any) -> Any:
    """The leaves of `tree` in the dtypes of those of `other`."""
    return pytree.map(lambda leaf, model: lnp.astype(lnp.asarray(leaf), lnp.asarray(model).dtype), tree, other)
