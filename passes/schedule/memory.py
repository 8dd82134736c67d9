"""The offsets of temporaries in the arena, and the results that take over the memory of donated inputs."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from itertools import accumulate

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import INPUT, Node
from lavax.passes.fuse.extract import Piece
from lavax.passes.kernels.accesses import is_pointwise
from lavax.passes.target.target import ANY_DEVICE, Target

Lifetime = tuple[int, int]  # the first and the last phase in which a buffer is used


@dataclass(frozen=True)
class PackingLimits:
    """When buffers are packed by size, too, and when they lie over what they are computed from.

    Chosen by `python -m benchmarks models`.
    """

    waste: int = 256  # the arena may be larger than what is live at once by one part in so many
    small: int = 256  # buffers of less than one part in so many of what is live are packed by time
    overwritten: int = 1 << 20  # the fewest bytes of a buffer that is written over another


_PACKING = PackingLimits()
_Placement = tuple[dict[str, int], int]


def plan_arena(
    sizes: Mapping[str, int], lifetimes: Mapping[str, Lifetime], target: Target = ANY_DEVICE
) -> _Placement:
    """Offsets of the buffers, and the arena's size; buffers that are live in a common phase do not overlap.

    The arena may be several allocations, which end at multiples of the largest one: no buffer lies across such a
    multiple, unless it is the arena of a loop's body that needs several allocations itself; that one starts at a
    multiple.
    """
    alignment, block = target.alignment, target.largest_allocation
    aligned = {name: -(-max(sizes[name], 1) // alignment) * alignment for name in lifetimes}
    by_time = _packed_by_time(aligned, lifetimes, block)
    needed = _most_live(aligned, lifetimes)
    if by_time[1] - needed <= needed // _PACKING.waste:
        return by_time
    large = {name: aligned[name] for name in lifetimes if aligned[name] * _PACKING.small >= needed}
    by_size = _packed_by_size(large, lifetimes, block)
    others = {name: lifetime for name, lifetime in lifetimes.items() if name not in large}
    whole = _packed_by_time(aligned, others, block, by_size)
    return min(by_time, whole, key=lambda placement: placement[1])


def _most_live(sizes: Mapping[str, int], lifetimes: Mapping[str, Lifetime]) -> int:
    """The most bytes that are live in one phase: no arena is smaller."""
    changes: dict[int, int] = {}
    for name, (first, last) in lifetimes.items():
        changes[first] = changes.get(first, 0) + sizes[name]
        changes[last + 1] = changes.get(last + 1, 0) - sizes[name]
    return max(accumulate(changes[phase] for phase in sorted(changes)), default=0)


def _packed_by_size(sizes: Mapping[str, int], lifetimes: Mapping[str, Lifetime], block: int) -> _Placement:
    """Places the largest buffers first, each at the lowest offset that is free during its lifetime."""
    placed: list[tuple[int, int, int, int]] = []  # (offset, end, first phase, last phase), in order
    offsets: dict[str, int] = {}
    for name in sorted(sizes, key=lambda name: (-sizes[name], lifetimes[name], name)):
        first, last = lifetimes[name]
        offset = _within_block(0, sizes[name], block)
        for start, end, others_first, others_last in placed:
            if others_first <= last and first <= others_last and end > offset:
                if start >= offset + sizes[name]:
                    break
                offset = _within_block(end, sizes[name], block)
        offsets[name] = offset
        insort(placed, (offset, offset + sizes[name], first, last))
    return offsets, max((end for _, end, _, _ in placed), default=0)


def _packed_by_time(
    sizes: Mapping[str, int], lifetimes: Mapping[str, Lifetime], block: int, below: _Placement = ({}, 0)
) -> _Placement:
    """Places buffers in the order in which they become live, each in the lowest gap that holds it, above others."""
    offsets, total = dict(below[0]), below[1]
    alive: list[tuple[int, int, int]] = []  # a heap of (last phase, offset, end)
    gaps: list[tuple[float, float]] = [(total, math.inf)]  # (start, end) in order, none adjacent to another
    for name in sorted(lifetimes, key=lambda name: (lifetimes[name][0], -sizes[name], name)):
        first, last = lifetimes[name]
        while alive and alive[0][0] < first:
            _, start, end = heappop(alive)
            _give_back(gaps, start, end)
        offset = _take_lowest(gaps, sizes[name], block)
        end = offset + sizes[name]
        heappush(alive, (last, offset, end))
        offsets[name] = offset
        total = max(total, end)
    return offsets, total


def _take_lowest(gaps: list[tuple[float, float]], size: int, block: int) -> int:
    """Takes `size` bytes from the lowest gap that holds them within a block; the last gap has no end."""
    for position, (start, end) in enumerate(gaps):  # noqa: B007  # both are those of the gap that is found
        if end - start >= size:
            offset = _within_block(int(start), size, block)
            if offset + size <= end:
                break
    left = [(start, offset), (offset + size, end)]
    gaps[position : position + 1] = [(start, end) for start, end in left if start < end]
    return offset


def _within_block(start: int, size: int, block: int) -> int:
    """The first offset from `start` on at which the bytes lie within one block, or start one if they need several."""
    next_block = -(-start // block) * block
    return start if start + size <= next_block or start == next_block else next_block


def _give_back(gaps: list[tuple[float, float]], start: float, end: float) -> None:
    """Frees a range, and joins it with adjacent gaps."""
    position = bisect_left(gaps, (start, end))
    if position < len(gaps) and gaps[position][0] == end:
        end = gaps.pop(position)[1]
    if position and gaps[position - 1][1] == start:
        start = gaps.pop(position - 1)[0]
        position -= 1
    gaps.insert(position, (start, end))


def written_over(groups: Sequence[Sequence[Piece]], names: Mapping[Node, str]) -> dict[str, str]:
    """Maps large temporaries to those whose memory they take over.

    `groups` are the kernels, by dispatch and in order. A temporary is written over another one of as many bytes, which
    its kernel reads element by element, if no other kernel of this dispatch or a later one reads that. A chain of such
    temporaries maps to its first.
    """
    last_read = {node: number for number, group in enumerate(groups) for piece in group for node in piece.reads}
    first: dict[str, str] = {}
    taken: set[Node] = set()
    for number, group in enumerate(groups):
        read_twice = _read_twice(group)
        for piece in group if group[0].kind != "region" else ():
            ending = [read for read in piece.reads if last_read[read] == number and read not in read_twice]
            for written in (node for node in piece.writes if _is_large_temporary(node, names)):
                free = (read for read in ending if read not in taken and _is_large_temporary(read, names))
                alike = (read for read in free if _bytes_of(read) == _bytes_of(written))
                same = (read for read in alike if _goes_by_element(piece, read, written))
                found = next(same, None)
                if found is not None:
                    first[names[written]] = first.get(names[found], names[found])
                    taken.add(found)
    return first


def _read_twice(group: Sequence[Piece]) -> set[Node]:
    """The values that several kernels of a dispatch read."""
    counts = Counter(node for piece in group for node in set(piece.reads))
    return {node for node, count in counts.items() if count > 1}


def _is_large_temporary(node: Node, names: Mapping[Node, str]) -> bool:
    return node.op != INPUT and node.type.nbytes >= _PACKING.overwritten and names[node].startswith("%t")


def choose_donors(
    donated: Sequence[Node],
    results: Sequence[tuple[Node, Piece, int]],
    last_read: Mapping[Node, int],
    only: Mapping[Node, Node] | None,
) -> dict[Node, Node]:
    """Maps results to the donated inputs whose memory they take over.

    `results` gives each result with the piece that writes it and that piece's phase; `last_read` gives the last phase
    in which an input is read. A result may take an input's memory if it is written later. It may also be written in
    that phase, if the same piece is the only one that reads the input then, and does so element by element. With
    `only`, a result takes the input given there or none.
    """
    free: dict[tuple[int, int], _FreeInputs] = {}
    for donor in donated:
        free.setdefault(_bytes_of(donor), _FreeInputs(last_read)).add(donor)
    donors: dict[Node, Node] = {}
    for result, piece, phase in results:
        alike = free.get(_bytes_of(result))
        if alike is None or (only is not None and result not in only):
            continue
        taken = alike.take(result, piece, phase, None if only is None else only[result])
        if taken is not None:
            donors[result] = taken
    return donors


class _FreeInputs:
    """Donated inputs of as many bytes, in order, whose memory no result has taken yet."""

    def __init__(self, last_read: Mapping[Node, int]) -> None:
        self._last_read = last_read
        self._places: dict[Node, int] = {}  # in the order of donation
        self._nodes: list[Node] = []
        self._still_read: list[tuple[int, int]] = []  # a heap: the last phase, the place
        self._read: list[int] = []  # a heap of the places of those whose last phase is over

    def add(self, donor: Node) -> None:
        place = self._places[donor] = len(self._nodes)
        self._nodes.append(donor)
        heappush(self._still_read, (self._last_read.get(donor, -1), place))

    def take(self, result: Node, piece: Piece, phase: int, allowed: Node | None) -> Node | None:
        """The first input that this result may take, which is taken; `allowed` is the only one, if given."""
        if allowed is not None:
            possible = [allowed] if allowed in self._places else []
        else:
            possible = [read for read in dict.fromkeys(piece.reads) if read in self._places]
            first = self._first_read_before(phase)
            possible += [] if first is None else [first]
            possible.sort(key=self._places.__getitem__)
        found = next((donor for donor in possible if self._may_take(donor, result, piece, phase)), None)
        if found is not None:
            del self._places[found]
        return found

    def _first_read_before(self, phase: int) -> Node | None:
        """The first one that no piece of this phase or a later one reads. Phases of results do not decrease."""
        while self._still_read and self._still_read[0][0] < phase:
            heappush(self._read, heappop(self._still_read)[1])
        while self._read and self._nodes[self._read[0]] not in self._places:
            heappop(self._read)
        return self._nodes[self._read[0]] if self._read else None

    def _may_take(self, donor: Node, result: Node, piece: Piece, phase: int) -> bool:
        last = self._last_read.get(donor, -1)
        if last != phase or donor not in piece.reads:
            return last < phase
        return _goes_by_element(piece, donor, result)


def _bytes_of(node: Node) -> tuple[int, int]:
    """The bytes of an element, and of all: if equal, equal elements have equal addresses."""
    return node.dtype.storage.itemsize, node.type.nbytes


def _goes_by_element(piece: Piece, read: Node, written: Node) -> bool:
    """Whether each element that is read is read only by the invocation that writes the same element."""
    kernel = piece.kernel
    source, target = kernel.graph.inputs[piece.reads.index(read)], kernel.graph.outputs[piece.writes.index(written)]
    return is_pointwise(kernel, source, target)
