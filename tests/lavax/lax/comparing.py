"""What a call of jax.lax gives, and its gradients in the middle of a graph, from either library."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.lavax.lax.cases import CASES, MAPPED

# What JAX has no gradients of, or only of some arguments, or wrong ones (of places of 8 bits); of reduce_precision it
# rounds them, too.
WITHOUT_GRADIENTS = {
    "reduce_precision", "reduce_precision, bfloat16", "broadcast_in_dim in another order", "dynamic_slice by uint8",
    "nextafter", "igamma_grad_a", "polygamma", "zeta", "betainc", "scatter_mul", "scatter_apply", "pmax",
    "reduce_window by a function",
}  # fmt: skip


def call_of(name: str, lax: Any, vmap: Callable[..., Any]) -> Callable[..., Any]:
    if name in MAPPED:
        return vmap(lambda *given: MAPPED[name][0](lax, *given), axis_name="i")  # type: ignore[no-any-return]
    return lambda *given: CASES[name][0](lax, *given)


def results(name: str, library: Any, arrays: Callable[[Any], Any]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The arrays that the call gives, and the gradients of 1.5 · Σ w ⊙ them by the call's float32 arguments."""
    call, arguments = call_of(name, library.lax, library.vmap), (CASES | MAPPED)[name][1]
    leaves = library.tree.leaves(call(*map(arrays, arguments)))
    made = [np.asarray(leaf) for leaf in leaves]
    chosen = [place for place, each in enumerate(arguments) if np.asarray(each).dtype == np.float32]
    if name in WITHOUT_GRADIENTS or not chosen or not any(each.dtype == np.float32 for each in made):
        return made, []

    def loss(*given: Any) -> Any:
        every = list(arguments)
        for place, each in zip(chosen, given, strict=True):
            every[place] = each
        floats = [leaf for leaf in library.tree.leaves(call(*every)) if np.dtype(leaf.dtype) == np.float32]
        return 1.5 * sum((leaf * weights_of(leaf, number)).sum() for number, leaf in enumerate(floats))

    gradient = library.grad(loss, argnums=tuple(range(len(chosen))))
    return made, [np.asarray(each) for each in gradient(*(arguments[place] for place in chosen))]


def weights_of(array: Any, number: int) -> np.ndarray:
    return np.cos(np.arange(array.size) + number).reshape(array.shape).astype(np.float32)


def sums(arrays: list[np.ndarray]) -> list[float]:
    """A number per array, in which all elements count; numbers that are not finite are left out."""
    return [
        round(float(np.sum(np.nan_to_num(each.astype(np.float64), posinf=0, neginf=0) * weights_of(each, number))), 5)
        for number, each in enumerate(arrays)
    ]
