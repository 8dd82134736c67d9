"""How row groups share rows, and their results on the device at hand, by its own schedules and a GPU's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.reduce.choose import choose_schedule
from lavax.backends.vulkan.emit.reduce.interleaved import InterleavedRows
from lavax.backends.vulkan.emit.reduce.neighbours import NeighbourRows
from lavax.backends.vulkan.emit.reduce.row_schedule import RowSchedule
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph, interpret, parse
from lavax.nn.modules.quantized import QuantizedMatrix
from lavax.passes.build.inline import inline_calls
from lavax.passes.kernels.commands import steps_of
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import simplify
from tests.backends.vulkan.emit.emission import PROFILES, dispatch_of, main_of, plan_of
from tests.backends.vulkan.run.execution import backend_with, run, run_as_gpu
from tests.random_graphs import random_graph

RANDOM = np.random.default_rng(0)
FLOAT = 2.0**-24
RUNS = {"as it is": run, "as a GPU": run_as_gpu}


def _rows(rows: int, length: int, axis: int) -> Graph:
    """A softmax with its sums, positions of extrema and a reduction of bools, over either axis."""
    shape, kept, other = f"{rows},{length}", (rows, length)[1 - axis], 1 - axis
    return parse(dedent(f"""
        graph (x: f32[{shape}]) {{
          %0 = max(x) axes=[{axis}] : f32[{kept}]
          %1 = broadcast(%0) axes=[{other}] : f32[{shape}]
          %2 = subtract(x, %1) : f32[{shape}]
          %3 = exp(%2) : f32[{shape}]
          %4 = sum(%3) axes=[{axis}] : f32[{kept}]
          %5 = broadcast(%4) axes=[{other}] : f32[{shape}]
          %6 = divide(%3, %5) : f32[{shape}]
          %7 = argmax(x) axis={axis} : i32[{kept}]
          %8 = greater(x, %1) : bool[{shape}]
          %9 = max(%8) axes=[{axis}] : bool[{kept}]
          return %6, %4, %7, %9
        }}
    """))


def _kernel(graph: Graph) -> Kernel:
    """The only kernel of a graph."""
    (step,) = steps_of(schedule(prepare(graph)).steps)
    return step.kernel


def _schedule(rows: int, length: int, axis: int, profile: DeviceProfile = GENERIC_GPU) -> RowSchedule:
    return choose_schedule(_kernel(_rows(rows, length, axis)), profile, lifted=False)


def _schedule_of_sums(rows: int, length: int, profile: DeviceProfile) -> RowSchedule:
    """The schedule of sums of columns, and of nothing else."""
    text = f"graph (x: f32[{rows},{length}]) {{\n  %0 = sum(x) axes=[0] : f32[{length}]\n  return %0\n}}"
    return choose_schedule(_kernel(parse(text)), profile, lifted=False)


ROW_RESULTS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x.sum(1),
    "greatest": lambda x: x.max(1),
    "place of the greatest": lambda x: x.argmax(1),
    "logarithm of a sum": lambda x: np.log(np.exp(x - x.max(1, keepdims=True)).sum(1)) + x.max(1) - x[:, 0],
    "variance": lambda x: x.var(1),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("rows", "length"), [(20_000, 3), (8193, 5), (4098, 8), (8192, 16), (2052, 32), (2052, 33)])
@pytest.mark.parametrize("name", ROW_RESULTS)
def test_results_of_many_short_rows(name: str, rows: int, length: int, dtype: str) -> None:
    """Several are an invocation's, four at once where four divide them, in turns that may end early."""
    x = RANDOM.integers(-8, 8, (rows, length)).astype("f")

    @lx.compile
    def result(x: Any) -> Any:
        wide = x.astype("float32")
        return lx.nn.logsumexp(wide, axis=1) - wide[:, 0] if name == "logarithm of a sum" else ROW_RESULTS[name](wide)

    found = result(lnp.asarray(x).astype(dtype))
    np.testing.assert_allclose(found, ROW_RESULTS[name](x.astype(np.float64)), rtol=4e-6, atol=4e-6)


@pytest.mark.parametrize(("window", "stride", "padding"), [(2, 2, 0), (3, 1, 1), (3, 2, 1), (5, 1, 0)])
@pytest.mark.parametrize("size", [40, 43])
def test_windows_are_short_rows(size: int, window: int, stride: int, padding: int) -> None:
    x = RANDOM.normal(size=(16, size, size)).astype("f")
    padded = np.pad(x.astype(np.float64), ((0, 0), (padding, padding), (padding, padding)))
    views = np.lib.stride_tricks.sliding_window_view(padded, (window, window), (1, 2))[:, ::stride, ::stride]
    pads = ((0, 0), (padding, padding), (padding, padding))
    sums = lx.compile(
        lambda x: lx.lax.reduce_window(x, 0.0, lx.lax.add, (1, window, window), (1, stride, stride), pads)
    )
    np.testing.assert_allclose(sums(x), views.sum((-1, -2)), rtol=1e-5, atol=1e-5)


