"""Properties that are computed once."""
from __future__ import annotations

import pytest

from lavax.base.kept import kept
from lavax.base.quick_dataclasses import dataclass


@dataclass(frozen=True)
class Frozen:
    number: int
    asked: list[int]

    @kept
    def doubled(self) -> int:
        self.asked.append(self.number)
        return 2 * self.number

    @kept
    def inverse(self) -> float:
        self.asked.append(self.number)
        return 1 / self.number


def test_a_value_is_computed_once_for_each_instance() -> None:
    asked: list[int] = []
    first, second = Frozen(3, asked), Frozen(4, asked)
    assert [first.doubled, second.doubled, first.doubled, second.doubled] == [6, 8, 6, 8]
    assert asked == [3, 4]
    assert vars(first)["doubled"] == 6


def test_what_raises_is_computed_again() -> None:
    asked: list[int] = []
    zero = Frozen(0, asked)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            _ = zero.inverse
    assert asked == [0, 0]
    assert "inverse" not in vars(zero)
