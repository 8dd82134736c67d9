"""Attention by cooperative matrices: when it is chosen, its shaders, and what they compute."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.backends.vulkan.backend import VulkanBackend
from lavax.backends.vulkan.compile import pipelines
from lavax.backends.vulkan.compile.brain_floats import BRAIN_FLOATS
from lavax.backends.vulkan.compile.shader_compiler import compile_glsl
from lavax.backends.vulkan.emit.attention import cooperative_shape
from lavax.backends.vulkan.emit.attention.cooperative_shape import CooperativeShape
from lavax.backends.vulkan.glsl.narrow_vectors import EIGHT
from lavax.backends.vulkan.plan.profile import GENERIC_GPU, DeviceProfile, MatrixShape
from lavax.ir import Graph, interpret
from lavax.ir.graph import graph_of
from lavax.ir.ops.attention import OPERANDS
from lavax.passes.kernels.commands import steps_of
from lavax.passes.simplify import remove_stop_gradient
from tests.backends.vulkan.emit.matrix_emulation import emulated
from tests.backends.vulkan.run.execution import backend, run

RANDOM = np.random.default_rng(0)
MATRICES = tuple(MatrixShape(dtype, 16, 16, 16) for dtype in ("bf16", "f16"))
WITH_MATRICES = replace(GENERIC_GPU, matrices=MATRICES, float16=True, storage_16bit=True, memory_model=True)
WIDE = tuple(MatrixShape(dtype, 8, 16, 16) for dtype in ("bf16", "f16"))
SQUARE, FLAT = (tuple(MatrixShape(dtype, m, 8, 8) for dtype in ("bf16", "f16")) for m in (8, 2))


def gradients_of(
    dtype: Any,
    queries: int,
    keys: int,
    head: int,
    is_causal: bool,
    *,
    is_biased: bool = False,
    window: tuple[int, int] | None = None,
    scale: float | None = None,
) -> Graph:
    """Attention of two heads that share one of keys, and its gradients in the middle of a graph."""

    def attend(query: Any, key: Any, value: Any) -> Any:
        if not is_biased:
            options = {"is_causal": is_causal, "local_window_size": window, "scale": scale}
            return nn.dot_product_attention(query, key, value, **options)
        places = lnp.arange(queries)[:, None] - lnp.arange(keys)
        bias, mask = lnp.sin(places.astype("float32")), places % 5 != 3
        return nn.dot_product_attention(query, key, value, bias=bias, mask=mask, is_causal=is_causal)

    def loss(query: Any, key: Any, value: Any, weights: Any) -> Any:
        return lnp.sum((attend(query, key, value) * weights).astype("float32"))

    def both(*operands: Any) -> Any:
        return attend(*operands[:3]), *lx.grad(loss, argnums=(0, 1, 2))(*operands)

    of_queries = lx.ShapeDtype((1, queries, 2, head), dtype)
    of_keys = lx.ShapeDtype((1, keys, 1, head), dtype)
    return remove_stop_gradient(lx.trace(both)(of_queries, of_keys, of_keys, of_queries))


def with_profile(profile: DeviceProfile) -> VulkanBackend:
    found = VulkanBackend()
    found.profile = profile
    found.__dict__["_memory_bytes"] = 1 << 32
    return found


def schedules(graph: Graph, device: VulkanBackend) -> list[Any]:
    """The schedules of the kernels of attention."""
    lowered = device.lower(graph)
    steps = steps_of(lowered.kernels.steps)
    return [lowered.schedule_of(step) for step in steps if step.kernel.graph.outputs[0].op in OPERANDS]


def sources_with_matrices(graph: Graph, device: VulkanBackend) -> list[str]:
    sources = [dispatch.shader.source for dispatch in device.lower(graph).plan.dispatches]
    return [source for source in sources if "coopMatMulAdd" in source]


@pytest.mark.parametrize("dtype", [lnp.bfloat16, lnp.float16])
def test_heads_of_16_bits_have_matrices(dtype: Any) -> None:
    """Results and logsumexp, gradients of keys and values, and those of queries: no scores in memory, no parts."""
    found = schedules(gradients_of(dtype, 512, 512, 64, True), with_profile(WITH_MATRICES))
    assert [type(schedule) for schedule in found] == [CooperativeShape] * 3


@pytest.mark.parametrize(
    "dtype, head, changes",
    [
        (lnp.float32, 64, {}),
        (lnp.bfloat16, 64, {"matrices": MATRICES[1:]}),
        (lnp.bfloat16, 44, {}),
        (lnp.bfloat16, 136, {}),
        (lnp.bfloat16, 256, {}),
        (lnp.bfloat16, 64, {"kind": "cpu"}),
    ],
)
def test_others_have_none(dtype: Any, head: int, changes: dict[str, Any]) -> None:
    found = schedules(gradients_of(dtype, 64, 64, head, True), with_profile(replace(WITH_MATRICES, **changes)))
    assert not any(isinstance(schedule, CooperativeShape) for schedule in found)


def test_float32_heads_that_were_narrow_before_stay_strict() -> None:
    """Who casts to float32 asks for weights in float32, although every operand is exact in bfloat16."""
    wide = lambda *x: nn.dot_product_attention(*(each.astype("float32") for each in x))  # noqa: E731
    kinds = [lx.ShapeDtype((1, 64, 2, 64), lnp.bfloat16)] * 3
    found = schedules(lx.trace(wide)(*kinds), with_profile(WITH_MATRICES))
    assert found and not any(isinstance(schedule, CooperativeShape) for schedule in found)


def test_operands_are_staged_as_they_lie_and_each_once_a_block() -> None:
    """Subgroups meet once a block in gradients, which have two buffers of columns, and twice in the forward kernel."""
    sources = sources_with_matrices(gradients_of(lnp.bfloat16, 512, 512, 64, False), with_profile(WITH_MATRICES))
    assert len(sources) == 3
    for source in sources:
        assert BRAIN_FLOATS in source
        is_forward = "coopMatMulAdd(rows0_0" in source and "peak" in source
        loop = source[source.index("for (int block") : source.index("coopMatStore(attention")]
        assert loop.count(" barrier();") == (2 if is_forward else 1)
        assert ("+ turn] = fetched0;" in loop) != is_forward
        assert "U32x4(" in loop and "lx_bf16_from_bits" not in loop


def test_columns_have_one_buffer_where_two_do_not_fit() -> None:
    for memory, head, buffers in ((48 << 10, 64, 2), (24 << 10, 64, 1), (40 << 10, 128, 1), (64 << 10, 128, 2)):
        device = with_profile(replace(WITH_MATRICES, shared_memory_bytes=memory))
        found = schedules(gradients_of(lnp.bfloat16, 128, 128, head, False), device)
        assert sorted(schedule.buffers for schedule in found) == [1, buffers, buffers]


@pytest.mark.parametrize("converts", [False, True])
def test_tiles_pass_through_shared_memory_only_where_matrices_are_not_converted(converts: bool) -> None:
    device = with_profile(replace(WITH_MATRICES, converts_matrices=converts))
    sources = sources_with_matrices(gradients_of(lnp.bfloat16, 512, 512, 64, True), device)
    assert len(sources) == 3
    for source in sources:
        loop = source[source.index("[[dont_unroll]] for (int block") : source.rindex("coopMatMulAdd")]
        assert ("coopMatStore" in loop) == (not converts)
        assert ("GL_NV_cooperative_matrix2" in source) == converts
    assert any("coopMatReduceNV" in source for source in sources) == converts


@pytest.mark.parametrize("is_causal, window, tests", [(True, None, 1), (False, (40, 24), 2), (False, None, 0)])
def test_masks_are_compared_only_in_matrices_that_have_something_hidden(
    is_causal: bool, window: tuple[int, int] | None, tests: int
) -> None:
    device = with_profile(replace(WITH_MATRICES, converts_matrices=True))
    for source in sources_with_matrices(gradients_of(lnp.bfloat16, 512, 512, 64, is_causal, window=window), device):
        # Scores, in blocks of 64, and in the gradients of queries and keys their cotangents, too, in blocks of 32.
        tiles, across = (1, 4) if "attention0" in source else (2, 2)
        guards = [line for line in source.splitlines() if line.strip().startswith("if") and "block * -" in line]
        assert len(guards) == tiles * (tests > 0)
        assert source.count("ahead[e] <=") + source.count("ahead[e] >=") == tests * tiles * across


def test_beyond_the_last_column_only_the_last_matrix_is_compared() -> None:
    """Of 500 columns: blocks of 64 end after 52 of them, and blocks of 32 after 20."""
    device = with_profile(replace(WITH_MATRICES, converts_matrices=True))
    for source in sources_with_matrices(gradients_of(lnp.bfloat16, 500, 500, 64, False), device):
        lines = source.splitlines()
        guarded = [number for number, line in enumerate(lines) if line.strip().startswith("if") and "block * -" in line]
        assert guarded and source.count("over[e] >=") == len(guarded)
        assert all(any("over[e] >=" in line for line in lines[number + 2 : number + 5]) for number in guarded)


def test_scores_are_scaled_within_the_base_of_their_exponential() -> None:
    """Of their difference from the peak: a peak rounded after its scaling would not cancel where scores are large."""
    device = with_profile(replace(WITH_MATRICES, converts_matrices=True))
    for scale, is_biased in ((None, False), (2.0**-30, False), (None, True)):
        graph = gradients_of(lnp.bfloat16, 512, 512, 64, True, scale=scale, is_biased=is_biased)
        for source in sources_with_matrices(graph, device):
            assert ("s0[e] = s0[e] * " in source) == (scale is not None or is_biased)
            if "peak" in source and scale is None and not is_biased:
                assert "s0[e] = exp2(0.18033688 * (s0[e] - peak[e]));" in source


def test_results_are_divided_by_totals_of_rounded_weights_where_products_with_ones_give_them() -> None:
    """Then peaks stay until a score exceeds them by 2^7."""
    for converts in (False, True):
        device = with_profile(replace(WITH_MATRICES, converts_matrices=converts))
        sources = sources_with_matrices(gradients_of(lnp.bfloat16, 512, 512, 64, True), device)
        source, = (source for source in sources if "peak" in source)
        loop = source[source.index("for (int block") :]
        assert (">(whole);" in source) == (", ones, total);" in loop) == converts
        assert ("(above > 38.816242)" in loop) == converts != ("(above > 0.0)" in loop)
        assert ("total[e] = total[e] + s0[e];" in loop) != converts
        assert "sum_of" not in source


@pytest.mark.parametrize("lanes", [32, 64])
@pytest.mark.parametrize("memory", [16 << 10, 32 << 10, 48 << 10])
def test_shapes_fit_the_device(lanes: int, memory: int) -> None:
    profile = replace(
        WITH_MATRICES, subgroup_size=lanes, min_subgroup_size=lanes, max_subgroup_size=lanes, shared_memory_bytes=memory
    )
    for schedule in schedules(gradients_of(lnp.bfloat16, 128, 128, 64, True), with_profile(profile)):
        if isinstance(schedule, CooperativeShape):
            assert schedule.local <= profile.max_workgroup_invocations and schedule.divides()
        else:
            assert memory < 32 << 10


@pytest.fixture
def emulating(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[VulkanBackend]:
    """The device at hand, whose subgroups emulate small matrices; with and without conversions."""
    matrices, converts = request.param
    own = backend().profile
    if own.subgroup_size % 8:
        pytest.skip("no subgroups for matrices of eight rows here")
    if own.kind == "gpu":
        pytest.skip("NVIDIA's compiler (580.159) ends in a division by zero on matrices that lanes emulate")
    lanes = backend().profile.subgroup_size
    monkeypatch.setattr(pipelines, "compile_glsl", lambda source: compile_glsl(emulated(source, lanes)))
    columns = EIGHT * max(own.subgroup_size // matrices[0].m, 1)
    monkeypatch.setattr(cooperative_shape, "_SHAPES", ((max(2, columns // own.subgroup_size), columns),))
    yield with_profile(replace(own, kind="gpu", matrices=matrices, converts_matrices=converts))


EMULATED = {
    "through shared memory": (SQUARE, False),
    "converted": (SQUARE, True),
    "of two rows": (FLAT, False),
}
PROBLEMS = [("bfloat16", 19, 19, True, False), ("float16", 17, 9, False, False), ("float16", 9, 21, False, True)]


def of_every_kind() -> Iterator[Any]:
    """Every problem with each kind of matrix; drivers take long for matrices of two rows, so daily with one alone."""
    for kind, matrices in EMULATED.items():
        for problem in PROBLEMS:
            is_long = kind == "of two rows" and problem != PROBLEMS[1]
            marks = [pytest.mark.long] if is_long else []
            yield pytest.param(matrices, *problem, marks=marks, id="-".join(map(str, (kind, *problem))))


@pytest.mark.parametrize(
    "emulating, dtype, queries, keys, is_causal, is_biased", list(of_every_kind()), indirect=["emulating"]
)
def test_matrices_give_attention_and_its_gradients(
    emulating: VulkanBackend, dtype: str, queries: int, keys: int, is_causal: bool, is_biased: bool
) -> None:
    graph = gradients_of(dtype, queries, keys, 8, is_causal, is_biased=is_biased)
    assert all(isinstance(schedule, CooperativeShape) for schedule in schedules(graph, emulating))
    held = graph.inputs[0].dtype
    arrays = [held.rounded(RANDOM.standard_normal(node.shape, np.float32)) for node in graph.inputs]
    unit = {"bf16": 2.0**-8, "f16": 2.0**-11}[held.name]
    exact = interpret(graph, *arrays, dtype=np.float64)
    for got, want in zip(run(graph, arrays, device=emulating), exact, strict=True):
        # Weights and the scores' cotangents are rounded once, and so are results.
        assert np.abs(np.asarray(got, np.float64) - want).max() <= 3 * unit * np.abs(want).max()


@pytest.mark.parametrize("emulating", [(SQUARE, True)], indirect=True)
def test_windows_begin_and_end_within_matrices(emulating: VulkanBackend) -> None:
    """Some matrices are wholly visible, some at the window's ends, and one has columns beyond the last."""
    graph = gradients_of(lnp.float16, 37, 37, 8, False, window=(13, 9), scale=0.3)
    assert all(isinstance(schedule, CooperativeShape) for schedule in schedules(graph, emulating))
    arrays = [node.dtype.rounded(RANDOM.standard_normal(node.shape, np.float32)) for node in graph.inputs]
    exact = interpret(graph, *arrays, dtype=np.float64)
    for got, want in zip(run(graph, arrays, device=emulating), exact, strict=True):
        assert np.abs(np.asarray(got, np.float64) - want).max() <= 3 * 2.0**-11 * np.abs(want).max()


