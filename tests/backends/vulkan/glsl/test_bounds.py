"""Every load and store stays inside its array: by intervals, or by a clamp that is written."""
from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from lavax.backends.vulkan.backend import VulkanBackend
from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.bounds import counting_accesses, inside, is_inside
from lavax.backends.vulkan.glsl.lanes import LANE
from lavax.backends.vulkan.glsl.shader import Parameters
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile
from lavax.ir import TensorType, float32, int32
from lavax.ir.graph import Graph, input_node
from lavax.passes.kernels.index import add, clamp, linear, lookup, remainder, variable
from tests.backends.vulkan.emit.test_small_devices import PROFILES, PROGRAMS, graph_of_program
from tests.fuzz.noise import IllConditionedError
from tests.fuzz.programs import program

X = input_node("x", TensorType((10,), float32))
DEVICES = {"cpu": CPU_DRIVER, "gpu": GENERIC_GPU, "small": PROFILES["nothing optional"]}
# Numbers of programs of the fuzzer, besides the programs that shaders are looked at of.
FUZZED = range(40)


def test_intervals_prove_what_is_inside() -> None:
    i = variable("i", 10)
    with counting_accesses() as counts:
        assert inside(i, 10) is i
        assert inside(remainder(add(i, 5), 10), 10).key == "(i+5)%10"
        assert inside(linear([(i, -1)], 9), 10).low == 0
        assert inside(clamp(add(i, -3), 0, 9), 10).low == 0
        assert inside(lookup(input_node("n", TensorType((), int32)), (), 10), 10).high == 9
    assert counts == Counter(proved=3, clamped=2)


@pytest.mark.parametrize("shift", [-1, 1])
def test_what_may_be_outside_is_clamped(shift: int) -> None:
    position = add(variable("i", 10), shift)
    with counting_accesses() as counts:
        held = inside(position, 10)
    assert is_inside(held, 10) and not is_inside(position, 10)
    assert counts == Counter(held=1)


def _loads(position_shift: int) -> list[str]:
    """What a load of four neighbours of ten elements is written as."""
    body = Body({X: "p0"}, Parameters(1, lifted=False))
    body.scopes[-1].variables |= {"i"}
    value = body.load_at(X, linear([(variable("i", 2), 4), (LANE, 1)], position_shift))
    return [*body.scopes[0].lines, value.text]


def test_of_a_load_of_four_only_what_may_be_outside_is_clamped() -> None:
    assert not any("clamp" in line for line in _loads(0))
    assert sum(line.count("clamp") for line in _loads(3)) == 1  # 4 i + 3 + 3, for i below 2
    assert sum(line.count("clamp") for line in _loads(6)) == 3  # the last is always the last element


def _graphs() -> list[Graph]:
    found = [graph_of_program(name, PROGRAMS[name][1]) for name in PROGRAMS]
    for number in FUZZED:
        try:
            found.append(program(number).graph)
        except IllConditionedError:
            continue
    return found


@pytest.mark.parametrize("profile", DEVICES.values(), ids=DEVICES)
def test_no_access_is_left_open(profile: DeviceProfile) -> None:
    """Proved or clamped as it is: today no position has to be held."""
    backend = VulkanBackend()
    backend.profile = replace(profile, int64=True, float64=True)
    backend.__dict__["_memory_bytes"] = 4 << 30
    with counting_accesses() as counts:
        for graph in _graphs():
            assert backend.lower(graph).plan is not None
    assert counts["neither"] == 0 and counts["held"] == 0
    assert counts["proved"] > 500 and counts["clamped"] > 50
