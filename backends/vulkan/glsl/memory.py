"""The texts by which shaders read and write elements of arrays: by address or descriptor, one by one or four at once.

Memory holds bool and the floats of 16 bits as integers. `read` and `four` give elements as memory holds them, `as_read`
in the type that shaders compute in.
"""

from __future__ import annotations

from collections.abc import Sequence

from lavax.backends.vulkan.glsl import narrow_texels
from lavax.backends.vulkan.glsl.accesses import NARROW_VECTORS, WORD_BYTES, element_types
from lavax.backends.vulkan.glsl.expressions import VECTOR, type_name
from lavax.backends.vulkan.glsl.uses import Uses
from lavax.ir.types import DType, uint32

# Conversions of vectors of four 32-bit elements from words and to words.
_FROM_WORDS = {"vec4": "uintBitsToFloat", "ivec4": "ivec4", "uvec4": "uvec4"}
_TO_WORDS = {"vec4": "floatBitsToUint", "ivec4": "uvec4", "uvec4": "uvec4"}
# Conversions of an element from a word.
_FROM_WORD = {"float": "uintBitsToFloat", "int": "int", "uint": "uint"}


class Memory:
    """What is known of memory while a shader is written, and the accesses that follow from it."""

    def __init__(self, uses: Uses) -> None:
        self.uses = uses
        self.packed: frozenset[int] = frozenset()  # widths of elements that share 32-bit words
        self.paired = False  # whether two words of 64 bits are faster than four of 32
        self.stores_long_words = False  # the same of stores through descriptors
        # The arrays that are seen through descriptors: by address, the numbers in their names.
        self.read_descriptors: dict[str, int] = {}
        self.write_descriptors: dict[str, int] = {}
        self.changing: frozenset[int] = frozenset()  # the numbers of those that are written, too

    def element(self, dtype: DType, address: str, position: str) -> str:
        """An array's element as memory holds it; may be assigned to."""
        is_paired = self.paired and dtype.storage.itemsize >= WORD_BYTES
        own = f" + {self.uses.access('low_bits')}({address})" if is_paired else ""
        return f"{self.uses.reference(dtype.name)}({address}).data[{position}{own}]"

    def read(self, dtype: DType, address: str, position: str) -> str:
        """An array's element as memory holds it."""
        number = self.read_descriptors.get(address)
        if number is None:
            return self.element(dtype, address, position)
        if narrow_texels.is_narrow(dtype):
            return narrow_texels.one(self.uses, dtype, number, position)
        if dtype.name == "f64":
            texels = self.uses.descriptor("elements", number)
            return f"{self.uses.access('fetch_double')}({texels}, 4 * w{number} + 2 * ({position}))"
        return f"{_FROM_WORD[element_types(dtype.name)[0]]}({self._word(number, position)})"

    def loaded(self, dtype: DType, address: str, position: str) -> str:
        """The element at a position of an array in memory."""
        if dtype.bits not in self.packed:
            return self.as_read(self.read(dtype, address, position), 1, dtype)
        self.uses.access("packed")
        words = f"read_packed({self.element_address(dtype, address, position)}, {dtype.bits}u)"
        if dtype.is_float:
            return f"{self.uses.function(f'lx_{dtype.name}_from_bits')}({words})"
        return f"bitfieldExtract(int({words}), 0, {dtype.bits})" if dtype.kind == "int" else words

    def stored(self, dtype: DType, address: str, position: str, text: str, is_held: bool = False) -> str:
        """The statement that writes an element of an array in memory; `is_held` if the dtype holds it exactly."""
        if dtype.bits not in self.packed:
            return f"{self.element(dtype, address, position)} = {self.as_stored(text, 1, dtype, is_held)};"
        self.uses.access("packed")
        convert = self.uses.function(_to_bits(dtype, is_held)) if dtype.is_float else "uint"
        words = f"{convert}({text})"
        return f"write_packed({self.element_address(dtype, address, position)}, {dtype.bits}u, {words});"

    def four(self, dtype: DType, address: str, position: str) -> str:
        """Four aligned elements, as memory holds them."""
        number = self.read_descriptors.get(address)
        if number is not None and narrow_texels.is_narrow(dtype):
            return narrow_texels.four(self.uses, dtype, number, position)
        if number is not None and dtype.name == "f64":
            fetch = self.uses.access("fetch_four_doubles")
            return f"{fetch}({self.uses.descriptor('vectors', number)}, w{number} + 2 * ({position}))"
        if number is not None:
            form, fetch = ("fours", "imageLoad") if number in self.changing else ("vectors", "texelFetch")
            texel = f"{fetch}({self.uses.descriptor(form, number)}, w{number} + {position})"
            return f"{_FROM_WORDS[element_types(dtype.name)[1]]}({texel})"
        narrow = NARROW_VECTORS.get(dtype.storage.itemsize)
        if narrow is not None:
            elements = self.uses.access(narrow.signed if dtype.kind == "int" else narrow.elements)
            return f"{elements}({self.uses.reference('u32', narrow.suffix)}({address}).data[{position}])"
        if not self._is_paired(dtype):
            return f"{self.uses.reference(dtype.name, 'x4')}({address}).data[{position}]"
        words = f"{self.uses.access('read_four')}({address}, {position})"
        return f"{_FROM_WORDS[element_types(dtype.name)[1]]}({words})"

    def unaligned_four(self, dtype: DType, address: str, position: str) -> str:
        """Four elements from any position, as memory holds them."""
        number = self.read_descriptors.get(address)
        if number is not None:
            if narrow_texels.is_narrow(dtype):
                return narrow_texels.unaligned_four(self.uses, dtype, number, position)
            if dtype.name == "f64":
                parts = (self.read(dtype, address, f"{position} + {lane}") for lane in range(VECTOR))
                return f"dvec4({', '.join(parts)})"
            if number in self.changing:
                words = ", ".join(self._word(number, f"({position}) + {lane}") for lane in range(VECTOR))
                return f"{_FROM_WORDS[element_types(dtype.name)[1]]}(uvec4({words}))"
            fetch, elements = self.uses.access("fetch_four"), self.uses.descriptor("elements", number)
            texels = f"{fetch}({elements}, 4 * w{number} + {position})"
            return f"{_FROM_WORDS[element_types(dtype.name)[1]]}({texels})"
        if not self._is_paired(dtype):
            return f"{self.uses.reference(dtype.name, 'x4u')}({self.element_address(dtype, address, position)}).data[0]"
        words = f"{self.uses.access('read_unaligned_four')}({address}, {position})"
        return f"{_FROM_WORDS[element_types(dtype.name)[1]]}({words})"

    def _word(self, number: int, position: str) -> str:
        """A word of an array that is read through a descriptor."""
        form, fetch = ("ones", "imageLoad") if number in self.changing else ("elements", "texelFetch")
        return f"{fetch}({self.uses.descriptor(form, number)}, 4 * w{number} + {position}).x"

    def stored_four(self, dtype: DType, address: str, position: str, text: str) -> str:
        """The statement that writes four aligned elements, given as memory holds them."""
        number = self.write_descriptors.get(address)
        if number is not None and narrow_texels.is_narrow(dtype):
            return narrow_texels.stored_four(self.uses, dtype, number, position, text)
        if number is not None and dtype.name == "f64":
            at, halves = f"2 * ({position})", enumerate(("xy", "zw"))
            return " ".join(self.stored_doubles(number, f"{at} + {half}", f"{text}.{sides}") for half, sides in halves)
        if number is not None and self.stores_long_words:
            words = f"{self.uses.access('two_pairs')}({_TO_WORDS[element_types(dtype.name)[1]]}({text}))"
            return f"{self.uses.descriptor('quartets', number)}.data[w{number} + {position}] = {words};"
        if number is not None:
            words = f"{_TO_WORDS[element_types(dtype.name)[1]]}({text})"
            return f"{self.uses.descriptor('stores', number)}.data[w{number} + {position}] = {words};"
        narrow = NARROW_VECTORS.get(dtype.storage.itemsize)
        if narrow is not None:
            words = f"{self.uses.access(narrow.words)}({text})"
            return f"{self.uses.reference('u32', narrow.suffix)}({address}).data[{position}] = {words};"
        if not self._is_paired(dtype):
            return f"{self.uses.reference(dtype.name, 'x4')}({address}).data[{position}] = {text};"
        write = self.uses.access("write_four")
        return f"{write}({address}, {position}, {_TO_WORDS[element_types(dtype.name)[1]]}({text}));"

    def stored_doubles(self, number: int, position: str, text: str) -> str:
        """The statement that writes two doubles through the descriptor of that number; positions count pairs."""
        if self.stores_long_words:
            words = f"u64vec2(doubleBitsToUint64({text}))"
            return f"{self.uses.descriptor('quartets', number)}.data[w{number} + {position}] = {words};"
        words = f"{self.uses.access('words_of_doubles')}({text})"
        return f"{self.uses.descriptor('stores', number)}.data[w{number} + {position}] = {words};"

    def stored_two(self, number: int, position: str, text: str) -> str:
        """The statement that writes two floats through the descriptor of that number; positions count pairs."""
        words = f"floatBitsToUint({text})"
        if self.stores_long_words:
            return f"{self.uses.descriptor('longs', number)}.data[2 * w{number} + {position}] = packUint2x32({words});"
        return f"{self.uses.descriptor('pairs', number)}.data[2 * w{number} + {position}] = {words};"

    def element_address(self, dtype: DType, address: str, position: str) -> str:
        """The address of the element at a position of an array."""
        return f"{self.uses.access('behind')}({address}, {position}, {dtype.storage.itemsize}u)"

    def words_of_four(self, dtype: DType, text: str) -> str:
        """Four elements of up to 32 bits, given as memory holds them, as the words that hold them."""
        if not narrow_texels.is_narrow(dtype):
            return f"{_TO_WORDS[element_types(dtype.name)[1]]}({text})"
        return f"{self.uses.access(NARROW_VECTORS[dtype.storage.itemsize].words)}({text})"

    def four_of_words(self, dtype: DType, text: str) -> str:
        """The inverse of `words_of_four` for elements of 32 bits."""
        return f"{_FROM_WORDS[element_types(dtype.name)[1]]}({text})"

    def stored_words(self, address: str, position: str, fours: Sequence[Sequence[str]]) -> str:
        """The statement that writes words to an array that is seen through a descriptor: four, given in parts, or twice
        as many to an array that begins at a multiple of eight."""
        number, vectors = self.write_descriptors[address], [f"uvec4({', '.join(parts)})" for parts in fours]
        if len(vectors) == 1:
            return f"{self.uses.descriptor('stores', number)}.data[w{number} + {position}] = {vectors[0]};"
        eights, packed = self.uses.descriptor("eights", number), self.uses.access("eight_words")
        return f"{eights}.data[(w{number} >> 1) + {position}] = {packed}({', '.join(vectors)});"

    def stored_behind(self, address: str, position: str, words: str, shift: int) -> str:
        """The statement that writes four words so many words behind a multiple of four."""
        number = self.write_descriptors[address]
        return f"{self.uses.descriptor(f'shifted{shift}_', number)}.data[w{number} + {position}] = {words};"

    def as_read(self, text: str, width: int, dtype: DType) -> str:
        """An element of memory in the type that shaders compute in."""
        if dtype.kind == "bool":
            return f"({text} != 0u)" if width == 1 else f"notEqual({text}, uvec4(0u))"
        if dtype.bits >= 32:
            return text
        words = f"{type_name(dtype if dtype.is_integer else uint32, width)}({text})"
        return f"{self.uses.function(f'lx_{dtype.name}_from_bits')}({words})" if dtype.is_float else words

    def as_stored(self, text: str, width: int, dtype: DType, is_held: bool = False) -> str:
        """The inverse of `as_read`; `is_held` if the dtype holds the element exactly: it is not rounded again."""
        if dtype.bits >= 32:
            return text
        words = f"{self.uses.function(_to_bits(dtype, is_held))}({text})" if dtype.is_float else text
        return f"uvec4({words})" if width == VECTOR else f"{element_types(dtype.name)[0]}({words})"

    def _is_paired(self, dtype: DType) -> bool:
        return self.paired and element_types(dtype.name)[1] in _FROM_WORDS

def _to_bits(dtype: DType, is_held: bool) -> str:
    """The function that gives an element's bits."""
    return f"lx_{dtype.name}_held_to_bits" if is_held else f"lx_{dtype.name}_to_bits"
