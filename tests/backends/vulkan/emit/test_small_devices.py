"""The smallest devices: shaders keep within what Vulkan 1.3 promises, and need no feature that it does not."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.backend import VulkanBackend
from lavax.backends.vulkan.compile.shader_compiler import compile_glsl
from lavax.backends.vulkan.glsl.launch import steps_of_stride
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble, suited
from lavax.backends.vulkan.glsl.uses import Uses
from lavax.backends.vulkan.plan.plan import Dispatch, Plan, Result
from lavax.backends.vulkan.plan.profile import GENERIC_GPU, DeviceProfile
from lavax.backends.vulkan.run.program import Program
from lavax.base.errors import DtypeError
from lavax.ir import Graph, parse
from lavax.passes.simplify import remove_stop_gradient
from tests.backends.vulkan.run.execution import assert_agrees, backend_with

# What every device with Vulkan 1.3 has: "Required Limits" of the specification, and no feature that is optional.
_LIMITS: dict[str, Any] = dict(shared_memory_bytes=16384, max_workgroup_invocations=128)
_FEATURES = dict.fromkeys(
    (
        *("subgroup_shuffle", "subgroup_ballot", "preserves_special_floats"),
        *("preserves_special_doubles", "preserves_denormals", "float16", "exact_float16", "int64", "float64"),
        *("int8", "int16", "storage_8bit", "storage_16bit", "memory_model"),
    ),
    False,
)


def with_lanes(lanes: int, **changes: Any) -> DeviceProfile:
    sizes = dict(subgroup_size=lanes, min_subgroup_size=lanes, max_subgroup_size=lanes)
    return replace(GENERIC_GPU, **{**_LIMITS, **sizes, **changes})


PROFILES = {
    "nothing optional": with_lanes(16, **_FEATURES),
    "lanes 8": with_lanes(8),
    "lanes 64": with_lanes(64),
    "a small board": with_lanes(16, max_workgroup_invocations=256, int64=False),
}


def attention(q: Any, k: Any, v: Any) -> Any:
    return lx.nn.dot_product_attention(q, k, v, is_causal=True)


def attention_gradients(q: Any, k: Any, v: Any) -> Any:
    return lx.grad(lambda *operands: lnp.sum(attention(*operands) ** 2), argnums=(0, 1, 2))(q, k, v)


def layer(x: Any, w: Any) -> Any:
    return lx.value_and_grad(lambda w: lnp.mean(lx.nn.gelu(lx.nn.standardize(x @ w)) ** 2))(w)


def decompositions(x: Any) -> Any:
    square = x.T @ x + lnp.eye(x.shape[1])
    return lnp.linalg.cholesky(square), lnp.linalg.eigh(square), lnp.linalg.qr(x), lnp.linalg.inv(square)


def rows(x: Any) -> Any:
    return lx.nn.softmax(x), lnp.argmax(x, axis=1), lnp.sum(x, axis=0), lnp.cumsum(x, axis=1), lnp.transpose(x) + 1


def columns(x: Any) -> Any:
    """Many results of one walk, each of which member invocations of a row group exchange."""
    return [lnp.sum(lnp.sin(x + number), axis=0) for number in range(12)]


def sorts(x: Any) -> Any:
    return lnp.sort(x, axis=1), lnp.argsort(x, axis=0), lnp.top_k(x, 5)


def scatters(table: Any, places: Any, updates: Any) -> Any:
    return table.at[places].add(updates), table.at[places % 7].max(updates)


def recurrence(x: Any, w: Any) -> Any:
    """Arrays that move from turn to turn, kept for the gradient, and a loop that ends by its data."""

    def total(w: Any) -> Any:
        def step(state: Any, row: Any) -> Any:
            state = lnp.tanh(state @ w + row)
            return state, state[1:]

        last, kept = lx.scan(step, x[0], x)
        return lnp.sum(last) + lnp.sum(kept**2)

    halved = lx.while_loop(lambda state: lnp.max(lnp.abs(state)) > 0.1, lambda state: state / 2, x)
    return lx.grad(total)(w), halved


def narrow(x: Any) -> Any:
    small = (x * 9).astype("int8")
    return small + small[::-1], x.astype("float16").T * 2, x.astype("bfloat16")[:, 1:], x > 0


def draws(key: Any) -> Any:
    return lx.random.normal(key, (33, 5)), lx.random.permutation(key, 700)


# What is traced; shapes (of floats, if nothing else is said) for a look at the shaders, and for results on the device.
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]] = {
    "product": (lambda a, b: a @ b, ((4096, 4096), (4096, 4096)), ((60, 70), (70, 50))),
    "transposed product": (lambda a, b: a.T @ b, ((512, 512), (512, 512)), ((64, 40), (64, 36))),
    "odd product": (lambda a, b: a @ b, ((511, 509), (509, 513)), ((31, 29), (29, 33))),
    "vector": (lambda a, b: (a @ b, b @ a), ((2048, 2048), (2048,)), ((50, 50), (50,))),
    "attention": (attention_gradients, ((2, 1024, 4, 64),) * 3, ((1, 9, 1, 8),) * 3),
    "wide attention": (attention, ((1, 256, 2, 256),) * 3, ((1, 5, 1, 256),) * 3),
    "layer": (layer, ((512, 1024), (1024, 2048)), ((40, 24), (24, 36))),
    "rows": (rows, ((64, 32768),), ((6, 700),)),
    "columns": (columns, ((4096, 1024),), ((90, 12),)),
    "transposes": (lambda x, y: lnp.exp(x.T) + y.T, ((512, 512), (512, 512)), ((12, 8), (12, 8))),
    "sorts": (sorts, ((600, 5000),), ((3, 700),)),
    "scatters": (scatters, ((50000, 8), ((1 << 16,), "int32"), (1 << 16, 8)), ((700, 3), ((900,), "int32"), (900, 3))),
    "decompositions": (decompositions, ((128, 96),), ((9, 6),)),
    "recurrence": (recurrence, ((40, 64), (64, 64)), ((6, 5), (5, 5))),
    "narrow": (narrow, ((300, 70),), ((11, 7),)),
    "draws": (draws, (((2,), "uint32"),), (((2,), "uint32"),)),
}


def operand_type(described: Any) -> tuple[tuple[int, ...], str]:
    return described if isinstance(described[-1], str) else (described, "float32")


def graph_of_program(name: str, described: tuple[Any, ...]) -> Graph:
    types = (lx.ShapeDtype(*operand_type(each)) for each in described)
    return remove_stop_gradient(lx.trace(PROGRAMS[name][0])(*types))


def lowered(graph: Graph, profile: DeviceProfile) -> list[Dispatch]:
    backend = VulkanBackend()
    backend.profile = profile
    return list(backend.lower(graph).plan.dispatches)


# Shader, GroupNonUniform and PhysicalStorageBufferAddresses.
_ALWAYS_THERE = {1, 61, 5347}
_BYTES = {"float": 4, "int": 4, "uint": 4, "real": 4, "real4": 16, "vec4": 16, "ivec4": 16, "uvec4": 16, "uint64_t": 8}


def shared_bytes(source: str) -> int:
    """What a shader declares of shared memory."""
    names = dict(re.findall(r"^#define (\w+) (\d+)$", source, re.MULTILINE))
    names["LOCAL"] = str(prod(local_size(source)))
    kinds = dict(re.findall(r"^#define (\w+) ([a-z]\w*)$", source, re.MULTILINE))
    total = 0
    for kind, extents in re.findall(r"^shared (\w+) \w+((?:\[\w+\])*);", source, re.MULTILINE):
        count = prod(int(names.get(extent, extent)) for extent in re.findall(r"\w+", extents))
        total += _BYTES[kinds.get(kind, kind)] * count
    assert total or "\nshared " not in source
    return total


def local_size(source: str) -> tuple[int, int]:
    x, y = re.findall(r"local_size_[xy] = (\d+)", source)
    return int(x), int(y)


def capabilities(source: str) -> set[int]:
    """The capabilities that a shader declares, as SPIR-V numbers them: OpCapability, 17, has two words."""
    words = np.frombuffer(compile_glsl(source), np.uint32)
    return {int(second) for first, second in pairwise(words[5:]) if first == (2 << 16) | 17}


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_shaders_keep_within_the_limits(name: str, profile: DeviceProfile) -> None:
    for dispatch in lowered(graph_of_program(name, PROGRAMS[name][1]), profile):
        source, size = dispatch.shader.source, local_size(dispatch.shader.source)
        assert prod(size) <= profile.max_workgroup_invocations
        assert shared_bytes(source) <= profile.shared_memory_bytes
        assert size[0] % (dispatch.shader.subgroup_size or 1) == 0
        for feature in ("shuffle", "ballot"):
            assert f"GL_KHR_shader_subgroup_{feature}" not in source or getattr(profile, f"subgroup_{feature}")


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_with_nothing_optional(name: str) -> None:
    device = backend_with(kind="gpu", **_LIMITS, **_FEATURES)
    graph = graph_of_program(name, PROGRAMS[name][2])
    draw = np.random.default_rng(len(name))
    arrays = [
        (draw.integers(0, 700, node.shape) if node.dtype.is_integer else draw.normal(size=node.shape)).astype(
            node.dtype.numpy
        )
        for node in graph.inputs
    ]
    sources = {dispatch.shader.source for dispatch in device.lower(graph).plan.dispatches}
    assert set.union(*map(capabilities, sources)) <= _ALWAYS_THERE
    assert_agrees(graph, arrays, device=device, ulps=2000.0 if name == "decompositions" else 64.0)


def test_addresses_in_pairs_of_words_carry() -> None:
    """Where arrays lie is not for tests to choose: those that begin below 4 GiB and end above are made up."""
    cases = [(0xFFFFFFF0, 7, 4, 4), (0x10, 0, 0x7FFFFFFF, 8), (0xFFFFFFFF, 1, 1, 1), (0x80000000, 3, 1 << 30, 2)]
    cases += [(0x10, 7, (1 << 32) - 3, 8), (0x80000000, 3, (1 << 32) - 1, (1 << 32) - 4)]  # back, as two's complements
    uses = Uses()
    word, four, behind = uses.reference("u32"), uses.reference("u32", "x4"), uses.access("behind")
    lines = [
        "int i = int(gl_WorkGroupID.x);",
        f"uvec4 given = {four}(table.address[words[0]]).data[i];",
        f"uint64_t found = {behind}(uint64_t(given.x, given.y), int(given.z), given.w);",
        f"{word}(table.address[words[1]]).data[2 * i] = found.x;",
        f"{word}(table.address[words[1]]).data[2 * i + 1] = found.y;",
    ]
    shader = suited(assemble(ShaderText(uses, lines)), PROFILES["nothing optional"])
    dispatch = Dispatch(shader, (0, 1), (), (len(cases), 1, 1), False, "behind")
    given = np.array(cases, np.uint32)
    device = backend_with(kind="gpu").device
    plan = Plan((given.nbytes,), (Result(8 * len(cases), None),), (), (), 0, (dispatch,))
    (result,) = Program(device, plan)(device.transfer.upload(given))
    found = device.transfer.download(result, 8 * len(cases)).view(np.uint64)
    signed = [(low + (high << 32), int(np.int32(np.uint32(position))), width) for low, high, position, width in cases]
    assert found.tolist() == [address + position * width for address, position, width in signed]


def test_long_strides_are_sums_of_words() -> None:
    for stride in (0, 4, (1 << 31) - 4, 1 << 31, (5 << 31) + 12):
        steps = steps_of_stride(stride)
        assert sum(steps) == stride and all(0 < step < 1 << 32 for step in steps)


def test_a_subgroup_size_is_known_where_it_is_named_or_alone() -> None:
    several = replace(GENERIC_GPU, min_subgroup_size=8)
    assert several.knows_subgroup_size
    assert not replace(several, names_subgroup_size=False).knows_subgroup_size
    assert replace(GENERIC_GPU, names_subgroup_size=False).knows_subgroup_size
    assert not replace(GENERIC_GPU, subgroup_size=64).knows_subgroup_size


def test_subgroups_are_full_where_pipelines_cannot_name_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    device = backend_with(kind="gpu")
    if device.profile.min_subgroup_size != device.profile.max_subgroup_size:
        pytest.skip("shaders have subgroups of several sizes")
    graph = graph_of_program("rows", ((6, 1300),))
    assert any(dispatch.shader.subgroup_size for dispatch in device.lower(graph).plan.dispatches)
    monkeypatch.setattr(device.device.pipelines, "names_subgroup_size", False)
    assert_agrees(graph, [np.random.default_rng(0).normal(size=(6, 1300)).astype(np.float32)], device=device)


def test_integers_of_64_bits_are_refused_where_the_device_has_none() -> None:
    graph = parse("graph (x: u64[3]) {\n  %0 = add(x, x) : u64[3]\n  return %0\n}")
    with pytest.raises(DtypeError, match=r"generic GPU has no uint64 \(shaderInt64\): use uint32"):
        lowered(graph, PROFILES["a small board"])
