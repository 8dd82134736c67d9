"""Trees of numbers as real arrays: what integrates real numbers so integrates complex ones too."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import lavax.numpy as lnp
from lavax.tracer import bind
from lavax.tracer.pytrees.pytree import flatten, unflatten
from lavax.tracer.values.value import Value


def in_real_parts(tree: Any) -> tuple[list[Value], Callable[[Sequence[Value]], Any]]:
    """The real leaves of a tree and both parts of its complex ones, and the function that makes such a tree of them."""
    leaves, treedef = flatten(tree)
    are_complex = [leaf.type.dtype.is_complex for leaf in leaves]

    def joined(parts: Sequence[Value]) -> Any:
        given = iter(parts)
        return unflatten(treedef, [_of_parts(next(given), next(given)) if c else next(given) for c in are_complex])

    return [part for leaf in leaves for part in _parts_of(leaf)], joined


def _parts_of(leaf: Value) -> list[Value]:
    """A real array, or the two parts of a complex one."""
    return [lnp.real(leaf), lnp.imag(leaf)] if leaf.type.dtype.is_complex else [leaf]


def _of_parts(real: Value, imaginary: Value) -> Value:
    return bind("complex", real, imaginary)
