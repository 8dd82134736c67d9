"""Interiors that are computed at the places of the arrays they are slices of: the same numbers, read in vectors."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph, interpret
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.prepare.pipeline import graph_at, prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import simplify
from lavax.passes.target.target import Target
from tests.passes.program_checks import check_program

rng = np.random.default_rng(5)
X, Y = (rng.normal(size=(64, 68)).astype("f") for _ in range(2))


def around(x: Any) -> Any:
    return x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2]


# Each with whether its interior is computed at all places.
INTERIORS: dict[str, tuple[Callable[..., Any], bool]] = {
    "added": (lambda x, y: x.at[1:-1, 1:-1].add(0.2 * (around(x) - 4 * x[1:-1, 1:-1])), True),
    "set": (lambda x, y: x.at[1:-1, 1:-1].set(0.25 * around(x)), True),
    "of two arrays": (lambda x, y: y.at[1:-1, 1:-1].add(around(x) * around(y)), True),
    "with a choice": (lambda x, y: x.at[1:-1, 1:-1].set(lnp.where(around(x) > 1, x[1:-1, 1:-1], around(y))), True),
    "of integers": (lambda x, y: (x * 9).astype(int).at[1:-1, 1:-1].add(around((x * 9).astype(int))), True),
    "infinite outside": (lambda x, y: x.at[1:-1, 1:-1].set(1 / (x[2:, 1:-1] * x[:-2, 1:-1])), True),
    "along one axis": (lambda x, y: x.at[:, 2:-2].set(x[:, 4:] - x[:, :-4]), True),
    "padded with a number": (lambda x, y: lnp.pad(around(x), 1, constant_values=3.0), True),
    "read elsewhere, too": (lambda x, y: (x.at[1:-1, 1:-1].add(around(x)), around(x)), False),
    "of larger arrays": (lambda x, y: lnp.pad(around(x), ((2, 2), (1, 1))), False),
    "every other element": (lambda x, y: lnp.pad(x[::2] + x[1::2], ((16, 16), (0, 0))), False),
    "of few elements": (lambda x, y: x[:14].at[1:-1, 1:-1].add(around(x[:14])), False),
    "of rows of odd length": (lambda x, y: (odd := x[:, 1:] * 2).at[1:-1, 1:-1].add(around(odd)), True),
    "of short rows of odd length": (lambda x, y: (odd := x[:, :15] * 2).at[1:-1, 1:-1].add(around(odd)), False),
    "of one slice": (lambda x, y: lnp.pad(lnp.sin(x[2:, 1:-1]), 1), False),
    "of an argument": (lambda x, y: lnp.pad(x, 1) + lnp.pad(x[2:] + 1, ((2, 2), (1, 1))), False),
    "of a slice and an argument": (lambda x, y: lnp.pad(x[4:, 4:] + x[:-4, :-4] + y[:60, :64], 2), True),
    "of a sum": (lambda x, y: lnp.pad(x[2:, 1:-1] + lnp.sum(y), 1), False),
}


def target(profile: DeviceProfile) -> Target:
    return target_of(profile, 1 << 34, 1 << 32)


def graph_of(name: str) -> Graph:
    return simplify(lx.trace(INTERIORS[name][0])(X, Y))


@pytest.mark.parametrize("name", INTERIORS)
def test_interiors_are_computed_at_all_places(name: str) -> None:
    graph, device = graph_of(name), target(CPU_DRIVER)
    before, after = (graph_at(graph, device, stage) for stage in ("lines", "pads"))
    assert (after is not before) == INTERIORS[name][1]
    program = schedule(prepare(graph, device), target=device)
    check_program(program)
    with np.errstate(divide="ignore"):
        found, expected = interpret_kernels(program, X, Y), interpret(graph, X, Y, dtype=np.float64)
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def test_other_devices_keep_their_pads() -> None:
    graph = graph_of("added")
    for device in (Target(), target(GENERIC_GPU)):
        assert graph_at(graph, device, "pads") is graph_at(graph, device, "lines")


def test_long_interiors_stay() -> None:
    def powers(x: Any, y: Any) -> Any:
        total = around(x)
        for _ in range(70):
            total = lnp.sin(total)
        return x.at[1:-1, 1:-1].set(total)

    graph, device = simplify(lx.trace(powers)(X, Y)), target(CPU_DRIVER)
    assert graph_at(graph, device, "pads") is graph_at(graph, device, "lines")


def test_rows_above_and_below_are_read_in_vectors() -> None:
    """Of a result's four elements, only two of their eight neighbours to the left and right are read by themselves."""
    graph, device = graph_of("added"), target(CPU_DRIVER)

    def single_reads(device: Target) -> int:
        plan = emit_program(schedule(prepare(graph, device), target=device), CPU_DRIVER)
        (dispatch,) = plan.commands
        return dispatch.shader.source.count("texelFetch(elements")

    assert single_reads(device) <= 8  # of four rows
    assert single_reads(replace(device, vector=1)) >= 16


def test_gradients_in_the_middle_of_a_graph() -> None:
    def function(x: Any, y: Any) -> Any:
        return lnp.sum(lnp.sin(INTERIORS["of two arrays"][0](lnp.cos(x), y)) * y)

    graph, device = simplify(lx.trace(lx.grad(function))(X, Y)), target(CPU_DRIVER)
    (found,) = interpret_kernels(schedule(prepare(graph, device), target=device), X, Y)
    (want,) = interpret(graph, X, Y, dtype=np.float64)
    np.testing.assert_allclose(found, want, rtol=2e-4, atol=2e-4)
