"""How shaders address memory: types of elements and of references, and the functions that accesses go through."""

from __future__ import annotations

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import DTYPES

# name: scalar, vector of four, bytes per element
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
# name: element, alignment. One element at a time, four aligned ones, four at any position.
_REFERENCES = {
    f"{prefix}{suffix}": (vector if suffix else scalar, align)
    for prefix, (scalar, vector, width) in _ELEMENTS.items()
    for suffix, align in (("", width), ("x4", min(4 * width, 16)), ("x4u", width))
} | {"U32x2": ("uvec2", 8)}
# Elements of fewer than 32 bits need an extension.
STORAGE_EXTENSIONS = {"I8": "storage_8bit", "U8": "storage_8bit", "I16": "storage_16bit", "U16": "storage_16bit"}
# Memory holds the two 16-bit floats as bits.
_PREFIX = {name: name.upper() for name in DTYPES} | {"bool": "U32", "f16": "U16", "bf16": "U16"}
# The vector form of each scalar type.
WIDE = {scalar: vector for scalar, vector, _ in _ELEMENTS.values()} | {"bool": "bvec4"}
WORD_BYTES = 4  # the smallest elements that `low_bits` serves


@dataclass(frozen=True)
class Access:
    """A function that addresses memory: its GLSL, and the references and other accesses that it uses."""

    text: str
    references: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


