"""Updates of one place become choices where all elements are read anyway, and stay updates elsewhere."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.plan.profile import CPU_DRIVER
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph, interpret
from lavax.passes.kernels.commands import Repeat
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.prepare.single_places import with_single_places_chosen
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import simplify

CPU = target_of(CPU_DRIVER, 1 << 34, 1 << 32)
X = np.random.default_rng(4).normal(size=(6, 7)).astype("f")

CHOSEN: dict[str, Callable[[Any, Any], Any]] = {
    "a row": lambda x, k: x.at[k].set(x[0] * 2) + x,
    "a column": lambda x, k: x.at[:, k].set(x[:, 0] * 2) * 3,
    "an element": lambda x, k: x.at[k, k + 1].set(9) - 1,
    "an element of a vector": lambda x, k: x[0].at[k].set(9) * x[1],
    "a sum": lambda x, k: x.at[k].add(x[1]) * x,
    "a product": lambda x, k: x.at[:, k].multiply(x[:, 1]) * x,
    "a minimum": lambda x, k: x.at[k, k].min(-9) + x,
    "a maximum": lambda x, k: x.at[k].max(x[2]) + x,
    "one of one": lambda x, k: x.at[lnp.stack([k])].set(x[:1]) + x,
    "integers": lambda x, k: x.astype("int32").at[k].set(7) + 1,
    "numbers of 16 bits": lambda x, k: x.astype("float16").at[k].add(x[1].astype("float16")) + 1,
    "complex numbers": lambda x, k: lnp.abs(lx.lax.complex(x, x).at[k].set(1j)),
}
SCATTERED: dict[str, Callable[[Any, Any], Any]] = {
    "a result": lambda x, k: x.at[k].set(x[0] * 2),
    "a result that is read": lambda x, k: (lambda y: (y, y * 2))(x.at[k].set(x[0])),
    "sums of rows": lambda x, k: lnp.sum(x.at[k].set(x[0] * 2), axis=1),
    "two places": lambda x, k: x.at[lnp.stack([k, k])].add(x[:2]) + x,
}


def _graph(function: Callable[[Any, Any], Any]) -> Graph:
    return simplify(lx.trace(function)(X, np.int32(0)))


def _scatters(graph: Graph) -> bool:
    return any(node.op.startswith("scatter") for node in graph.nodes)


@pytest.mark.parametrize("place", [3, 0, 5, -2, 6, 40, -40], ids=str)
@pytest.mark.parametrize("name", [*CHOSEN, *SCATTERED])
def test_values_are_those_of_updates(name: str, place: int) -> None:
    """Also of places that count from the end, and of ones outside of the array."""
    graph = _graph((CHOSEN | SCATTERED)[name])
    changed = with_single_places_chosen(graph)
    assert _scatters(graph) and _scatters(changed) == (name in SCATTERED)
    assert (changed is graph) == (name in SCATTERED)
    for found, wanted in zip(
        interpret(changed, X, np.int32(place)), interpret(graph, X, np.int32(place)), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", CHOSEN)
def test_kernels_compute_choices(name: str) -> None:
    graph = _graph(CHOSEN[name])
    prepared = prepare(graph, CPU)
    assert not _scatters(prepared)
    (wanted,), found = interpret(graph, X, np.int32(2)), lx.compile(CHOSEN[name])(X, np.int32(2))
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-6, atol=2e-3 if "16" in name else 0)


@pytest.mark.usefixtures("no_register_loops")
def test_turns_that_set_a_column_are_joined() -> None:
    """Factors in place: without the choice a turn would be a scatter and a map."""

    def turn(k: Any, a: Any) -> Any:
        below = lnp.arange(20) > k
        factors = lnp.where(below, a[:, k] / a[k, k], 0)
        rest = lnp.where(below[None], factors[:, None] * a[k][None], 0)
        return a.at[:, k].set(lnp.where(below, factors, a[:, k])) - rest

    x = np.random.default_rng(5).uniform(size=(20, 20)).astype("f") + 8 * np.eye(20, dtype="f")
    graph = simplify(lx.trace(lambda x: lx.fori_loop(0, 19, turn, x))(x))
    program = schedule(prepare(graph, CPU), target=CPU)
    (loop,) = (command for command in program.steps if isinstance(command, Repeat))
    assert loop.count < 19
    (found,), (wanted,) = interpret_kernels(program, x), interpret(graph, x)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
