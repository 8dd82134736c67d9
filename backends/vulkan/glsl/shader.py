"""Whole shaders: header, arguments, the functions that are called, and main around a body."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace

from lavax.backends.vulkan.compile.exact_floats import EXACT_FLOATS
from lavax.backends.vulkan.compile.ordered_floats import ORDERED_FLOATS
from lavax.backends.vulkan.compile.rare_arguments import with_rare_arguments_apart
from lavax.backends.vulkan.glsl.accesses import (
    ACCESSES,
    BEHIND,
    EITHER,
    STORAGE_EXTENSIONS,
    WIDE,
    WORDS,
    reference_declarations,
)
from lavax.backends.vulkan.glsl.calls_apart import with_calls_apart
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR
from lavax.backends.vulkan.glsl.extensions import ADDRESSES_IN_INTEGERS, EXTENSIONS, HEADER, INTRINSICS, execution_mode
from lavax.backends.vulkan.glsl.long_bodies import with_fences
from lavax.backends.vulkan.glsl.own_halves import with_own_halves
from lavax.backends.vulkan.glsl.short_rounding import with_short_rounding
from lavax.backends.vulkan.glsl.uses import Uses
from lavax.backends.vulkan.plan.plan import BASE_WORD, BINDINGS, TEXEL_FORMS, Shader
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.shaders_glsl import ShaderFunction, functions_for

# The profile's name of a promise about floats: capability and execution mode of SPIR-V's float controls, bits.
_FLOAT_CONTROLS = {
    "preserves_special_floats": (4466, 4461, 32),  # SignedZeroInfNanPreserve
    "preserves_special_doubles": (4466, 4461, 64),
    "preserves_denormals": (4464, 4459, 32),  # DenormPreserve
}
# How drivers that compute floats in another order are kept from it. GPUs are to fuse products with sums.
_FLOATS_IN_ORDER = {"cpu": EXACT_FLOATS, "gpu": ORDERED_FLOATS}
_ARGUMENTS = """layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Table {
    uint64_t address[];
};
layout(push_constant, scalar) uniform Arguments { Table table; uint words[30]; };
"""
# Devices without 64-bit integers: addresses are pairs of words, under the same type name.
_IN_PAIRS_OF_WORDS = {
    ADDRESSES_IN_INTEGERS: "#extension GL_EXT_buffer_reference_uvec2 : require\n#define uint64_t uvec2\n",
    BEHIND: """uint64_t behind(uint64_t address, int position, uint bytes) {
    uint high, low, carry;
    umulExtended(uint(position), bytes, high, low);
    high -= position < 0 ? bytes : 0u;
    low = uaddCarry(address.x, low, carry);
    return uint64_t(low, address.y + high + carry);
}
""",
    EITHER: """uint64_t either(uint64_t otherwise, uint64_t chosen, bool condition) {
    return mix(otherwise, chosen, bvec2(condition));
}
""",
    WORDS: """uint64_t word_of(uint64_t address) { return uint64_t(address.x & ~3u, address.y); }
uint byte_of(uint64_t address) { return address.x & 3u; }
""",
}
# A shader gets slots, then sizes. If they do not all fit push constants, the last one of these is the slot of an array
# that has the rest. One more push constant is left for the part of a dispatch that is cut (`BASE_WORD`).
REST_WORD = BASE_WORD - 1
SPARE_WORDS = 8  # room for the sizes that a shader gets even if it serves one shape only (`Parameters.unknown`)
_IN_PAIRS = "lx_pair_settled"  # called by functions that compute in pairs of floats


def word(place: int, uses: Uses, has_rest: bool = True) -> str:
    """The slot or size of that number among those that a shader gets. `has_rest`: some of them may be in an array."""
    if place < REST_WORD or not has_rest:
        return f"words[{place}]"
    return f"{uses.reference('u32')}(table.address[words[{REST_WORD}]]).data[{place - REST_WORD}]"


@dataclass
class Parameters:
    """The sizes that a shader gets when it runs, if it is to serve every shape: push constants behind `slots` slots.

    Sizes that do not fit there are read from an array, once, into names that `declarations` declares.
    """

    slots: int
    lifted: bool
    only_counts: bool = False  # whether it serves any number of equal lines, but no other shape of a line
    uses: Uses = field(default_factory=Uses)  # of the whole shader
    words: list[int] = field(default_factory=list)
    declarations: list[str] = field(default_factory=list)  # where the body's first statements are written

    def integer(self, value: int) -> str:
        """An integer of the shape at hand: a literal, or a size to be given where the shader serves every shape."""
        return str(value) if self.only_counts else self.count(value)

    def count(self, value: int) -> str:
        """The same of a number of lines, or of elements of all lines."""
        return str(value) if not self.lifted or -1 <= value <= 1 else self.unknown(value)

    def unknown(self, value: int) -> str:
        """An integer that the driver learns when the shader runs, so that it unrolls no loop that ends there."""
        place = self.slots + len(self.words)
        self.words.append(value & 0xFFFFFFFF)
        if place < REST_WORD:
            return f"int({word(place, self.uses)})"
        name = f"size{place}"
        self.declarations.append(f"int {name} = int({word(place, self.uses)});")
        return name


@dataclass(frozen=True)
class ShaderText:
    """The parts of a shader that differ from kernel to kernel, and what they use."""

    uses: Uses
    main: list[str]
    local_size: tuple[int, int] = (1, 1)
    declarations: list[str] = field(default_factory=list)
    subgroup_size: int | None = None  # None: any will do
    shuffles: bool = False  # whether lanes of a subgroup exchange values
    pragma: str = ""


def assemble(text: ShaderText) -> Shader:
    """The whole shader."""
    uses, (x, y) = text.uses, text.local_size
    body = "\n".join([*text.declarations, "void main() {", *(f"    {line}" for line in text.main), "}"]) + "\n"
    descriptors = _in_order(uses.descriptors, body)
    functions = functions_for(uses.functions)
    parts = [
        HEADER + _extensions(text) + text.pragma,
        f"layout(local_size_x = {x}, local_size_y = {y}) in;\n",
        _ARGUMENTS,
        reference_declarations(uses.references),
        *(BINDINGS[form].format(binding=n, number=slot) for n, (form, slot) in enumerate(descriptors)),
        *(access.text for name, access in ACCESSES.items() if name in uses.accesses),
        "\n".join(function.text for function in functions),
        _vector_forms(function for function in functions if function.name in uses.functions),
        body,
    ]
    return Shader("".join(parts), (), text.subgroup_size, descriptors, uses.doubles)


def _extensions(text: ShaderText) -> str:
    used = set(text.uses.extensions)
    used |= {"shuffle"} if text.shuffles else set()
    used |= {extension for name, extension in STORAGE_EXTENSIONS.items() if name in _elements(text.uses)}
    return "".join(line for name, line in EXTENSIONS.items() if name in used)


def _elements(uses: Uses) -> set[str]:
    """The references' elements, whatever their number and alignment."""
    return {name.partition("x4")[0] for name in uses.references}


