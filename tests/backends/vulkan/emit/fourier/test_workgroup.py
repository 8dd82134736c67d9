"""Steps of Fourier transforms in shared memory: a text, the forms of workgroups, and lines against the interpreter."""
from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import scipy.fft

from lavax.backends.vulkan.emit.fourier.choose import steps_of
from lavax.backends.vulkan.emit.fourier.shape import longest_line, number_bytes, shape_of
from lavax.backends.vulkan.plan.profile import GENERIC_GPU, DeviceProfile
from lavax.ir import TensorType
from lavax.ir.graph import graph_of, input_node, make_node
from lavax.ir.types import DType, complex64, float32, float64
from tests.backends.vulkan.emit.emission import assert_shader, dispatch_of, main_of
from tests.backends.vulkan.run.execution import backend_with, run_as_gpu

RANDOM = np.random.default_rng(4)
_SMALL = replace(GENERIC_GPU, shared_memory_bytes=16384, max_workgroup_invocations=128)


def test_two_radices() -> None:
    graph = """
        graph (x: f32[2,18,3,1,2]) {
          %0 = fourier_step(x) reverse=false : f32[2,3,18,1,2]
          return %0
        }
    """
    assert_shader(dispatch_of(graph, GENERIC_GPU), TWO_RADICES)


