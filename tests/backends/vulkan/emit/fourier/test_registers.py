"""Steps of Fourier transforms in registers: their texts, and lines of many forms on the device."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.fourier.choose import few_steps_of, steps_of
from lavax.backends.vulkan.plan.plan import Dispatch
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.ir.types import float32
from lavax.passes.fuse.costs import cost_of
from lavax.passes.kernels.commands import steps_of as program_steps
from lavax.passes.numerics.primes import balanced, prime_factors
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.target.target import Target
from tests.backends.vulkan.emit.emission import assert_shader, dispatch_of, main_of
from tests.backends.vulkan.run.execution import backend_with, run

RANDOM = np.random.default_rng(4)


def test_four_points() -> None:
    graph = """
        graph (x: f32[16,4,1,1,2]) {
          %0 = fourier_step(x) reverse=false : f32[16,4,2]
          return %0
        }
    """
    assert_shader(dispatch_of(graph, GENERIC_GPU), FOUR_POINTS)


FOUR_POINTS = """
    layout(local_size_x = 128, local_size_y = 1) in;
    void main() {
        uint64_t p0 = table.address[words[0]];
        uint64_t p1 = table.address[words[1]];
        int i = int((gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 128u + gl_LocalInvocationID.x);
        if (i >= 16) return;
        vec4 v1 = F32x4(p0).data[(i * 2)];
        vec4 v2 = F32x4(p0).data[(i * 2 + 1)];
        float v3 = v1.x + v2.x;
        float v4 = v1.y + v2.y;
        float v5 = v1.x - v2.x;
        float v6 = v1.y - v2.y;
        float v7 = v1.z + v2.z;
        float v8 = v1.w + v2.w;
        float v9 = v1.z - v2.z;
        float v10 = v1.w - v2.w;
        float v11 = v5 - v10;
        float v12 = v6 + v9;
        float v13 = v5 + v10;
        float v14 = v6 - v9;
        float v15 = v3 + v7;
        float v16 = v4 + v8;
        float v17 = v3 - v7;
        float v18 = v4 - v8;
        vec4 v19 = vec4(v15, v16, v13, v14);
        F32x4(p1).data[(i * 2)] = v19;
        vec4 v20 = vec4(v17, v18, v11, v12);
        F32x4(p1).data[(i * 2 + 1)] = v20;
    }
"""


def test_lines_of_odd_length_are_read_and_written_in_pairs_of_words() -> None:
    graph = """
        graph (x: f32[1024,3,1,1,2]) {
          %0 = fourier_step(x) reverse=false : f32[1024,3,2]
          return %0
        }
    """
    dispatch = dispatch_of(graph, CPU_DRIVER)
    assert _stores(dispatch) == [
        "longs1.data[2 * w1 + (i * 3)] = packUint2x32(floatBitsToUint(vec2(v8, v9)));",
        "longs1.data[2 * w1 + (i * 3 + 1)] = packUint2x32(floatBitsToUint(vec2(v16, v17)));",
        "longs1.data[2 * w1 + (i * 3 + 2)] = packUint2x32(floatBitsToUint(vec2(v18, v19)));",
    ]
    assert dispatch.shader.bindings == (("couples", 0), ("longs", 1))
    of_long_registers = dispatch_of(graph, replace(CPU_DRIVER, register_bits=512))
    assert _stores(of_long_registers)[0] == "pairs1.data[2 * w1 + (i * 3)] = floatBitsToUint(vec2(v8, v9));"


def _stores(dispatch: Dispatch) -> list[str]:
    return [line.strip() for line in main_of(dispatch).splitlines() if "data[" in line]


@pytest.mark.parametrize(
    ("dtype", "bits", "store"),
    [
        ("f32", 256, "quartets1.data[w1 + (i * 2)] = two_pairs(floatBitsToUint(v19));"),
        (
            "f64",
            256,
            "quartets1.data[w1 + 2 * ((i * 2)) + 0] = u64vec2(doubleBitsToUint64(v19.xy)); "
            "quartets1.data[w1 + 2 * ((i * 2)) + 1] = u64vec2(doubleBitsToUint64(v19.zw));",
        ),
        ("f32", 512, "stores1.data[w1 + (i * 2)] = floatBitsToUint(v19);"),
    ],
)
def test_two_numbers_are_stored_as_two_words_of_64_bits(dtype: str, bits: int, store: str) -> None:
    """Where a register is no longer than 256 bits; otherwise as four of 32."""
    graph = f"""
        graph (x: {dtype}[1024,4,1,1,2]) {{
          %0 = fourier_step(x) reverse=false : {dtype}[1024,4,2]
          return %0
        }}
    """
    assert _stores(dispatch_of(graph, replace(CPU_DRIVER, register_bits=bits)))[0] == store


@pytest.mark.parametrize("length", [27, 2187, 1009])
def test_numbers_that_are_scaled_are_read_whole(length: int) -> None:
    """As one product, and not as one with a complex number, part by part."""
    lines = (1 << 14) // length + 1
    graph = lx.compile(lnp.fft.ifft).lower(lx.ShapeDtype((lines, length), "complex64"))._parts.graph
    found = prepare(graph, target_of(CPU_DRIVER, 1 << 34, 1 << 32)).nodes
    scaled = [node for node in found if node.op == "multiply" and graph.inputs[0].name == node.operands[0].name]
    assert [node.shape for node in scaled] == [(lines, length, 2)]


def test_a_step_among_several() -> None:
    graph = """
        graph (x: f32[1,2,3,6,2]) {
          %0 = fourier_step(x) reverse=true : f32[1,3,2,6,2]
          return %0
        }
    """
    assert_shader(dispatch_of(graph, GENERIC_GPU), AMONG_SEVERAL)


AMONG_SEVERAL = """
    layout(local_size_x = 128, local_size_y = 1) in;
    void main() {
        uint64_t p0 = table.address[words[0]];
        uint64_t p1 = table.address[words[1]];
        int i = int((gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 128u + gl_LocalInvocationID.x);
        if (i >= 9) return;
        vec4 v1 = F32x4(p0).data[i];
        vec2 v2 = v1.xz;
        vec2 v3 = v1.yw;
        vec4 v4 = F32x4(p0).data[(i + 9)];
        vec2 v5 = v4.xz;
        vec2 v6 = v4.yw;
        vec2 v7 = v2 + v5;
        vec2 v8 = v3 + v6;
        vec2 v9 = v2 - v5;
        vec2 v10 = v3 - v6;
        int v11 = int(uint(i) / uint(3));
        vec2 v12 = lx_unit_root(v11, 6);
        vec2 v13 = vec2(v12.x);
        vec2 v14 = vec2(v12.y);
        vec2 v15 = v9 * v13 - v10 * v14;
        vec2 v16 = v9 * v14 + v10 * v13;
        vec4 v17 = vec4(v7.x, v8.x, v7.y, v8.y);
        int v18 = int(uint(i) % uint(3));
        F32x4(p1).data[(v18 + v11 * 6)] = v17;
        vec4 v19 = vec4(v15.x, v16.x, v15.y, v16.y);
        F32x4(p1).data[(v18 + v11 * 6 + 3)] = v19;
    }
"""


def test_steps_of_lengths() -> None:
    assert prime_factors(1) == [] and prime_factors(360) == [2, 2, 2, 3, 3, 5] and prime_factors(1009) == [1009]
    assert balanced([2, 2, 3, 5], 32) == [10, 6] and balanced([], 32) == []
    with pytest.raises(ValueError, match="43 is greater than the widest factor, 32"):
        balanced([2, 43], 32)
    for profile in (CPU_DRIVER, GENERIC_GPU):
        for length in (1, 2, 31, 1000, 2187, 1 << 20, 31**3):
            assert np.prod(steps_of(length, 1, float32, profile)) == length
    # Wide steps are taken if they are few, or if narrow ones would be many.
    wide = {81: [81], 2187: [81, 27], 1 << 20: [32] * 4, 7**5: [7, 49, 49]}
    assert {length: list(steps_of(length, 1, float32, CPU_DRIVER)) for length in wide} == wide


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(6, 35, 4), (3, 25, 7), (128, 3, 49)])
def test_axes_and_computed_operands(shape: tuple[int, ...], axis: int) -> None:
    z = (RANDOM.normal(size=shape) + 1j * RANDOM.normal(size=shape)).astype(np.complex64)
    found = lx.compile(lambda z: lnp.fft.ifft(lnp.fft.fft(lnp.conj(z) * 2 + 1j, axis=axis) * z, axis=axis))(z)
    wide = z.astype(np.complex128)
    expected = np.fft.ifft(np.fft.fft(wide.conj() * 2 + 1j, axis=axis) * wide, axis=axis)
    limit = 4 * 2**-24 * np.log2(shape[axis])
    assert np.linalg.norm(found - expected) <= limit * np.linalg.norm(expected)


# Two steps whose numbers lie in pairs, or not; three; four.
@pytest.mark.parametrize("length", [2**12, 3**7, 2**5 * 7**2, 5**5, 1000, 2**17])
def test_the_error_of_long_lines(length: int) -> None:
    z = (RANDOM.normal(size=(5, length)) + 1j * RANDOM.normal(size=(5, length))).astype(np.complex64)
    expected = np.fft.fft(z.astype(np.complex128))
    limit = 2**-24 * np.log2(length)  # half of what is promised
    assert np.linalg.norm(np.asarray(lnp.fft.fft(z)) - expected) <= limit * np.linalg.norm(expected)


# Primes whose convolutions have all kinds of lengths, one within the other too, alone and beside another factor.
@pytest.mark.parametrize("length", [37, 83, 127, 2 * 43, 8 * 41])
def test_prime_factors_beyond_31_are_convolutions_in_registers(length: int) -> None:
    lines = -(-(1 << 14) // length)
    z = (RANDOM.normal(size=(lines, length)) + 1j * RANDOM.normal(size=(lines, length))).astype(np.complex64)
    z[0] = np.arange(length) == length - 2  # a pulse, whose error is no larger
    lowered = lx.compile(lnp.fft.fft).lower(z)
    if lx.default_device().kind == "cpu":
        assert "dot(" not in (text := lowered.as_text("kernels")) and 1 <= text.count("fourier_step") <= 2
    found, expected = np.asarray(lowered.compile()(z)), np.fft.fft(z.astype(np.complex128))
    limit = 2**-24 * np.log2(length)  # half of what is promised
    errors = np.linalg.norm(found - expected, axis=1)
    assert (errors <= limit * np.linalg.norm(expected, axis=1)).all()


# Complex and real lines and inverses, those of large primes, and none.
@pytest.mark.parametrize(
    ("points", "numbers", "steps"),
    [(640, 640, [10, 8, 8]), (589, 4096, [31, 19]), (256, 256, []), (1000, 4097, []), (1024, 1 << 20, [])],
)
def test_few_numbers_have_short_steps(points: int, numbers: int, steps: list[int]) -> None:
    assert list(few_steps_of(points, numbers, CPU_DRIVER)) == steps
    assert not few_steps_of(points, numbers, GENERIC_GPU)


@pytest.mark.parametrize("length", [317, 600, 1024])
def test_few_numbers(length: int) -> None:
    z = (RANDOM.normal(size=(2, length)) + 1j * RANDOM.normal(size=(2, length))).astype(np.complex64)
    x = z.real
    limit = 2**-24 * np.log2(length)  # half of what is promised
    for found, expected in (
        (lnp.fft.fft(z), np.fft.fft(z.astype(np.complex128))),
        (lnp.fft.rfft(x), np.fft.rfft(x.astype(np.float64))),
        (lnp.fft.irfft(z, length), np.fft.irfft(z.astype(np.complex128), length)),
    ):
        assert np.linalg.norm(np.asarray(found) - expected) <= 2 * limit * np.linalg.norm(expected)


def test_steps_compute_what_they_read_if_that_is_little() -> None:
    """It is written out for each point."""
    target, type = target_of(CPU_DRIVER, 1 << 34, 1 << 32), lx.ShapeDtype((300, 64), "float32")

    def little(x: lx.Array) -> lx.Array:
        return lnp.fft.fft(x * 2 + 1j)

    def much(x: lx.Array) -> lx.Array:
        return lnp.fft.fft(lnp.tanh(lnp.exp(lnp.sin(lnp.cos(lnp.log(x))))))

    for function, computes, of in ((little, True, target), (much, False, target), (much, True, Target())):
        program = schedule(prepare(lx.trace(function)(type), of), target=of)
        *_, transform = (kernel for step in program_steps(program.steps) for kernel in step.kernels)
        assert any(map(cost_of, transform.graph.nodes)) == computes


@pytest.mark.parametrize(("points", "is_stored"), [(1024, True), (128, False)])
def test_long_real_lines_across_are_transposed_first(points: int, is_stored: bool) -> None:
    """A step would read an odd number of neighbours number by number."""
    target, type = target_of(CPU_DRIVER, 1 << 34, 1 << 32), lx.ShapeDtype((points, 255), "float32")
    program = schedule(prepare(lx.trace(lambda x: lnp.fft.rfft(x, axis=0))(type), target), target=target)
    kernels = [kernel for step in program_steps(program.steps) for kernel in step.kernels]
    (transform,) = (kernel for kernel in kernels if any(n.op == "fourier_spectrum" for n in kernel.graph.nodes))
    assert any(node.op == "transpose" for node in transform.graph.nodes) != is_stored
    assert (kernels[0] is not transform) == is_stored


def test_few_numbers_are_not_worth_a_long_shader() -> None:
    assert "dot(" in lx.compile(lnp.fft.fft).lower(lx.ShapeDtype((4, 127), "complex64")).as_text("kernels")


def test_one_wrong_root_shows() -> None:
    """A tone in every place of the spectrum comes out there alone."""
    length = 96
    tones = np.exp(2j * np.pi * np.outer(np.arange(length), np.arange(length)) / length).astype(np.complex64)
    np.testing.assert_allclose(np.asarray(lnp.fft.fft(tones)), length * np.eye(length), atol=1e-4)


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_lines_of_one_number(kind: str) -> None:
    """Neighbours that are one element of an array are a scalar to the reader, which takes pairs."""
    graph = lx.trace(lambda y: lnp.fft.rfft(lnp.broadcast_to(y[:, None], (3, 8))))(np.ones(3, np.float32))
    values = np.array([1, -2, 3], np.float32)
    (found,) = run(graph, [values], device=backend_with(kind=kind))
    np.testing.assert_allclose(found, np.fft.rfft(np.repeat(values[:, None], 8, 1)), atol=1e-5)
