"""Cumulative operations, sorting, attention, and matrices that are taken apart."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from lavax.ir import OPERATIONS, Node, TensorType, bool_, float32, float64
from lavax.ir.ops.attention import OPERANDS as ATTENTION
from lavax.ir.ops.attention import names_of, statistic_dtype
from lavax.ir.ops.cumulative import CUMULATIVE
from lavax.passes.build import builder
from lavax.passes.build.builder import build
from tests.fuzz.draw import ALL, NotDrawnError, Source

Generator = Callable[[Source], Node]


def _cumulative(op: str, source: Source) -> Node:
    x = source.pick(CUMULATIVE[op][0], 1)
    if op == "cumulative_prod" and x.dtype.is_float:
        x = source.within(x, 0.7, 1.3)
    return build(op, x, axis=source.axis_of(x), reverse=source.chance(0.4))


def _sort(op: str, source: Source) -> Node:
    x = source.pick(ALL, 1)
    return build(op, x, axis=source.axis_of(x))


def _top_order(source: Source) -> Node:
    x = source.pick(ALL, 1)
    axis = source.axis_of(x)
    count, signed = source.number(0, max(x.shape[axis], 1)), source.chance(0.4)
    return build("top_order", x, axis=axis, count=count, signed_zeros=signed)


def _unsort(source: Source) -> Node:
    x = source.pick(ALL, 1)
    axis = source.axis_of(x)
    return build("unsort", x, build("sort_order", source.like(x), axis=axis), axis=axis)


def _search_sorted(source: Source) -> Node:
    x = source.pick(ALL, 1)
    count = source.extent()
    values = source.of_type(x.type.with_shape((*x.shape[:-1], count)))
    return build("search_sorted", build("sort", x, axis=x.type.rank - 1), values, right=source.chance(0.5))


def _attention(op: str, source: Source) -> Node:
    dtype = source.pick(("float",)).dtype
    batch = tuple(source.one_of((1, 2, 3)) for _ in range(source.number(0, 3)))
    queries, keys, head, values = (source.one_of((1, 3, 4, 8, 17, 37)) for _ in range(4))
    attrs: dict[str, Any] = dict(
        scale=source.one_of((0.5, 1.0)),
        fill=source.one_of((float("-inf"), -2.0)),
        lowest=source.one_of((1 - queries, 1 - queries, -2)),
        highest=source.one_of((keys - 1, keys - 1, 0, 1)),
        biased=source.chance(0.3),
        masked=source.chance(0.3),
        empty=source.chance(0.5),
    )
    attrs = {name: attrs[name] for name in OPERATIONS[op].attributes if name in attrs}
    shapes = {
        "query": (queries, head),
        "key": (keys, head),
        "value": (keys, values),
        "cotangent": (queries, values),
        "delta": (queries,),
        "logsumexp": (queries,),
        "bias": (queries, keys),
        "mask": (queries, keys),
    }
    operands = []
    for name in names_of(op, attrs):
        shape = (*batch, *shapes[name])
        if name == "mask":
            operands.append(source.of_type(TensorType(shape, bool_)))
        elif name == "logsumexp":
            query, key, *_ = operands
            rest = {k: v for k, v in attrs.items() if k != "block"} | dict(biased=False, masked=False, empty=True)
            operands.append(build("attention_logsumexp", query, key, **rest))
        else:
            kind = statistic_dtype(dtype) if name == "delta" else dtype
            operands.append(source.within(source.of_type(TensorType(shape, kind)), -1, 1))
    return build(op, *operands, **attrs)


def _matrix(source: Source, tall: bool = False) -> Node:
    """A well conditioned matrix: some value, bounded, and twice the unit matrix or more."""
    dtype = source.pick(("float",), fits=lambda node: node.dtype in (float32, float64)).dtype
    columns = source.one_of((1, 2, 3, 4, 8))
    rows = columns + (source.one_of((0, 1, 5)) if tall else 0)
    batch = tuple(source.one_of((1, 3)) for _ in range(source.number(0, 2)))
    type = TensorType((*batch, rows, columns), dtype)
    noise = source.within(source.of_type(type), -1 / rows, 1 / rows)
    unit = builder.cast(build("equal", builder.iota(index := builder.index_type(type.shape), len(batch)),
                              builder.iota(index, len(batch) + 1)), dtype)  # fmt: skip
    steps = builder.iota(type, len(batch) + 1)
    grown = builder.add(steps, builder.splat(2.0, type))
    return builder.add(noise, builder.multiply(unit, grown))


def _symmetric(source: Source) -> Node:
    matrix = _matrix(source)
    rank = matrix.type.rank
    axes = (*range(rank - 2), rank - 1, rank - 2)
    return builder.multiply(builder.add(matrix, builder.transpose(matrix, axes)), builder.splat(0.5, matrix.type))


def _factored(op: str, source: Source) -> Node:
    matrix = _symmetric(source) if op in ("cholesky", "eigh") else _matrix(source, tall=op in ("qr", "svd"))
    names = OPERATIONS[op].attributes
    attrs: dict[str, Any] = {name: source.chance(0.5) for name in names}
    if matrix.shape[-1] != matrix.shape[-2] and attrs.get("complete"):
        attrs["complete"] = False  # what completes the vectors is not determined
    if op == "svd" and not attrs["vectors"]:  # behind the values is memory that means nothing
        found = build(op, matrix, **attrs)
        count = matrix.shape[-1]
        rank = found.type.rank
        return builder.slice_(found, [0] * rank, [*found.shape[:-1], count], [1] * rank)
    return build(op, matrix, **attrs)


def _solve(op: str, source: Source) -> Node:
    matrix = _matrix(source)
    right = source.of_type(matrix.type.with_shape((*matrix.shape[:-1], source.one_of((1, 3, 17)))))
    transposed = source.chance(0.5)
    if op == "linear_solve":
        return build(op, matrix, build("lu", matrix), right, transposed=transposed)
    unit = source.chance(0.3)
    return build(op, matrix, right, lower=source.chance(0.5), transposed=transposed, unit_diagonal=unit)


def _trigonometric_4(source: Source) -> Node:
    """Of lines cut to an even number of elements."""
    x = source.pick(("float",), 1, lambda node: node.dtype.name in ("f32", "f64") and max(node.shape) > 1)
    axis = source.one_of([axis for axis, extent in enumerate(x.shape) if extent > 1])
    limits = [extent - extent % 2 if at == axis else extent for at, extent in enumerate(x.shape)]
    cut = builder.slice_(x, [0] * x.type.rank, limits, [1] * x.type.rank)
    return build("trigonometric_4", cut, axis=axis, sines=source.chance(0.5))


def _attempt(make: Generator, source: Source) -> Node:
    """Matrices are small beside what is drawn; what fails in NumPy is not a program."""
    try:
        return make(source)
    except np.linalg.LinAlgError as error:
        raise NotDrawnError(str(error)) from None


GENERATORS: dict[str, Generator] = {
    **{op: partial(_cumulative, op) for op in CUMULATIVE},
    **{op: partial(_sort, op) for op in ("sort", "sort_order")},
    "top_order": _top_order,
    "unsort": _unsort,
    "search_sorted": _search_sorted,
    "trigonometric_4": _trigonometric_4,
    **{op: partial(_attention, op) for op in ATTENTION if OPERATIONS[op].family != "lowered"},
    **{op: partial(_attempt, partial(_factored, op)) for op in ("cholesky", "lu", "qr", "eigh", "svd")},
    **{op: partial(_attempt, partial(_solve, op)) for op in ("triangular_solve", "linear_solve")},
}
