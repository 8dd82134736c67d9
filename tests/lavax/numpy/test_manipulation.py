"""Functions that rearrange, join, cut and repeat, against NumPy's."""
from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import DtypeError, ShapeError
from tests.lavax.numpy.arrays import BOOL, DTYPES, F32, I32, SHAPES, U32, check, sample

pytestmark = pytest.mark.usefixtures("reference_backend")

# name: ((shape of the array, further arguments), …)
CASES: dict[str, list[tuple[tuple[int, ...], tuple[Any, ...]]]] = {
    "reshape": [((2, 6), ((3, 4),)), ((2, 6), (-1,)), ((2, 6), ((4, -1),)), ((), ((1, 1),)), ((1,), ((),)),
                ((0, 3), ((3, 0, 2),)), ((0, 3), ((-1, 5),)), ((2, 3), ((2, 3),))],
    "swapaxes": [((2, 3), (0, 1)), ((2, 3, 4), (-1, 0)), ((2, 3), (1, 1)), ((2, 0, 4, 3), (1, -1))],
    "moveaxis": [((2, 3, 4), (0, -1)), ((2, 3, 4), (-1, 0)), ((2, 3, 4, 5), ((0, 1), (-1, -2))), ((2, 3, 4),
                 ((2, 0), (0, 1)))],
    "broadcast_to": [((3,), ((2, 3),)), ((), ((2, 0),)), ((2, 1), ((4, 2, 3),)), ((2, 3), ((2, 3),)), ((1,), (5,))],
    "expand_dims": [((2, 3), (0,)), ((2, 3), (-1,)), ((2, 3), ((0, -1),)), ((), (0,)), ((), ((0, 1),)), ((2, 3),
                    ((1, 2),))],
    "squeeze": [((1, 2, 1), ()), ((1, 2, 1), (0,)), ((1, 2, 1), ((0, -1),)), ((), ()), ((2, 3), ()), ((1, 0), (0,))],
    "flip": [((2, 3), ()), ((2, 3), (0,)), ((2, 3, 4), ((0, -1),)), ((), ()), ((0, 2), (1,))],
    "roll": [((5,), (2,)), ((2, 3), (1,)), ((2, 3), (-4, 1)), ((2, 3), ((1, 2), (0, 1))), ((2, 3), (1, (0, 1))),
             ((0, 2), (1, 0)),
             ((3, 4), (12,)), ((4,), ((1, 2), 0))],
    "repeat": [((2, 3), (2,)), ((2, 3), (3, 0)), ((2, 3), (2, -1)), ((2,), (0,)), ((), (3,)), ((2, 0), (2, 0)),
               ((2, 3), (1, 1))],
    "tile": [((2, 3), (2,)), ((3,), ((2, 2),)), ((2, 3), ((2, 1, 3),)), ((), (3,)), ((2, 3), (1,)), ((2,),
             ((0, 2),)), ((2, 3), ((),))],
    "split": [((4, 2), (2,)), ((4, 6), (3, 1)), ((5,), ([2, 3],)), ((5,), ([1, 9],)), ((5,), ([-2],)), ((5,),
              ([3, 1],)), ((0,), (2,))],
    "array_split": [((5, 2), (3,)), ((2,), (3,)), ((5,), ([1, 4],)), ((3, 4), (2, -1))],
    "atleast_1d": [((), ()), ((3,), ()), ((2, 3), ())],
    "atleast_2d": [((), ()), ((3,), ()), ((2, 3), ())],
    "pad": [((2, 3), (1,)), ((2, 3), ((1, 2),)), ((2, 3), (((0, 1), (2, 0)),)), ((2, 3), (((1, 2),),)), ((), (2,)),
            ((0, 2), (1,)),
            ((2, 3), (0,)), ((3,), ((0, 0),))],
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_cases(name: str, dtype: np.dtype) -> None:
    for shape, arguments in CASES[name]:
        x = sample(shape, dtype)
        expected = getattr(np, name)(x, *arguments)
        check(lambda x: getattr(lnp, name)(x, *arguments), lambda _: expected, x, rtol=0, atol=0)  # noqa: B023


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_axes_in_any_order(shape: tuple[int, ...]) -> None:
    x = sample(shape)
    check(lnp.transpose, np.transpose, x)
    check(lnp.ravel, np.ravel, x)
    for axes in permutations(range(len(shape))):
        check(lambda x: lnp.permute_dims(x, axes), lambda x: np.transpose(x, axes), x)  # noqa: B023
    check(lambda x: lnp.transpose(x, range(-len(shape), 0)), lambda x: x, x)
    if len(shape) > 1:
        check(lnp.matrix_transpose, lambda x: np.swapaxes(x, -1, -2), x)


@pytest.mark.parametrize(
    ("values", "steps"), [(7, 1), ((1, 2), 4), (((1, 2), (3, 4)), 4), (((5, 5), (5, 5)), 1), (((1, 2),), 4), (2.5, 1)]
)
def test_padding_with_values_by_side(values: Any, steps: int) -> None:
    widths = ((1, 2), (3, 1))
    for dtype in (F32, I32):
        x = sample((2, 3), dtype)
        expected = np.pad(x, widths, constant_values=values)
        check(lambda x: lnp.pad(x, widths, constant_values=values), lambda _: expected, x)  # noqa: B023
    graph = lx.trace(lambda x: lnp.pad(x, widths, constant_values=values))(sample((2, 3)))
    assert sum(node.op == "pad" for node in graph.nodes) == steps, "one for all sides of one value, else one a side"


def test_padding_one_side_with_a_value_of_its_own() -> None:
    x = sample((3,))
    check(
        lambda x: lnp.pad(x, (2, 0), constant_values=(1, 9)), lambda x: np.pad(x, (2, 0), constant_values=(1, 9)), x
    )
    check(
        lambda x: lnp.pad(x, 1, constant_values=-np.inf), lambda x: np.pad(x, 1, constant_values=-np.inf), x
    )


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_concatenate(axis: int | None) -> None:
    shapes = {0: ((2, 3), (0, 3), (4, 3)), None: ((2, 3), (4,), ())}.get(axis, ((2, 3), (2, 1), (2, 2)))
    for dtypes in ((F32, F32, F32), (I32, BOOL, F32), (U32, I32, BOOL)):
        arrays = [sample(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
        check(lambda *x: lnp.concatenate(x, axis), lambda *x: np.concatenate(x, axis), *arrays)
    check(lambda x: lnp.concat([x]), lambda x: x, sample((2, 3)))


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_stack(axis: int) -> None:
    arrays = sample((2, 3)), sample((2, 3), I32), sample((2, 3), BOOL)
    check(lambda *x: lnp.stack(x, axis), lambda *x: np.stack(x, axis), *arrays)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 4)], ids=str)