TWO_RADICES = """
    layout(local_size_x = 18, local_size_y = 1) in;
    void main() {
        uint64_t p0 = table.address[words[0]];
        uint64_t p1 = table.address[words[1]];
        int invocation = int(gl_LocalInvocationID.x);
        int group = int((gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x));
        int own_a = invocation % 6;
        int member_a = invocation / 6;
        int place_a = min(group * 6 + own_a, 6 - 1);
        int block0_0 = member_a;
        int v1 = int(uint(place_a) % uint(3));
        int v2 = int(uint(place_a) / uint(3));
        vec2 v3 = Numbers(p0).data[(v1 + v2 * 54 + block0_0 * 3)];
        vec2 v4 = Numbers(p0).data[(v1 + v2 * 54 + block0_0 * 3 + 9)];
        vec2 v5 = Numbers(p0).data[(v1 + v2 * 54 + block0_0 * 3 + 18)];
        vec2 v6 = Numbers(p0).data[(v1 + v2 * 54 + block0_0 * 3 + 27)];
        vec2 v7 = Numbers(p0).data[(v1 + v2 * 54 + block0_0 * 3 + 36)];
        vec2 v8 = Numbers(p0).data[(v1 + v2 * 54 + block0_0 * 3 + 45)];
        float v9 = v3.x + v6.x;
        float v10 = v3.y + v6.y;
        float v11 = v3.x - v6.x;
        float v12 = v3.y - v6.y;
        float v13 = v5.x + v8.x;
        float v14 = v5.y + v8.y;
        float v15 = v5.x - v8.x;
        float v16 = v5.y - v8.y;
        float v17 = v7.x + v4.x;
        float v18 = v7.y + v4.y;
        float v19 = v7.x - v4.x;
        float v20 = v7.y - v4.y;
        float v21 = v13 + v17;
        float v22 = v14 + v18;
        float v23 = v13 - v17;
        float v24 = v14 - v18;
        float v25 = v9 + v21 * 1.0;
        float v26 = v10 + v22 * 1.0;
        float v27 = v9 + v21 * (-0.5);
        float v28 = v10 + v22 * (-0.5);
        float v29 = v23 * (-0.8660254);
        float v30 = v24 * (-0.8660254);
        float v31 = v29;
        float v32 = v30;
        float v33 = v27 - v32;
        float v34 = v28 + v31;
        float v35 = v27 + v32;
        float v36 = v28 - v31;
        float v37 = v15 + v19;
        float v38 = v16 + v20;
        float v39 = v15 - v19;
        float v40 = v16 - v20;
        float v41 = v11 + v37 * 1.0;
        float v42 = v12 + v38 * 1.0;
        float v43 = v11 + v37 * (-0.5);
        float v44 = v12 + v38 * (-0.5);
        float v45 = v39 * (-0.8660254);
        float v46 = v40 * (-0.8660254);
        float v47 = v45;
        float v48 = v46;
        float v49 = v43 - v48;
        float v50 = v44 + v47;
        float v51 = v43 + v48;
        float v52 = v44 - v47;
        int own_l = invocation / 3;
        int member_l = invocation % 3;
        int place_l = min(group * 6 + own_l, 6 - 1);
        int block1_0 = member_l;
        int block1_1 = member_l + 3;
        int v53 = int(uint((block1_0 + 12)) / uint(16));
        int v54 = int(uint((block1_1 + 12)) / uint(16));
        held[(block0_0 * 6 + own_a * 34)] = vec2(v25, v26);
        held[(block0_0 * 6 + own_a * 34 + 1)] = vec2(v49, v50);
        held[(block0_0 * 6 + own_a * 34 + 2)] = vec2(v35, v36);
        held[(block0_0 * 6 + own_a * 34 + 3)] = vec2(v41, v42);
        int v55 = int(uint((block0_0 * 3 + 2)) / uint(8));
        held[(v55 + block0_0 * 6 + own_a * 34 + 4)] = vec2(v33, v34);
        held[(v55 + block0_0 * 6 + own_a * 34 + 5)] = vec2(v51, v52);
        barrier();
        vec2 v56 = held[(block1_0 + own_l * 34)];
        vec2 v57 = held[(block1_0 + own_l * 34 + 6)];
        vec2 v58 = held[(v53 + block1_0 + own_l * 34 + 12)];
        vec2 v59 = held[(block1_1 + own_l * 34)];
        vec2 v60 = held[(block1_1 + own_l * 34 + 6)];
        vec2 v61 = held[(v54 + block1_1 + own_l * 34 + 12)];
        vec2 v62 = lx_unit_root(block1_0 * 1, 18);
        vec2 v63 = lx_unit_root(block1_0 * 2, 18);
        float v64 = v57.x * v62.x - v57.y * (-v62.y);
        float v65 = v57.x * (-v62.y) + v57.y * v62.x;
        float v66 = v58.x * v63.x - v58.y * (-v63.y);
        float v67 = v58.x * (-v63.y) + v58.y * v63.x;
        vec2 v68 = lx_unit_root(block1_1 * 1, 18);
        vec2 v69 = lx_unit_root(block1_1 * 2, 18);
        float v70 = v60.x * v68.x - v60.y * (-v68.y);
        float v71 = v60.x * (-v68.y) + v60.y * v68.x;
        float v72 = v61.x * v69.x - v61.y * (-v69.y);
        float v73 = v61.x * (-v69.y) + v61.y * v69.x;
        float v74 = v64 + v66;
        float v75 = v65 + v67;
        float v76 = v64 - v66;
        float v77 = v65 - v67;
        float v78 = v56.x + v74 * 1.0;
        float v79 = v56.y + v75 * 1.0;
        float v80 = v56.x + v74 * (-0.5);
        float v81 = v56.y + v75 * (-0.5);
        float v82 = v76 * (-0.8660254);
        float v83 = v77 * (-0.8660254);
        float v84 = v82;
        float v85 = v83;
        float v86 = v80 - v85;
        float v87 = v81 + v84;
        float v88 = v80 + v85;
        float v89 = v81 - v84;
        float v90 = v70 + v72;
        float v91 = v71 + v73;
        float v92 = v70 - v72;
        float v93 = v71 - v73;
        float v94 = v59.x + v90 * 1.0;
        float v95 = v59.y + v91 * 1.0;
        float v96 = v59.x + v90 * (-0.5);
        float v97 = v59.y + v91 * (-0.5);
        float v98 = v92 * (-0.8660254);
        float v99 = v93 * (-0.8660254);
        float v100 = v98;
        float v101 = v99;
        float v102 = v96 - v101;
        float v103 = v97 + v100;
        float v104 = v96 + v101;
        float v105 = v97 - v100;
        int v106 = int(uint(place_l) % uint(3));
        vec2 v107 = lx_unit_root(block1_0 * v106, 54);
        vec2 v108 = lx_unit_root(v106 * 6, 54);
        float v109 = v107.x * v108.x - (-v107.y) * (-v108.y);
        float v110 = v107.x * (-v108.y) + (-v107.y) * v108.x;
        vec2 v111 = lx_unit_root(v106 * 12, 54);
        float v112 = v107.x * v111.x - (-v107.y) * (-v111.y);
        float v113 = v107.x * (-v111.y) + (-v107.y) * v111.x;
        float v114 = v78 * v107.x - v79 * (-v107.y);
        float v115 = v78 * (-v107.y) + v79 * v107.x;
        float v116 = v86 * v109 - v87 * v110;
        float v117 = v86 * v110 + v87 * v109;
        float v118 = v88 * v112 - v89 * v113;
        float v119 = v88 * v113 + v89 * v112;
        Numbers(p1).data[(block1_0 + place_l * 18)] = vec2(v114, v115);
        Numbers(p1).data[(block1_0 + place_l * 18 + 6)] = vec2(v116, v117);
        Numbers(p1).data[(block1_0 + place_l * 18 + 12)] = vec2(v118, v119);
        vec2 v120 = lx_unit_root(block1_1 * v106, 54);
        vec2 v121 = lx_unit_root(v106 * 6, 54);
        float v122 = v120.x * v121.x - (-v120.y) * (-v121.y);
        float v123 = v120.x * (-v121.y) + (-v120.y) * v121.x;
        vec2 v124 = lx_unit_root(v106 * 12, 54);
        float v125 = v120.x * v124.x - (-v120.y) * (-v124.y);
        float v126 = v120.x * (-v124.y) + (-v120.y) * v124.x;
        float v127 = v94 * v120.x - v95 * (-v120.y);
        float v128 = v94 * (-v120.y) + v95 * v120.x;
        float v129 = v102 * v122 - v103 * v123;
        float v130 = v102 * v123 + v103 * v122;
        float v131 = v104 * v125 - v105 * v126;
        float v132 = v104 * v126 + v105 * v125;
        Numbers(p1).data[(block1_1 + place_l * 18)] = vec2(v127, v128);
        Numbers(p1).data[(block1_1 + place_l * 18 + 6)] = vec2(v129, v130);
        Numbers(p1).data[(block1_1 + place_l * 18 + 12)] = vec2(v131, v132);
    }
"""


