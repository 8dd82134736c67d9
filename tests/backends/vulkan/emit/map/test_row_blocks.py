"""Maps whose invocations have several rows on CPU drivers: which these are, and that all rows are right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.map.row_blocks import block_of, ragged_block_of
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.ir import Graph, interpret
from lavax.passes.kernels.commands import steps_of
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import simplify
from tests.backends.vulkan.emit.emission import dispatch_of
from tests.backends.vulkan.run.execution import run

RANDOM = np.random.default_rng(3)


def rolled(x: Any) -> Any:
    return lnp.roll(x, 1, -2) + 2 * lnp.roll(x, -1, -2) + 3 * lnp.roll(x, 1, -1) + 4 * lnp.roll(x, -1, -1) - 5 * x


def padded(x: Any) -> Any:
    around = lnp.pad(x, [(0, 0)] * (x.ndim - 2) + [(1, 2), (2, 1)])
    rows, columns = x.shape[-2:]
    windows = [around[..., a : a + rows, b : b + columns] * (3 * a + b + 1) for a in range(3) for b in range(3)]
    return sum(windows[1:], windows[0])


def above(x: Any) -> Any:
    return x[..., 1:, :] - x[..., :-1, :] * 2


def cube(x: Any) -> Any:
    return sum((lnp.roll(x, shift, axis) * (axis + 2) for shift in (1, -1) for axis in range(3)), x)


def lorenz(x: Any) -> Any:
    def slopes(x: Any) -> Any:
        return lnp.stack([3 * (x[1] - x[0]), x[0] * (2 - x[2]) - x[1], x[0] * x[1] - 2 * x[2]])

    return x + slopes(x + slopes(x) * 2)


# function, shape, rows of an invocation
MAPS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...], int]] = {
    "rolled": (rolled, (64, 64), 4),
    "rolled, rows that four does not divide": (rolled, (62, 64), 2),
    "rolled, odd rows": (rolled, (63, 64), 1),
    "rolled, columns that four does not divide": (rolled, (64, 62), 1),
    "rolled, few": (rolled, (16, 16), 1),
    "padded": (padded, (48, 96), 4),
    "padded, in planes": (padded, (3, 20, 40), 4),
    "differences of rows": (above, (65, 32), 4),
    "three axes": (cube, (8, 16, 20), 4),
    "of columns": (lambda x: x[:, 1:] + x[:, :-1], (64, 65), 1),
    "stacked rows": (lorenz, (3, 1000), 3),
    "stacked rows of few": (lorenz, (3, 100), 1),
    "of one row": (lambda x: x * 2 + 1, (64, 64), 1),
}


def life(x: Any) -> Any:
    near = sum(lnp.roll(x, (a, b), (-2, -1)) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b)
    return (near == 3) | ((x == 1) & (near == 2))


def pivoted(x: Any) -> Any:
    """With a row and a column that are known only when it runs."""
    row, column = x[0, 0].astype("int32"), x[1, 1].astype("int32")
    return x - x[:, column][:, None] * x[row][None] + x[:, column + 1][:, None]


# The same of maps whose rows four does not divide.
RAGGED: dict[str, tuple[Callable[[Any], Any], tuple[int, ...], int]] = {
    "rolled": (rolled, (128, 127), 4),
    "rows that four does not divide": (rolled, (131, 129), 4),
    "two elements behind": (padded, (129, 130), 4),
    "in planes": (padded, (3, 60, 101), 4),
    "in planes of rows that four does not divide": (padded, (3, 21, 41), 1),
    "differences of rows": (above, (67, 35), 1),
    "longer rows": (lambda x: rolled(x)[1:, 1:-1], (131, 129), 4),
    "truth values": (life, (67, 65), 4),
    "two results": (lambda x: (rolled(x), lnp.roll(x, 1, 0) - x), (133, 129), 4),
    "small": (rolled, (33, 49), 4),
    "short rows": (rolled, (640, 13), 1),
    "few": (rolled, (21, 21), 1),
    "of columns": (lambda x: x[:, 1:] + x[:, :-1], (64, 68), 1),
    "fewer rows than a block": (rolled, (3, 701), 1),
    "many elements behind few blocks": (rolled, (7, 703), 4),
    "a row behind blocks that fill no workgroup": (rolled, (5, 703), 4),
    "of bytes": (lambda x: rolled(x).astype("int8"), (64, 63), 1),
    "a row for each": (lambda x: x[1:] + x[:1], (65, 63), 1),
    "a pivot's row and column": (pivoted, (67, 65), 4),
    "rows that are looked up": (lambda x: x[x[:, 0].astype("int32")] + x[:, 1:2] + x[:1], (67, 65), 1),
}


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("name", RAGGED)
def test_rows_that_four_does_not_divide(name: str, dtype: str) -> None:
    function, shape, rows = RAGGED[name]
    x = RANDOM.integers(0, 3, shape).astype(dtype)
    graph = simplify(lx.trace(function)(x))
    kernels = [step.kernel for step in steps_of(schedule(prepare(graph)).steps)]
    assert rows in {ragged_block_of(kernel).rows for kernel in kernels}
    for got, want in zip(run(graph, [x]), interpret(graph, x), strict=True):
        np.testing.assert_array_equal(got, want)


def test_vectors_begin_behind_multiples_of_four() -> None:
    """Of four rows, each of which begins one word earlier than the one above, only the ends are single elements."""
    graph = simplify(lx.trace(rolled)(lx.ShapeDtype((128, 129), "float32")))
    source = dispatch_of(graph, CPU_DRIVER).shader.source
    assert [source.count(f" {form}1.data[") for form in ("stores", "shifted3_", "shifted2_", "shifted1_")] == [1] * 4
    assert "uint before[3]; uvec4 data[];" in source and source.count("last < 128;") == 1


def test_an_array_that_is_given_away_is_read_once() -> None:
    """Waves, whose result lies where the state before was: no element is computed a second time."""
    step = lx.compile(lambda u, before: 2 * u - before + rolled(u), donate_argnums=1)
    u, before = (RANDOM.integers(-9, 10, (131, 129)).astype("f") for _ in range(2))
    found = step(lnp.asarray(u), lnp.asarray(before))
    around = np.roll(u, 1, 0) + 2 * np.roll(u, -1, 0) + 3 * np.roll(u, 1, 1) + 4 * np.roll(u, -1, 1) - 5 * u
    np.testing.assert_array_equal(np.asarray(found), 2 * u - before + around)


@pytest.mark.parametrize("shape", [(63, 65), (255, 257)])
def test_turns_over_rows_that_four_does_not_divide(shape: tuple[int, int]) -> None:
    """In a workgroup's loop, and as dispatches."""

    def mixed(np: Any, x: Any) -> Any:
        return (np.roll(x, 1, 0) + np.roll(x, -1, 0) + np.roll(x, 1, 1) + np.roll(x, -1, 1) + x) / 5

    x = RANDOM.normal(size=shape).astype("f")
    found = lx.compile(lambda x: lx.fori_loop(0, 6, lambda i, x: mixed(lnp, x), x))(x)
    expected = x.astype("d")
    for _ in range(6):
        expected = mixed(np, expected)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=0, atol=2e-6)