def test_an_invocation_of_a_cpu_driver_has_many_short_rows() -> None:
    sums = "graph (x: f32[{0}]) {{\n  %0 = sum(x) axes=[1] : f32[{1}]\n  return %0\n}}"
    for rows, length, groups in ((65536, 4, 128), (65536, 16, 512), (8193, 5, 65), (65536, 36, 8192), (1024, 4, 128)):
        text = sums.format(f"{rows},{length}", rows)
        assert dispatch_of(text, PROFILES["cpu"]).groups[0] == groups, (rows, length)


# Rows that are shorter than a row group, longer than its registers, of indivisible length, few and many.
SHAPES = [(3, 5), (40, 16), (1, 64), (100, 17), (300, 100), (33, 257), (3, 1024), (2, 5000), (1030, 40), (36, 4099)]
SHAPES += [(70, 256), (40, 1024)]  # columns in strips, on a CPU driver
SHAPES += [(900, 5), (80, 67)]  # written out there, as of 4,096 elements


def _check(shape: tuple[int, int], axis: int, computed: Callable[[Graph, list[np.ndarray]], list[np.ndarray]]) -> None:
    x = np.round(RANDOM.standard_normal(shape) * 4).astype(np.float32)  # with equal extrema
    graph = _rows(*shape, axis)
    found, again = (computed(graph, [x]) for _ in range(2))
    for got, once_more, want in zip(found, again, interpret(graph, x), strict=True):
        np.testing.assert_array_equal(got, once_more)
        if got.dtype.kind == "f":  # exp is good to 2 units, and a sum of positive terms as good as its terms
            np.testing.assert_allclose(got, want, rtol=16 * FLOAT, atol=1e-30)
        else:
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("computed", RUNS.values(), ids=RUNS)
def test_rows_and_columns(
    shape: tuple[int, int], axis: int, computed: Callable[[Graph, list[np.ndarray]], list[np.ndarray]]
) -> None:
    _check(shape, axis, computed)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", SHAPES[:6], ids=str)
def test_rows_and_columns_of_eager_programs(shape: tuple[int, int], axis: int) -> None:
    _check(shape, axis, partial(run_as_gpu, eager=True))


