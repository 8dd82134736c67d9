"""What turns of a workgroup's loop write is read through descriptors; arrays that are handed on change places."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.loop.handing_on import hand_on, moving_slots
from lavax.backends.vulkan.emit.loop.turns import (
    Branch,
    FirstRow,
    HandedOn,
    Member,
    Place,
    Turn,
    Turns,
    While,
    slots_of,
    with_slots,
)
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.plan import Shader, Work
from lavax.passes.simplify import remove_stop_gradient
from tests.backends.vulkan.run import test_workgroup_loops
from tests.backends.vulkan.run.execution import assert_agrees, backend_with
from tests.backends.vulkan.run.loop_agreement import agree

pytestmark = pytest.mark.usefixtures("no_register_loops")
RANDOM = np.random.default_rng(11)
IMAGES = "imageLoad("


def _array(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype("f")


def heat(u: Any) -> Any:
    return 0.25 * (lnp.roll(u, 1, 0) + lnp.roll(u, -1, 0) + lnp.roll(u, 1, 1) + lnp.roll(u, -1, 1))


def turns(count: int, turn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: lx.fori_loop(0, count, lambda i, x: turn(x), x)


def nested(x: Any) -> Any:
    """Both loops hand on what they carry."""
    return lx.fori_loop(0, 3, lambda i, x: heat(lx.fori_loop(0, 3, lambda j, y: heat(y) + 0.01 * j, x)) - 0.1, x)


def stacked(x: Any) -> Any:
    """Each turn stacks what it was given, and so goes from row to row."""
    return lx.scan(lambda x, _: (heat(x), x), x, None, length=5)


def stacked_after(x: Any) -> Any:
    def turn(x: Any, _: Any) -> Any:
        after = lnp.tanh(heat(x)) + lnp.mean(x)
        return after, after

    return lx.scan(turn, x, None, length=5)


def along_rows(x: Any) -> Any:
    """Rows of a sequence, of which one is turned; their length may be no multiple of four."""
    rows = lnp.stack([x * number for number in range(1, 6)])
    return lx.scan(lambda c, row: (heat(c) + row[::-1], lnp.sum(row[:, :3], 1)), x, rows)


def two(x: Any) -> Any:
    """Two arrays that change places with what is written aside, of which one reads the other."""
    return lx.fori_loop(0, 5, lambda i, s: (heat(s[1]) - s[0], 0.5 * s[0][::-1] + lnp.max(s[1])), (x, x * 0.5))


def branched(x: Any) -> Any:
    return lx.fori_loop(0, 5, lambda i, x: lx.cond(lnp.sum(x) > 0, heat, lambda x: x[::-1] * 0.9 + 0.1, x), x)


def until(x: Any) -> Any:
    return lx.while_loop(lambda s: (s[1] < 5) & (lnp.sum(s[0]) < 1e6), lambda s: (heat(s[0]) * 1.1, s[1] + 1), (x, 0))


def numbered(x: Any) -> Any:
    """A number that a branch asks for changes places with the next turn's, as the array does."""

    def turn(i: Any, s: Any) -> Any:
        x, number = s
        after = lx.switch(number, [heat, lambda x: x[::-1] * 0.9, lambda x: x * 0.5], x)
        return after, (number * 3 + i + (lnp.sum(x) > 0).astype("int32")) % 3

    return lx.fori_loop(0, 5, turn, (x, lnp.int32(1)))


def batched(x: Any) -> Any:
    return lx.vmap(turns(3, heat))(lnp.stack([x, x * 2, x + 1]))


def gradient(x: Any) -> Any:
    return lx.grad(lambda x: lnp.sum(turns(3, lambda x: lnp.sin(heat(x)))(x) ** 2))(x)


def times_itself(x: Any) -> Any:
    return lx.fori_loop(0, 3, lambda i, x: lnp.tanh(x @ x.T @ x / 10), x)


def normed(x: Any) -> Any:
    """Rows that several walks read."""
    return turns(5, lambda x: (x - lnp.mean(x, 1, keepdims=True)) / (1 + lnp.std(x, 1, keepdims=True)) + x[:, ::-1])(x)


def whole(x: Any) -> Any:
    return turns(3, lambda x: (heat(x) * 8).astype("int32") - x)((x * 100).astype("int32"))


def updated(x: Any) -> Any:
    """Updates of rows, which are computed from others of the same array."""
    rows = (lnp.abs(x[:, 0]) * 9).astype("int32") % 7
    return turns(5, lambda x: (x * 0.9).at[rows].add(heat(x)))(x)


def narrow(x: Any) -> Any:
    """Elements of fewer than 32 bits are read by address."""
    return turns(3, lambda x: lnp.roll(x, 1, 0) * 0.5 + lnp.roll(x, -1, 1))(x.astype("float16"))


