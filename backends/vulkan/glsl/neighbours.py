"""Neighbours in memory that are one load, whether they are asked for together or one after the other.

Vectors are put together of components of others that are read anyway; single elements of 32 bits, and vectors of narrow
ones, are parts of longer runs. Each function gives None where the elements are not read so.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from lavax.backends.vulkan.glsl.accesses import FROM_WORDS, NARROW_VECTORS, WORD_BYTES, WORD_RUNS
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR, type_name
from lavax.backends.vulkan.glsl.lanes import LANE, LANE_NAME, GlslValue, is_multiple, quotient_exact
from lavax.ir.graph import Node
from lavax.ir.types import DType, float32, float64
from lavax.passes.kernels.index import Index, add, constant, linear, lookups_of, substitute

if TYPE_CHECKING:
    from lavax.backends.vulkan.glsl.body import Body

NUMBER_TYPES = {float32: "vec2", float64: "dvec2"}  # of a complex number with parts of a dtype


def joined(body: Body, node: Node, position: Index) -> GlslValue | None:
    """Four elements, most of which are components of vectors that are read anyway; None if they are not."""
    if not body.aligned_reads:
        return None
    places = [substitute(position, {LANE_NAME: constant(number)}) for number in range(VECTOR)]
    vectors = [(add(place, -(place.constant % VECTOR)), place.constant % VECTOR) for place in places]
    keys = [(node, linear([(base, 1), (LANE, 1)]).key) for base, _ in vectors]
    if not any(key in body.aligned_reads for key in keys):
        return None
    texts = []
    for key, (_, number), place in zip(keys, vectors, places, strict=True):
        if key in body.aligned_reads:
            texts.append(f"{body.load_once(node, body.aligned_reads[key]).text}.{COMPONENTS[number]}")
        else:
            texts.append(body.load_once(node, place).text)
    return GlslValue(f"{type_name(node.dtype, VECTOR)}({', '.join(texts)})", VECTOR)


def within_vector(body: Body, node: Node, position: Index) -> str | None:
    """Four elements, some of them twice, as components of one vector that a descriptor gives, as both parts of a
    complex number need each part of its factors; None if they are not."""
    address = body.addresses[node]
    if address not in body.memory.read_descriptors or node in body.unaligned or node.type.size % VECTOR:
        return None
    places = [substitute(position, {LANE_NAME: constant(number)}) for number in range(VECTOR)]
    starts = {start.key: start for start in (add(place, -(place.constant % VECTOR)) for place in places)}
    (start, *others) = starts.values()
    if others or not is_multiple(start, VECTOR) or node.dtype.storage.itemsize < WORD_BYTES:
        return None
    vector = body.memory.four(node.dtype, address, body.index(quotient_exact(start, VECTOR)))
    return f"{vector}.{''.join(COMPONENTS[place.constant % VECTOR] for place in places)}"


def half_of_pair(body: Body, node: Node, base: Index) -> str | None:
    """Four narrow elements as memory holds them, out of eight that are one load; None if they are not read so."""
    pair, narrow = 2 * VECTOR, NARROW_VECTORS.get(node.dtype.storage.itemsize)
    start = add(base, -(base.constant % pair))
    if not body.loads_runs or narrow is None or node.type.size % pair or not is_multiple(start, pair):
        return None
    suffix, vector, halves = narrow.pair
    words = _words_of_run(body, node, start, pair, suffix, vector)
    elements = body.uses.access(narrow.signed if node.dtype.kind == "int" else narrow.elements)
    return f"{elements}({words}.{halves[base.constant % pair // VECTOR]})"


def element_of_run(body: Body, node: Node, position: Index) -> str | None:
    """An element of 32 bits out of four or two neighbours that are one load; None if it is not read so."""
    from_words = FROM_WORDS.get(node.dtype.name)
    if not body.loads_runs or from_words is None or node in body.unaligned:
        return None
    for count, suffix, vector in WORD_RUNS:
        start = add(position, -(position.constant % count))
        if node.type.size % count == 0 and start.variables and is_multiple(start, count):
            words = _words_of_run(body, node, start, count, suffix, vector)
            return from_words.format(f"{words}.{COMPONENTS[position.constant % count]}")
    return None


def part_of_number(body: Body, node: Node, position: Index) -> str | None:
    """A part of a complex number that a descriptor gives whole; None if it is not read so."""
    slot = body.memory.read_descriptors.get(body.addresses[node])
    start = add(position, -(position.constant % 2))
    is_part = body.loads_numbers and slot is not None and node.type.size % 2 == 0 and is_multiple(start, 2)
    if slot is None or not is_part or node.dtype not in NUMBER_TYPES or slot in body.memory.changing:
        return None
    scope = body.scope_for(start.variables, lookups_of(start))
    if (node, start) not in scope.runs:
        number = number_at(body, node.dtype, slot, body.index(quotient_exact(start, 2)))
        scope.runs[node, start] = body.declare(scope, NUMBER_TYPES[node.dtype], number)
    return f"{scope.runs[node, start]}.{COMPONENTS[position.constant % 2]}"


def number_at(body: Body, dtype: DType, slot: int, position: str) -> str:
    """The complex number at a position of those that a descriptor's array has, as a vector of its parts."""
    if dtype == float64:
        fetch = body.uses.access("fetch_two_doubles")
        return f"{fetch}({body.uses.descriptor('vectors', slot)}, w{slot} + {position})"
    texel = f"texelFetch({body.uses.descriptor('couples', slot)}, 2 * w{slot} + {position})"
    return f"uintBitsToFloat({texel}.xy)"


def _words_of_run(body: Body, node: Node, start: Index, count: int, suffix: str, vector: str) -> str:
    """The words, or vectors of narrow elements, that begin at a multiple of `count` elements, as one load."""
    scope = body.scope_for(start.variables, lookups_of(start))
    if (node, start) not in scope.runs:
        position = body.index(quotient_exact(start, count))
        text = f"{body.uses.reference('u32', suffix)}({body.addresses[node]}).data[{position}]"
        scope.runs[node, start] = body.declare(scope, vector, text)
    return scope.runs[node, start]
