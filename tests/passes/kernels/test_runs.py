"""Concatenations of runs of one array are read once, at a place that is a sum of clamped counters."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.plan.profile import CPU_DRIVER
from lavax.ir import Graph, parse
from lavax.passes.kernels.index import variable
from lavax.passes.kernels.reads import Coordinates
from lavax.passes.kernels.runs import Run, one_read, place_in
from tests.backends.vulkan.emit.emission import dispatch_of
from tests.passes.kernels.index_numbers import evaluate

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(5, 16)).astype(np.float32)


def _whole(runs: list[Run]) -> list[int]:
    return [run.first + run.step * k for run in runs for k in range(run.count)]


def _places(runs: list[Run], extent: int) -> list[int]:
    count = sum(run.count for run in runs)
    place = place_in(runs, variable("i", count), extent)
    assert place.low >= 0 and place.high < extent
    return [evaluate(place, {"i": k}) for k in range(count)]


@pytest.mark.parametrize("seed", range(40))
def test_places_of_runs(seed: int) -> None:
    random = np.random.default_rng(seed)
    extent, runs = 23, []
    for _ in range(random.integers(1, 6)):
        count, step = int(random.integers(1, 6)), int(random.integers(-4, 5))
        first = int(random.integers(0, extent - abs(step) * (count - 1)))
        runs.append(Run(first if step >= 0 else first - step * (count - 1), step, count))
    assert _places(runs, extent) == _whole(runs)


def test_places_that_go_on_without_a_jump() -> None:
    mirrored = [Run(3, -1, 4), Run(1, 1, 9), Run(8, -1, 3)]
    assert _places(mirrored, 10) == [3, 2, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6]
    assert len(place_in(mirrored, variable("i", 16), 10).terms) == 1  # held inside; the sum in it has three counters
    repeated = place_in([Run(0, 0, 3), Run(0, 1, 10), Run(9, 0, 2)], variable("i", 15), 10)
    assert repeated.key == "clamp(i+-3,0,9)"


def _at(graph: Graph) -> Coordinates:
    return tuple(variable(f"o{d}", extent) for d, extent in enumerate(graph.outputs[0].shape))


OTHERS = {
    "of two arrays": "%0 = concatenate(x, y) axis=1 : f32[4,12]",
    "of two rows": """%0 = slice(x) start=[0,0] limit=[1,6] stride=[1,1] : f32[1,6]
      %1 = slice(x) start=[2,0] limit=[3,6] stride=[1,1] : f32[1,6]
      %2 = concatenate(%0, %1) axis=1 : f32[1,12]""",
    "of an array and its transpose": """%0 = slice(x) start=[0,0] limit=[4,4] stride=[1,1] : f32[4,4]
      %1 = transpose(%0) axes=[1,0] : f32[4,4]
      %2 = concatenate(%0, %1) axis=1 : f32[4,8]""",
    "of one array in other orders": """%0 = reshape(x) : f32[24]
      %1 = flip(x) axes=[1] : f32[4,6]
      %2 = reshape(%1) : f32[24]
      %3 = concatenate(%0, %2) axis=0 : f32[48]""",
}


@pytest.mark.parametrize("lines", OTHERS.values(), ids=OTHERS)
def test_other_concatenations_are_read_part_by_part(lines: str) -> None:
    result = lines.splitlines()[-1].split(" = ")[0]
    graph = parse(f"graph (x: f32[4,6], y: f32[4,6]) {{\n{lines}\nreturn {result}\n}}")
    assert one_read(graph.outputs[0], _at(graph)) is None


FUNCTIONS: dict[str, tuple[Callable[..., lx.Array], Callable[..., np.ndarray]]] = {
    "roll": (lambda x: lnp.roll(x, 5, 1), lambda x: np.roll(x, 5, 1)),
    "rolled by both axes": (lambda x: lnp.roll(x, (2, -3), (0, 1)), lambda x: np.roll(x, (2, -3), (0, 1))),
    "twice": (lambda x: lnp.concatenate([x, x[:, ::-1]], 1), lambda x: np.concatenate([x, x[:, ::-1]], 1)),
    "every other element, then all": (
        lambda x: lnp.concatenate([x[:, ::2], x], 1),
        lambda x: np.concatenate([x[:, ::2], x], 1),
    ),
    "of a value that is computed here": (
        lambda x: lnp.pad(lnp.maximum(x, x[:1]), 3, mode="reflect"),
        lambda x: np.pad(np.maximum(x, x[:1]), 3, mode="reflect"),
    ),
}
for _mode in ("reflect", "symmetric", "wrap", "edge"):
    FUNCTIONS[_mode] = (
        lambda x, mode=_mode: lnp.pad(x, ((3, 4), (7, 30)), mode=mode),
        lambda x, mode=_mode: np.pad(x, ((3, 4), (7, 30)), mode=mode),
    )


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "int8", "bool"])
def test_results(name: str, dtype: str) -> None:
    function, expected = FUNCTIONS[name]
    x = X.copy()
    x[0, :4] = np.nan, -0.0, np.inf, -np.inf
    given = lnp.asarray(x if dtype in ("float32", "bfloat16") else np.round(X * 3)).astype(dtype)
    found, whole = (np.asarray(value.astype("float32")) for value in (lx.compile(function)(given), given))
    wanted = expected(whole)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_in_the_middle_of_a_graph(name: str) -> None:
    """The functions move elements only, so that the gradient of a weighted sum counts weights by the place moved."""
    function, expected = FUNCTIONS[name]
    shape = expected(X).shape
    weights = RANDOM.normal(size=shape).astype(np.float32)
    gradient = lx.compile(lx.grad(lambda x: 2.5 * lnp.sum(weights * function(3.0 * x))))
    if name == "of a value that is computed here":
        step = 1e-6
        x = X.astype(np.float64) / 3
        direction = RANDOM.normal(size=X.shape)
        ends = [2.5 * np.sum(weights * expected(3 * (x + sign * step * direction))) for sign in (1, -1)]
        found = np.sum(np.asarray(gradient(x.astype(np.float32))) * direction)
        np.testing.assert_allclose(found, (ends[0] - ends[1]) / (2 * step), rtol=1e-4)
        return
    places = expected(np.arange(X.size).reshape(X.shape))
    wanted = 7.5 * np.bincount(places.ravel(), weights.ravel().astype(np.float64), X.size).reshape(X.shape)
    np.testing.assert_allclose(np.asarray(gradient(X)), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["reflect", "symmetric", "wrap", "edge"])
def test_an_element_is_loaded_once(mode: str) -> None:
    """Of large images that are padded along two axes: as many loads an invocation as it writes elements, eight; where a
    line's edge is repeated, it has those of four lines."""
    padded = lx.trace(lambda x: lnp.pad(x, ((0, 0), (8, 8), (8, 8)), mode=mode))
    text = dispatch_of(padded(lx.ShapeDtype((4, 256, 256), "float32")), CPU_DRIVER).shader.source
    assert text.count("texelFetch(") == (32 if mode == "edge" else 8)
