"""Places boxes in layers, so that arrows point down, cross seldom and are short.

The steps are those of Sugiyama, Tagawa and Toda, "Methods for Visual Understanding of Hierarchical System Structures",
IEEE Transactions on Systems, Man, and Cybernetics 11 (1981): layers, an order within each, coordinates. Arrows over
several layers pass through points of no width, which take part in all steps.
"""
from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import field
from itertools import pairwise
from statistics import median

from lavax.base.quick_dataclasses import dataclass

_SWEEPS = 8  # down and up, of the orders and of the coordinates
_LONGEST_ARROW = 100  # in layers
_GAP, _LAYER_GAP, _POINT_GAP = 18.0, 34.0, 9.0
Point = tuple[float, float]


@dataclass(frozen=True)
class Layout:
    """The centre of each box, the points that each drawn arrow passes, and the size of all; y points down."""

    centres: tuple[Point, ...]
    arrows: tuple[tuple[Point, ...], ...]
    width: float
    height: float


@dataclass
class _Place:
    """A box, or a point that an arrow passes."""

    layer: int
    width: float
    height: float
    above: list[int] = field(default_factory=list)
    below: list[int] = field(default_factory=list)
    x: float = 0.0


def layout(sizes: Sequence[tuple[float, float]], arrows: Sequence[tuple[int, int]]) -> Layout:
    """Places boxes of these sizes; each arrow leads from a box to one with a greater number.

    Arrows over very many layers are left out: in a deep network's gradient they would be most of the picture.
    """
    places = [_Place(layer, *size) for layer, size in zip(_layers(len(sizes), arrows), sizes, strict=True)]
    near = ((a, b) for a, b in arrows if places[b].layer - places[a].layer <= _LONGEST_ARROW)
    chains = [_chain(places, source, target) for source, target in near]
    rows = _ordered_rows(places)
    _set_coordinates(places, rows)
    left = min((place.x - place.width / 2 for place in places), default=0.0)
    tops = _tops(places, rows)
    centres = [(place.x - left, tops[place.layer][0]) for place in places]
    width = max((place.x + place.width / 2 - left for place in places), default=0.0)
    return Layout(
        centres=tuple(centres[: len(sizes)]),
        arrows=tuple(_points(chain, centres, places, tops) for chain in chains),
        width=width,
        height=tops[-1][1] if tops else 0.0,
    )


def _layers(count: int, arrows: Sequence[tuple[int, int]]) -> list[int]:
    """The length of the longest way to each box; boxes that nothing leads to stand just over their first reader."""
    layers = [0] * count
    readers: list[list[int]] = [[] for _ in range(count)]
    for source, target in sorted(arrows, key=lambda arrow: arrow[1]):
        layers[target] = max(layers[target], layers[source] + 1)
        readers[source].append(target)
    entered = {target for _, target in arrows}
    for box in range(count):
        if box not in entered and readers[box]:
            layers[box] = max(0, min(layers[reader] for reader in readers[box]) - 1)
    return layers


def _chain(places: list[_Place], source: int, target: int) -> list[int]:
    """The places that an arrow passes; makes those between its ends."""
    chain = [source]
    for layer in range(places[source].layer + 1, places[target].layer):
        chain.append(len(places))
        places.append(_Place(layer, 0.0, 0.0))
    chain.append(target)
    for upper, lower in pairwise(chain):
        places[upper].below.append(lower)
        places[lower].above.append(upper)
    return chain


