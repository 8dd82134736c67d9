"""Maps that read along another axis than they write: in tiles on GPUs, in blocks on CPU drivers, or elementwise."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import numpy as np
import pytest

from lavax.backends.vulkan.emit.map.transposition import find_transposition
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.ir import Graph, interpret, parse
from lavax.passes.kernels.commands import steps_of
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from tests.backends.vulkan.emit.emission import dispatch_of
from tests.backends.vulkan.run.execution import run, run_as_gpu

RANDOM = np.random.default_rng(0)
RUNS = {"as it is": run, "as a GPU": run_as_gpu}
SHAPES = [(4, 4), (4, 12), (16, 16), (32, 64), (33, 65), (100, 17), (31, 129), (36, 100)]
SHAPES += [(64, 128), (68, 132)]  # tiles of vectors, on a GPU


def _kernel(graph: Graph) -> Kernel:
    """The only kernel of a graph."""
    (step,) = steps_of(schedule(prepare(graph)).steps)
    return step.kernel


def _transposed(rows: int, columns: int) -> Graph:
    """A transpose combined with an array in its own order, and with one element per row; one result is of bools."""
    return parse(dedent(f"""
        graph (x: f32[{rows},{columns}], y: f32[{columns},{rows}], b: f32[{columns}]) {{
          %0 = transpose(x) axes=[1,0] : f32[{columns},{rows}]
          %1 = add(%0, y) : f32[{columns},{rows}]
          %2 = broadcast(b) axes=[0] : f32[{columns},{rows}]
          %3 = multiply(%1, %2) : f32[{columns},{rows}]
          %4 = greater(%0, y) : bool[{columns},{rows}]
          return %3, %4
        }}
    """))


def _moved(axes: tuple[int, ...], dtype: str) -> Graph:
    shape = (3, 20, 6, 40)
    text = ",".join(str(shape[axis]) for axis in axes)
    return parse(dedent(f"""
        graph (x: {dtype}[3,20,6,40]) {{
          %0 = transpose(x) axes=[{",".join(map(str, axes))}] : {dtype}[{text}]
          %1 = flip(%0) axes=[1] : {dtype}[{text}]
          return %0, %1
        }}
    """))


@pytest.mark.parametrize("computed", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("eager", [False, True], ids=["compiled", "eager"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_transpose_among_other_things(
    shape: tuple[int, int], eager: bool, computed: Callable[..., list[np.ndarray]]
) -> None:
    graph = _transposed(*shape)
    arrays = [RANDOM.integers(-9, 9, node.shape).astype(np.float32) for node in graph.inputs]
    for got, want in zip(computed(graph, arrays, eager=eager), interpret(graph, *arrays), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("computed", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("dtype", ["i32", "bool", "i64", "i8", "f16"])
@pytest.mark.parametrize("axes", [(0, 2, 3, 1), (2, 3, 0, 1), (0, 2, 1, 3), (3, 2, 1, 0)], ids=str)
def test_axes_in_any_order(axes: tuple[int, ...], dtype: str, computed: Callable[..., list[np.ndarray]]) -> None:
    graph = _moved(axes, dtype)
    x = RANDOM.integers(0, 2 if dtype == "bool" else 99, (3, 20, 6, 40))
    (array,) = graph.inputs
    arrays = [array.dtype.rounded(x)]
    for got, want in zip(computed(graph, arrays), interpret(graph, *arrays), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("axes", "found"),
    [((0, 2, 3, 1), ((3,), (2,), 2)), ((2, 3, 0, 1), ((3,), (1,), 1)), ((0, 2, 1, 3), None), ((3, 2, 1, 0), None)],
    ids=str,
)
def test_which_maps_are_transposes(axes: tuple[int, ...], found: tuple[object, ...] | None) -> None:
    """Those whose reads and writes are along different long axes; of the flipped one only what is not flipped."""
    transposition = find_transposition(_kernel(_moved(axes, "i32")), 16, merges=False)
    described = transposition and (transposition.written, transposition.read, len(transposition.staged))
    assert described == found


@pytest.mark.parametrize("dtype", ["f32", "i32", "i64", "bool"])
@pytest.mark.parametrize("axes", [(0, 2, 1), (2, 0, 1)], ids=str)
@pytest.mark.parametrize("start", [0, 2, 4])
def test_planes_in_squares_of_vectors_and_what_is_no_vector(axes: tuple[int, ...], dtype: str, start: int) -> None:
    """Parts of rows that begin at a multiple of four elements are aligned; others, and other widths, are not."""
    shape = tuple((2, 68, 96)[axis] for axis in axes)
    text = ",".join(map(str, shape))
    graph = parse(dedent(f"""
        graph (x: {dtype}[2,68,104]) {{
          %0 = slice(x) start=[0,0,{start}] limit=[2,68,{start + 96}] stride=[1,1,1] : {dtype}[2,68,96]
          %1 = transpose(%0) axes=[{",".join(map(str, axes))}] : {dtype}[{text}]
          return %1
        }}
    """))
    (array,) = graph.inputs
    x = array.dtype.rounded(RANDOM.integers(0, 2 if dtype == "bool" else 99, (2, 68, 104)))
    (got,), (want,) = run_as_gpu(graph, [x]), interpret(graph, x)
    np.testing.assert_array_equal(got, want)
    vectors = start % 4 == 0 and dtype in ("f32", "i32")
    assert ("vec4 square0" in dispatch_of(graph, GENERIC_GPU).shader.source) == vectors


@pytest.mark.parametrize("dtype", ["f32", "f16", "bool"])
@pytest.mark.parametrize(
    ("shape", "axes", "found"),
    [
        ((40, 20, 3, 3), (2, 3, 1, 0), ((3,), (2, 0, 1))),  # a window's nine elements are one axis in memory
        ((3, 5, 17, 33), (3, 2, 0, 1), ((1, 2, 3), (0,))),
        ((33, 17, 5, 3), (2, 3, 1, 0), ((3,), (2, 0, 1))),
        ((64, 7, 1, 9), (3, 2, 1, 0), ((3,), (2, 0))),
        ((40, 20, 3, 3), (2, 3, 0, 1), None),  # the channels that are written next to each other are also read so
    ],
    ids=str,
)
def test_short_axes_that_are_one_in_memory(
    shape: tuple[int, ...], axes: tuple[int, ...], found: tuple[object, ...] | None, dtype: str
) -> None:
    moved = ",".join(str(shape[axis]) for axis in axes)
    graph = parse(dedent(f"""
        graph (x: {dtype}[{",".join(map(str, shape))}]) {{
          %0 = transpose(x) axes=[{",".join(map(str, axes))}] : {dtype}[{moved}]
          return %0
        }}
    """))
    (array,) = graph.inputs
    x = array.dtype.rounded(RANDOM.integers(0, 2 if dtype == "bool" else 99, shape))
    (got,), (want,) = run_as_gpu(graph, [x]), interpret(graph, x)
    np.testing.assert_array_equal(got, want)
    if dtype == "f32":
        transposition = find_transposition(_kernel(graph), 16, merges=True)
        assert (transposition and (transposition.written, transposition.read)) == found
        assert find_transposition(_kernel(graph), 16, merges=False) is None


def test_squares_on_gpus_and_blocks_on_cpu_drivers() -> None:
    for shape, tiles, blocks in (((32, 64), True, True), ((33, 65), True, False), ((8, 12), False, True)):
        assert ("shared" in dispatch_of(_transposed(*shape), GENERIC_GPU).shader.source) == tiles
        blocked = dispatch_of(_transposed(*shape), CPU_DRIVER)
        assert "shared" not in blocked.shader.source
        assert (f"if (i >= {shape[0] * shape[1] // 16}) return" in blocked.shader.source) == blocks


@pytest.mark.parametrize("shape", [(2, 128, 256), (204, 300), (136, 1024), (1, 44, 3072)])
def test_several_blocks_of_an_invocation(shape: tuple[int, ...]) -> None:
    """Blocks in groups, in planes of them, and in the order of what is written where groups do not divide them."""
    order = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
    text, given = (",".join(str(extent) for extent in extents) for extents in ([shape[axis] for axis in order], shape))
    graph = parse(dedent(f"""
        graph (x: f32[{given}], y: f32[{text}]) {{
          %0 = transpose(x) axes=[{",".join(map(str, order))}] : f32[{text}]
          %1 = add(%0, y) : f32[{text}]
          return %1
        }}
    """))
    assert "++turn" in dispatch_of(graph, CPU_DRIVER).shader.source
    x, y = (RANDOM.normal(size=node.shape).astype(np.float32) for node in graph.inputs)
    (got,) = run(graph, [x, y])
    np.testing.assert_array_equal(got, np.swapaxes(x, -1, -2) + y)