def test_side_by_side_and_on_top(shape: tuple[int, ...]) -> None:
    arrays = sample(shape), sample(shape, seed=1)
    check(lambda *x: lnp.hstack(x), lambda *x: np.hstack(x), *arrays)
    check(lambda *x: lnp.vstack(x), lambda *x: np.vstack(x), *arrays)
    check(lambda x, y: lnp.stack([x, y]), lambda x, y: np.stack([x, y]), *arrays)


def test_joining_the_entries_of_an_array() -> None:
    x = sample((2, 3, 4))
    check(lnp.concatenate, np.concatenate, x)
    check(lnp.stack, np.stack, x)
    np.testing.assert_array_equal(np.asarray(lnp.concatenate(x)), np.concatenate(x))
    np.testing.assert_array_equal(np.asarray(lnp.stack([1, 2.5, np.float32(3)])), [1, 2.5, 3])


def test_broadcast_arrays_and_shapes() -> None:
    arrays = sample((3, 1)), sample((4,), I32), sample(())
    check(lambda *x: lnp.broadcast_arrays(*x), lambda *x: np.broadcast_arrays(*x), *arrays)
    assert lnp.broadcast_shapes((3, 1), (4,), ()) == (3, 4)
    assert lnp.broadcast_shapes((0, 1), (1, 5)) == (0, 5)
    assert lnp.broadcast_shapes() == ()


def test_extents_of_numpy_are_integers_of_python() -> None:
    """Narrow ones overflow in sizes, and an equal shape of a program that is kept would bring them to later calls."""
    two, three = np.uint8(2), np.uint8(3)
    line = lnp.arange(3.0)
    made = [
        lnp.broadcast_to(line, np.array([2, 3], np.uint8)),
        lnp.broadcast_to(1.0, three),
        lx.lax.broadcast(line, (two,)),
        lx.lax.broadcast_in_dim(line, (two, three), (1,)),
        lx.lax.broadcasted_iota("int32", (two, three), 0),
        lx.lax.pad(line, 0.0, ((two, three, two),)),
        lx.ops.segment_sum(line, np.array([0, 1, 1]), num_segments=three),
    ]
    assert [array.shape for array in made] == [(2, 3), (3,), (2, 3), (2, 3), (2, 3), (12,), (3,)]
    assert {type(extent) for array in made for extent in array.shape} == {int}
    assert {type(extent) for extent in lnp.broadcast_shapes((two, 1), (three,))} == {int}


