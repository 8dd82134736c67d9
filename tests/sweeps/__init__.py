"""Sweeps over several parameters: `make test` runs few combinations of the values, and `make test-long` all of them.

A rule hangs on one parameter or on two of them together far more often than on three at once. The combinations in which
every two values meet are few: some twice as many as those of the two longest lists.
"""
from __future__ import annotations

import itertools
from collections.abc import Sequence, Set
from typing import Any

import pytest


def all_pairs(**values: Sequence[Any]) -> pytest.MarkDecorator:
    """Parametrizes a test by all combinations of the values; those that bring no new pair are marked `long`."""
    return _parametrized(values, set(covering([len(each) for each in values.values()])))


def each_value(**values: Sequence[Any]) -> pytest.MarkDecorator:
    """As all_pairs, of parameters of which each has rules of its own: the shorter lists go round beside the longest."""
    lengths = [len(each) for each in values.values()]
    return _parametrized(values, {tuple(k % length for length in lengths) for k in range(max(lengths))})


def covering(lengths: Sequence[int]) -> list[tuple[int, ...]]:
    """Combinations of places in lists that hold every pair of places; each brings as many new pairs as it can."""
    combinations = list(itertools.product(*map(range, lengths)))
    pairs_of = {each: set(itertools.combinations(enumerate(each), 2)) for each in combinations}
    missing = set().union(*pairs_of.values())
    chosen = []
    while missing:
        best = max(combinations, key=lambda each: len(pairs_of[each] & missing))
        chosen.append(best)
        missing -= pairs_of[best]
    return chosen


def _parametrized(values: dict[str, Sequence[Any]], chosen: Set[tuple[int, ...]]) -> pytest.MarkDecorator:
    cases = []
    for places in itertools.product(*(range(len(each)) for each in values.values())):
        marks = () if places in chosen else (pytest.mark.long,)
        cases.append(pytest.param(*(each[k] for each, k in zip(values.values(), places, strict=True)), marks=marks))
    return pytest.mark.parametrize(tuple(values), cases)
