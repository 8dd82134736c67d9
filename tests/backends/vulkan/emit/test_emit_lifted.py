"""Shaders of eager operations: sizes are given when they run, so that another shape compiles nothing."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from textwrap import dedent

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.eager import has_shaders_of_its_own
from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.target import target_of
from lavax.ir import parse
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from tests.backends.vulkan.emit.emission import PROFILES, assert_shader, dispatch_of, dispatches_of, plan_of


def _broadcast_multiply(n: int, m: int) -> str:
    return f"""
        graph (x: f32[{n},{m}], y: f32[{m}]) {{
          %0 = broadcast(y) axes=[1] : f32[{n},{m}]
          %1 = multiply(x, %0) : f32[{n},{m}]
          return %1
        }}
    """


def _transpose(n: int, m: int) -> str:
    return f"""
        graph (x: f32[{n},{m}]) {{
          %0 = transpose(x) axes=[1,0] : f32[{m},{n}]
          return %0
        }}
    """


def _gather(n: int, m: int) -> str:
    return f"""
        graph (x: f32[{n},3], i: i32[{m}]) {{
          %0 = gather(x, i) axes=[0] : f32[{m},3]
          return %0
        }}
    """


def _row_maximum(n: int, m: int) -> str:
    return f"""
        graph (x: f32[{n},{m}]) {{
          %0 = max(x) axes=[1] : f32[{n}]
          return %0
        }}
    """


def _column_sum(n: int, m: int) -> str:
    return f"""
        graph (x: f32[{n},{m}]) {{
          %0 = sum(x) axes=[0] : f32[{m}]
          return %0
        }}
    """


def _dot(n: int, m: int) -> str:
    return f"""
        graph (x: f32[{n},{m}], y: f32[{m},{n}]) {{
          %0 = dot(x, y) contract=[1]x[0] : f32[{n},{n}]
          return %0
        }}
    """


def _scatter_add(n: int, m: int) -> str:
    return f"""
        graph (x: f32[{n},3], u: f32[{m},3], i: i32[{m}]) {{
          %0 = scatter_add(x, u, i) axes=[0] : f32[{n},3]
          return %0
        }}
    """


SHAPES = {
    _broadcast_multiply: ((6, 8), (10, 12)),
    _transpose: ((3, 5), (7, 9)),
    _gather: ((5, 7), (11, 13)),
    _row_maximum: ((30, 128), (50, 256)),
    _column_sum: ((5, 256), (9, 1024)),
    _dot: ((68, 192), (76, 256)),
    _scatter_add: ((5, 4), (9, 6)),
}


@pytest.mark.parametrize("device", PROFILES)
@pytest.mark.parametrize("graph", SHAPES, ids=lambda graph: graph.__name__.strip("_"))
def test_two_shapes_have_one_shader(graph: Callable[[int, int], str], device: str) -> None:
    one, other = (dispatch_of(graph(*shape), PROFILES[device], eager=True) for shape in SHAPES[graph])
    assert one.shader == other.shader
    assert len(one.words) == len(other.words) and one.words != other.words


def test_a_compiled_shader_has_its_sizes_as_literals() -> None:
    """But for products of arrays in strides on CPU drivers, which share theirs."""
    for graph, shapes in SHAPES.items():
        one, other = (dispatch_of(graph(*shape), PROFILES["cpu"]) for shape in shapes)
        assert (one.shader == other.shader) is (graph is _dot)
        assert graph is _dot or not (one.words or other.words)


def test_the_shader_and_its_words() -> None:
    dispatch = dispatch_of(_transpose(3, 5), PROFILES["cpu"], eager=True)
    assert dispatch.words == (15, 3, 5, 3)
    assert_shader(
        dispatch,
        dedent("""
        layout(local_size_x = 8, local_size_y = 1) in;
        void main() {
            uint64_t p0 = table.address[words[0]];
            uint64_t p1 = table.address[words[1]];
            int i = int((gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 8u + gl_LocalInvocationID.x);
            if (i >= int(words[2])) return;
            int v1 = int(uint(i) % uint(int(words[3])));
            int v2 = int(uint(i) / uint(int(words[5])));
            float v3 = F32(p0).data[(v1 * int(words[4]) + v2) + low_bits(p0)];
            F32(p1).data[i + low_bits(p1)] = v3;
        }
        """),
    )


def _reverse_axes(*extents: int) -> str:
    shape, back = ",".join(map(str, extents)), ",".join(map(str, reversed(extents)))
    axes = ",".join(map(str, reversed(range(len(extents)))))
    return f"graph (x: f32[{shape}]) {{\n  %0 = transpose(x) axes=[{axes}] : f32[{back}]\n  return %0\n}}"


def test_sizes_that_find_no_word_stand_in_an_array() -> None:
    """Push constants hold 29 numbers: the last says where the other sizes are, and every shape has one shader still."""
    one, other = (
        plan_of(_reverse_axes(*extents), PROFILES["cpu"], eager=True)
        for extents in ((2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2), (3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3))
    )
    assert one.dispatches[0].shader == other.dispatches[0].shader
    for plan in (one, other):
        (dispatch,), (sizes,) = plan.dispatches, plan.constants
        assert len(dispatch.slots) + len(dispatch.words) == 29
        assert dispatch.words[-1] == 2  # the slot behind those of the argument and the result
        assert len(sizes) >= 4
    assert one.constants != other.constants


def test_an_eager_product_of_another_large_shape_compiles_nothing() -> None:
    generator = np.random.default_rng(0)
    compiled = []
    for m, k, n in ((100, 76, 132), (92, 84, 148)):
        left, right = generator.normal(size=(m, k)), generator.normal(size=(k, n))
        found = lnp.asarray(left, "float32") @ lnp.asarray(right, "float32")
        np.testing.assert_allclose(np.asarray(found), left @ right, rtol=0, atol=1e-4)
        compiled.append(lx.profiler.counters()["pipelines"])
    assert compiled[0] == compiled[1]


def _sum_of(n: int, m: int) -> str:
    return f"graph (x: f32[{n},{m}], y: f32[{n},{m}]) {{\n  %0 = add(x, y) : f32[{n},{m}]\n  return %0\n}}"


def test_long_maps_of_every_length_share_a_shader_that_reads_texels() -> None:
    shapes = (10, 10), (64, 65), (333, 77), (512, 512)
    small, *others = (dispatch_of(_sum_of(*shape), PROFILES["cpu"], eager=True) for shape in shapes)
    assert "texelFetch" not in small.shader.source
    assert "texelFetch" in others[0].shader.source
    assert len({dispatch.shader for dispatch in others}) == 1
    gpu = [dispatch_of(_sum_of(*shape), PROFILES["gpu"], eager=True) for shape in ((10, 10), (512, 512))]
    assert gpu[0].shader == gpu[1].shader


def test_other_work_over_large_arrays_has_a_shader_of_its_own_on_cpu_drivers() -> None:
    for device, own in (("cpu", True), ("gpu", False)):
        small, large = (
            dispatch_of(_broadcast_multiply(*shape), PROFILES[device], eager=True) for shape in ((64, 100), (512, 1000))
        )
        assert (small.shader != large.shader) is own
        assert ("texelFetch" in large.shader.source) is own


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "uint16", "int32", "bool"])
@pytest.mark.parametrize("length", [4096, 4099, 70_001])
def test_long_eager_maps(dtype: str, length: int) -> None:
    values = np.random.default_rng(length).integers(0, 2 if dtype == "bool" else 9, (2, length))
    x, y = (lnp.asarray(row, dtype) for row in values)
    found = np.asarray(lnp.where(x < y, x, y).astype("int32"))
    np.testing.assert_array_equal(found, values.min(axis=0))


@pytest.mark.parametrize("device", PROFILES)
@pytest.mark.parametrize(
    ("operand", "step", "result"),
    [
        ("8,3,1,2", "fourier_step(x) reverse=false", "3,8,1,2"),
        ("7,3", "fourier_from_reals(x)", "3,4,2"),
        ("8,6", "fourier_from_paired(x) points=2 sines=true", "2,2,6,2"),
    ],
    ids=["step", "reals", "pairs"],
)
def test_steps_of_fourier_transforms_serve_any_number_of_equal_lines(
    operand: str, step: str, result: str, device: str
) -> None:
    """They get nothing but how many there are: code is for one number of points, and a driver takes two to nine times
    as long to compile it if it does not know where each of these lies."""
    few, many = (
        dispatches_of(
            f"graph (x: f32[{lines},{operand}]) {{\n  %0 = {step} : f32[{lines},{result}]\n  return %0\n}}",
            PROFILES[device],
            eager=True,
        )
        for lines in (3, 1000)
    )
    assert [dispatch.shader for dispatch in few] == [dispatch.shader for dispatch in many]
    assert all(len(dispatch.words) == 1 for dispatch in few)


def test_long_fourier_transforms_have_shaders_of_their_own_on_cpu_drivers() -> None:
    """Those of up to 256 points serve any number of lines, or of 16 that are read one by one."""
    for profile in PROFILES.values():
        is_cpu = profile.kind == "cpu"
        for points, own in ((256, False), (512, is_cpu), (15, False), (27, is_cpu)):
            text = f"""
                graph (x: f32[6,{points},1,1,2]) {{
                  %0 = fourier_step(x) reverse=false : f32[6,{points},1,1,2]
                  return %0
                }}
            """
            program = schedule(prepare(parse(dedent(text))))
            assert has_shaders_of_its_own(program, profile) == own


def test_steps_that_compute_what_they_read_have_shaders_of_their_own_on_cpu_drivers() -> None:
    for profile in PROFILES.values():
        for computed, own in (("negate(x)", False), ("sin(x)", profile.kind == "cpu")):
            text = f"""
                graph (x: f32[6,8,1,1,2]) {{
                  %0 = {computed} : f32[6,8,1,1,2]
                  %1 = fourier_step(%0) reverse=false : f32[6,8,1,1,2]
                  return %1
                }}
            """
            program = schedule(prepare(parse(dedent(text))))
            assert has_shaders_of_its_own(program, profile) == own


# Twice a large prime, of few numbers and some more; the prime alone; one that is a convolution of fewer points.
@pytest.mark.parametrize(
    ("function", "lines", "points"),
    [("irfft", 8, 766), ("fft", 3, 766), ("fft", 12, 383), ("rfft", 5, 766), ("fft", 3, 1021)],
)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_shaders_of_large_primes_are_short_without_descriptors(
    function: str, lines: int, points: int, dtype: str
) -> None:
    """A step for every shape once had 284,000 characters, which a driver compiled for minutes."""
    profile = replace(PROFILES["cpu"], descriptor_bytes=0)
    target = target_of(profile, 1 << 34, 1 << 32)
    with lx.enable_x64():
        type = lx.ShapeDtype((lines, points // 2 + 1 if function == "irfft" else points), dtype)
        graph = lx.trace(lambda z: getattr(lnp.fft, function)(z.real if function == "rfft" else z, points))(type)
    plan = emit_program(schedule(prepare(graph, target), target=target), profile, True)
    assert max(len(dispatch.shader.source) for dispatch in plan.dispatches) < 75_000