# The address of an element at a position, by the element's bytes. It may be no multiple of the type's alignment.
BEHIND = """uint64_t behind(uint64_t address, int position, uint bytes) {
    return address + uint64_t(position) * bytes;
}
"""
# One of two addresses.
EITHER = """uint64_t either(uint64_t otherwise, uint64_t chosen, bool condition) {
    return mix(otherwise, chosen, condition);
}
"""
# The word that an address lies in, and the byte's number in that word.
WORDS = """uint64_t word_of(uint64_t address) { return address & ~3ul; }
uint byte_of(uint64_t address) { return uint(address & 3ul); }
"""
# CPU drivers turn one access by all lanes into one access per lane. If nothing else is computed from the index, LLVM
# derives each lane's address from that lane's index. Otherwise it computes the 64-bit addresses of all lanes, stores
# them, and reads all of them back for each lane, which takes three times as long. So every array gets an index of its
# own although the indices are equal: `low_bits` adds bits that are 0 in every address, which the driver cannot know.
_LOW_BITS = """int low_bits(uint64_t address) { return int(uint(address) & 3u); }
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
# Four words as two of 64 bits: CPU drivers access a vector component by component, so this halves the accesses.
_READ_FOUR = """uvec4 read_four(uint64_t address, int position) {
    int pair = 2 * position + low_bits(address);
    return uvec4(unpackUint2x32(U64(address).data[pair]), unpackUint2x32(U64(address).data[pair + 1]));
}
"""
_WRITE_FOUR = """void write_four(uint64_t address, int position, uvec4 words) {
    int pair = 2 * position + low_bits(address);
    U64(address).data[pair] = packUint2x32(words.xy);
    U64(address).data[pair + 1] = packUint2x32(words.zw);
}
"""
_READ_UNALIGNED_FOUR = """uvec4 read_unaligned_four(uint64_t address, int position) {
    int first = position + low_bits(address);
    U32 array = U32(address);
    return uvec4(array.data[first], array.data[first + 1], array.data[first + 2], array.data[first + 3]);
}
"""
# Four elements in two words or in one: drivers for GPUs access vectors of such elements one by one, which takes 2.5
# times as long.
_HALVES = """uvec4 halves_of(uvec2 words) {
    return uvec4(words.x & 0xffffu, words.x >> 16, words.y & 0xffffu, words.y >> 16);
}
"""
_BYTES = """uvec4 bytes_of(uint word) { return (uvec4(word) >> uvec4(0u, 8u, 16u, 24u)) & 0xffu; }
"""
_SIGNED_HALVES = """ivec4 signed_halves_of(uvec2 words) { return ivec4(words.xxyy << uvec4(16u, 0u, 16u, 0u)) >> 16; }
"""
_SIGNED_BYTES = """ivec4 signed_bytes_of(uint word) { return ivec4(uvec4(word) << uvec4(24u, 16u, 8u, 0u)) >> 24; }
"""
_FROM_HALVES = """uvec2 from_halves(uvec4 halves) { return (halves.xz & 0xffffu) | halves.yw << 16; }
"""
_FROM_BYTES = """uint from_bytes(uvec4 bytes) {
    uvec4 placed = (bytes & 0xffu) << uvec4(0u, 8u, 16u, 24u);
    return (placed.x | placed.y) | (placed.z | placed.w);
}
"""
# Four texels of a word each.
_FETCH_FOUR = """uvec4 fetch_four(usamplerBuffer words, int first) {
    return uvec4(texelFetch(words, first).x, texelFetch(words, first + 1).x, texelFetch(words, first + 2).x,
        texelFetch(words, first + 3).x);
}
"""
# An element out of a texel of a word, and four neighbours from any position out of as many words as they lie in.
_FETCH_HALF = """uint fetch_half(usamplerBuffer words, int first, int position) {
    return (texelFetch(words, first + (position >> 1)).x >> ((position & 1) << 4)) & 0xffffu;
}
"""
_FETCH_BYTE = """uint fetch_byte(usamplerBuffer words, int first, int position) {
    return (texelFetch(words, first + (position >> 2)).x >> ((position & 3) << 3)) & 0xffu;
}
"""
_FETCH_SIGNED_HALF = """int fetch_signed_half(usamplerBuffer words, int first, int position) {
    return int(texelFetch(words, first + (position >> 1)).x << ((~position & 1) << 4)) >> 16;
}
"""
_FETCH_SIGNED_BYTE = """int fetch_signed_byte(usamplerBuffer words, int first, int position) {
    return int(texelFetch(words, first + (position >> 2)).x << ((~position & 3) << 3)) >> 24;
}
"""
# The word that begins `shift` bits behind the beginning of the first of two.
_SHIFTED_WORD = """uint shifted_word(uint word, uint next, int shift) {
    return (word >> shift) | ((next << 1) << (31 - shift));
}
"""
_FETCH_HALVES = """uvec2 fetch_halves(usamplerBuffer words, int first, int position) {
    int at = first + (position >> 1), shift = (position & 1) << 4;
    uint middle = texelFetch(words, at + 1).x;
    return uvec2(shifted_word(texelFetch(words, at).x, middle, shift),
        shifted_word(middle, texelFetch(words, at + 2).x, shift));
}
"""
_FETCH_BYTES = """uint fetch_bytes(usamplerBuffer words, int first, int position) {
    int at = first + (position >> 2);
    return shifted_word(texelFetch(words, at).x, texelFetch(words, at + 1).x, (position & 3) << 3);
}
"""
# Doubles as words.
_FETCH_DOUBLE = """double fetch_double(usamplerBuffer words, int first) {
    return packDouble2x32(uvec2(texelFetch(words, first).x, texelFetch(words, first + 1).x));
}
"""
_FETCH_TWO_DOUBLES = """dvec2 fetch_two_doubles(usamplerBuffer fours, int position) {
    uvec4 words = texelFetch(fours, position);
    return dvec2(packDouble2x32(words.xy), packDouble2x32(words.zw));
}
"""
_FETCH_FOUR_DOUBLES = """dvec4 fetch_four_doubles(usamplerBuffer fours, int position) {
    return dvec4(fetch_two_doubles(fours, position), fetch_two_doubles(fours, position + 1));
}
"""
_WORDS_OF_DOUBLES = """uvec4 words_of_doubles(dvec2 two) {
    return uvec4(unpackDouble2x32(two.x), unpackDouble2x32(two.y));
}
"""
# Eight words as four of 64 bits, which a store writes lane by lane as fast as four words.
_FOUR_WORDS = """uvec4 four_words(uint64_t low, uint64_t high) {
    return uvec4(unpackUint2x32(low), unpackUint2x32(high));
}
"""
_TWO_PAIRS = """u64vec2 two_pairs(uvec4 words) { return u64vec2(packUint2x32(words.xy), packUint2x32(words.zw)); }
"""
_EIGHT_WORDS = """u64vec4 eight_words(uvec4 low, uvec4 high) {
    return u64vec4(packUint2x32(low.xy), packUint2x32(low.zw), packUint2x32(high.xy), packUint2x32(high.zw));
}
"""

# By the name that shaders call, in the order in which they are declared. `packed` stands for reading and writing.
ACCESSES: dict[str, Access] = {
    "low_bits": Access(_LOW_BITS),
    "behind": Access(BEHIND),
    "either": Access(EITHER),
    "packed": Access(WORDS + _PACKED, ("U32",)),
    "read_four": Access(_READ_FOUR, ("U64",), ("low_bits",)),
    "write_four": Access(_WRITE_FOUR, ("U64",), ("low_bits",)),
    "read_unaligned_four": Access(_READ_UNALIGNED_FOUR, ("U32",), ("low_bits",)),
    "fetch_four": Access(_FETCH_FOUR),
    "fetch_half": Access(_FETCH_HALF),
    "fetch_byte": Access(_FETCH_BYTE),
    "fetch_signed_half": Access(_FETCH_SIGNED_HALF),
    "fetch_signed_byte": Access(_FETCH_SIGNED_BYTE),
    "shifted_word": Access(_SHIFTED_WORD),
    "fetch_halves": Access(_FETCH_HALVES, needs=("shifted_word",)),
    "fetch_bytes": Access(_FETCH_BYTES, needs=("shifted_word",)),
    "fetch_double": Access(_FETCH_DOUBLE),
    "fetch_two_doubles": Access(_FETCH_TWO_DOUBLES),
    "fetch_four_doubles": Access(_FETCH_FOUR_DOUBLES, needs=("fetch_two_doubles",)),
    "eight_words": Access(_EIGHT_WORDS),
    "four_words": Access(_FOUR_WORDS),
    "two_pairs": Access(_TWO_PAIRS),
    "words_of_doubles": Access(_WORDS_OF_DOUBLES),
    "halves_of": Access(_HALVES),
    "bytes_of": Access(_BYTES),
    "signed_halves_of": Access(_SIGNED_HALVES),
    "signed_bytes_of": Access(_SIGNED_BYTES),
    "from_halves": Access(_FROM_HALVES),
    "from_bytes": Access(_FROM_BYTES),
}


@dataclass(frozen=True)
class NarrowVector:
    """How memory holds four aligned elements of fewer than 32 bits: the suffix of the reference to their words, the
    access that gives the elements, with their signs if they have any, and the one that gives the words.

    `pair` has the suffix of a reference to two of them, the type of their words, and the components of either.
    """

    suffix: str
    elements: str
    signed: str
    words: str
    pair: tuple[str, str, tuple[str, str]]


# By the elements' bytes.
NARROW_VECTORS = {
    2: NarrowVector("x2", "halves_of", "signed_halves_of", "from_halves", ("x4", "uvec4", ("xy", "zw"))),
    1: NarrowVector("", "bytes_of", "signed_bytes_of", "from_bytes", ("x2", "uvec2", ("x", "y"))),
}
# Neighbouring words that are one load: how many, the reference's suffix, and the vector.
WORD_RUNS = ((4, "x4", "uvec4"), (2, "x2", "uvec2"))
# An element out of the word that holds it, by the names of dtypes of 32 bits.
FROM_WORDS = {"f32": "uintBitsToFloat({})", "i32": "int({})", "u32": "{}"}


def element_types(dtype_name: str) -> tuple[str, str]:
    """The GLSL types of one element of a buffer of this dtype, and of four."""
    scalar, vector, _ = _ELEMENTS[_PREFIX[dtype_name]]
    return scalar, vector


def reference_name(dtype_name: str, suffix: str = "") -> str:
    """The type of a reference to a buffer of this dtype: see `Uses.reference`, which records its use."""
    return _PREFIX[dtype_name] + suffix


def reference_declarations(names: set[str]) -> str:
    """The declarations of these types of references."""
    return "".join(
        f"layout(buffer_reference, scalar, buffer_reference_align = {align}) buffer {name} {{ {element} data[]; }};\n"
        for name, (element, align) in _REFERENCES.items()
        if name in names
    )
