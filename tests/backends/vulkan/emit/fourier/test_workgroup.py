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
from tests.backends.vulkan.emit.emission import assert_shader, dispatch_of
from tests.backends.vulkan.run.execution import run_as_gpu

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
        float v13 = v4.x + v7.x;
        float v14 = v4.y + v7.y;
        float v15 = v4.x - v7.x;
        float v16 = v4.y - v7.y;
        float v17 = v5.x + v8.x;
        float v18 = v5.y + v8.y;
        float v19 = v5.x - v8.x;
        float v20 = v5.y - v8.y;
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
        float v37 = v15 * 0.5 - v16 * (-0.8660254);
        float v38 = v15 * (-0.8660254) + v16 * 0.5;
        float v39 = v19 * (-0.5) - v20 * (-0.8660254);
        float v40 = v19 * (-0.8660254) + v20 * (-0.5);
        float v41 = v37 + v39;
        float v42 = v38 + v40;
        float v43 = v37 - v39;
        float v44 = v38 - v40;
        float v45 = v11 + v41 * 1.0;
        float v46 = v12 + v42 * 1.0;
        float v47 = v11 + v41 * (-0.5);
        float v48 = v12 + v42 * (-0.5);
        float v49 = v43 * (-0.8660254);
        float v50 = v44 * (-0.8660254);
        float v51 = v49;
        float v52 = v50;
        float v53 = v47 - v52;
        float v54 = v48 + v51;
        float v55 = v47 + v52;
        float v56 = v48 - v51;
        int v57 = block0_0 * 6;
        held[own_a * 34 + (v57 + 0) + (v57 + 0) / 16] = vec2(v25, v26);
        held[own_a * 34 + (v57 + 1) + (v57 + 1) / 16] = vec2(v45, v46);
        held[own_a * 34 + (v57 + 2) + (v57 + 2) / 16] = vec2(v33, v34);
        held[own_a * 34 + (v57 + 3) + (v57 + 3) / 16] = vec2(v53, v54);
        held[own_a * 34 + (v57 + 4) + (v57 + 4) / 16] = vec2(v35, v36);
        held[own_a * 34 + (v57 + 5) + (v57 + 5) / 16] = vec2(v55, v56);
        barrier();
        int own_l = invocation / 3;
        int member_l = invocation % 3;
        int place_l = min(group * 6 + own_l, 6 - 1);
        int block1_0 = member_l;
        vec2 v58 = held[own_l * 34 + (block1_0 + 0) + (block1_0 + 0) / 16];
        vec2 v59 = held[own_l * 34 + (block1_0 + 6) + (block1_0 + 6) / 16];
        vec2 v60 = held[own_l * 34 + (block1_0 + 12) + (block1_0 + 12) / 16];
        int v61 = block1_0 % 6;
        vec2 v62 = lx_unit_root(v61 * 1, 18);
        vec2 v63 = lx_unit_root(v61 * 2, 18);
        float v64 = v59.x * v62.x - v59.y * (-v62.y);
        float v65 = v59.x * (-v62.y) + v59.y * v62.x;
        float v66 = v60.x * v63.x - v60.y * (-v63.y);
        float v67 = v60.x * (-v63.y) + v60.y * v63.x;
        float v68 = v64 + v66;
        float v69 = v65 + v67;
        float v70 = v64 - v66;
        float v71 = v65 - v67;
        float v72 = v58.x + v68 * 1.0;
        float v73 = v58.y + v69 * 1.0;
        float v74 = v58.x + v68 * (-0.5);
        float v75 = v58.y + v69 * (-0.5);
        float v76 = v70 * (-0.8660254);
        float v77 = v71 * (-0.8660254);
        float v78 = v76;
        float v79 = v77;
        float v80 = v74 - v79;
        float v81 = v75 + v78;
        float v82 = v74 + v79;
        float v83 = v75 - v78;
        int block1_1 = member_l + 3;
        vec2 v84 = held[own_l * 34 + (block1_1 + 0) + (block1_1 + 0) / 16];
        vec2 v85 = held[own_l * 34 + (block1_1 + 6) + (block1_1 + 6) / 16];
        vec2 v86 = held[own_l * 34 + (block1_1 + 12) + (block1_1 + 12) / 16];
        int v87 = block1_1 % 6;
        vec2 v88 = lx_unit_root(v87 * 1, 18);
        vec2 v89 = lx_unit_root(v87 * 2, 18);
        float v90 = v85.x * v88.x - v85.y * (-v88.y);
        float v91 = v85.x * (-v88.y) + v85.y * v88.x;
        float v92 = v86.x * v89.x - v86.y * (-v89.y);
        float v93 = v86.x * (-v89.y) + v86.y * v89.x;
        float v94 = v90 + v92;
        float v95 = v91 + v93;
        float v96 = v90 - v92;
        float v97 = v91 - v93;
        float v98 = v84.x + v94 * 1.0;
        float v99 = v84.y + v95 * 1.0;
        float v100 = v84.x + v94 * (-0.5);
        float v101 = v84.y + v95 * (-0.5);
        float v102 = v96 * (-0.8660254);
        float v103 = v97 * (-0.8660254);
        float v104 = v102;
        float v105 = v103;
        float v106 = v100 - v105;
        float v107 = v101 + v104;
        float v108 = v100 + v105;
        float v109 = v101 - v104;
        int v110 = int(uint(place_l) % uint(3));
        vec2 v111 = lx_unit_root(block1_0 * v110, 54);
        vec2 v112 = lx_unit_root(v110 * 6, 54);
        vec2 v113 = lx_unit_root(v110 * 12, 54);
        float v114 = v72 * v111.x - v73 * (-v111.y);
        float v115 = v72 * (-v111.y) + v73 * v111.x;
        float v116 = v80 * v111.x - v81 * (-v111.y);
        float v117 = v80 * (-v111.y) + v81 * v111.x;
        float v118 = v82 * v111.x - v83 * (-v111.y);
        float v119 = v82 * (-v111.y) + v83 * v111.x;
        float v120 = v116 * v112.x - v117 * (-v112.y);
        float v121 = v116 * (-v112.y) + v117 * v112.x;
        float v122 = v118 * v113.x - v119 * (-v113.y);
        float v123 = v118 * (-v113.y) + v119 * v113.x;
        Numbers(p1).data[(block1_0 + place_l * 18)] = vec2(v114, v115);
        Numbers(p1).data[(block1_0 + place_l * 18 + 6)] = vec2(v120, v121);
        Numbers(p1).data[(block1_0 + place_l * 18 + 12)] = vec2(v122, v123);
        vec2 v124 = lx_unit_root(block1_1 * v110, 54);
        vec2 v125 = lx_unit_root(v110 * 6, 54);
        vec2 v126 = lx_unit_root(v110 * 12, 54);
        float v127 = v98 * v124.x - v99 * (-v124.y);
        float v128 = v98 * (-v124.y) + v99 * v124.x;
        float v129 = v106 * v124.x - v107 * (-v124.y);
        float v130 = v106 * (-v124.y) + v107 * v124.x;
        float v131 = v108 * v124.x - v109 * (-v124.y);
        float v132 = v108 * (-v124.y) + v109 * v124.x;
        float v133 = v129 * v125.x - v130 * (-v125.y);
        float v134 = v129 * (-v125.y) + v130 * v125.x;
        float v135 = v131 * v126.x - v132 * (-v126.y);
        float v136 = v131 * (-v126.y) + v132 * v126.x;
        Numbers(p1).data[(block1_1 + place_l * 18)] = vec2(v127, v128);
        Numbers(p1).data[(block1_1 + place_l * 18 + 6)] = vec2(v133, v134);
        Numbers(p1).data[(block1_1 + place_l * 18 + 12)] = vec2(v135, v136);
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
            assert shape.together * shape.row * number_bytes(part) <= limits.shared_memory_bytes
            assert np.prod(shape.radices) == points and shape.row >= points + points // shape.gap


