"""Products of arrays, calculus along an axis, polynomials and windows of two lines."""
from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from tests.lavax.properties.cases import F32, NUMBERS, Arguments, Case, Draw, along, axis_of, named, numbers, shapes

MATMUL = arrays_of.mutually_broadcastable_shapes(signature=np.matmul.signature, max_dims=3, min_side=0, max_side=3)
extents = st.integers(0, 4)


@st.composite
def factors(draw: Draw) -> Arguments:
    return Arguments(tuple(numbers(draw, shape, NUMBERS) for shape in draw(MATMUL).input_shapes))


@st.composite
def dotted(draw: Draw, matching: str) -> Arguments:
    """Two arrays whose last axes agree, or the last and the last but one."""
    left, right = list(draw(shapes(0, 3))), list(draw(shapes(0, 3)))
    if left and right:
        right[-2 if matching == "dot" and len(right) > 1 else -1] = left[-1]
    return Arguments((numbers(draw, left, NUMBERS), numbers(draw, right, NUMBERS)))


@st.composite
def any_two(draw: Draw, high: int = 3) -> Arguments:
    return Arguments(tuple(numbers(draw, draw(shapes(0, high)), NUMBERS) for _ in range(2)))


@st.composite
def same_shape(draw: Draw) -> Arguments:
    shape = draw(shapes(0, 4))
    return Arguments(tuple(numbers(draw, shape, NUMBERS) for _ in range(2)))


@st.composite
def vectors(draw: Draw, extent: Any = extents) -> Arguments:
    """Stacks of vectors that broadcast, along the last axis."""
    found = draw(arrays_of.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, min_side=0, max_side=3))
    n = draw(extent)
    return Arguments(tuple(numbers(draw, (*shape, n), NUMBERS) for shape in found.input_shapes))


@st.composite
def tensors(draw: Draw) -> Arguments:
    shared = draw(shapes(0, 2))
    left, right = (*draw(shapes(0, 2)), *shared), (*shared, *draw(shapes(0, 2)))
    axes: Any = len(shared)
    if draw(st.booleans()):
        axes = (tuple(range(-len(shared), 0)), tuple(range(len(shared))))
    return Arguments((numbers(draw, left, NUMBERS), numbers(draw, right, NUMBERS)), {"axes": axes})


SUBSCRIPTS = ("ij,jk->ik", "ij,jk", "bij,bjk->bik", "i,i", "i,j->ij", "ij,kj->ki", "ijk,k->j", "ij,ij->", "ij,ji")


@st.composite
def summed(draw: Draw) -> Arguments:
    subscripts = draw(st.sampled_from(SUBSCRIPTS))
    lengths = {label: draw(st.integers(0, 3)) for label in "ijkb"}
    terms = subscripts.split("->")[0].split(",")
    arrays = tuple(numbers(draw, [lengths[label] for label in term], NUMBERS) for term in terms)
    return Arguments(arrays, {"subscripts": subscripts})


@st.composite
def differences(draw: Draw) -> Arguments:
    shape = draw(shapes(1, 5, 1))
    axis = axis_of(draw, len(shape))
    assert axis is not None
    return Arguments((numbers(draw, shape, NUMBERS),), {"n": draw(st.integers(0, shape[axis])), "axis": axis})


@st.composite
def slopes(draw: Draw) -> Arguments:
    shape = tuple(extent + 2 for extent in draw(shapes(1, 3)))
    options = {"axis": axis_of(draw, len(shape)), "edge_order": 1}
    return Arguments((numbers(draw, shape, (F32,)),), options)


@st.composite
def table(draw: Draw) -> Arguments:
    n = draw(st.integers(1, 5))
    places = np.sort(numbers(draw, (n,), (F32,))) + np.arange(n, dtype=F32)
    return Arguments((numbers(draw, draw(shapes(0, 3)), (F32,), -5, 9), places, numbers(draw, (n,), (F32,))))


@st.composite
def polynomial(draw: Draw) -> Arguments:
    p = numbers(draw, (draw(st.integers(1, 5)),), NUMBERS)
    return Arguments((p, numbers(draw, draw(shapes(0, 3)), (F32,))))


@st.composite
def two_lines(draw: Draw) -> Arguments:
    n, m = draw(st.tuples(st.integers(1, 6), st.integers(1, 6)))
    mode = draw(st.sampled_from(["full", "same", "valid"]))
    return Arguments((numbers(draw, (n,), NUMBERS), numbers(draw, (m,), NUMBERS)), {"mode": mode})


@st.composite
def areas(draw: Draw) -> Arguments:
    shape = draw(shapes(1, 4))
    axis = axis_of(draw, len(shape))
    assert axis is not None
    y = numbers(draw, shape, (F32,))
    if draw(st.booleans()):
        return Arguments((y, numbers(draw, (shape[axis],), (F32,))), {"axis": axis})
    return Arguments((y,), {"axis": axis, "dx": 0.5})


CASES: dict[str, Case] = {
    "matmul": named("matmul", factors()),
    "dot": named("dot", dotted("dot")),
    "inner": named("inner", dotted("inner")),
    "outer": named("outer", any_two()),
    "vdot": named("vdot", same_shape()),
    "kron": named("kron", any_two()),
    "vecdot": named("vecdot", vectors()),
    "cross": named("cross", vectors(st.just(3))),
    "tensordot": named("tensordot", tensors()),
    "einsum": Case(summed(), lambda n: lambda *arrays, subscripts: n.einsum(subscripts, *arrays)),
    "diff": named("diff", differences()),
    "ediff1d": named("ediff1d", same_shape().map(lambda drawn: Arguments(drawn.arrays[:1]))),
    "gradient": named("gradient", slopes()),
    "interp": named("interp", table()),
    "polyval": named("polyval", polynomial()),
    "convolve": named("convolve", two_lines()),
    "correlate": named("correlate", two_lines()),
    "trapezoid": Case(areas(), lambda n: lambda y, *x, **options: n.trapezoid(y, *x, **options)),
    "unwrap": named("unwrap", along((F32,), range=(-9, 9))),
}