@pytest.mark.parametrize(
    "call",
    [
        lambda: lnp.broadcast_to(1.0, (2.0,)),
        lambda: lnp.broadcast_shapes((1 + 2j,)),
        lambda: lx.lax.pad(lnp.ones(2), 0.0, ((1, 1.5, 0),)),
        lambda: lx.ops.segment_sum(lnp.ones(2), np.array([0, 1]), num_segments=2.0),
    ],
)
def test_extents_are_integers(call: Callable[[], Any]) -> None:
    with pytest.raises(DtypeError, match="must be an integer"):
        call()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: lnp.reshape(x, (4, 2)), r"reshape: f32\[2,3\] with 6 elements does not become \(4, 2\)"),
        (lambda x: lnp.reshape(x, (-1, 4)), r"reshape: f32\[2,3\] with 6 elements"),
        (lambda x: lnp.reshape(x, (-1, -1)), "one extent of -1"),
        (lambda x: lnp.transpose(x, (0, 0)), "name an axis of .* twice"),
        (lambda x: lnp.transpose(x, (0,)), "not all axes"),
        (lambda x: lnp.squeeze(x, 1), r"squeeze: axis 1 of f32\[2,3\] has extent 3"),
        (lambda x: lnp.broadcast_to(x, (2, 4)), r"broadcast_to: f32\[2,3\] does not broadcast to \(2, 4\)"),
        (lambda x: lnp.broadcast_to(x, (3,)), "broadcast_to"),
        (lambda x: lnp.broadcast_shapes((2,), (3,)), "broadcast_shapes: .* axis -1 has 2 and 3"),
        (lambda x: lnp.concatenate([x, x[0]]), "concatenate"),
        (lambda x: lnp.concatenate([]), "at least one array"),
        (lambda x: lnp.concatenate([x, x], 2), "concatenate: axis 2 is not an axis"),
        (lambda x: lnp.stack([x, x[0]]), r"stack: the parts must have one shape, got f32\[2,3\], f32\[3\]"),
        (lambda x: lnp.split(x, 2, 1), "split: axis 1 .* does not make 2 equal parts"),
        (lambda x: lnp.pad(x, -1), "must not be negative"),
        (lambda x: lnp.pad(x, ((1, 2), (3, 4), (5, 6))), "pad_width must be a number, a pair"),
        (lambda x: lnp.matrix_transpose(x[0]), "needs at least two axes"),
        (lambda x: lnp.roll(x, (1, 2), (0, 1, 0)), "2 shifts for 3 axes"),
        (lambda x: lnp.repeat(x, -1), "not a number of repetitions"),
        (lambda x: lnp.moveaxis(x, (0, 1), 0), "source names 2 axes, destination 1"),
        (lambda x: lnp.expand_dims(x, 3), "axis 3 is not an axis"),
    ],
)
def test_what_does_not_fit(call: Callable[[lnp.ndarray], Any], words: str) -> None:
    with pytest.raises(ShapeError, match=words) as found:
        call(lnp.array(sample((2, 3))))
    assert "test_manipulation.py:" in str(found.value)


@pytest.mark.usefixtures("reference_backend")
@pytest.mark.parametrize("shift", [-7, 0, 2, 9, 2**31 - 1, -(2**31)])
def test_a_traced_shift_rolls(shift: int) -> None:
    x = np.arange(24, dtype="f").reshape(2, 3, 4)
    for axis in (None, 0, 1, -1):
        found = lx.compile(lambda s, axis=axis: lnp.roll(x, s, axis))(np.int32(shift))
        np.testing.assert_array_equal(np.asarray(found), np.roll(x, shift, axis))
    both = lx.compile(lambda s: lnp.roll(x, s, (2, 0)))(np.array([shift, 1], "int32"))
    np.testing.assert_array_equal(np.asarray(both), np.roll(x, (shift, 1), (2, 0)))
    of_each = lx.vmap(lnp.roll)(x, np.array([shift, 1], "int32"))
    np.testing.assert_array_equal(np.asarray(of_each), [np.roll(x[0], shift), np.roll(x[1], 1)])
    weights = np.cos(np.arange(4, dtype="f"))
    gradient = lx.grad(lambda x, s: lnp.sum(lx.compile(lnp.roll)(x, s) * weights))(weights, shift)
    np.testing.assert_array_equal(np.asarray(gradient), np.roll(weights, -shift))


JOINS: dict[str, list[dict[str, Any]]] = {
    "concatenate": [{"axis": axis} for axis in (0, 1, -1, None)],
    "stack": [{"axis": axis} for axis in (0, 1, -1)],
    "hstack": [{}], "vstack": [{}], "dstack": [{}], "column_stack": [{}],
}  # fmt: skip


@pytest.mark.parametrize("shape", [(5,), (3, 4), (1, 4), (2, 3, 4), (2, 3, 4, 5), (3, 0)], ids=str)
@pytest.mark.parametrize("name", JOINS)
def test_the_parts_of_one_array_are_not_cut_out(name: str, shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape), dtype="f").reshape(shape)
    for settings in JOINS[name]:
        try:
            expected = getattr(np, name)(x, **settings)
        except ValueError:  # parts without axes, or without that one
            with pytest.raises(ShapeError):
                getattr(lnp, name)(lx.device_put(x), **settings)
            continue
        found = getattr(lnp, name)(lx.device_put(x), **settings)
        assert found.shape == expected.shape
        np.testing.assert_array_equal(np.asarray(found), expected)
        graph = lx.trace(lambda x, settings=settings: getattr(lnp, name)(x, **settings))(x)
        assert {node.op for node in graph.nodes} <= {"reshape", "transpose"}


def test_stack_of_lax_takes_one_array_too() -> None:
    x = np.arange(12, dtype="f").reshape(3, 4)
    np.testing.assert_array_equal(np.asarray(lx.lax.stack(lx.device_put(x), 1)), x.T)
    assert [node.op for node in lx.trace(lambda x: lx.lax.stack(x, 1))(x).nodes] == ["transpose"]
