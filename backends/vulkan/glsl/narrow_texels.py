"""Arrays of elements of fewer than 32 bits that shaders see through descriptors, as the words that hold them."""

from __future__ import annotations

from lavax.backends.vulkan.glsl.accesses import NARROW_VECTORS
from lavax.backends.vulkan.glsl.uses import Uses
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import DType


@dataclass(frozen=True)
class NarrowTexels:
    """How a shader sees four neighbours: the form that reads their words, the component of a texel that these are, and
    the form that writes them; as many of these as a vector of words has. The accesses that read one element, one with a
    sign, and the words of four elements from any position.
    """

    reads: str
    component: str
    writes: str
    of_vector: int
    one: str
    signed: str
    unaligned: str


# By the elements' bytes.
_TEXELS = {
    2: NarrowTexels("couples", "xy", "pairs", 2, "fetch_half", "fetch_signed_half", "fetch_halves"),
    1: NarrowTexels("elements", "x", "singles", 4, "fetch_byte", "fetch_signed_byte", "fetch_bytes"),
}


def is_narrow(dtype: DType) -> bool:
    """Whether words hold several elements."""
    return dtype.storage.itemsize in _TEXELS


def four(uses: Uses, dtype: DType, number: int, position: str) -> str:
    """Four aligned elements of the array in that slot, as memory holds them."""
    texels = _TEXELS[dtype.storage.itemsize]
    at = f"{texels.of_vector} * w{number} + {position}"
    return _elements(uses, dtype, f"texelFetch({uses.descriptor(texels.reads, number)}, {at}).{texels.component}")


def unaligned_four(uses: Uses, dtype: DType, number: int, position: str) -> str:
    """Four elements from any position, as memory holds them."""
    fetch = uses.access(_TEXELS[dtype.storage.itemsize].unaligned)
    return _elements(uses, dtype, f"{fetch}({uses.descriptor('elements', number)}, 4 * w{number}, {position})")


def one(uses: Uses, dtype: DType, number: int, position: str) -> str:
    """An element, as memory holds it."""
    texels = _TEXELS[dtype.storage.itemsize]
    fetch = uses.access(texels.signed if dtype.kind == "int" else texels.one)
    return f"{fetch}({uses.descriptor('elements', number)}, 4 * w{number}, {position})"


def stored_four(uses: Uses, dtype: DType, number: int, position: str, text: str) -> str:
    """The statement that writes four aligned elements, given as memory holds them."""
    texels, pack = _TEXELS[dtype.storage.itemsize], NARROW_VECTORS[dtype.storage.itemsize].words
    stores = uses.descriptor(texels.writes, number)
    return f"{stores}.data[{texels.of_vector} * w{number} + {position}] = {uses.access(pack)}({text});"


def _elements(uses: Uses, dtype: DType, words: str) -> str:
    narrow = NARROW_VECTORS[dtype.storage.itemsize]
    return f"{uses.access(narrow.signed if dtype.kind == 'int' else narrow.elements)}({words})"
