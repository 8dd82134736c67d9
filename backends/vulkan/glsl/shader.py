"""What every shader has around its body: header, arguments, the functions it calls, and its main."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR
from lavax.backends.vulkan.plan.plan import BINDINGS, MAX_WORDS
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.types import DTYPES
from lavax.shaders_glsl import elementary_functions, function_source

_HEADER = """#version 460
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
"""
_SUBGROUP = "#extension GL_KHR_shader_subgroup_shuffle : require\n"
_UNROLL = "#extension GL_EXT_control_flow_attributes : require\n"
_BALLOT = "#extension GL_KHR_shader_subgroup_ballot : require\n"
_COOPERATIVE = """#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_shader_subgroup_basic : require
"""
_INTRINSICS = "#extension GL_EXT_spirv_intrinsics : require\n"
# The profile's name of a promise about floats: capability and execution mode of SPIR-V's float controls, bits of the
# floats.
_FLOAT_CONTROLS = {
    "preserves_special_floats": (4466, 4461, 32),  # SignedZeroInfNanPreserve
    "preserves_special_doubles": (4466, 4461, 64),
    "preserves_denormals": (4464, 4459, 32),  # DenormPreserve
}
_DOUBLES = re.compile(r"\b(double|dvec4)\b")
_ARGUMENTS = """layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Table {
    uint64_t address[];
};
layout(push_constant, scalar) uniform Arguments { Table table; uint words[30]; };
"""
# name: scalar, vector of four, bytes of an element
_ELEMENTS = {
    "F32": ("float", "vec4", 4),
    "I32": ("int", "ivec4", 4),
    "U32": ("uint", "uvec4", 4),
    "F64": ("double", "dvec4", 8),
    "I64": ("int64_t", "i64vec4", 8),
    "U64": ("uint64_t", "u64vec4", 8),
    "I8": ("int8_t", "i8vec4", 1),
    "U8": ("uint8_t", "u8vec4", 1),
    "I16": ("int16_t", "i16vec4", 2),
    "U16": ("uint16_t", "u16vec4", 2),
}
# name, element, alignment: one element at a time, four aligned, four wherever they lie
_REFERENCES = {
    f"{prefix}{suffix}": (vector if suffix else scalar, align)
    for prefix, (scalar, vector, width) in _ELEMENTS.items()
    for suffix, align in (("", width), ("x4", min(4 * width, 16)), ("x4u", width))
}
# The two floats of 16 bits are there as bits.
_PREFIX = {name: name.upper() for name in DTYPES} | {"bool": "U32", "f16": "U16", "bf16": "U16"}
_STORAGE_EXTENSIONS = {
    "GL_EXT_shader_8bit_storage": re.compile(r"[IU]8\w*\("),
    "GL_EXT_shader_16bit_storage": re.compile(r"[IU]16\w*\("),
}
# Where an element stands that no array of its type begins with: at a position, by the element's bytes.
_BEHIND = """uint64_t behind(uint64_t address, int position, uint bytes) {
    return address + uint64_t(position) * bytes;
}
"""
# The word that an address lies in, and the bytes before it in that word.
_WORDS = """uint64_t word_of(uint64_t address) { return address & ~3ul; }
uint byte_of(uint64_t address) { return uint(address & 3ul); }
"""
# Elements that share a word are written by atomic operations, which leave their neighbours alone.
_PACKED = """uint read_packed(uint64_t address, uint width) {
    return bitfieldExtract(U32(word_of(address)).data[0], int(byte_of(address) * 8u), int(width));
}
void write_packed(uint64_t address, uint width, uint value) {
    uint shift = byte_of(address) * 8u, mask = ((1u << width) - 1u) << shift;
    atomicAnd(U32(word_of(address)).data[0], ~mask);
    atomicOr(U32(word_of(address)).data[0], (value << shift) & mask);
}
"""
# What becomes of that on devices without integers of 64 bits: addresses are pairs of words, under the same name.
_IN_PAIRS_OF_WORDS = {
    "#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require\n": (
        "#extension GL_EXT_buffer_reference_uvec2 : require\n#define uint64_t uvec2\n"
    ),
    _BEHIND: """uint64_t behind(uint64_t address, int position, uint bytes) {
    uint high, low, carry;
    umulExtended(uint(position), bytes, high, low);
    low = uaddCarry(address.x, low, carry);
    return uint64_t(low, address.y + high + carry);
}
""",
    _WORDS: """uint64_t word_of(uint64_t address) { return uint64_t(address.x & ~3u, address.y); }