def _graph(name: str, dtype: str = "float32") -> Graph:
    function, shape, _ = MAPS[name]
    return simplify(lx.trace(function)(lx.ShapeDtype(shape, dtype)))


@pytest.mark.parametrize("name", MAPS)
def test_rows_of_an_invocation(name: str) -> None:
    (step,) = steps_of(schedule(prepare(_graph(name))).steps)
    for of_store in (1, 2):
        block = block_of(step.kernel, of_store)
        assert block.rows == MAPS[name][2] and block.vectors <= of_store


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("name", [name for name, (_, _, rows) in MAPS.items() if rows > 1])
def test_all_rows_are_right(name: str, dtype: str) -> None:
    graph = _graph(name, dtype)
    x = RANDOM.integers(-9, 10, MAPS[name][1]).astype(dtype)
    (got,), (want,) = run(graph, [x]), interpret(graph, x)
    np.testing.assert_array_equal(got, want)


def test_rows_are_read_once_and_vectors_between_joined() -> None:
    """Two vectors of each of six rows for four, and two elements beside each; a GPU's invocations have a vector."""
    source = dispatch_of(_graph("rolled"), CPU_DRIVER).shader.source
    assert (source.count("texelFetch(vectors0"), source.count("texelFetch(elements0")) == (12, 8)
    assert dispatch_of(_graph("rolled"), GENERIC_GPU).groups[0] == 64 * 64 // 4 // 128


def test_which_row_is_stacked_is_known() -> None:
    """Each part is computed for its own row, and nothing is read for others."""
    source = dispatch_of(_graph("stacked rows"), CPU_DRIVER).shader.source.split("void main")[1]
    assert source.count("read_four(") == 3 and "?" not in source


def test_rows_that_meet_a_row_that_is_looked_up() -> None:
    """Each reads it as texels, if eight words are stored at once; one by one, where it is read by address."""
    graph = simplify(lx.trace(pivoted)(lx.ShapeDtype((64, 96), "float32")))
    kernels = [step.kernel for step in steps_of(schedule(prepare(graph)).steps)]
    (kernel,) = (kernel for kernel in kernels if kernel.domain.outer == (64, 96))
    assert [block_of(kernel, of_store).rows for of_store in (1, 2)] == [4, 1]


def test_turns_over_rows_that_are_looked_up() -> None:
    """In a workgroup's loop, by address."""
    x = RANDOM.integers(0, 3, (48, 96)).astype("f") + 90 * np.eye(48, 96, dtype="f")

    def turn(np: Any, k: Any, x: Any) -> Any:
        row = x[k] / x[k, k]
        return np.where((np.arange(48) == k)[:, None], row[None], x - x[:, k][:, None] * row[None])

    function = lx.compile(lambda x: lx.fori_loop(0, 20, lambda k, x: turn(lnp, k, x), x))
    expected = x.astype("d")
    for k in range(20):
        expected = turn(np, k, expected)
    np.testing.assert_allclose(np.asarray(function(x)), expected, rtol=2e-6, atol=2e-5)