def _ordered_rows(places: Sequence[_Place]) -> list[list[int]]:
    """The places of each layer in an order with few crossings: each near the median of its neighbours."""
    rows: list[list[int]] = [[] for _ in range(1 + max((place.layer for place in places), default=-1))]
    for number, place in enumerate(places):
        rows[place.layer].append(number)
    position = {number: float(index) for row in rows for index, number in enumerate(row)}
    best, fewest = [list(row) for row in rows], _crossings(rows, places)
    for sweep in range(_SWEEPS):
        downwards = sweep % 2 == 0
        for row in rows if downwards else reversed(rows):
            wished = {
                number: median(position[other] for other in neighbours) if neighbours else position[number]
                for number in row
                for neighbours in (places[number].above if downwards else places[number].below,)
            }
            row.sort(key=wished.__getitem__)
            position.update((number, float(index)) for index, number in enumerate(row))
        crossings = _crossings(rows, places)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    return best


def _crossings(rows: Sequence[Sequence[int]], places: Sequence[_Place]) -> int:
    """The pairs of arrows between neighbouring layers that cross."""
    found = 0
    for upper, lower in pairwise(rows):
        position = {number: index for index, number in enumerate(lower)}
        ends = [position[other] for number in upper for other in sorted(places[number].below, key=position.__getitem__)]
        seen: list[int] = []
        for end in ends:
            found += len(seen) - bisect_right(seen, end)
            insort(seen, end)
    return found


def _set_coordinates(places: Sequence[_Place], rows: Sequence[Sequence[int]]) -> None:
    """Moves places towards their neighbours, as far as their order and their widths allow."""
    for row in rows:
        _place_row([0.0] * len(row), row, places)
    for sweep in range(2 * _SWEEPS):
        downwards = sweep % 2 == 0
        for row in rows if downwards else reversed(rows):
            wished = []
            for number in row:
                place = places[number]
                neighbours = (place.above if downwards else place.below) or (place.above + place.below)
                xs = [places[other].x for other in neighbours]
                wished.append(sum(xs) / len(xs) if xs else place.x)
            _place_row(wished, row, places)


def _place_row(wished: Sequence[float], row: Sequence[int], places: Sequence[_Place]) -> None:
    """The coordinates nearest to those wished for, in squares, that keep the order and the gaps.

    Shifted by the gaps before them, they must not fall: an isotonic regression, by pooling adjacent violators.
    """
    shifts, shift = [], 0.0
    for before, number in zip([None, *row], row, strict=False):
        if before is not None:
            pair = places[before], places[number]
            gap = _GAP if all(place.width for place in pair) else _POINT_GAP
            shift += (pair[0].width + pair[1].width) / 2 + gap
        shifts.append(shift)
    pools: list[tuple[float, int]] = []  # the mean and the number of pooled places
    for wish, shift in zip(wished, shifts, strict=True):
        mean, count = wish - shift, 1
        while pools and pools[-1][0] > mean:
            other, more = pools.pop()
            mean, count = (mean * count + other * more) / (count + more), count + more
        pools.append((mean, count))
    means = [mean for mean, count in pools for _ in range(count)]
    for number, mean, shift in zip(row, means, shifts, strict=True):
        places[number].x = mean + shift


def _tops(places: Sequence[_Place], rows: Sequence[Sequence[int]]) -> list[tuple[float, float]]:
    """The middle and the lower edge of each layer."""
    found, y = [], 0.0
    for row in rows:
        height = max((places[number].height for number in row), default=0.0)
        found.append((y + height / 2, y + height))
        y += height + _LAYER_GAP
    return found


def _points(
    chain: Sequence[int], centres: Sequence[Point], places: Sequence[_Place], tops: Sequence[tuple[float, float]]
) -> tuple[Point, ...]:
    """From the lower edge of the first box, through the points between, to the upper edge of the last.

    A point becomes two, at the edges of its layer, so that the arrow passes the boxes there upright.
    """
    first, last = chain[0], chain[-1]
    points = [(centres[first][0], centres[first][1] + places[first].height / 2)]
    for number in chain[1:-1]:
        x, (middle, lower) = centres[number][0], tops[places[number].layer]
        points += [(x, 2 * middle - lower), (x, lower)]
    return (*points, (centres[last][0], centres[last][1] - places[last].height / 2))