@pytest.mark.long  # drivers take a quarter of a minute for each
@pytest.mark.parametrize("emulating", [(WIDE, True), (WIDE, False)], indirect=True, ids=["converted", "not converted"])
@pytest.mark.parametrize("head", [8, 24])
def test_zeros_lie_behind_heads_that_are_no_whole_number_of_matrices(
    emulating: VulkanBackend, monkeypatch: pytest.MonkeyPatch, head: int
) -> None:
    """Of 16 columns, as those of most devices."""
    monkeypatch.setattr(cooperative_shape, "_SHAPES", ((16 // emulating.profile.subgroup_size or 1, 16),))
    graph = gradients_of("bfloat16", 19, 19, head, True)
    assert [shape.head for shape in schedules(graph, emulating)] == [-(-head // 16) * 16] * 3
    arrays = [node.dtype.rounded(RANDOM.standard_normal(node.shape, np.float32)) for node in graph.inputs]
    exact = interpret(graph, *arrays, dtype=np.float64)
    for got, want in zip(run(graph, arrays, device=emulating), exact, strict=True):
        assert np.abs(np.asarray(got, np.float64) - want).max() <= 3 * 2.0**-8 * np.abs(want).max()


@pytest.mark.parametrize("emulating", [(WIDE, False)], indirect=True)
def test_zeros_lie_behind_short_heads(emulating: VulkanBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result alone, of heads of 24 in matrices of 16 columns."""
    monkeypatch.setattr(cooperative_shape, "_SHAPES", ((16 // emulating.profile.subgroup_size or 1, 16),))
    graph = gradients_of("bfloat16", 9, 9, 24, False)
    graph = graph_of(graph.inputs, graph.outputs[:1])
    source, = sources_with_matrices(graph, emulating)
    assert "bvec4(" in source and "< 24))" in source
    arrays = [node.dtype.rounded(RANDOM.standard_normal(node.shape, np.float32)) for node in graph.inputs]
    (got,), (want,) = run(graph, arrays, device=emulating), interpret(graph, *arrays, dtype=np.float64)
    assert np.abs(np.asarray(got, np.float64) - want).max() <= 3 * 2.0**-8 * np.abs(want).max()
