"""The parts of complex values, and arithmetic on real nodes that reads like its formulas."""
from __future__ import annotations

from typing import Any

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.ir.types import float64, int32, int64
from lavax.passes.build.builder import build, concatenate, reshape, slice_along, splat


@dataclass(frozen=True, eq=False)
class Real:
    """A node of a floating dtype; operators build nodes."""

    node: Node

    def constant(self, value: float) -> Real:
        """`value` everywhere, in the shape and dtype of this."""
        return Real(splat(value, self.node.type))

    def apply(self, op: str, *others: Real | float, **attrs: Any) -> Real:
        """The elementwise operation `op` on this and others."""
        operands = [other if isinstance(other, Real) else self.constant(other) for other in others]
        return Real(build(op, self.node, *(operand.node for operand in operands), **attrs))

    def __add__(self, other: Real | float) -> Real:
        return self.apply("add", other)

    def __sub__(self, other: Real | float) -> Real:
        return self.apply("subtract", other)

    def __rsub__(self, other: float) -> Real:
        return self.constant(other) - self

    def __mul__(self, other: Real | float) -> Real:
        return self.apply("multiply", other)

    def __truediv__(self, other: Real | float) -> Real:
        return self.apply("divide", other)

    def __rtruediv__(self, other: float) -> Real:
        return self.constant(other) / self

    def __neg__(self) -> Real:
        return self.apply("negate")

    def __abs__(self) -> Real:
        return self.apply("abs")

    __radd__ = __add__
    __rmul__ = __mul__

    def __lt__(self, other: Real | float) -> Truth:
        return self._compare("less", other)

    def __le__(self, other: Real | float) -> Truth:
        return self._compare("less_equal", other)

    def __gt__(self, other: Real | float) -> Truth:
        return self._compare("greater", other)

    def __ge__(self, other: Real | float) -> Truth:
        return self._compare("greater_equal", other)

    def equals(self, other: Real | float) -> Truth:
        """Whether each element equals the other's."""
        return self._compare("equal", other)

    def _compare(self, op: str, other: Real | float) -> Truth:
        return Truth(self.apply(op, other).node)

    @property
    def is_finite(self) -> Truth:
        return abs(self) < float("inf")

    @property
    def is_infinite(self) -> Truth:
        return abs(self).equals(float("inf"))

    @property
    def has_sign(self) -> Truth:
        """Whether the sign bit is set, of zeros and NaN too."""
        integers = int64 if self.node.dtype == float64 else int32
        bits = build("bitcast", self.node, type=self.node.type.with_dtype(integers))
        return Truth(build("less", bits, splat(0, bits.type)))

    def with_sign_of(self, other: Real) -> Real:
        """This size with the sign of the other; this must not be negative."""
        return other.has_sign.choose(-self, self)


@dataclass(frozen=True, eq=False)
class Truth:
    """A node of truth values."""

    node: Node

    def __and__(self, other: Truth) -> Truth:
        return Truth(build("and", self.node, other.node))

    def __or__(self, other: Truth) -> Truth:
        return Truth(build("or", self.node, other.node))

    def __invert__(self) -> Truth:
        return Truth(build("not", self.node))

    def choose(self, chosen: Real | float, other: Real | float) -> Real:
        """`chosen` where this is true, else `other`; one of them is a Real."""
        like = chosen if isinstance(chosen, Real) else other
        assert isinstance(like, Real)
        first, second = (one if isinstance(one, Real) else like.constant(one) for one in (chosen, other))
        return Real(build("where", self.node, first.node, second.node))


@dataclass(frozen=True, eq=False)
class Parts:
    """The real and the imaginary part of a complex value."""

    real: Real
    imaginary: Real

    def __iter__(self) -> Any:
        return iter((self.real, self.imaginary))

    @property
    def nodes(self) -> tuple[Node, Node]:
        return self.real.node, self.imaginary.node

    def times_i(self) -> Parts:
        return Parts(-self.imaginary, self.real)

    def times_minus_i(self) -> Parts:
        return Parts(self.imaginary, -self.real)


def parts(real: Node, imaginary: Node) -> Parts:
    """The parts given as nodes."""
    return Parts(Real(real), Real(imaginary))


def separated(whole: Node) -> Parts:
    """The parts of complex numbers that lie side by side along the last axis, of two."""
    axis = whole.type.rank - 1
    return parts(*(reshape(slice_along(whole, axis, side, side + 1), whole.shape[:-1]) for side in (0, 1)))


def interleaved(z: Parts) -> Node:
    """The parts side by side along a last axis of two.

    This is the array that they were separated from, if they are the parts of one, and a function of such arrays if they
    are the same function of their parts.
    """
    shape = (*z.real.node.shape, 2)
    whole = _joined(*z.nodes)
    if whole is not None and whole.shape == shape:
        return whole
    return concatenate([reshape(part, (*part.shape, 1)) for part in z.nodes], len(shape) - 1)


_PARTWISE = ("add", "subtract", "multiply", "divide", "negate")
_DEPTH = 4  # of functions that are looked through


def _joined(real: Node, imaginary: Node, depth: int = _DEPTH) -> Node | None:
    """The array whose columns two nodes are, or what both compute from the columns of such arrays; None if neither."""
    first, second = _column_of(real), _column_of(imaginary)
    if first and second:
        return first[0] if first[0] is second[0] and (first[1], second[1]) == (0, 1) else None
    if real.op != imaginary.op or depth == 0:
        return None
    if real.op == "constant":
        type = real.type.with_shape((*real.shape, 2))
        return splat(real.attrs["value"], type) if real.attrs == imaginary.attrs else None
    if real.op not in _PARTWISE:
        return None
    operands = [_joined(x, y, depth - 1) for x, y in zip(real.operands, imaginary.operands, strict=True)]
    found = [operand for operand in operands if operand is not None]
    return build(real.op, *found) if len(found) == len(operands) else None


def _column_of(part: Node) -> tuple[Node, int] | None:
    """The array and the position along its last axis that `part` is, if it is one."""
    if part.op != "reshape" or part.operands[0].op != "slice":
        return None
    column = part.operands[0]
    (whole,) = column.operands
    starts, strides = column.attrs["start"], column.attrs["stride"]
    is_column = column.shape == (*whole.shape[:-1], 1) and part.shape == whole.shape[:-1] and whole.shape[-1] == 2
    return (whole, starts[-1]) if is_column and not any(starts[:-1]) and set(strides) == {1} else None