def test_long_lines_take_few_steps() -> None:
    assert steps_of(2048, False, float32, GENERIC_GPU) == (2048,)
    assert list(steps_of(2048, True, float32, GENERIC_GPU)) == [64, 32]
    assert list(steps_of(256, True, float32, GENERIC_GPU)) == list(steps_of(256, True, float64, GENERIC_GPU)) == [256]
    counts = [len(steps_of(1 << bits, False, float32, GENERIC_GPU)) for bits in (12, 16, 20)]
    assert counts == [len(steps_of(1 << bits, False, float64, GENERIC_GPU)) for bits in (12, 16, 20)] == [2, 2, 3]


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


@pytest.mark.parametrize(("shape", "axis"), [((2, 1 << 14), 1), ((40, 50, 6), 1), ((2, 3000), 1)])
def test_lines(shape: tuple[int, ...], axis: int) -> None:
    z = (RANDOM.normal(size=shape) + 1j * RANDOM.normal(size=shape)).astype(np.complex64)
    operand = input_node("x", TensorType(shape, complex64))
    graph = graph_of([operand], [make_node("fft", [operand], dict(axis=axis, reverse=False))])
    (found,) = run_as_gpu(graph, [z])
    expected = np.fft.fft(z.astype(np.complex128), axis=axis)
    assert np.linalg.norm(found - expected) <= 2**-24 * np.log2(shape[axis]) * np.linalg.norm(expected)
