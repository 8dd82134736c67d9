"""Elements of arrays that lie end to end: which array has an element is found first, and then it is one load.

An element of a concatenation would otherwise be read from the nearest place in each of its arrays and selected. Here
addresses, strides and offsets are selected. They depend on the coordinate along the concatenation alone, so in a walk
along other axes they are found once. CPU drivers read texels, which know no addresses, and go the other way.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from lavax.backends.vulkan.glsl.accesses import NARROW_VECTORS, element_types
from lavax.backends.vulkan.glsl.bounds import is_inside, note
from lavax.backends.vulkan.glsl.expressions import VECTOR, type_name
from lavax.backends.vulkan.glsl.lanes import LANE_NAME, GlslValue, is_multiple, lane_step
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import INPUT, Node
from lavax.passes.kernels.index import (
    Atom,
    Index,
    Variable,
    add,
    constant,
    flatten,
    index_of,
    of_atom,
    substitute,
    variable,
)
from lavax.passes.kernels.reads import MOVES, READS, Coordinates, concatenate_starts, lies_end_to_end

if TYPE_CHECKING:
    from lavax.backends.vulkan.glsl.body import Body


_PAIR = 2 * VECTOR  # narrow elements that are one load


@dataclass(frozen=True)
class _Part:
    """An array that has the elements before `end` that the parts before it do not have: `offset` behind a position."""

    end: int
    array: Node
    position: Index  # in the variable "along", without a constant
    offset: int


@dataclass(frozen=True)
class _Parts:
    """What a concatenation is made of, by the coordinate along it; positions are in the shader's variables.

    Many parts have the same strides, so `positions` are few: that of each part is the one of its number.
    """

    along: Index
    parts: tuple[_Part, ...]
    positions: tuple[Index, ...]
    numbers: tuple[int, ...]

    @property
    def offsets(self) -> list[int]:
        """How far each part's element is behind the terms of its position."""
        of_position = [self.positions[number].constant for number in self.numbers]
        return [part.offset + offset for part, offset in zip(self.parts, of_position, strict=True)]

    @property
    def places(self) -> list[Index]:
        """The whole position of each part's element."""
        pairs = zip(self.numbers, self.offsets, strict=True)
        return [index_of(self.positions[number].terms, offset) for number, offset in pairs]

    @property
    def starts(self) -> list[int]:
        """The least that each part's element is behind the terms of its position that grow: where these are no less
        than 0, whatever the variables are."""
        shrinking = [min(index_of(position.terms, 0).low, 0) for position in self.positions]
        return [offset + shrinking[number] for offset, number in zip(self.offsets, self.numbers, strict=True)]

    @property
    def has_lanes(self) -> bool:
        return any(LANE_NAME in index.variables for index in (self.along, *self.positions))

    @property
    def variables(self) -> frozenset[str]:
        return self.along.variables.union(*(position.variables for position in self.positions))

    def at_lane(self, lane: int) -> _Parts:
        values = {LANE_NAME: constant(lane)}
        positions = tuple(substitute(position, values) for position in self.positions)
        return replace(self, along=substitute(self.along, values), positions=positions)

    def are_multiples(self, count: int) -> bool:
        """Whether positions are certainly multiples, but for offsets of all of them."""
        return all(factor % count == 0 for position in self.positions for _, factor in position.terms)


def element(body: Body, node: Node, at: Coordinates) -> GlslValue | None:
    """The element of a concatenation, or four, as one load; None if it is not to be read so."""
    memory = body.memory
    if not _may_choose(body, node):
        return None
    found = _parts_of(body, node, at)
    if found is None:
        return None
    for _ in found.parts:
        note("proved")
    if not found.has_lanes:
        return GlslValue(memory.loaded(node.dtype, *_place(body, found)), 1)
    if LANE_NAME in found.along.variables and not _is_whole(found):
        return None
    return _four(body, node, found)


def eight(body: Body, node: Node, first: Coordinates, second: Coordinates) -> tuple[str, str] | None:
    """The address and the position, in vectors of eight, of eight neighbours of 16 bits, given as two halves by lane;
    None if they are not next to each other in one of the arrays, which begins and ends with whole vectors."""
    if not _may_choose(body, node):
        return None
    halves = [_parts_of(body, node, at) for at in (first, second)]
    found, other = halves
    if found is None or other is None or not all(map(_continues, found.places, other.places)):
        return None
    lanes = found.at_lane(0)
    is_aligned = lanes.are_multiples(_PAIR) and not any(offset % _PAIR for offset in lanes.offsets)
    if not is_aligned or any(part.array in body.unaligned for part in found.parts):
        return None
    if LANE_NAME not in found.along.variables:
        is_whole = found.along == other.along
    else:
        ends = all(part.end % _PAIR == 0 for part in found.parts)
        is_whole = ends and is_multiple(lanes.along, _PAIR) and _continues(found.along, other.along)
    if not is_whole:
        return None
    for _ in found.parts:
        note("proved")
    # What all parts have in common is left to the position, so that loads at several distances share their address.
    common = max(lanes.starts[0], 0)
    parts = tuple(replace(part, offset=part.offset - common) for part in lanes.parts)
    address, position = _place(body, replace(lanes, parts=parts), _PAIR)
    return address, f"{position} + {body.parameters.integer(common // _PAIR)}" if common else position


