"""Where temporaries lie, and which results may take over the memory of donated arguments."""
from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lavax.passes.schedule import memory
from lavax.passes.schedule.memory import plan_arena
from lavax.passes.target.target import Target
from tests.passes.lowering import program_of

lives = st.tuples(st.integers(0, 8), st.integers(0, 4)).map(lambda life: (life[0], life[0] + life[1]))
buffers = st.lists(st.tuples(st.integers(0, 3000), lives), max_size=14)


def _aligned(size: int) -> int:
    return -(-max(size, 1) // 256) * 256


@settings(max_examples=300, derandomize=True)
@given(buffers)
def test_buffers_that_live_together_do_not_overlap(given_buffers: list[tuple[int, tuple[int, int]]]) -> None:
    sizes = {f"t{number}": size for number, (size, _) in enumerate(given_buffers)}
    lifetimes = {f"t{number}": life for number, (_, life) in enumerate(given_buffers)}
    offsets, total = plan_arena(sizes, lifetimes)
    assert offsets.keys() == sizes.keys()
    for name, offset in offsets.items():
        assert offset % 256 == 0 and offset >= 0 and offset + sizes[name] <= total
    for one, other in combinations(offsets, 2):
        (first, last), (other_first, other_last) = lifetimes[one], lifetimes[other]
        if first <= other_last and other_first <= last:
            apart = offsets[one] + sizes[one] <= offsets[other] or offsets[other] + sizes[other] <= offsets[one]
            assert apart or not sizes[one] or not sizes[other], f"{one} and {other}"
    assert total <= sum(map(_aligned, sizes.values()))


@settings(max_examples=300, derandomize=True)
@given(buffers)
def test_no_buffer_lies_across_the_end_of_an_allocation(given_buffers: list[tuple[int, tuple[int, int]]]) -> None:
    """One that is larger than an allocation, as the arena of a loop's body may be, starts with one."""
    sizes = {f"t{number}": size for number, (size, _) in enumerate(given_buffers)}
    lifetimes = {f"t{number}": life for number, (_, life) in enumerate(given_buffers)}
    block = 2048
    offsets, total = plan_arena(sizes, lifetimes, Target(largest_allocation=block))
    for name, offset in offsets.items():
        size = _aligned(sizes[name])
        assert offset + size <= total
        assert offset % block == 0 if size > block else offset // block == (offset + size - 1) // block
    for one, other in combinations(offsets, 2):
        (first, last), (other_first, other_last) = lifetimes[one], lifetimes[other]
        if first <= other_last and other_first <= last and sizes[one] and sizes[other]:
            assert offsets[one] + sizes[one] <= offsets[other] or offsets[other] + sizes[other] <= offsets[one]


def test_memory_is_used_again_once_its_buffer_is_dead() -> None:
    sizes = dict.fromkeys("abcd", 1000)
    offsets, total = plan_arena(sizes, {"a": (0, 1), "b": (1, 2), "c": (2, 3), "d": (3, 4)})
    assert offsets == {"a": 0, "b": 1024, "c": 0, "d": 1024}
    assert total == 2048


def test_a_buffer_goes_into_the_lowest_gap_that_holds_it() -> None:
    lifetimes = {"a": (0, 0), "b": (0, 2), "c": (1, 2), "d": (1, 2)}
    offsets, total = plan_arena({"a": 600, "b": 500, "c": 700, "d": 256}, lifetimes)
    assert offsets == {"a": 0, "b": 768, "c": 0, "d": 1280}
    assert total == 1536


def test_a_large_buffer_need_not_wait_for_a_gap_of_its_size() -> None:
    """In order of time "c" finds no gap of its size; placed first, it leaves one for the others."""
    offsets, total = plan_arena({"a": 512, "b": 512, "c": 1024}, {"a": (0, 1), "b": (0, 3), "c": (2, 3)})
    assert offsets == {"a": 0, "b": 1024, "c": 0}
    assert total == 1536


PRODUCTS = """
    graph (x: f32[16,8], w: f32[8,16], v: f32[8,16]) {
      %0 = dot(x, w) contract=[1]x[0] : f32[16,16]
      %1 = sin(%0) : f32[16,16]
      %2 = dot(%1, %1) contract=[1]x[0] : f32[16,16]
      %3 = multiply(%2, %1) : f32[16,16]
      %4 = dot(%3, %3) contract=[1]x[0] : f32[16,16]
      %5 = multiply(%4, %3) : f32[16,16]
      return %5
    }
"""


@pytest.fixture
def all_overwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Temporaries of any size are written over others."""
    monkeypatch.setattr(memory, "_PACKING", replace(memory.PackingLimits(), overwritten=1))


def test_small_temporaries_have_their_own_memory() -> None:
    assert program_of(PRODUCTS).offsets == {"%t0": 0, "%t1": 1024}


def test_a_product_is_not_written_over_its_factor(all_overwritten: None) -> None:
    assert program_of(PRODUCTS).offsets == {"%t0": 0, "%t1": 1024}


FACTORS = PRODUCTS.replace("dot(%1, %1)", "dot(x, v)")


def test_a_temporary_is_written_over_what_its_kernel_reads_last(all_overwritten: None) -> None:
    program = program_of(FACTORS)
    assert program.offsets == {"%t0": 0, "%t1": 0} and program.arena_bytes == 1024


def test_no_temporary_is_written_over_what_is_read_later(all_overwritten: None) -> None:
    later = FACTORS.replace("dot(%3, %3)", "dot(%3, %1)")
    assert later != FACTORS and len(set(program_of(later).offsets.values())) == 2


# the graph, what is donated, and what takes over what
DONATIONS: dict[str, tuple[str, tuple[int, ...], dict[str, str]]] = {
    "element by element": (
        """
        graph (x: f32[4,3], y: f32[3]) {
          %0 = broadcast(y) axes=[1] : f32[4,3]
          %1 = multiply(x, %0) : f32[4,3]
          return %1
        }
        """,
        (0, 1),
        {"%r0": "x"},
    ),
    "only what is donated": (
        """
        graph (x: f32[4], y: f32[4]) {
          %0 = add(x, y) : f32[4]
          return %0
        }
        """,
        (1,),
        {"%r0": "y"},
    ),
    "moved elements are read elsewhere than written": (
        """
        graph (x: f32[3,3]) {
          %0 = transpose(x) axes=[1,0] : f32[3,3]
          return %0
        }
        """,
        (0,),
        {},
    ),
    "neighbours are read too": (
        """
        graph (x: f32[4]) {
          %0 = flip(x) axes=[0] : f32[4]
          %1 = add(x, %0) : f32[4]
          return %1
        }
        """,
        (0,),
        {},
    ),
    "a reshape keeps every element in its place": (
        """
        graph (x: f32[4,3]) {
          %0 = reshape(x) : f32[2,6]
          %1 = negate(%0) : f32[2,6]
          return %1
        }
        """,
        (0,),
        {"%r0": "x"},
    ),
    "rows are written after they are read": (
        """
        graph (x: f32[4,3]) {
          %0 = max(x) axes=[1] : f32[4]
          %1 = broadcast(%0) axes=[0] : f32[4,3]
          %2 = subtract(x, %1) : f32[4,3]
          return %2
        }
        """,
        (0,),
        {"%r0": "x"},
    ),
    "one value a row over one of the elements it is made of": (
        """
        graph (x: f32[4,1]) {
          %0 = argmax(x) axis=1 : i32[4]
          return %0
        }
        """,
        (0,),
        {},
    ),
    "one value a row over a value of the same row, once the row is done": (
        """
        graph (x: f32[4,3], y: f32[4], z: f32[4]) {
          %0 = sum(x) axes=[1] : f32[4]
          %1 = multiply(%0, y) : f32[4]
          %2 = add(%1, z) : f32[4]
          return %1, %2
        }
        """,
        (1, 2),
        {"%r0": "y", "%r1": "z"},
    ),
    "one value a row over a value that all elements of the row are made with": (
        """
        graph (x: f32[4,3], y: f32[4]) {
          %0 = broadcast(y) axes=[0] : f32[4,3]
          %1 = multiply(x, %0) : f32[4,3]
          %2 = sum(%1) axes=[1] : f32[4]
          %3 = add(%2, y) : f32[4]
          return %3
        }
        """,
        (1,),
        {},
    ),
    "one value a row over a value that is read for the row's elements afterwards": (
        """
        graph (x: f32[4,3], y: f32[4]) {
          %0 = sum(x) axes=[1] : f32[4]
          %1 = multiply(%0, y) : f32[4]
          %2 = broadcast(y) axes=[0] : f32[4,3]
          %3 = broadcast(%0) axes=[0] : f32[4,3]
          %4 = multiply(%2, %3) : f32[4,3]
          return %1, %4
        }
        """,
        (1,),
        {},
    ),
    "operands of a contraction are read by many": (
        """
        graph (x: f32[4,4], r: f32[4,4]) {
          %0 = dot(x, x) contract=[1]x[0] : f32[4,4]
          %1 = add(%0, r) : f32[4,4]
          return %1
        }
        """,
        (0, 1),
        {"%r0": "r"},
    ),
    "an operand that is added as well": (
        """
        graph (x: f32[4,4], y: f32[4,4]) {
          %0 = dot(x, y) contract=[1]x[0] : f32[4,4]
          %1 = add(%0, x) : f32[4,4]
          return %1
        }
        """,
        (0,),
        {},
    ),
    "gathered elements may be any": (
        """
        graph (x: f32[4], i: i32[4]) {
          %0 = gather(x, i) axes=[0] : f32[4]
          return %0
        }
        """,
        (0,),
        {},
    ),
    "a routine takes nothing over in its own phase": (
        """
        graph (x: f32[4]) {
          %0 = cumulative_sum(x) axis=0 : f32[4]
          return %0
        }
        """,
        (0,),
        {},
    ),
    "a later result takes what an earlier kernel read": (
        """
        graph (x: f32[4,4], y: f32[4,4]) {
          %0 = dot(x, x) contract=[1]x[0] : f32[4,4]
          %1 = dot(%0, y) contract=[1]x[0] : f32[4,4]
          return %1
        }
        """,
        (0,),
        {"%r0": "x"},
    ),
    "two kernels of one phase read it": (
        """
        graph (x: f32[4,4]) {
          %0 = negate(x) : f32[4,4]
          %1 = sum(x) axes=[0] : f32[4]
          return %0, %1
        }
        """,
        (0,),
        {},
    ),
    "an input that is returned stays": (
        """
        graph (x: f32[4]) {
          %0 = negate(x) : f32[4]
          return %0, x
        }
        """,
        (0,),
        {},
    ),
    "a scatter changes what it is given": (
        """
        graph (x: f32[4096], u: f32[3], i: i32[3]) {
          %0 = scatter_add(x, u, i) axes=[0] : f32[4096]
          return %0
        }
        """,
        (0,),
        {"%r0": "x"},
    ),
    "a scatter of updates made of the array needs it as it was": (
        """
        graph (x: f32[4096], i: i32[3]) {
          %0 = gather(x, i) axes=[0] : f32[3]
          %1 = scatter_add(x, %0, i) axes=[0] : f32[4096]
          return %1
        }
        """,
        (0,),
        {},
    ),
    "each input once": (
        """
        graph (x: f32[4], y: f32[4]) {
          %0 = add(x, y) : f32[4]
          %1 = multiply(x, y) : f32[4]
          return %0, %1
        }
        """,
        (0, 1),
        {"%r0": "x", "%r1": "y"},
    ),
    "other dtypes of the same size": (
        """
        graph (x: f32[4]) {
          %0 = cast(x) : i32[4]
          return %0
        }
        """,
        (0,),
        {"%r0": "x"},
    ),
}


@pytest.mark.parametrize("name", DONATIONS)
def test_donation(name: str) -> None:
    graph, donated, expected = DONATIONS[name]
    assert program_of(graph, donated).donors == expected
