"""The order in which several terms are combined, two at a time."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations
from math import prod

from lavax.base.quick_dataclasses import dataclass

Label = str | int
Pair = tuple[int, int]
Extents = Mapping[Label, int]  # of the labels of a term

# More terms are combined by the smallest growth alone: the orders of n terms are found in 3ⁿ steps.
_MOST_TERMS = 7


@dataclass(frozen=True)
class _Order:
    """The least multiplications for a set of terms, the elements of all products of two, and the order: a set of one
    term, or two sets that are combined last."""

    multiplications: int
    elements: int
    halves: tuple[int, ...]


def cheapest_path(terms: Sequence[Extents], output: Sequence[Label]) -> list[Pair]:
    """The pairs of positions, in the order in which they are combined; a product is appended to the terms that remain.

    The pair whose product adds the fewest elements comes first, unless another order takes fewer multiplications.
    """
    greedy = _by_growth(terms, output)
    if not 2 < len(terms) <= _MOST_TERMS:
        return greedy
    best = _best_order(terms, output)
    everything = (1 << len(terms)) - 1
    if best(everything).multiplications >= _multiplications(terms, output, greedy):
        return greedy
    remaining, path = [1 << place for place in range(len(terms))], []
    for first, second in _in_turn(best, everything):
        path.append((remaining.index(first), remaining.index(second)))
        remaining = [*(held for held in remaining if held not in (first, second)), first | second]
    return [(min(pair), max(pair)) for pair in path]


def after(terms: Sequence[Extents], pair: Pair, output: Sequence[Label]) -> list[Extents]:
    """The labels and extents of the remaining terms after a pair is combined, its product last."""
    others = [term for place, term in enumerate(terms) if place not in pair]
    wanted = set(output).union(*others)
    both = {**terms[pair[0]], **terms[pair[1]]}
    return [*others, {label: extent for label, extent in both.items() if label in wanted}]


def _by_growth(terms: Sequence[Extents], output: Sequence[Label]) -> list[Pair]:
    remaining, path = list(terms), []
    while len(remaining) > 1:
        path.append(_smallest_growth(remaining, output))
        remaining = after(remaining, path[-1], output)
    return path


def _smallest_growth(terms: Sequence[Extents], output: Sequence[Label]) -> Pair:
    """The pair whose product adds the fewest elements; the first of several."""

    def growth(pair: Pair) -> int:
        size = prod(after(terms, pair, output)[-1].values())
        return size - sum(prod(terms[place].values()) for place in pair)

    return min(combinations(range(len(terms)), 2), key=growth)


def _multiplications(terms: Sequence[Extents], output: Sequence[Label], path: Sequence[Pair]) -> int:
    remaining, total = list(terms), 0
    for first, second in path:
        left, right = remaining[first], remaining[second]
        remaining = after(remaining, (first, second), output)
        total += _products(left, right, remaining[-1])
    return total


def _products(left: Extents, right: Extents, result: Extents) -> int:
    """The multiplications of two terms: axes that only one of them has, and nothing else wants, are summed before."""
    both = {**left, **right}
    return prod(extent for label, extent in both.items() if label in result or (label in left and label in right))


def _best_order(terms: Sequence[Extents], output: Sequence[Label]) -> Callable[[int], _Order]:
    """The best order of a set of terms, which is given by its bits."""
    everything = (1 << len(terms)) - 1

    @cache
    def labels_of(held: int) -> Extents:
        """The labels of the product of a set of terms."""
        own = [term for place, term in enumerate(terms) if held >> place & 1]
        others = [term for place, term in enumerate(terms) if not held >> place & 1]
        wanted = set(output).union(*others)
        kept = {label: extent for term in own for label, extent in term.items() if label in wanted}
        return kept if len(own) > 1 else own[0]

    @cache
    def best(held: int) -> _Order:
        if held & (held - 1) == 0:
            return _Order(0, 0, (held,))
        orders = []
        for part in _parts(held):
            halves = part, held ^ part
            parts = [best(half) for half in halves]
            own = _products(labels_of(halves[0]), labels_of(halves[1]), labels_of(held))
            multiplications = own + sum(half.multiplications for half in parts)
            size = prod(labels_of(held).values()) if held != everything else 0
            orders.append(_Order(multiplications, size + sum(half.elements for half in parts), halves))
        return min(orders, key=lambda order: (order.multiplications, order.elements))

    return best


def _parts(held: int) -> Iterator[int]:
    """The parts of a set that hold its first element and not all others."""
    first = held & -held
    rest = held ^ first
    part = rest
    while part:
        part = (part - 1) & rest
        yield part | first


def _in_turn(best: Callable[[int], _Order], held: int) -> Iterator[tuple[int, int]]:
    """The pairs of sets that are combined, one after the other."""
    halves = best(held).halves
    if len(halves) == 2:
        for half in halves:
            yield from _in_turn(best, half)
        yield halves[0], halves[1]
