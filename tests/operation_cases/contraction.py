"""Contractions, and convolutions and windows."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from lavax.ir import TensorType, bool_, float32, int32, uint32
from tests.operation_cases.case import SAMPLED_DTYPES, Case, Shape, case_of, generator, sample
from tests.operation_cases.movement import moved

_DOTS: tuple[tuple[Shape, Shape, Any, Any], ...] = (
    ((3,), (3,), ((0,), (0,)), ((), ())),
    ((), (), ((), ()), ((), ())),
    ((), (2, 3), ((), ()), ((), ())),
    ((3,), (5,), ((), ()), ((), ())),
    ((7, 5), (5, 3), ((1,), (0,)), ((), ())),
    ((5, 7), (5, 3), ((0,), (0,)), ((), ())),
    ((7, 5), (3, 5), ((1,), (1,)), ((), ())),
    ((1, 17), (17, 41), ((1,), (0,)), ((), ())),
    ((41, 1), (1, 3), ((1,), (0,)), ((), ())),
    ((17,), (17, 3), ((0,), (0,)), ((), ())),
    ((2, 3, 4), (2, 4, 5), ((2,), (1,)), ((0,), (0,))),
    ((3, 2, 4), (4, 5, 2), ((2,), (0,)), ((1,), (2,))),
    ((2, 3, 4, 5), (5, 3, 2), ((3,), (0,)), ((1, 0), (1, 2))),
    ((2, 3, 4), (4, 3, 6), ((1, 2), (1, 0)), ((), ())),
    ((2, 3, 4), (4, 3, 6), ((2, 1), (0, 1)), ((), ())),
    ((2, 3), (3, 2), ((1,), (0,)), ((0,), (1,))),
    ((2, 3), (2, 3), ((), ()), ((0, 1), (0, 1))),
    ((3, 0), (0, 2), ((1,), (0,)), ((), ())),
    ((0, 3), (3, 2), ((1,), (0,)), ((), ())),
)


def _dot() -> Iterator[Case]:
    for dtype in (dtype for dtype in SAMPLED_DTYPES if dtype != bool_):
        for left, right, contract, batch in _DOTS:
            label = f"{dtype}-{left}-{right}-{contract}-{batch}"
            random = generator(f"dot{label}")
            arrays = [sample(random, TensorType(shape, dtype)) for shape in (left, right)]
            yield case_of("dot", label, arrays, dict(contract=contract, batch=batch))
    for sides in ((65, 33, 129), (130, 70, 1), (3, 300, 5)):
        m, k, n = sides
        random = generator(f"dot{sides}")
        arrays = [sample(random, TensorType(shape, float32)) for shape in ((m, k), (k, n))]
        yield case_of("dot", f"f32-{m}x{k}x{n}", arrays, dict(contract=((1,), (0,)), batch=((), ())))


# Shapes of both operands; contract, batch and window axes; stride, low, high, interior, dilation of each window axis.
_CONVS: tuple[tuple[Shape, Shape, Any, Any, Any, Any], ...] = (
    ((5,), (3,), ((), ()), ((), ()), ((0,), (0,)), ((1, 0, 0, 0, 1),)),
    ((2, 7, 3), (3, 3, 4), ((2,), (1,)), ((), ()), ((1,), (0,)), ((2, 1, 1, 0, 1),)),
    ((2, 3, 6), (4, 3, 2), ((1,), (1,)), ((), ()), ((2,), (2,)), ((1, 2, 1, 0, 2),)),
    ((2, 5, 4, 3), (3, 2, 3, 4), ((3,), (2,)), ((), ()), ((1, 2), (0, 1)), ((1, 1, 1, 0, 1), (2, 0, 1, 0, 1))),
    ((2, 3, 5, 4), (2, 3, 3, 3), ((1,), (1,)), ((), ()), ((2, 3), (2, 3)), ((1, 1, 1, 0, 1), (1, 1, 1, 0, 1))),
    ((1, 2, 4, 4), (3, 2, 3, 2), ((1,), (1,)), ((), ()), ((2, 3), (2, 3)), ((1, 2, 1, 1, 1), (1, 1, 2, 2, 2))),
    ((2, 2, 5, 3), (2, 4, 3, 2), ((3,), (2,)), ((1,), (0,)), ((2,), (3,)), ((1, 0, 0, 0, 1),)),
    ((2, 5, 6, 3), (3, 3, 3), ((), ()), ((3,), (2,)), ((1, 2), (0, 1)), ((1, 1, 1, 0, 1), (2, 1, 0, 0, 1))),
    ((3, 6, 2), (2, 3, 4), ((2,), (0,)), ((), ()), ((1,), (1,)), ((1, -1, -2, 0, 1),)),
    ((3, 5), (2, 3), ((), ()), ((), ()), ((1,), (0,)), ((3, -1, 4, 1, 2),)),
    ((1, 3, 3, 2, 2), (2, 2, 2, 2, 3), ((4,), (3,)), ((), ()), ((1, 2, 3), (0, 1, 2)), ((1, 1, 0, 0, 1),) * 3),
    ((2, 3, 4), (4, 5), ((2,), (0,)), ((), ()), ((), ()), ()),
    ((4, 8, 8, 8), (3, 3, 8, 16), ((3,), (2,)), ((), ()), ((1, 2), (0, 1)), ((1, 1, 1, 0, 1),) * 2),
    ((2, 4, 9, 8), (8, 4, 3, 3), ((1,), (1,)), ((), ()), ((2, 3), (2, 3)), ((2, 1, 1, 0, 1),) * 2),
    ((2, 2, 3), (4, 3, 5), ((2,), (1,)), ((), ()), ((1,), (0,)), ((1, 0, 0, 0, 1),)),
    ((0, 5, 3), (2, 3, 4), ((2,), (1,)), ((), ()), ((1,), (0,)), ((1, 0, 0, 0, 1),)),
    ((2, 5, 0), (2, 0, 4), ((2,), (1,)), ((), ()), ((1,), (0,)), ((1, 0, 0, 0, 1),)),
    ((2, 0, 3), (2, 3, 4), ((2,), (1,)), ((), ()), ((1,), (0,)), ((1, 1, 2, 0, 1),)),
)


def _conv() -> Iterator[Case]:
    for dtype in (float32, int32, uint32):
        for left, right, contract, batch, window, numbers in _CONVS:
            lists = zip(*numbers, strict=True) if numbers else [()] * 5
            names = ("stride", "low", "high", "interior", "dilation")
            attrs = dict(zip(names, map(tuple, lists), strict=True), window=window, contract=contract, batch=batch)
            label = f"{dtype}-{left}-{right}-{numbers}"
            random = generator(f"conv{label}")
            arrays = [sample(random, TensorType(shape, dtype)) for shape in (left, right)]
            yield case_of("conv", label, arrays, attrs)


# The narrow shape, the wide one, and for each sheared axis: the axis, the one along it, stride and dilation.
_SHEARED: tuple[tuple[Shape, Shape, tuple[tuple[int, int, int, int], ...]], ...] = (
    ((3, 2), (4, 2), ((0, 1, 1, 1),)),
    ((3, 2), (7, 2), ((0, 1, 2, 1),)),
    ((2, 4, 3), (2, 9, 3), ((1, 2, 1, 2),)),
    ((3, 2, 4), (3, 2, 17), ((2, 0, 3, 2),)),
    ((2, 3, 4, 2, 3), (2, 4, 9, 2, 3), ((1, 3, 1, 1), (2, 4, 2, 1))),
    ((1, 3), (5, 3), ((0, 1, 2, 2),)),
    ((2, 3), (2, 3), ()),
    ((2, 3, 0), (2, 5, 0), ((1, 2, 1, 1),)),
)


def _sheared(op: str) -> Iterator[Case]:
    for narrow, wide, numbers in _SHEARED:
        lists = zip(*numbers, strict=True) if numbers else [()] * 4
        attrs = dict(zip(("axes", "along", "stride", "dilation"), map(tuple, lists), strict=True))
        shapes = (wide, narrow) if op == "shear" else (narrow, wide)
        yield from moved(op, shapes[0], f"{shapes[1]}-{numbers}", attrs, shapes[1])
    if op == "shear":
        yield from moved(op, (1, 3), "none", dict(axes=(0,), along=(1,), stride=(1,), dilation=(1,)), (0, 3))


MAKERS: dict[str, Callable[[], Iterator[Case]]] = {
    "dot": _dot,
    "conv": _conv,
    **{op: partial(_sheared, op) for op in ("shear", "unshear")},
}