def test_how_rows_are_shared_on_a_gpu() -> None:
    whole = _schedule(16384, 4096, 1)
    assert (whole.members * whole.unrolled * whole.element_width, whole.loop) == (4096, False), "read once"
    assert whole.local == whole.members > GENERIC_GPU.subgroup_size
    part = _schedule(1 << 18, 256, 1)
    assert part.members <= GENERIC_GPU.subgroup_size < part.local and not part.loop
    for length, members in ((1 << 14, 512), (20480, 512), (1 << 15, 1024)):
        long = _schedule(512, length, 1)
        assert (long.members * long.unrolled * long.element_width, long.loop) == (length, False), "read once, still"
        assert long.members == members, "two row groups per processor if there are registers for them"
    assert _schedule(512, 40_000, 1).loop, "too long for registers"
    columns = _schedule_of_sums(16384, 4096, GENERIC_GPU)
    assert isinstance(columns, InterleavedRows) and columns.row_width == 4
    assert columns.members * (4096 // 4) >= 1 << 17, "a device is busy with few columns"
    several = _schedule(16384, 4096, 0)
    assert isinstance(several, InterleavedRows)
    assert several.members < columns.members, "partial results of all reductions fit shared memory"


def test_a_workgroup_reads_what_a_row_has_once_before_it_waits() -> None:
    """A label comes first, the score it names after the first walk, and what an argmax names when that is there."""

    def function(x: Any, labels: Any) -> Any:
        greatest = lnp.take_along_axis(x, lnp.argmax(x, axis=-1)[:, None], axis=-1)
        named = lnp.take_along_axis(x, labels[:, None], axis=-1)
        return x * named + greatest, lnp.sum(x * x, axis=-1) + labels

    x, labels = np.round(RANDOM.standard_normal((6, 1000)) * 4).astype(np.float32), np.arange(6, dtype=np.int32) * 199
    graph = lx.compile(function).lower(x, labels).optimized
    for got, want in zip(run_as_gpu(graph, [x, labels]), interpret(graph, x, labels), strict=True):
        np.testing.assert_array_equal(got, want)
    source = dispatch_of(graph, GENERIC_GPU).shader.source
    label, vector, score, stored = map(source.index, ("I32(p0).", "F32x4(p1).", " F32(p1).", "F32x4(p2)."))
    assert label < vector < source.index("barrier();") < score < stored


def test_functions_of_one_value_per_row_are_computed_before_members_wait() -> None:
    """A rotation's sine and cosine depend on no sum; the exponential of the mean does."""

    def function(x: Any, position: Any, rate: Any) -> Any:
        angle = position.astype("float32") * rate
        sums = lnp.sum(x * x, axis=-1)
        return sums * lnp.cos(angle) + lnp.exp(-sums) * lnp.sin(angle)

    x, rate = RANDOM.standard_normal((6, 1000)).astype(np.float32), np.linspace(0, 3, 6, dtype=np.float32)
    arrays = [x, np.int32(5), rate]
    graph = lx.compile(function).lower(*arrays).optimized
    for got, want in zip(run_as_gpu(graph, arrays), interpret(graph, *arrays, dtype=np.float64), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * 1000)
    source = dispatch_of(graph, GENERIC_GPU).shader.source
    main = source[source.index("void main"):]
    before, after = main[: main.index("barrier();")], main[main.rindex("barrier();"):]
    assert "lx_sin(" in before and "lx_cos(" in before and "lx_exp" not in before
    assert "lx_sin(" not in after and "lx_cos(" not in after and "lx_exp" in after


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("shape", [(17, 3), (40, 300)])
def test_functions_of_an_element_that_a_reduction_finds_are_computed_after_it(
    shape: tuple[int, int], run: Callable[..., list[np.ndarray]]
) -> None:
    def weighted(x: Any, y: Any) -> Any:
        h = lx.nn.sigmoid(x + y)
        return h + lnp.take_along_axis(h, lnp.argmax(x * y, axis=1)[:, None], axis=1)

    arrays = [RANDOM.normal(size=shape).astype("f") for _ in range(2)]
    graph = simplify(lx.trace(weighted)(*arrays))
    (found,), (wanted,) = run(graph, arrays), interpret(graph, *arrays)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=8 * FLOAT)


def test_numbers_that_all_rows_share_do_not_choose_their_schedule() -> None:
    """Sums of columns of what is made of two numbers a row: the whole array decides, and neighbours are columns."""
    kernel = _kernel(parse(dedent("""
        graph (x: f32[4096,2048], mean: f32[4096], scale: f32[4096]) {
          %0 = broadcast(mean) axes=[0] : f32[4096,2048]
          %1 = subtract(x, %0) : f32[4096,2048]
          %2 = broadcast(scale) axes=[0] : f32[4096,2048]
          %3 = multiply(%1, %2) : f32[4096,2048]
          %4 = reshape(%3) : f32[8,512,2048]
          %5 = sum(%4) axes=[1] : f32[8,2048]
          return %5
        }
    """)))
    on_gpu = choose_schedule(kernel, GENERIC_GPU, lifted=False)
    assert isinstance(on_gpu, InterleavedRows) and on_gpu.row_width == 4
    assert choose_schedule(kernel, CPU_DRIVER, lifted=False).row_width == 4


def test_words_that_hold_neighbours_of_a_row_choose_its_schedule() -> None:
    """Rows that also add up the lines of another array: of those they have one element each."""

    def function(matrix: QuantizedMatrix, x: Any, lines: Any) -> Any:
        return matrix.product(x) + sum(lines[number] for number in range(9))

    matrix = QuantizedMatrix.of(np.ones((128, 256), np.float32), "int8", 64)
    graph = simplify(inline_calls(lx.trace(function)(matrix, np.ones(256, np.float32), np.ones((9, 128), np.float32))))
    program = schedule(prepare(graph, target_of(GENERIC_GPU, 1 << 34, 1 << 31)))
    (chosen,) = (
        choose_schedule(kernel, GENERIC_GPU, lifted=False)
        for step in steps_of(program.steps)
        for kernel in step.kernels
        if any(node.op == "shift_left" for node in kernel.graph.nodes)
    )
    assert isinstance(chosen, NeighbourRows)


