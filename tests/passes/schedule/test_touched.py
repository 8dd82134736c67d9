"""What kernels have touched since the last barrier, against a list of all of it."""
from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lavax.passes.schedule.touched import ARENA, Memory, Touched

parts = st.tuples(st.integers(0, 40), st.integers(1, 9)).map(lambda part: (ARENA, part[0], part[0] + part[1]))
own = st.sampled_from(["a", "b", "c"]).map(lambda name: (name, 0, 4))
buffers = st.lists(st.one_of(parts, own), max_size=3)


def _meet(one: Memory, other: Memory) -> bool:
    return one[0] == other[0] and one[1] < other[2] and other[1] < one[2]


@settings(max_examples=500, derandomize=True)
@given(st.lists(st.tuples(buffers, buffers), max_size=12))
def test_buffers_meet_those_added_before(rounds: list[tuple[list[Memory], list[Memory]]]) -> None:
    touched, every = Touched(), list[Memory]()
    for asked, added in rounds:
        assert touched.meets(asked) == any(_meet(one, other) for one in asked for other in every)
        touched.add(added)
        every += added