def _continues(first: Index, second: Index) -> bool:
    """Whether four lanes are neighbours, and four others follow them."""
    return lane_step(first) == 1 and add(first, VECTOR) == second


def _may_choose(body: Body, node: Node) -> bool:
    """Whether an element of a concatenation may be one load of an address that is chosen."""
    memory = body.memory
    return not (memory.paired or body.parameters.lifted or node.dtype.bits in memory.packed) and lies_end_to_end(node)


def _four(body: Body, node: Node, found: _Parts) -> GlslValue:
    memory, dtype, first = body.memory, node.dtype, found.at_lane(0)
    if all(lane_step(position) == 1 for position in found.positions):
        aligned = first.are_multiples(VECTOR) and not any(offset % VECTOR for offset in first.offsets)
        if not aligned or any(part.array in body.unaligned for part in found.parts):
            text = memory.unaligned_four(dtype, *_place(body, first))
        else:
            text = _half_of_pair(body, node, first) or memory.four(dtype, *_place(body, first, VECTOR))
        return GlslValue(memory.as_read(text, VECTOR, dtype), VECTOR)
    lanes = [found.at_lane(lane) for lane in range(VECTOR)]
    starts = list(map(min, *(each.starts for each in lanes)))
    places = [_place(body, each, starts=starts) for each in lanes]
    if dtype.storage.itemsize < 4:
        texts = [memory.loaded(dtype, *place) for place in places]
        return GlslValue(f"{type_name(dtype, VECTOR)}({', '.join(texts)})", VECTOR)
    texts = [memory.read(dtype, *place) for place in places]
    return GlslValue(memory.as_read(f"{element_types(dtype.name)[1]}({', '.join(texts)})", VECTOR, dtype), VECTOR)


def _half_of_pair(body: Body, node: Node, first: _Parts) -> str | None:
    """Four narrow elements as memory holds them, out of eight that are one load, as in neighbours.py."""
    narrow = NARROW_VECTORS.get(node.dtype.storage.itemsize)
    halves = {offset % _PAIR for offset in first.offsets}
    if not body.loads_runs or narrow is None or len(halves) > 1 or not first.are_multiples(_PAIR):
        return None
    if any(part.array.type.size % _PAIR for part in first.parts):
        return None
    (behind,) = halves
    parts = tuple(replace(part, offset=part.offset - behind) for part in first.parts)
    address, position = _place(body, replace(first, parts=parts), _PAIR)
    words = f"{body.uses.reference('u32', narrow.pair[0])}({address}).data[{position}]"
    name = _named(body, first.variables, narrow.pair[1], words)
    elements = body.uses.access(narrow.signed if node.dtype.kind == "int" else narrow.elements)
    return f"{elements}({name}.{narrow.pair[2][behind // VECTOR]})"


def _is_whole(found: _Parts) -> bool:
    """Whether four lanes along the concatenation are in the same part."""
    ends = all(part.end % VECTOR == 0 for part in found.parts[:-1])
    base = substitute(found.along, {LANE_NAME: constant(0)})
    return ends and lane_step(found.along) == 1 and is_multiple(base, VECTOR)


# -- which parts, and where in them -------------------------------------------------------------------------------


def _parts_of(body: Body, node: Node, at: Coordinates) -> _Parts | None:
    axis = node.attrs["axis"]
    parts = body.once(node, at, lambda: _all_parts(node, at))
    if parts is None or not all(body.is_in_memory(part.array) for part in parts):
        return None
    along = body.real(at[axis])
    if along.reads_array or not is_inside(along, node.shape[axis]):
        return None
    values = {_along(0): along}
    positions = {part.position: body.real(substitute(part.position, values)) for part in parts}
    numbers = {position: number for number, position in enumerate(positions)}
    return _Parts(along, parts, tuple(positions.values()), tuple(numbers[part.position] for part in parts))


def _all_parts(node: Node, at: Coordinates) -> tuple[_Part, ...] | None:
    """The parts of a concatenation at coordinates; None if they are not to be chosen from. Those of one array are one
    read at a computed place (passes/kernels/runs.py)."""
    axis = node.attrs["axis"]
    count = node.shape[axis]
    parts = _leaves(node, (*at[:axis], variable(_along(0), count), *at[axis + 1 :]), count, 0)
    if parts is None or len({part.array for part in parts}) < 2 or any(part.position.reads_array for part in parts):
        return None
    return tuple(parts)