def test_how_rows_are_shared_on_a_cpu_driver() -> None:
    assert not _schedule(64, 256, 1, CPU_DRIVER).loop, "short rows are kept for the next phase"
    assert _schedule(64, 4096, 1, CPU_DRIVER).loop
    assert _schedule(15, 256, 1, CPU_DRIVER).loop, "few elements are not worth the time to compile it written out"
    assert _schedule(64, 768, 1, CPU_DRIVER).loop
    assert not _schedule(1024, 768, 1, CPU_DRIVER).loop, "the more elements, the longer rows are worth it"
    assert _schedule_of_sums(64, 64, CPU_DRIVER).loop, "nothing is kept for a next phase where there is none"
    strips = [_schedule_of_sums(1024, columns, CPU_DRIVER).strips for columns in (64, 256, 260, 512, 1024)]
    assert strips == [1, 2, 1, 4, 8], "as many as leave enough workgroups and divide the columns"


def test_many_short_rows_on_a_cpu_driver() -> None:
    """A workgroup of one short row takes longer to start than to run."""
    found = [_schedule(rows, 64, 1, CPU_DRIVER) for rows in (40, 64, 200, 4096)]
    groups = [(s.members, s.row_groups) for s in found]
    assert groups == [(8, 1), (8, 2), (8, 4), (8, 8)], "as many as leave enough workgroups"
    found = [_schedule(4096, length, 1, CPU_DRIVER) for length in (256, 1024, 4096)]
    groups = [(s.members, s.row_groups) for s in found]
    assert groups == [(8, 8), (8, 2), (8, 1)], "the longer rows are, the fewer"

    def sums(rows: int, length: int) -> RowSchedule:
        text = f"graph (x: f32[{rows},{length}]) {{\n  %0 = sum(x) axes=[1] : f32[{rows}]\n  return %0\n}}"
        return choose_schedule(_kernel(parse(text)), CPU_DRIVER, lifted=False)

    found_members = [sums(4096, length).members for length in (16, 31, 64, 124, 127, 128)]
    assert found_members == [1, 1, 1, 1, 8, 8], "rows that are read once are shared if they begin between vectors"
    assert sums(20, 64).members == 8, "unless there are few rows"
    assert sums(4096, 64).element_width == 4


@pytest.mark.parametrize(("rows", "length"), [(4096, 300), (300, 4096), (20_000, 40), (70_001, 7)])
def test_sums_are_as_good_as_pairwise_ones(rows: int, length: int) -> None:
    x = np.random.default_rng(rows).standard_normal((rows, length)).astype(np.float32)
    text = f"graph (x: f32[{rows},{length}]) {{\n  %0 = sum(x) axes=[0] : f32[{length}]\n"
    text += f"  %1 = sum(x) axes=[1] : f32[{rows}]\n  return %0, %1\n}}"
    for got, axis in zip(run_as_gpu(parse(text), [x]), (0, 1), strict=True):
        exact = x.sum(axis, dtype=np.float64)
        pairwise = np.abs(np.ascontiguousarray(np.moveaxis(x, axis, -1)).sum(-1) - exact).max()
        rounding = FLOAT * np.abs(exact).max()
        assert np.abs(got - exact).max() <= 2 * max(pairwise, rounding)


def test_what_a_gpu_computes_again_is_what_others_store() -> None:
    """Layer norm's gradient by all of its operands: sums of columns of what another kernel has row by row."""

    def loss(x: Any, scale: Any, shift: Any, weights: Any) -> Any:
        centred = x - lnp.mean(x, axis=1, keepdims=True)
        normal = centred / lnp.sqrt(lnp.mean(centred * centred, axis=1, keepdims=True) + 1e-5)
        return lnp.sum(weights * (normal * scale + shift))

    arrays = [RANDOM.standard_normal(shape, np.float32) for shape in ((60, 130), (130,), (130,), (60, 130))]
    graph = lx.compile(lx.grad(loss, argnums=(0, 1, 2))).lower(*arrays).optimized
    by_name = dict(zip(("x", "scale", "shift", "weights"), arrays, strict=True))
    given = [by_name[node.name] for node in graph.inputs]
    for got, want in zip(run_as_gpu(graph, given), interpret(graph, *given), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=64 * FLOAT * np.abs(want).max())


# Sums of several workgroups a row, of columns that are split among several, and of everything.
SPLIT_SUMS = {"rows": ((3, 100_001), 1), "columns": ((20_000, 36), 0), "all": ((900, 1001), None)}


