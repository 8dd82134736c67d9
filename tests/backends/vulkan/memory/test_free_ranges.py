from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lavax.backends.vulkan.memory.free_ranges import FreeRanges, Range


def test_the_smallest_range_that_fits_is_taken() -> None:
    free = FreeRanges()
    free.give(Range(0, 0, 100, 0))
    free.give(Range(1, 0, 60, 7))
    assert free.take(50) == Range(1, 0, 50, 7)
    assert free.take(50) == Range(0, 0, 50, 0)
    assert free.take(51) is None


def test_neighbours_are_joined_within_a_block_only() -> None:
    free = FreeRanges()
    for part in (Range(0, 0, 10, 1), Range(0, 20, 10, 3), Range(1, 30, 10, 9), Range(0, 10, 10, 2)):
        free.give(part)
    assert free.take(31) is None
    assert free.take(30) == Range(0, 0, 30, 3)


def test_a_block_is_taken_whole_only_when_all_of_it_is_free() -> None:
    free = FreeRanges()
    free.give(Range(0, 0, 100, 0))
    taken = free.take(10)
    assert taken is not None
    assert free.take_whole(0, 100) is None
    free.give(taken)
    assert free.take_whole(0, 100) == Range(0, 0, 100, 0)
    assert free.total() == 0


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 30)), max_size=120))
def test_taken_ranges_never_overlap_and_all_comes_back(steps: list[tuple[int, int]]) -> None:
    free = FreeRanges()
    for block in range(3):
        free.give(Range(block, 0, 100, 0))
    held: list[Range] = []
    for size, victim in steps:
        taken = free.take(size)
        if taken is not None:
            assert taken.size == size and 0 <= taken.offset <= 100 - size
            for other in held:
                apart = taken.offset + size <= other.offset or other.offset + other.size <= taken.offset
                assert taken.block != other.block or apart
            held.append(taken)
        if len(held) > victim:
            free.give(held.pop(victim))
        assert free.total() + sum(part.size for part in held) == 300
    for part in held:
        free.give(part)
    assert all(free.take_whole(block, 100) is not None for block in range(3))


def test_what_an_interrupt_left_behind_is_not_handed_out() -> None:
    """The lists by size and by end may have entries of ranges that are taken: those are passed over."""
    free = FreeRanges()
    free.give(Range(0, 0, 60, 0))
    by_size, by_end = list(free._by_size), dict(free._by_end)
    held = free.take(60)
    free._by_size, free._by_end = by_size, by_end  # as if `take` had been interrupted after its first statement
    assert held == Range(0, 0, 60, 0)
    assert free.take(60) is None, "it is taken"
    free.give(Range(0, 60, 40, 1))
    assert free.total() == 40, "it is not joined with a neighbour that is taken"
    assert free.take(100) is None


def test_an_entry_of_another_size_is_passed_over() -> None:
    free = FreeRanges()
    free.give(Range(0, 0, 60, 0))
    by_size = list(free._by_size)
    assert free.take(20) == Range(0, 0, 20, 0)
    free.give(Range(0, 0, 20, 0))  # all 60 again, in one
    assert free.take(50) == Range(0, 0, 50, 0)
    free.give(Range(0, 0, 5, 0))  # a shorter range at the same place
    free._by_size = sorted({*by_size, *free._by_size})
    assert free.take(60) is None
    assert free.take(10) == Range(0, 50, 10, 0)