LOOPS = {
    "an odd number of turns": turns(5, heat),
    "an even number": turns(4, heat),
    "loops inside": nested,
    "stacked before": stacked,
    "stacked after": stacked_after,
    "along rows": along_rows,
    "two arrays": two,
    "branches": branched,
    "numbers of branches": numbered,
    "until": until,
    "a batch": batched,
    "a gradient": gradient,
    "products": times_itself,
    "rows": normed,
    "integers": whole,
    "updates": updated,
}
SIZES = [(32, 16), (19, 21), (17, 32), (33, 18)]


def _loop_of(function: Callable[..., Any], *arguments: Any) -> str:
    shaders = lx.compile(function).lower(*map(lnp.asarray, arguments)).as_text("glsl").split("#version")
    loop, *_ = [shader for shader in shaders if "group_of_turn" in shader]
    return loop


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", LOOPS)
def test_loops_agree(name: str, size: tuple[int, int]) -> None:
    agree(LOOPS[name], _array(*size))


@pytest.mark.usefixtures("on_a_cpu_driver")
@pytest.mark.parametrize("name", [*LOOPS])
def test_what_turns_write_is_seen_through_descriptors(name: str) -> None:
    assert IMAGES in _loop_of(LOOPS[name], _array(19, 21)) or name == "until"


@pytest.mark.usefixtures("on_a_cpu_driver")
def test_narrow_elements_are_read_by_address() -> None:
    text = _loop_of(narrow, _array(32, 32))
    assert IMAGES not in text and "texelFetch(" not in text
    x = _array(32, 32).astype("e")
    found, expected = np.asarray(lx.compile(narrow)(x)), x
    for _ in range(3):
        expected = np.roll(expected, 1, 0) * np.float16(0.5) + np.roll(expected, -1, 1)
    np.testing.assert_allclose(found, expected, atol=1e-2)