def _along(depth: int) -> str:
    return f"along {depth}"


def _leaves(node: Node, at: Coordinates, end: int, depth: int) -> list[_Part] | None:
    """The parts of a value by the variable "along" of that depth, which is less than `end`; None if their positions do
    not move on by the same number wherever they begin, or further parts are along another axis."""
    name = _along(depth)
    while node.op in MOVES:
        ((node, at),) = READS[node.op](node, at)
    if node.op == INPUT:
        whole = flatten(at, node.shape)
        part = _Part(end, node, index_of(whole.terms, 0), whole.constant)
        return [part] if is_inside(whole, node.type.size) else None
    axis, found = node.attrs["axis"], []
    if at[axis].names != (name,):
        return None
    (through, factor), *others = at[axis].terms
    if others or factor != 1 or not isinstance(through, Variable):
        return None
    for operand, start in zip(node.operands, concatenate_starts(node), strict=True):
        behind = start - at[axis].constant
        low, high = max(through.low - behind, 0), min(through.high - behind, operand.shape[axis] - 1)
        if low > high:
            continue
        inner = of_atom(Variable(low, high, _along(depth + 1)))
        parts = _leaves(operand, (*at[:axis], inner, *at[axis + 1 :]), high + 1, depth + 1)
        if parts is None:
            return None
        for part in parts:
            moved = _moved_on(part.position, inner, behind)
            if moved is None:
                return None
            position = substitute(part.position, {_along(depth + 1): of_atom(through)})
            offset = part.offset + position.constant - moved
            found.append(_Part(part.end + behind, part.array, index_of(position.terms, 0), offset))
    return found


def _moved_on(position: Index, along: Index, behind: int) -> int | None:
    """How much further a position is where its variable is greater by a number, if that is so everywhere: heads of 64
    elements that lie apart are as far from those of the 16 heads before."""
    further = substitute(position, {name: add(along, behind) for name in along.names})
    more = further.constant - position.constant
    return more if further == add(position, more) else None


# -- texts ----------------------------------------------------------------------------------------------------------


def _place(body: Body, found: _Parts, count: int = 1, starts: Sequence[int] = ()) -> tuple[str, str]:
    """The address of the array that has an element, and the position from there, in vectors of `count`. The address
    includes what no variable changes in the position, but as little that the rest is never negative: compilers refuse
    a number that is, and SPIR-V gives others no meaning. Of several elements `starts` are the least of that, by array.
    """
    starts, offsets = starts or found.starts, found.offsets
    addresses = [_moved(body, part.array, start) for part, start in zip(found.parts, starts, strict=True)]
    address = _chosen(body, found, "uint64_t", addresses)
    terms = []
    for atom in {atom.key: atom for position in found.positions for atom, _ in position.terms}.values():
        factors = [body.parameters.integer(_factor(position, atom) // count) for position in found.positions]
        factor = _chosen(body, found, "int", [factors[number] for number in found.numbers])
        text = body.index(of_atom(atom))
        terms.append(text if factor == "1" else f"{text} * {factor}")
    behind = [(offset - start) // count for offset, start in zip(offsets, starts, strict=True)]
    if any(behind) or not terms:
        terms.append(_chosen(body, found, "int", list(map(body.parameters.integer, behind))))
    return address, f"({' + '.join(terms)})"


def _moved(body: Body, array: Node, offset: int) -> str:
    """The address of the array's element at a position, which may lie outside."""
    address, size = body.addresses[array], array.dtype.storage.itemsize
    return f"{body.uses.access('behind')}({address}, {offset}, {size}u)" if offset else address


def _factor(position: Index, atom: Atom) -> int:
    return next((factor for of, factor in position.terms if of is atom or of.key == atom.key), 0)


def _chosen(body: Body, found: _Parts, kind: str, texts: Sequence[str]) -> str:
    """One of the texts, by the part that has the element, with a name if they differ."""
    choice = body.uses.access("either") if kind == "uint64_t" else "mix"
    pairs = zip((part.end for part in found.parts), texts, strict=True)
    runs = [(text, max(end for end, _ in run)) for text, run in groupby(pairs, key=itemgetter(1))]
    chosen: str = runs[-1][0]
    if len(runs) == 1:
        return chosen
    along = body.index(substitute(found.along, {LANE_NAME: constant(0)}))
    for text, end in reversed(runs[:-1]):
        chosen = f"{choice}({chosen}, {text}, {along} < {body.parameters.integer(end)})"
    return _named(body, found.along.variables, kind, chosen)


def _named(body: Body, variables: frozenset[str], kind: str, text: str) -> str:
    """The name of a value in the outermost block that knows the variables, written once there."""
    for scope in body.scopes:
        if text in scope.atoms:
            return scope.atoms[text]
    scope = body.scope_for(variables)
    scope.atoms[text] = body.declare(scope, kind, text)
    return scope.atoms[text]
