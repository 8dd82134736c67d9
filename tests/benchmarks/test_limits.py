"""The hand-written kernels: each compiles by itself, and each form of each computes what NumPy does."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lavax as lx
from benchmarks.limits.kernels import FOLDER, KERNELS
from benchmarks.peers.numpy import NumpyLibrary
from benchmarks.workloads import workloads_for
from lavax.backends.vulkan.compile.shader_compiler import compile_glsl
from lavax.backends.vulkan.device.device import get_device
from lavax.backends.vulkan.run.program import Program

# Shapes of arguments, small ones of the form that each kernel is for.
SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "elementwise": ((2048 + 32,), (2048 + 32,)),
    "softmax": ((24, 96),),
    "layer-norm": ((24, 96), (96,), (96,)),
    "matmul-256": ((32, 24), (24, 128)),
    "attention": ((2, 16, 3, 32),) * 3,
}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.comp")), ids=lambda path: path.name)
def test_every_file_compiles_on_its_own(path: Path) -> None:
    assert compile_glsl(path.read_text(encoding="utf-8"))


def test_every_kernel_is_tested() -> None:
    assert {kernel.file for kernel in KERNELS.values()} == {KERNELS[name].file for name in SHAPES}


@pytest.mark.parametrize("name", SHAPES)
def test_every_form_computes_what_numpy_does(name: str) -> None:
    if lx.default_device().kind != "cpu":
        pytest.skip("written for the subgroups of CPU drivers")
    generator = np.random.default_rng(1)
    arguments = [generator.normal(size=shape).astype(np.float32) for shape in SHAPES[name]]
    workload = next(w for w in workloads_for(False) if w.name == name)
    expected = workload.define(NumpyLibrary())(*(argument.astype(np.float64) for argument in arguments))
    device = get_device()
    buffers = [device.transfer.upload(argument) for argument in arguments]
    for plan in KERNELS[name].plans(arguments):
        (result,) = Program(device, plan)(*buffers)
        found = device.transfer.download(result, plan.results[0].nbytes).view(np.float32).reshape(expected.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
