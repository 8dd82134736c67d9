"""How few shaders a training step of a transformer takes on a CPU driver, where each takes long to compile."""
from __future__ import annotations

import re

import pytest

import lavax as lx
from benchmarks.peers.lavax import LavaxLibrary
from benchmarks.workloads import workloads_for
from tests.backends.vulkan.run.execution import backend


# the workload, and the most shaders: of contractions, and of all
@pytest.mark.parametrize(("name", "contractions", "most"), [("gpt-step", 4, 26), ("transformer-step", 5, 15)])
def test_contractions_share_shaders(name: str, contractions: int, most: int) -> None:
    if backend().profile.kind != "cpu":
        pytest.skip("GPUs have schedules of their own")
    workload = next(workload for workload in workloads_for(False) if workload.name == name)
    lowered = lx.compile(workload.define(LavaxLibrary())).lower(*workload.arguments())
    kinds = dict(re.findall(r"^kernel (k\d+) kind=(\w+)", lowered.as_text("kernels"), re.MULTILINE))
    _, *parts = re.split(r"^// (k\d+)$", lowered.as_text("glsl"), flags=re.MULTILINE)
    shaders = [(kinds[kernel], text.strip()) for kernel, text in zip(parts[::2], parts[1::2], strict=True)]
    assert not any("attention" in line for line in lowered.as_text("kernels").splitlines())
    assert len({shader for kind, shader in shaders if kind == "contract"}) <= contractions
    assert len({shader for _, shader in shaders}) <= most