@pytest.mark.parametrize("limits", [GENERIC_GPU, _SMALL], ids=["generic", "small"])
def test_workgroups_are_within_limits(limits: DeviceProfile) -> None:
    forms = ((1, False), (3, True), (1000, False), (1000, True))
    for part, (lines, across) in product((float32, float64), forms):
        longest = longest_line(limits, part, 1)
        for points in (17, 32, 31**2, 360, min(1000, longest), longest):
            shape = shape_of(points, lines, across, part, limits)
            assert shape.invocations <= limits.max_workgroup_invocations
            size = number_bytes(part) // (2 if shape.apart else 1)
            assert shape.together * shape.row * size <= limits.shared_memory_bytes
            assert np.prod(shape.radices) == points and shape.row >= points + points // shape.gap


def test_long_lines_take_few_steps() -> None:
    assert steps_of(2048, 1, float32, GENERIC_GPU) == (2048,)
    assert list(steps_of(2048, 8, float32, GENERIC_GPU)) == [64, 32]
    assert list(steps_of(256, 8, float32, GENERIC_GPU)) == list(steps_of(256, 8, float64, GENERIC_GPU)) == [256]
    counts = [len(steps_of(1 << bits, 1, float32, GENERIC_GPU)) for bits in (12, 16, 20)]
    assert counts == [len(steps_of(1 << bits, 1, float64, GENERIC_GPU)) for bits in (12, 16, 20)] == [2, 2, 3]
    large = replace(GENERIC_GPU, shared_memory_bytes=49152)
    assert list(steps_of(1 << 20, 1, float32, large)) == [1024, 1024]  # by parts
    assert [len(steps_of(n, 1, part, large)) for n, part in ((10**6, float32), (1 << 20, float64))] == [3, 3]


