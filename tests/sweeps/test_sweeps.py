"""Sweeps hold every value, or every pair of values, in few combinations; the others are marked."""
from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from tests.sweeps import all_pairs, covering, each_value


@pytest.mark.parametrize(("sizes", "most"), [((2, 3), 6), ((2, 2, 2), 6), ((11, 3, 2, 2, 2), 40), ((3, 14, 2, 2), 48)])
def test_every_pair_is_in_one_of_few(sizes: tuple[int, ...], most: int) -> None:
    chosen = covering(sizes)
    assert len(chosen) == len(set(chosen)) <= most
    for (first, m), (second, n) in itertools.combinations(enumerate(sizes), 2):
        assert {(each[first], each[second]) for each in chosen} == set(itertools.product(range(m), range(n)))


@pytest.mark.parametrize(("sweep", "fewest", "most"), [(all_pairs, 6, 7), (each_value, 3, 3)])
def test_the_others_are_long(sweep: Callable[..., pytest.MarkDecorator], fewest: int, most: int) -> None:
    values = {"name": ["a", "b"], "length": [1, 2, 3], "wide": [False, True]}
    names, cases = sweep(**values).mark.args
    assert names == tuple(values)
    assert [case.values for case in cases] == list(itertools.product(*values.values()))
    chosen = [case.values for case in cases if not case.marks]
    assert fewest <= len(chosen) <= most
    assert {case.marks[0].name for case in cases if case.marks} == {"long"}
    assert [set(found) for found in zip(*chosen, strict=True)] == [set(each) for each in values.values()]