@pytest.mark.parametrize("name", SPLIT_SUMS)
@pytest.mark.parametrize("kind", PROFILES)
def test_sums_of_several_workgroups_are_the_same_bits_on_every_run(name: str, kind: str) -> None:
    shape, axis = SPLIT_SUMS[name]
    axes, kept = ([0, 1], ()) if axis is None else ([axis], (shape[1 - axis],))
    size = ",".join(map(str, shape))
    text = f"graph (x: f32[{size}]) {{\n  %0 = sum(x) axes={axes} : f32[{','.join(map(str, kept))}]\n  return %0\n}}"
    graph = parse(text.replace("[0, 1]", "[0,1]"))
    dispatches = plan_of(graph, PROFILES[kind]).dispatches
    assert len(dispatches) > 1 and dispatches[0].groups[0] > max(len(kept), 1) // 4
    assert not any("atomic" in dispatch.shader.source for dispatch in dispatches)
    x = (RANDOM.standard_normal(shape) * np.exp(RANDOM.standard_normal(shape) * 3)).astype(np.float32)
    computed = {"cpu": run, "gpu": run_as_gpu}[kind]
    first, *others = (computed(graph, [x])[0] for _ in range(4))
    for other in others:
        np.testing.assert_array_equal(other.view(np.uint32), first.view(np.uint32))
    np.testing.assert_allclose(first, x.sum(axis, dtype=np.float64), atol=64 * FLOAT * np.abs(x).sum(axis).max())


def test_random_graphs() -> None:
    for seed in range(12):
        graph, arrays = random_graph(seed)
        for eager in (False, True):
            found, expected = run_as_gpu(simplify(graph), arrays, eager=eager), interpret(graph, *arrays)
            for got, want in zip(found, expected, strict=True):
                np.testing.assert_array_equal(got, want.astype(got.dtype), err_msg=f"seed {seed}")


@pytest.mark.parametrize("op", ["max", "min"])
def test_no_lane_leaves_out_a_shuffle(op: str) -> None:
    """`a || subgroupShuffleXor(a)` is computed by those lanes only in which `a` is false."""
    text = f"graph (x: bool[64,256]) {{\n  %0 = {op}(x) axes=[1] : bool[64]\n  return %0\n}}"
    for profile in PROFILES.values():
        shuffles = [line for line in main_of(dispatch_of(text, profile)).splitlines() if "subgroupShuffle" in line]
        assert shuffles and not any("||" in line or "&&" in line for line in shuffles)


@pytest.mark.parametrize("computed", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("axis", [0, 1])
def test_small_numbers_are_not_lost_in_long_sums(axis: int, computed: Callable[..., list[np.ndarray]]) -> None:
    """Ones behind a number to which none can be added alone: at most a chunk of them is lost a summand."""
    length, other, large = 4096, 16, 2.0**24
    shape = (length, other) if axis == 0 else (other, length)
    array = np.ones(shape, np.float32)
    array[(0, slice(None)) if axis == 0 else (slice(None), 0)] = large
    text = f"%0 = sum(x) axes=[{axis}] : f32[{other}]\n  return %0"
    graph = parse(f"graph (x: f32[{shape[0]},{shape[1]}]) {{\n  {text}\n}}")
    (found,) = computed(graph, [array])
    assert np.abs(found - (large + length - 1)).max() <= 32


# With the neighbouring vectors that a member loads at once if a subgroup has eight lanes, by a GPU's schedules.
@pytest.mark.parametrize(("rows", "length", "run"), [(3, 2048, 2), (40, 1024, 2), (70, 520, 1), (5, 516, 1)])
@pytest.mark.parametrize("dtype", ["bf16", "f16", "i8", "u8", "i16"])
def test_two_vectors_of_narrow_elements_are_one_load(rows: int, length: int, run: int, dtype: str) -> None:
    graph = parse(dedent(f"""
        graph (w: {dtype}[{rows},{length}], x: f32[{length}]) {{
          %0 = cast(w) : f32[{rows},{length}]
          %1 = broadcast(x) axes=[1] : f32[{rows},{length}]
          %2 = multiply(%0, %1) : f32[{rows},{length}]
          %3 = sum(%2) axes=[1] : f32[{rows}]
          return %3
        }}
    """))
    kernel, profile = _kernel(graph), replace(GENERIC_GPU, subgroup_size=8)
    assert choose_schedule(kernel, profile, lifted=False).run == run
    assert choose_schedule(kernel, profile, lifted=True).run == 1
    w, x = RANDOM.integers(0, 99, (rows, length)), RANDOM.normal(size=length).astype("f")
    (found,), (expected,) = run_as_gpu(graph, [w, x]), interpret(graph, w, x, dtype=np.float64)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-3)


def test_rows_that_are_written_are_read_vector_by_vector() -> None:
    text = "graph (x: bf16[40,2048]) {\n  %0 = max(x) axes=[1] : bf16[40]\n"
    text += "  %1 = broadcast(%0) axes=[0] : bf16[40,2048]\n  %2 = greater(x, %1) : bool[40,2048]\n  return %2\n}"
    assert choose_schedule(_kernel(parse(text)), backend_with(kind="gpu").profile, lifted=False).run == 1