def _in_order(descriptors: Iterable[tuple[str, int]], body: str) -> tuple[tuple[str, int], ...]:
    """The descriptors that the body refers to, in its order: hoisting moves statements after their recording."""
    behind = {form: "," if form in TEXEL_FORMS else "." for form in BINDINGS}  # what follows: texels are arguments
    first = {(form, slot): body.find(f"{form}{slot}{behind[form]}") for form, slot in descriptors}
    return tuple(sorted((found for found in first if first[found] >= 0), key=first.__getitem__))


def suited(shader: Shader, profile: DeviceProfile) -> Shader:
    """The shader adapted to the device: with exact floats, and with addresses that it can compute."""
    source = with_own_halves(shader.source) if profile.exact_float16 else shader.source
    if profile.kind == "gpu" and profile.preserves_special_floats:
        source = with_short_rounding(source)
    source = with_calls_apart(source) if profile.kind == "cpu" else with_rare_arguments_apart(source)
    if not profile.int64:
        for text, other in _IN_PAIRS_OF_WORDS.items():
            source = source.replace(text, other)
    if profile.reorders_floats:
        if profile.kind == "cpu":  # such a driver's LLVM is a new one, too
            source = with_fences(source)
        source = source.replace("\n", "\n" + _FLOATS_IN_ORDER[profile.kind], 1)
    return replace(shader, source=_with_strict_floats(source, profile, shader.doubles))


def _with_strict_floats(source: str, profile: DeviceProfile, doubles: bool) -> str:
    """The shader with the execution modes (SPIR-V float controls) that the device offers for exact floats.

    Without SignedZeroInfNanPreserve a driver may assume that no float is infinite or NaN: then x - x is 0, and so is
    x * 0. Without DenormPreserve it may flush denormal numbers to zero, in some operations and not in others.
    """
    modes = [
        execution_mode(capability, mode, bits)
        for promise, (capability, mode, bits) in _FLOAT_CONTROLS.items()
        if getattr(profile, promise) and (bits == 32 or doubles)
    ]
    return source.replace("\n", "\n" + "".join([INTRINSICS, *modes]), 1) if modes else source


def _vector_forms(called: Iterable[ShaderFunction]) -> str:
    """The called functions once more for vectors, component by component."""
    return "".join(map(_vector_form, called))


def _vector_form(function: ShaderFunction) -> str:
    if function.result is None:
        return ""
    name, result = function.name, WIDE[function.result]
    wide = ", ".join(f"{WIDE[kind]} a{n}" for n, kind in enumerate(function.parameters))
    arguments = range(len(function.parameters))
    if any(needed.name == _IN_PAIRS for needed in functions_for([name])):
        # A loop, because four copies of a function that itself loops take the driver four times as long to compile.
        call = f"{name}({', '.join(f'a{n}[i]' for n in arguments)})"
        loop = f"for (int i = 0; i < {VECTOR}; i++) found[i] = {call};"
        return f"{result} {name}({wide}) {{ {result} found; {loop} return found; }}\n"
    calls = (f"{name}({', '.join(f'a{n}.{c}' for n in arguments)})" for c in COMPONENTS[:VECTOR])
    return f"{result} {name}({wide}) {{ return {result}({', '.join(calls)}); }}\n"
