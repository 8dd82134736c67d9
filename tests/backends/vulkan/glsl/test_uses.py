"""What shaders use is recorded while they are written. Here it is found in their text, and must be the same."""
from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from lavax.backends.vulkan.glsl.accesses import reference_declarations
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.glsl.uses import Uses
from lavax.backends.vulkan.plan.plan import BINDINGS, Shader
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.ir import Graph
from lavax.passes.simplify import simplify
from lavax.shaders_glsl import elementary_functions
from tests.backends.vulkan.emit.emission import dispatches_of
from tests.operation_cases import all_cases, cases_of
from tests.random_graphs import random_graph

OPERATIONS = sorted({case.op for case in all_cases()})
# Each name that a shader may use, how it is declared, and how it is referred to.
EXTENSIONS = {
    "GL_EXT_shader_8bit_storage": r"\b[IU]8(x4u?)?\(",
    "GL_EXT_shader_16bit_storage": r"\b[IU]16(x4u?)?\(",
    "GL_EXT_control_flow_attributes": r"\[\[unroll\]\]",
    "GL_KHR_shader_subgroup_ballot": r"\bsubgroupBallot",
    "GL_KHR_cooperative_matrix": r"\bcoopmat<",
}


def shaders_of(graph: Graph) -> Iterator[Shader]:
    for profile in (CPU_DRIVER, GENERIC_GPU):
        if profile.float64 or not any(node.dtype.name == "f64" for node in (*graph.inputs, *graph.nodes)):
            for eager in (True, False):
                yield from (dispatch.shader for dispatch in dispatches_of(graph, profile, eager=eager))


def assert_recorded(shader: Shader) -> None:
    """All that the text refers to is declared, and nothing else is."""
    declarations, body = _parts(shader.source)
    declared = re.findall(r"buffer ([FIU]\d\w*) \{", declarations)
    assert set(declared) == set(re.findall(r"\b([FIU](?:8|16|32|64)(?:x[24]u?)?)\(", body))
    for name, use in EXTENSIONS.items():
        assert (name in declarations) == bool(re.search(use, body)), name
    forms = "|".join(form for form in BINDINGS if not form.startswith("shifted"))
    seen = dict.fromkeys(re.findall(rf"\b({forms})(\d+)\b", body))
    assert shader.bindings == tuple((form, int(slot)) for form, slot in seen)
    assert shader.doubles == bool(re.search(r"\b(double|dvec4)\b", body))
    called = set(re.findall(r"\b(lx_\w+)\(", body))
    assert called <= elementary_functions().keys()


def _parts(source: str) -> tuple[str, str]:
    """Extensions and types with the descriptors, and the functions with main."""
    of_arrays = re.compile(r"^layout\(.*(\{ .* data\[\]; \}|u(?:sampler|image)Buffer).*;$", re.MULTILINE)
    descriptors = list(of_arrays.finditer(source))
    end = descriptors[-1].end() if descriptors else source.index("void main()")
    return source[:end], source[end:]


@pytest.mark.parametrize("least", [4, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("op", OPERATIONS)
def test_the_record_of_an_operations_shaders_is_what_stands_in_them(op: str, least: int) -> None:
    """Of some cases, which lie far apart: neighbours differ in a dtype or a size. At most of every fourth."""
    cases = cases_of(op)
    for case in cases[:: max(4, len(cases) // least)]:
        for shader in shaders_of(simplify(case.graph)):
            assert_recorded(shader)


def test_the_record_of_random_graphs_shaders_is_what_stands_in_them() -> None:
    for seed in range(20):
        for shader in shaders_of(simplify(random_graph(seed)[0])):
            assert_recorded(shader)


def test_what_is_recorded_is_declared_and_nothing_else() -> None:
    uses = Uses()
    line = f"{uses.reference('f32')}(p0).data[0] = {uses.function('lx_exp')}({uses.reference('i8')}(p1).data[0]);"
    shader = assemble(ShaderText(uses, [line]))
    assert_recorded(shader)
    assert reference_declarations({"F32", "I8"}) in shader.source
    assert "float lx_exp(" in shader.source and "vec4 lx_exp(" in shader.source
    assert "read_four" not in shader.source and not shader.doubles
    with pytest.raises(AssertionError):
        assert_recorded(assemble(ShaderText(Uses(), [line])))


def test_an_access_brings_what_it_needs() -> None:
    uses = Uses()
    assert uses.access("read_four") == "read_four"
    assert uses.accesses == {"read_four", "low_bits"} and uses.references == {"U64"}


def test_parts_of_a_shader_are_written_by_several() -> None:
    whole, part = Uses(), Uses()
    part.function("lx_exp")
    part.descriptor("vectors", 3)
    whole.include(part)
    assert whole == part
