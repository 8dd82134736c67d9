"""Shaders for GPU drivers that compute floats in another order: products and sums may be fused, and nothing else."""
from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from lavax.backends.vulkan.compile.ordered_floats import ORDERED_FLOATS, with_ordered_floats
from lavax.backends.vulkan.compile.shader_compiler import compile_glsl, text_of_module
from lavax.backends.vulkan.compile.spirv import fault_of_module, instructions
from lavax.backends.vulkan.device import extensions
from lavax.backends.vulkan.device.extensions import FLOAT_CONTROLS_2, usable_extensions
from lavax.backends.vulkan.glsl.extensions import INTRINSICS, execution_mode
from lavax.ir import parse
from tests.backends.vulkan.run.execution import backend, backend_with, run

SOURCE = """#version 460
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Data { vec4 data[]; };
layout(set = 0, binding = 1) buffer Wide { double wide[]; };
void main() {
    vec4 x = data[0], y = data[1];
    precise vec4 kept = x * y;
    precise double product = wide[0] * wide[1];
    data[2] = (x + y) - x + kept;
    wide[2] = product + wide[0];
}
"""
_PRESERVED = SOURCE.replace("\n", "\n" + INTRINSICS + execution_mode(4466, 4461, 32), 1)
# Opcodes, and numbers of the extension.
_EXTENSION, _ENTRY, _MODE, _CAPABILITY, _FLOAT, _CONSTANT, _DECORATE, _MODE_WITH_NAMES = 10, 15, 16, 17, 22, 43, 71, 331
_PRODUCT = 133
_CONTRACT, _NORMAL_ONLY = 0x10000, 0x7
_DEFAULT = 6028


def _instructions(spirv: bytes) -> Iterator[tuple[int, ...]]:
    """Each instruction's opcode and operands."""
    for first, *operands in instructions(array("I", spirv)):
        yield first & 0xFFFF, *operands


def _operands(spirv: bytes, operation: int) -> list[tuple[int, ...]]:
    return [tuple(operands) for found, *operands in _instructions(spirv) if found == operation]


def _defaults(spirv: bytes) -> dict[int, int]:
    """What may be done with floats, by their width in bits."""
    widths = {type: width for type, width, *_ in _operands(spirv, _FLOAT)}
    values = {number: value for _, number, value, *_ in _operands(spirv, _CONSTANT)}
    modes = [operands[2:] for operands in _operands(spirv, _MODE_WITH_NAMES) if operands[1] == _DEFAULT]
    return {widths[type]: values[mask] for type, mask in modes}


def _decorated(spirv: bytes, decoration: int) -> dict[int, tuple[int, ...]]:
    """The results with that decoration, and what it says of them."""
    return {result: tuple(rest) for result, found, *rest in _operands(spirv, _DECORATE) if found == decoration}


@pytest.mark.parametrize(
    ("source", "singles", "doubles"), [(SOURCE, _NORMAL_ONLY, _NORMAL_ONLY), (_PRESERVED, 0, _NORMAL_ONLY)]
)
def test_operations_may_be_contracted_and_precise_ones_may_not(source: str, singles: int, doubles: int) -> None:
    """Special numbers count in the widths for which the shader asks for them; older requests are gone."""
    plain = compile_glsl(source)
    changed = with_ordered_floats(plain)
    assert fault_of_module(changed) is None
    assert _defaults(changed) == {32: _CONTRACT | singles, 64: _CONTRACT | doubles}
    doubled = {type for type, width, *_ in _operands(plain, _FLOAT) if width == 64}
    products = {result: type for type, result, *_ in _operands(plain, _PRODUCT)}
    precise, masks = _decorated(plain, 42), _decorated(changed, 40)
    assert len(products) == 2 and products.keys() < masks.keys() == precise.keys()
    for result, type in products.items():
        assert masks[result] == (doubles if type in doubled else singles,)
    assert not [mode for _, mode, *_ in _operands(changed, _MODE) if mode == 4461]
    assert not _decorated(changed, 42)


def test_what_is_added_stands_where_the_specification_wants_it() -> None:
    before = compile_glsl(SOURCE)
    plain, changed = (list(_instructions(spirv)) for spirv in (before, with_ordered_floats(before)))
    assert changed[0] == (_CAPABILITY, 6029)
    last = max(place for place, (operation, *_) in enumerate(changed) if operation == _CAPABILITY)
    name = np.array(changed[last + 1][1:], np.uint32).tobytes()
    assert changed[last + 1][0] == _EXTENSION and name.rstrip(b"\0") == b"SPV_KHR_float_controls2" and name[-1] == 0
    operations = [operation for operation, *_ in changed]
    modes = [place for place, (operation, *operands) in enumerate(changed) if operands[1:2] == [_DEFAULT]]
    assert [operations[place] for place in modes] == [_MODE_WITH_NAMES] * 2
    assert modes[0] == operations.index(_ENTRY) + 1 and modes[-1] < operations.index(_DECORATE)
    kept = [each for each in plain if each[0] != _DECORATE]
    assert [each for each in changed if each in kept] == kept, "all else is as it was"


def test_names_are_within_the_bound() -> None:
    before = compile_glsl(SOURCE)
    plain, changed = array("I", before), array("I", with_ordered_floats(before))
    assert changed[3] == plain[3] + 2
    assert {number for _, number, *_ in _operands(changed.tobytes(), _CONSTANT)} >= {plain[3], plain[3] + 1}


def test_a_shader_with_the_mark_is_changed_when_it_is_compiled() -> None:
    marked = SOURCE.replace("\n", "\n" + ORDERED_FLOATS, 1)
    assert compile_glsl(marked) == with_ordered_floats(compile_glsl(SOURCE))
    assert "OpEntryPoint GLCompute" in text_of_module(marked)


@pytest.mark.parametrize(("driver", "reorders"), [(3, True), (6, True), (13, True), (24, True), (4, False), (2, False)])
def test_the_extension_is_used_with_the_drivers_that_need_it(
    driver: int, reorders: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the number of the driver: Mesa's for AMD, Intel, processors and NVIDIA; not those of NVIDIA and AMD."""
    monkeypatch.setattr(extensions, "_names", lambda physical: {FLOAT_CONTROLS_2})
    monkeypatch.setattr(extensions, "_available", lambda physical, extension: set(extension.features))
    monkeypatch.setattr(extensions, "_driver", lambda physical: driver)
    assert (FLOAT_CONTROLS_2 in usable_extensions(None)) == reorders
    monkeypatch.setattr(extensions, "_available", lambda physical, extension: set())
    assert FLOAT_CONTROLS_2 not in usable_extensions(None)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_sums_and_differences_are_those_that_are_written(dtype: str) -> None:
    if not backend().profile.reorders_floats:
        pytest.skip("the driver does not know the extension")
    graph = parse(f"""
        graph (x: {dtype}[64], y: {dtype}[64]) {{
          %0 = add(x, y) : {dtype}[64]
          %1 = subtract(%0, x) : {dtype}[64]
          %2 = subtract(%0, y) : {dtype}[64]
          %3 = subtract(%0, %0) : {dtype}[64]
          return %1, %2, %3
        }}
    """)
    rng = np.random.default_rng(0)
    x, y = ((rng.normal(size=64) * scale).astype({"f32": "f", "f64": "d"}[dtype]) for scale in (1e4, 1))
    x[:3] = np.inf, -np.inf, np.nan
    found = run(graph, [x, y], device=backend_with(kind="gpu"))
    with np.errstate(invalid="ignore"):
        expected: tuple[Any, ...] = (x + y) - x, (x + y) - y, (x + y) - (x + y)
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got, want)
