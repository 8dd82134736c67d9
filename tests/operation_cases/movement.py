"""Operations that move elements."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lavax.ir import TensorType
from tests.operation_cases.case import SAMPLED_DTYPES, Case, Shape, case_of, generator, sample


def moved(op: str, shape: Shape, label: str, attrs: Mapping[str, Any], result: Shape | None = None) -> Iterator[Case]:
    for dtype in SAMPLED_DTYPES:
        type = TensorType(shape, dtype)
        attributes = dict(attrs)
        if "value" in attributes:
            kinds: dict[str, Any] = {"float": float, "bool": bool}
            attributes["value"] = kinds.get(dtype.kind, int)(attributes["value"])
        declared = None if result is None else TensorType(result, dtype)
        array = sample(generator(f"{op}{type}{label}"), type)
        yield case_of(op, f"{type}-{label}", [array], attributes, declared)


def _reshape() -> Iterator[Case]:
    for shape, result in (
        ((), (1, 1)),
        ((1,), ()),
        ((3, 17), (51,)),
        ((41,), (41, 1)),
        ((2, 3, 4), (4, 6)),
        ((6, 4), (3, 2, 2, 2)),
        ((3, 0), (0, 5)),
    ):
        yield from moved("reshape", shape, str(result), {}, result)


def _transpose() -> Iterator[Case]:
    for shape, axes in (
        ((), ()),
        ((3,), (0,)),
        ((3, 17), (1, 0)),
        ((41, 1), (1, 0)),
        ((2, 3, 5), (2, 0, 1)),
        ((2, 3, 1, 4), (3, 2, 0, 1)),
        ((0, 3), (1, 0)),
    ):
        yield from moved("transpose", shape, str(axes), dict(axes=axes))


def _broadcast() -> Iterator[Case]:
    for shape, axes, result in (
        ((), (), ()),
        ((), (), (3, 5)),
        ((3,), (0,), (3, 41)),
        ((17,), (1,), (3, 17)),
        ((1, 5), (0, 1), (3, 5)),
        ((3, 1), (0, 2), (3, 2, 4)),
        ((2, 3), (1, 2), (1, 2, 3)),
        ((3,), (0,), (3, 0)),
    ):
        yield from moved("broadcast", shape, f"{axes}-{result}", dict(axes=axes), result)


def _slice() -> Iterator[Case]:
    for shape, start, limit, stride in (
        ((), (), (), ()),
        ((17,), (3,), (11,), (1,)),
        ((41,), (0,), (41,), (3,)),
        ((41,), (5,), (40,), (7,)),
        ((3, 17), (1, 2), (2, 17), (1, 4)),
        ((2, 3, 5), (0, 0, 1), (2, 3, 5), (1, 2, 2)),
        ((5,), (2,), (2,), (1,)),
        ((0, 3), (0, 1), (0, 2), (1, 1)),
    ):
        yield from moved("slice", shape, f"{start}-{limit}-{stride}", dict(start=start, limit=limit, stride=stride))


def _pad() -> Iterator[Case]:
    for shape, low, high, interior, value in (
        ((), (), (), (), 1),
        ((3,), (1,), (2,), (0,), 0),
        ((17,), (0,), (0,), (2,), 1),
        ((3, 5), (1, 0), (0, 2), (0, 1), 1),
        ((2, 1, 3), (0, 1, 1), (1, 0, 1), (1, 2, 0), 0),
        ((0,), (1,), (2,), (3,), 1),
        ((41,), (0,), (0,), (0,), 0),
    ):
        attrs = dict(low=low, high=high, interior=interior, value=value)
        yield from moved("pad", shape, f"{low}-{high}-{interior}", attrs)


def _concatenate() -> Iterator[Case]:
    for shapes, axis in (
        (((3,),), 0),
        (((3,), (1,), (17,)), 0),
        (((3, 5), (3, 1), (3, 0), (3, 2)), 1),
        (((1, 5), (41, 5)), 0),
        (((2, 3, 2), (2, 1, 2), (2, 4, 2)), 1),
    ):
        for dtype in SAMPLED_DTYPES:
            random = generator(f"concatenate{dtype}{shapes}")
            arrays = [sample(random, TensorType(shape, dtype)) for shape in shapes]
            yield case_of("concatenate", f"{dtype}-{shapes}-{axis}", arrays, dict(axis=axis))


def _flip() -> Iterator[Case]:
    for shape, axes in (((), ()), ((17,), (0,)), ((3, 5), (0,)), ((3, 5), (0, 1)), ((2, 1, 41), (1, 2)), ((0,), (0,))):
        yield from moved("flip", shape, str(axes), dict(axes=axes))


MAKERS: dict[str, Callable[[], Iterator[Case]]] = {
    "reshape": _reshape,
    "transpose": _transpose,
    "broadcast": _broadcast,
    "slice": _slice,
    "pad": _pad,
    "concatenate": _concatenate,
    "flip": _flip,
}
