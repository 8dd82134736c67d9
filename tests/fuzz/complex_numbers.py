"""Chains of operations on complex numbers, made of two real values and ending in a real one."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from lavax.ir import Node, TensorType, float32, int32
from lavax.passes.build import builder
from lavax.passes.build.builder import build
from tests.fuzz.draw import NotDrawnError, Source

Step = Callable[[Source, Node], Node]
Generator = Callable[[Source], Node]

_MOST = 600  # elements: routines by parts are many operations
_FUNCTIONS = (
    *("exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "logistic"),
    *("asin", "acos", "atan", "asinh", "acosh", "atanh", "negate", "conjugate"),
)
_JOINS = ("add", "subtract", "multiply", "divide", "power", "maximum", "minimum")
_FOLDS = ("sum", "prod")


def _made(source: Source, type: TensorType | None = None) -> Node:
    """A complex value of two real ones, of moderate length."""
    if type is None:
        x = source.pick(("float",), fits=lambda node: node.dtype == float32 and 0 < node.type.size <= _MOST)
    else:
        x = source.of_type(type.with_dtype(float32))
    return build("complex", *(source.within(part, -2, 2) for part in (x, source.like(x))))


def _function(source: Source, z: Node) -> Node:
    return build(source.one_of(_FUNCTIONS), z)


def _join(source: Source, z: Node) -> Node:
    other = z if source.chance(0.1) else _made(source, z.type)
    operands = (z, other) if source.chance(0.5) else (other, z)
    return build(source.one_of(_JOINS), *operands)


def _choice(source: Source, z: Node) -> Node:
    other = _made(source, z.type)
    compared = build(source.one_of(("less", "less_equal", "greater", "equal", "not_equal")), z, other)
    return builder.where(compared, z, other)


def _fold(source: Source, z: Node) -> Node:
    return builder.reduce(source.one_of(_FOLDS), z, source.axes(z))


def _along_axis(source: Source, z: Node) -> Node:
    """A line as a whole: transformed, sorted, or with what came before."""
    axis = _axis(source, z)
    op = source.one_of(("fft", "sort", "cumulative_sum", "cumulative_prod", "rfft"))
    if op == "rfft":
        return _half_spectrum(source, z)
    if op == "sort":
        return build(op, z, axis=axis)
    return build(op, z, axis=axis, reverse=source.chance(0.5))


def _half_spectrum(source: Source, z: Node) -> Node:
    """That of real lines, or such lines made of one."""
    if _axis(source, z) != z.type.rank - 1 or z.shape[-1] == 0:
        raise NotDrawnError("half spectra are along the last axis")
    if source.chance(0.5):
        return build("rfft", build(source.one_of(("real", "imag")), z))
    length = max(2 * z.shape[-1] - source.one_of((1, 2)), 1)
    line = build("irfft", z, length=length)
    return build("complex", line, line)


def _axis(source: Source, z: Node) -> int:
    if not z.type.rank:
        raise NotDrawnError("a number has no axis")
    return source.axis_of(z)


def _movement(source: Source, z: Node) -> Node:
    axis = _axis(source, z)
    order = [int(number) for number in source.random.permutation(z.type.rank)]
    extent = z.shape[axis]
    none = [0] * z.type.rank
    one = [int(number == axis) for number in range(z.type.rank)]
    return source.one_of(
        (
            lambda: builder.transpose(z, order),
            lambda: builder.flip(z, [axis]),
            lambda: builder.reshape(z, (z.type.size,)),
            lambda: builder.slice_along(z, axis, 0, max(extent - 1, 1)),
            lambda: builder.concatenate([z, _made(source, z.type)], axis),
            lambda: builder.broadcast(z, (2, *z.shape), range(1, z.type.rank + 1)),
            lambda: builder.pad(z, one, none, none, complex(0.5, -1)),  # type: ignore[arg-type]
        )
    )()


def _product(source: Source, z: Node) -> Node:
    axis = _axis(source, z)
    extent = source.one_of((1, 3, 8))
    other = _made(source, TensorType((z.shape[axis], extent), z.dtype))
    return build("dot", z, other, contract=((axis,), (0,)), batch=((), ()), precision="", backward="")


def _convolution(source: Source, z: Node) -> Node:
    """Of all elements as one sequence of one or two channels, with one or several filters."""
    channels = 2 if z.type.size % 2 == 0 and source.chance(0.5) else 1
    length = z.type.size // channels
    width, dilation = source.number(1, min(length, 3) + 1), source.number(1, 3)
    x = builder.reshape(z, (1, length, channels))
    filters = _made(source, TensorType((width, channels, source.one_of((1, 3, 4))), z.dtype))
    attrs = dict(window=((1,), (0,)), contract=((2,), (1,)), batch=((), ()), precision="", backward="")
    padding = dict(low=(source.number(0, 3),), high=(dilation * (width - 1),), interior=(source.number(0, 2),))
    return build("conv", x, filters, **attrs, **padding, stride=(source.number(1, 3),), dilation=(dilation,))


def _places(source: Source, z: Node) -> Node:
    """Elements read or changed along the first axis."""
    if not z.type.rank:
        raise NotDrawnError("a number has no positions")
    positions = source.indices((source.one_of((1, 3, 8)),), z.shape[0])
    if source.chance(0.4):
        return builder.gather(z, [positions], (0,))
    updates = _made(source, z.type.with_shape((*positions.shape, *z.shape[1:])))
    return builder.scatter(source.one_of(("add", "set", "multiply")), z, updates, [positions], (0,))


_STEPS: tuple[Step, ...] = (
    *(_function, _function, _join, _join, _choice),
    *(_fold, _along_axis, _movement, _product, _convolution, _places),
)


def _shortened(source: Source, z: Node) -> Node:
    """A value that the next step may take: not too large, nor too many elements."""
    largest = np.abs(source.evaluated(z)[0]).max(initial=0.0)
    if not largest < 1e3 or not 0 < z.type.size <= _MOST:
        raise NotDrawnError("large numbers")
    return z if largest < 8 else builder.multiply(z, builder.splat(complex(0.5 / largest), z.type))


def _chain(source: Source, last: str) -> Node:
    z = _made(source)
    for _ in range(source.number(1, 5)):
        z = _shortened(source, source.one_of(_STEPS)(source, z))
    if last == "conjugate":
        z = builder.multiply(z, build("conjugate", z))
    elif last == "fft" and z.type.rank:
        z = build("fft", z, axis=source.axis_of(z), reverse=source.chance(0.5))
    elif last == "rfft" and z.type.rank:
        z = build("rfft", build("real", z))
    elif last == "irfft" and z.type.rank:
        line = build("irfft", z, length=2 * z.shape[-1] - 1)
        z = build("complex", line, line)
    elif last == "unit_root":
        counts = z.type.with_dtype(int32)
        positions = builder.iota(counts, 0) if z.type.rank else builder.splat(1, counts)
        z = builder.multiply(z, build("unit_root", positions, type=z.type, length=z.type.size + 1))
    return build(last if last in ("real", "imag") else source.one_of(("real", "imag", "abs")), z)


GENERATORS: dict[str, Generator] = {
    name: partial(_chain, last=name)
    for name in ("complex", "conjugate", "fft", "imag", "irfft", "real", "rfft", "unit_root")
}