@pytest.mark.usefixtures("on_a_cpu_driver")
@pytest.mark.parametrize("most", [1, 2, 3])
def test_dispatches_of_few_turns(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lavax.backends.vulkan.emit.program.most_turns", lambda turns: most)
    agree(LOOPS["an odd number of turns"], _array(19, 21))


def moved_on(x: Any) -> Any:
    """Nothing but the copy at a turn's end reads what it writes through a descriptor."""
    rows = (lnp.abs(x[:, 0]) * 9).astype("int32") % 7
    return turns(5, lambda x: lnp.zeros_like(x).at[rows].add(x))(x)


def moved_on_inside(x: Any) -> Any:
    """The same in a loop that hands on nothing itself."""
    return turns(3, lambda x: heat(moved_on(x)))(x)


def in_one_dispatch(x: Any) -> Any:
    """Small kernels in a row, each of which reads what the one before it writes."""
    for axis in (0, 1, 0):
        x = x - lnp.mean(x, axis=axis, keepdims=True)
        x = x / (1 + lnp.max(lnp.abs(x), axis=axis, keepdims=True)) + lnp.flip(x, 1 - axis) * 0.1
    return x


@pytest.mark.usefixtures("on_a_cpu_driver")
@pytest.mark.parametrize("most", [0, 1, 2, 64])
@pytest.mark.parametrize(
    "function", [moved_on, moved_on_inside, in_one_dispatch, LOOPS["two arrays"], LOOPS["loops inside"]]
)
def test_devices_with_few_such_descriptors(function: Callable[..., Any], most: int) -> None:
    graph, device = remove_stop_gradient(lx.trace(function)(_array(19, 21))), backend_with(changing_texels=most)
    shaders = device.lower(graph).as_text("glsl").split("#version")
    assert max(len(set(re.findall(r"imageLoad\((\w+)", shader))) for shader in shaders) <= most
    assert most < 64 or function is moved_on or any(IMAGES in shader for shader in shaders)
    assert_agrees(graph, [_array(19, 21)], device=device)


@pytest.mark.usefixtures("on_a_cpu_driver")
@pytest.mark.parametrize("name", test_workgroup_loops.LOOPS)
def test_small_arrays_could_be_seen_so_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lavax.backends.vulkan.glsl.descriptor_arrays._LEAST_IN_LOOPS", 1)
    monkeypatch.setattr("lavax.backends.vulkan.emit.loop.handing_on._LEAST_EXCHANGED", 1)
    agree(test_workgroup_loops.LOOPS[name][0], *test_workgroup_loops.LOOPS[name][1])


@pytest.mark.usefixtures("on_a_cpu_driver")
def test_arrays_may_lie_elsewhere_in_each_call() -> None:
    function, kept = lx.compile(LOOPS["an odd number of turns"]), []
    for _ in range(6):
        x = _array(63, 63)
        kept.append(lnp.asarray(x))
        expected = x.astype("d")
        for _ in range(5):
            expected = 0.25 * sum(np.roll(expected, by, axis) for axis in (0, 1) for by in (1, -1))
        np.testing.assert_allclose(np.asarray(function(kept[-1])), expected, atol=1e-5)


@pytest.mark.usefixtures("on_a_cpu_driver")
def test_the_shader_takes_two_turns_at_a_time() -> None:
    main = _loop_of(LOOPS["an odd number of turns"], _array(32, 32)).partition("void main")[2]
    turns, following = re.escape("int(words["), re.escape("]))")
    assert re.search(rf"turn0 < {turns}\d+]\); turn0 \+= 2", main)
    assert re.search(rf"if \(turn0 \+ 1 < {turns}\d+{following} {{", main)
    assert "& 1) != 0) {" in main and "moved" not in main


@pytest.mark.usefixtures("on_a_cpu_driver")
@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("name", ["an odd number of turns", "products"])
def test_the_copy_behind_an_odd_number_of_turns_waits_once(
    name: str, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For what the last turn wrote, whether the copy waited where it stood or something before it did."""

    def handed_on(turns: Turns) -> Turn:
        found = hand_on(turns)
        assert isinstance(found, Turns) and found.exchanged
        members = [
            replace(each, copy=replace(each.copy, barrier=waits)) if isinstance(each, HandedOn) else each
            for each in found.members
        ]
        return replace(found, members=tuple(members))

    monkeypatch.setattr("lavax.backends.vulkan.emit.loop.workgroup.hand_on", handed_on)
    main = _loop_of(LOOPS[name], _array(32, 32)).partition("void main")[2]
    copies = main.partition("& 1) != 0) {")[2].partition("}")[0].split(";")
    assert "Barrier" in copies[0] and "kernel" in "".join(copies)
    assert sum("Barrier()" in line for line in copies) == 1


def _kernel(*arrays: int | Place, is_copy: bool = False, positions: tuple[int, ...] = ()) -> Member:
    places = tuple(array if isinstance(array, Place) else Place(array, 4096) for array in arrays)
    return Member(Launch(Shader(""), (), (1, 1, 1)), places, 1, is_copy, None, True, 1, Work(), positions)


def test_arrays_that_are_handed_on_change_places() -> None:
    loop = hand_on(Turns(5, (_kernel(0, 1), _kernel(1, 0, is_copy=True))))
    assert isinstance(loop, Turns) and loop.exchanged == ((0, 1),)
    assert moving_slots(loop) == set()


def test_arrays_of_long_loops_move() -> None:
    def loop(count: int) -> Turn:
        kernels = [_kernel(0, 1), *(_kernel(1, number) for number in range(2, count + 1))]
        return hand_on(Turns(5, (*kernels, _kernel(1, 0, is_copy=True))))

    short, long = loop(8), loop(9)
    assert isinstance(short, Turns) and short.exchanged == ((0, 1),)
    assert isinstance(long, Turns) and long.exchanged == () and moving_slots(long) == {0, 1}


def test_arrays_that_are_handed_on_from_rows_move() -> None:
    """The row stays, and so does its stack."""
    row = Place(1, 1 << 16, (2,), (4096,))
    loop = hand_on(Turns(5, (_kernel(0, row), _kernel(row, 0, is_copy=True))))
    assert isinstance(loop, Turns) and loop.exchanged == () and moving_slots(loop) == {0}


def test_parts_over_other_arrays() -> None:
    rows = Place(3, 1 << 16, (4,), (4096,))
    handed = HandedOn(_kernel(1, 0, is_copy=True), rows, 1)
    branch = Branch(Place(0, 4), 1, 2, (_kernel(0, 1),))
    asking = While((_kernel(0, 2),), (_kernel(0, 6),), Place(0, 4))
    first = FirstRow(_kernel(0, rows, is_copy=True), handed)
    loop = Turns(2, (_kernel(0, 1, positions=(7,)), first, handed, branch, asking), ((0, 1),))
    other = with_slots(loop, {0: 5, 7: 8, 4: 9})
    assert isinstance(other, Turns) and other.exchanged == ((5, 1),)
    kernel, first_row, moved, taken, until = other.members
    assert isinstance(kernel, Member) and kernel.slots == (5, 1, 8)
    assert isinstance(first_row, FirstRow) and first_row.handed is moved and first_row.copy.slots == (5, 3, 9)
    assert isinstance(moved, HandedOn) and moved.copy.slots == (1, 5) and moved.rows == replace(rows, counters=(9,))
    assert isinstance(taken, Branch) and taken.number.slot == 5 and list(slots_of(taken.members[0])) == [5, 1]
    assert isinstance(until, While) and until.holds.slot == 5
    assert [list(slots_of(part)) for part in (*until.asked, *until.members)] == [[5, 2], [5, 6]]