# One line and several; places along a line and across lines; radices that differ; a part of the members idle.
FORMS = [
    *((5, 32, 1, 1), (7, 256, 1, 1), (3, 1000, 1, 1), (2, 62, 1, 1), (2, 64, 1, 6), (2, 128, 5, 1), (2, 96, 4, 3)),
    *((1, 512, 8, 1), (2, 243, 3, 1), (3, 2048, 1, 1), (1, 64, 64, 1), (1, 64, 1, 64)),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("part", "unit"), [(float32, 2**-24), (float64, 2**-53)], ids=["float32", "float64"])
@pytest.mark.parametrize("op", ["fourier_step"])
def test_steps(op: str, part: DType, unit: float, form: tuple[int, int, int, int]) -> None:
    lines, points, rest, behind = form
    x = RANDOM.normal(size=(*form, 2)).astype(part.numpy)
    operand = input_node("x", TensorType(x.shape, part))
    result = TensorType((lines, rest, points, behind, 2), part)
    for reverse in (False, True):
        node = make_node(op, [operand], dict(reverse=reverse), result)
        (found,) = run_as_gpu(graph_of([operand], [node]), [x])
        z = x[..., 0].astype(np.longdouble) + 1j * x[..., 1]
        transform, norm = (scipy.fft.ifft, "forward") if reverse else (scipy.fft.fft, "backward")
        turns = np.outer(np.arange(points), np.arange(rest))[:, :, None] / np.longdouble(points * rest)
        sign = np.longdouble(1 if reverse else -1) * 8 * np.arctan(np.longdouble(1))
        expected = np.swapaxes(transform(z, axis=1, norm=norm) * np.exp(1j * sign * turns), 1, 2)
        error = np.linalg.norm(found[..., 0] + 1j * found[..., 1] - expected)
        assert error <= unit * np.log2(points) * np.linalg.norm(expected)


@pytest.mark.parametrize("form", [(2, 1024, 1, 1), (1, 512, 24, 1), (2, 128, 3, 8), (1, 512, 1, 40), (1, 768, 12, 3)])
@pytest.mark.parametrize("op", ["fourier_step"])
def test_parts_that_are_exchanged_one_after_the_other(op: str, form: tuple[int, int, int, int]) -> None:
    """512 points and 768, as 32·24, of which the numbers of 16 lines do not fit; those of 128 do."""
    lines, points, rest, behind = form
    profile = backend_with(kind="gpu").profile
    shape = shape_of(points, lines * rest * behind, rest * behind > 1, float32, profile)
    assert shape.apart == (points in (512, 768))
    test_steps(op, float32, 2**-24, form)


def test_numbers_are_read_whole_beneath_reshapes() -> None:
    graph = """
        graph (x: f32[8,4096,2]) {
          %0 = reshape(x) : f32[8,64,64,1,2]
          %1 = fourier_step(%0) reverse=false : f32[8,64,64,1,2]
          return %1
        }
    """
    main = main_of(dispatch_of(graph, GENERIC_GPU))
    assert main.count("vec2 v") == main.count("Numbers(p0)") + main.count("= held[") + main.count("lx_unit_root(") > 8


@pytest.mark.parametrize(("shape", "axis"), [((2, 1 << 14), 1), ((40, 50, 6), 1), ((2, 3000), 1)])
def test_lines(shape: tuple[int, ...], axis: int) -> None:
    z = (RANDOM.normal(size=shape) + 1j * RANDOM.normal(size=shape)).astype(np.complex64)
    operand = input_node("x", TensorType(shape, complex64))
    graph = graph_of([operand], [make_node("fft", [operand], dict(axis=axis, reverse=False))])
    (found,) = run_as_gpu(graph, [z])
    expected = np.fft.fft(z.astype(np.complex128), axis=axis)
    assert np.linalg.norm(found - expected) <= 2**-24 * np.log2(shape[axis]) * np.linalg.norm(expected)