uint byte_of(uint64_t address) { return address.x & 3u; }
""",
}
# A shader is given slots and then sizes. The last push constant says in which slot the array lies that has those for
# which there are no push constants, where there is one.
REST_WORD = MAX_WORDS - 1
# Drivers for processors make an access of all lanes one access a lane. Where nothing else is made of the index, LLVM
# computes each lane's address from the lane's index; else it computes 64-bit addresses of all lanes, and stores and
# reads back all of them for each lane, which takes three times as long. So arrays have indices of their own, though
# these are equal: bits are added that are 0 in every address, which the driver does not know.
_LOW_BITS = """int low_bits(uint64_t address) { return int(uint(address) & 3u); }
"""
WORD_BYTES = 4  # of the smallest elements that `low_bits` serves
# Four words as two of 64 bits: such drivers make a vector access one access a component, and so half as many.
_PAIRED = {
    "read_four": """uvec4 read_four(uint64_t address, int position) {
    int pair = 2 * position + low_bits(address);
    return uvec4(unpackUint2x32(U64(address).data[pair]), unpackUint2x32(U64(address).data[pair + 1]));
}
""",
    "write_four": """void write_four(uint64_t address, int position, uvec4 words) {
    int pair = 2 * position + low_bits(address);
    U64(address).data[pair] = packUint2x32(words.xy);
    U64(address).data[pair + 1] = packUint2x32(words.zw);
}
""",
    "read_unaligned_four": """uvec4 read_unaligned_four(uint64_t address, int position) {
    int first = position + low_bits(address);
    U32 array = U32(address);
    return uvec4(array.data[first], array.data[first + 1], array.data[first + 2], array.data[first + 3]);
}
""",
}
# What is seen through descriptors, and four texels of a word each.
_SEEN = re.compile(r"\b(vectors|elements|stores)(\d+)\b")
_FETCH_FOUR = """uvec4 fetch_four(usamplerBuffer words, int first) {
    return uvec4(texelFetch(words, first).x, texelFetch(words, first + 1).x, texelFetch(words, first + 2).x,
        texelFetch(words, first + 3).x);
}
"""
_CALL = re.compile(r"\b(lx_\w+)\(")
_SIGNATURE = re.compile(r"^(float|double|int|uint|int64_t|uint64_t|bool) (lx_\w+)\(([^)]*)\)", re.MULTILINE)
_IN_PAIRS = "lx_pair_settled("  # called by functions that compute in pairs of floats
_WIDE = {scalar: vector for scalar, vector, _ in _ELEMENTS.values()} | {"bool": "bvec4"}


def element_types(dtype_name: str) -> tuple[str, str]:
    """The GLSL types of an element of a buffer of this dtype, and of four."""
    scalar, vector, _ = _ELEMENTS[_PREFIX[dtype_name]]
    return scalar, vector


def reference(dtype_name: str, suffix: str = "") -> str:
    """The GLSL reference type of a buffer of this dtype: "" one element, "x4" four aligned, "x4u" four unaligned."""
    return _PREFIX[dtype_name] + suffix


def word(place: int) -> str:
    """The slot or size at that place of those that a shader is given."""
    if place < REST_WORD:
        return f"words[{place}]"
    return f"{reference('u32')}(table.address[words[{REST_WORD}]]).data[{place - REST_WORD}]"


@dataclass
class Parameters:
    """The sizes a shader gets when it runs, if it is to serve every shape: push constants behind `slots` slots.

    What finds no room there is read from an array, once, into names that `declarations` brings.
    """

    slots: int
    lifted: bool
    words: list[int] = field(default_factory=list)
    declarations: list[str] = field(default_factory=list)  # where the body's first statements are written

    def integer(self, value: int) -> str:
        """An integer of the shape at hand: a literal, or a size to be given where the shader serves every shape."""
        return str(value) if not self.lifted or -1 <= value <= 1 else self.unknown(value)

    def unknown(self, value: int) -> str:
        """An integer that the driver learns when the shader runs: it unrolls no loop that ends there."""
        place = self.slots + len(self.words)
        self.words.append(value & 0xFFFFFFFF)
        if place < REST_WORD:
            return f"int({word(place)})"
        name = f"size{place}"
        self.declarations.append(f"int {name} = int({word(place)});")
        return name


@dataclass(frozen=True)
class ShaderText:
    """The parts of a shader that differ from kernel to kernel."""

    main: list[str]
    local_size: tuple[int, int] = (1, 1)
    declarations: list[str] = field(default_factory=list)
    subgroup: bool = False
    pragma: str = ""


def assemble(text: ShaderText) -> str:
    """The whole shader."""
    body = "\n".join([*text.declarations, "void main() {", *(f"    {line}" for line in text.main), "}"]) + "\n"
    x, y = text.local_size
    storage = [f"#extension {name} : require\n" for name, used in _STORAGE_EXTENSIONS.items() if used.search(body)]
    extensions = (_SUBGROUP if text.subgroup else "") + (_UNROLL if "[[unroll]]" in body else "")
    extensions += _BALLOT if "subgroupBallot" in body else ""
    extensions += _COOPERATIVE if "coopmat<" in body else ""
    parts = [_HEADER + "".join(storage) + extensions + text.pragma]
    parts.append(f"layout(local_size_x = {x}, local_size_y = {y}) in;\n")
    paired = "".join(text for name, text in _PAIRED.items() if f"{name}(" in body)
    low_bits = _LOW_BITS if "low_bits(" in paired + body else ""
    packed = _WORDS + _PACKED if "_packed(" in body else ""
    accesses = low_bits + (_BEHIND if "behind(" in body else "") + packed + paired
    fetches = _FETCH_FOUR if "fetch_four(" in body else ""
    parts.append(_ARGUMENTS + _references(accesses + body) + _bindings(body) + accesses + fetches)
    called = {name for name in _CALL.findall(body) if name in elementary_functions()}
    functions = function_source(called)
    return "".join([*parts, functions, _vector_forms(called, functions), body])


def suited(source: str, profile: DeviceProfile) -> str:
    """The shader as the device is asked to run it: with exact floats, and with the addresses that it can compute."""
    if not profile.int64:
        for text, other in _IN_PAIRS_OF_WORDS.items():
            source = source.replace(text, other)
    return _with_strict_floats(source, profile)


def _with_strict_floats(source: str, profile: DeviceProfile) -> str:
    """The shader with the execution modes (SPIR-V float controls) that the device offers for exact floats.

    Without SignedZeroInfNanPreserve a driver may take it that no float is infinite or NaN: x - x is 0 then, and x * 0
    too. Without DenormPreserve it may take denormal numbers for zeros, in some operations and not in others.
    """
    extensions = 'extensions = ["SPV_KHR_float_controls"]'
    modes = [
        f"spirv_execution_mode({extensions}, capabilities = [{capability}], {mode}, {bits});\n"
        for promise, (capability, mode, bits) in _FLOAT_CONTROLS.items()
        if getattr(profile, promise) and (bits == 32 or _DOUBLES.search(source))
    ]
    return source.replace("\n", "\n" + "".join([_INTRINSICS, *modes]), 1) if modes else source


def _references(body: str) -> str:
    called = set(re.findall(r"(\w+)\(", body))
    used = [name for name in _REFERENCES if name in called]
    return "".join(
        f"layout(buffer_reference, scalar, buffer_reference_align = {_REFERENCES[name][1]}) "
        f"buffer {name} {{ {_REFERENCES[name][0]} data[]; }};\n"
        for name in used
    )


def _bindings(body: str) -> str:
    seen = dict.fromkeys(_SEEN.findall(body))
    return "".join(BINDINGS[form].format(binding=n, number=number) for n, (form, number) in enumerate(seen))


def _vector_forms(called: set[str], functions: str) -> str:
    """The called functions once more for vectors, component by component."""
    forms = []
    for result, name, parameters in _SIGNATURE.findall(functions):
        if name not in called:
            continue
        types = [parameter.split()[0] for parameter in parameters.split(",")]
        wide = ", ".join(f"{_WIDE[kind]} a{n}" for n, kind in enumerate(types))
        if _IN_PAIRS in function_source([name]):
            # A loop, since four copies of what loops itself would take the driver four times as long to compile.
            call = f"{name}({', '.join(f'a{n}[i]' for n in range(len(types)))})"
            loop = f"{_WIDE[result]} found; for (int i = 0; i < {VECTOR}; i++) found[i] = {call}; return found;"
            forms.append(f"{_WIDE[result]} {name}({wide}) {{ {loop} }}\n")
            continue
        calls = (f"{name}({', '.join(f'a{n}.{c}' for n in range(len(types)))})" for c in COMPONENTS[:VECTOR])
        forms.append(f"{_WIDE[result]} {name}({wide}) {{ return {_WIDE[result]}({', '.join(calls)}); }}\n")
    return "".join(forms)
