"""Functions that give elements another place or shape: manipulation, joining, cutting, padding."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from tests.lavax.properties.cases import (
    DTYPES,
    F32,
    I32,
    NUMBERS,
    Arguments,
    Case,
    Draw,
    along,
    axes_of,
    axis_of,
    named,
    numbers,
    one,
    shapes,
)

PAD_MODES = ("constant", "edge", "reflect", "symmetric", "wrap", "linear_ramp", "maximum", "minimum", "mean")


@st.composite
def reshaping(draw: Draw) -> Arguments:
    shape = draw(shapes())
    size = math.prod(shape)
    options = [(-1,), (size,), tuple(reversed(shape)), (1, *shape, 1)]
    if size:
        options += [(-1, shape[0]) if shape else (1, -1)]
    else:
        options = [(size,), tuple(reversed(shape)), (0, 7)]
    chosen = {"shape": draw(st.sampled_from(options)), "order": draw(st.sampled_from("CF"))}
    return Arguments((numbers(draw, shape),), chosen)


@st.composite
def flattening(draw: Draw) -> Arguments:
    return Arguments((numbers(draw, draw(shapes())),), {"order": draw(st.sampled_from("CF"))})


@st.composite
def permuted(draw: Draw) -> Arguments:
    shape = draw(shapes())
    axes = draw(st.permutations(range(len(shape))))
    return Arguments((numbers(draw, shape),), {"axes": draw(st.sampled_from([None, tuple(axes)]))})


@st.composite
def two_axes(draw: Draw, first: str, second: str, low: int = 1) -> Arguments:
    shape = draw(shapes(low))
    pair = {first: axis_of(draw, len(shape)), second: axis_of(draw, len(shape))}
    return Arguments((numbers(draw, shape),), pair)


@st.composite
def rotated(draw: Draw) -> Arguments:
    shape = draw(shapes(2))
    first, second = draw(st.permutations(range(len(shape))))[:2]
    options = {"k": draw(st.integers(-5, 5)), "axes": (first, second - len(shape))}
    return Arguments((numbers(draw, shape),), options)


@st.composite
def widened(draw: Draw) -> Arguments:
    shape = draw(shapes(0, 4))
    rank = len(shape)
    axis = draw(st.one_of(st.integers(-rank - 1, rank), st.just((0, -1))))
    return Arguments((numbers(draw, shape),), {"axis": axis})


@st.composite
def squeezed(draw: Draw) -> Arguments:
    shape = list(draw(shapes(0, 4)))
    axis = None
    if shape and draw(st.booleans()):
        axis = axis_of(draw, len(shape))
        shape[axis] = 1
    return Arguments((numbers(draw, shape),), {"axis": axis})


@st.composite
def some_axes(draw: Draw) -> Arguments:
    shape = draw(shapes())
    return Arguments((numbers(draw, shape),), {"axis": axes_of(draw, len(shape))})


@st.composite
def rolled(draw: Draw) -> Arguments:
    shape = draw(shapes())
    axis = axes_of(draw, len(shape)) if shape else None  # NumPy fails on no axes of none
    shift = draw(st.integers(-7, 7))
    if isinstance(axis, tuple) and axis and draw(st.booleans()):
        return Arguments((numbers(draw, shape),), {"shift": tuple(range(shift, shift + len(axis))), "axis": axis})
    return Arguments((numbers(draw, shape),), {"shift": shift, "axis": axis})


@st.composite
def repeated(draw: Draw) -> Arguments:
    return draw(along(low=0, none=True, repeats=st.integers(0, 3)))


@st.composite
def repeated_each(draw: Draw) -> Arguments:
    shape = draw(shapes(1))
    axis = axis_of(draw, len(shape), none=True)
    counts = numbers(draw, (math.prod(shape) if axis is None else shape[axis],), (I32,), 0, 3)
    return Arguments((numbers(draw, shape),), {"repeats": counts, "axis": axis})


@st.composite
def tiled(draw: Draw) -> Arguments:
    reps = draw(st.one_of(st.integers(0, 3), st.lists(st.integers(0, 3), max_size=4).map(tuple)))
    return Arguments((numbers(draw, draw(shapes(0, 3))),), {"reps": reps})


@st.composite
def spread(draw: Draw) -> Arguments:
    found = draw(arrays_of.mutually_broadcastable_shapes(num_shapes=1, min_side=0, max_side=3))
    target = draw(arrays_of.broadcastable_shapes(found.result_shape, max_dims=5, min_side=0, max_side=3))
    common = np.broadcast_shapes(found.result_shape, target)
    return Arguments((numbers(draw, found.result_shape),), {"shape": common})


@st.composite
def broadcasting(draw: Draw) -> Arguments:
    found = draw(arrays_of.mutually_broadcastable_shapes(num_shapes=3, max_dims=4, min_side=0, max_side=3))
    return Arguments(tuple(numbers(draw, shape) for shape in found.input_shapes))


@st.composite
def broadcast_of_shapes(draw: Draw) -> Arguments:
    found = draw(arrays_of.mutually_broadcastable_shapes(num_shapes=3, min_side=0, max_side=3))
    return Arguments((), {"shapes": found.input_shapes})


@st.composite
def side_by_side(draw: Draw, low: int = 1, high: int = 5, none: bool = True, same: bool = False) -> Arguments:
    """Arrays of one shape but, if not `same`, for an axis, in any mixture of dtypes."""
    shape = list(draw(shapes(low, high)))
    axis = axis_of(draw, len(shape))
    arrays = []
    for _ in range(draw(st.integers(1, 4))):
        if not same and axis is not None:
            shape[axis] = draw(st.integers(0, 3))
        arrays.append(numbers(draw, shape))
    return Arguments(tuple(arrays), {"axis": axis_of(draw, 0) if none and draw(st.booleans()) else axis})


@st.composite
def stacked(draw: Draw) -> Arguments:
    shape = draw(shapes(0, 4))
    axis = draw(st.integers(-len(shape) - 1, len(shape)))
    return Arguments(tuple(numbers(draw, shape) for _ in range(draw(st.integers(1, 4)))), {"axis": axis})


@st.composite
def equal_shapes(draw: Draw, low: int = 0, high: int = 4) -> Arguments:
    shape = draw(shapes(low, high))
    return Arguments(tuple(numbers(draw, shape) for _ in range(draw(st.integers(1, 4)))))


@st.composite
def cut(draw: Draw, low: int = 1, uneven: bool = False, axis: bool = True) -> Arguments:
    shape = draw(shapes(low))
    along = axis_of(draw, len(shape)) if axis else 0
    parts: Any = draw(st.one_of(st.integers(1, 5), st.lists(st.integers(-3, 6), max_size=3).map(sorted)))
    options = {"indices_or_sections": parts} | ({"axis": along} if axis else {})
    return Arguments((numbers(draw, shape),), options)


@st.composite
def appended(draw: Draw) -> Arguments:
    x, y = draw(side_by_side(none=False).filter(lambda drawn: len(drawn.arrays) == 2)).arrays
    return Arguments((x, y), {"axis": None})


@st.composite
def blocks(draw: Draw) -> Arguments:
    rows, columns = draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))
    return Arguments(tuple(numbers(draw, (rows, columns)) for _ in range(4)))


@st.composite
def resized(draw: Draw) -> Arguments:
    return Arguments((numbers(draw, draw(shapes(0, 3))),), {"new_shape": draw(shapes(0, 3))})


@st.composite
def padded(draw: Draw) -> Arguments:
    shape = draw(shapes(1, 4, 1))
    widths = tuple((draw(st.integers(0, 4)), draw(st.integers(0, 4))) for _ in shape)
    mode = draw(st.sampled_from(PAD_MODES))
    options: dict[str, Any] = {"pad_width": widths, "mode": mode}
    if mode == "constant":
        options["constant_values"] = draw(st.integers(0, 9))
    if mode in ("reflect", "symmetric"):
        options["reflect_type"] = draw(st.sampled_from(["even", "odd"]))
    return Arguments((numbers(draw, shape, (F32,)),), options)


@st.composite
def triangle(draw: Draw) -> Arguments:
    return Arguments((numbers(draw, draw(shapes(2))),), {"k": draw(st.integers(-4, 4))})


@st.composite
def diagonals(draw: Draw) -> Arguments:
    shape = draw(shapes(2))
    first, second = draw(st.permutations(range(len(shape))))[:2]
    options = {"offset": draw(st.integers(-4, 4)), "axis1": first, "axis2": second - len(shape)}
    return Arguments((numbers(draw, shape),), options)


@st.composite
def diagonal_of(draw: Draw, low: int, high: int) -> Arguments:
    return Arguments((numbers(draw, draw(shapes(low, high)), NUMBERS),), {"k": draw(st.integers(-3, 3))})


@st.composite
def lines(draw: Draw) -> Arguments:
    arrays = tuple(numbers(draw, draw(shapes(0, 1))) for _ in range(draw(st.integers(1, 3))))
    return Arguments(arrays, {"indexing": draw(st.sampled_from(["xy", "ij"])), "sparse": draw(st.booleans())})


def joined(name: str) -> Callable[[Any], Callable[..., Any]]:
    """A function of a list of arrays, as one of the arrays."""
    return lambda namespace: lambda *arrays, **options: getattr(namespace, name)(list(arrays), **options)


def _block(namespace: Any) -> Callable[..., Any]:
    return lambda a, b, c, d: namespace.block([[a, b], [c, d]])


def _repeat(namespace: Any) -> Callable[..., Any]:
    return lambda x, repeats, axis: namespace.repeat(x, repeats, axis=axis)


CASES: dict[str, Case] = {
    "reshape": named("reshape", reshaping()),
    "ravel": named("ravel", flattening()),
    "transpose": named("transpose", permuted()),
    "matrix_transpose": named("matrix_transpose", one(low=2)),
    "swapaxes": Case(two_axes("axis1", "axis2"), lambda n: lambda x, axis1, axis2: n.swapaxes(x, axis1, axis2)),
    "moveaxis": named("moveaxis", two_axes("source", "destination")),
    "rollaxis": named("rollaxis", two_axes("axis", "start")),
    "expand_dims": named("expand_dims", widened()),
    "squeeze": named("squeeze", squeezed()),
    "flip": named("flip", some_axes()),
    "fliplr": named("fliplr", one(low=2)),
    "flipud": named("flipud", one(low=1)),
    "rot90": named("rot90", rotated()),
    "atleast_1d": named("atleast_1d", one(high=3)),
    "atleast_2d": named("atleast_2d", one(high=3)),
    "atleast_3d": named("atleast_3d", one(high=4)),
    "roll": named("roll", rolled(), lenient=True),
    "repeat": Case(repeated(), _repeat),
    "repeat by entry": Case(repeated_each(), _repeat, eager=True),
    "tile": named("tile", tiled()),
    "broadcast_to": named("broadcast_to", spread()),
    "broadcast_arrays": named("broadcast_arrays", broadcasting()),
    "concatenate": Case(side_by_side(), joined("concatenate")),
    "stack": Case(stacked(), joined("stack")),
    "hstack": Case(equal_shapes(), joined("hstack")),
    "vstack": Case(equal_shapes(), joined("vstack")),
    "dstack": Case(equal_shapes(), joined("dstack")),
    "column_stack": Case(equal_shapes(0, 3), joined("column_stack")),
    "append": named("append", appended()),
    "block": Case(blocks(), _block),
    "unstack": named("unstack", along()),
    "split": named("split", cut()),
    "array_split": named("array_split", cut()),
    "hsplit": named("hsplit", cut(axis=False)),
    "vsplit": named("vsplit", cut(2, axis=False)),
    "dsplit": named("dsplit", cut(3, axis=False)),
    "resize": named("resize", resized()),
    "pad": named("pad", padded()),
    "tril": named("tril", triangle()),
    "triu": named("triu", triangle()),
    "diagonal": named("diagonal", diagonals()),
    "trace": named("trace", diagonals()),
    "diag": named("diag", diagonal_of(1, 2)),
    "diagflat": named("diagflat", diagonal_of(0, 2)),
    "meshgrid": named("meshgrid", lines()),
    "apply_along_axis": Case(
        along((F32, I32), smallest=1),
        lambda n: lambda x, axis: n.apply_along_axis(lambda line: line[::-1] * 2, axis, x),
    ),
    "apply_along_axis to matrices": Case(
        along(NUMBERS, smallest=1, high=3),
        lambda n: lambda x, axis: n.apply_along_axis(lambda line: n.outer(line, line[:1]), axis, x),
    ),
    "apply_over_axes": Case(
        along(NUMBERS, name="axes"), lambda n: lambda x, axes: n.apply_over_axes(n.sum, x, axes)
    ),
    "zeros_like": named("zeros_like", one(DTYPES)),
    "ones_like": named("ones_like", one(DTYPES)),
}
