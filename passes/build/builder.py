"""Functions that build nodes: one per operation that passes create, and a few short compositions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from lavax.ir.graph import Node, make_node
from lavax.ir.ops.contraction import free_axes
from lavax.ir.types import DType, TensorType, int32

# The line of the user's program that new nodes are attributed to. A pass sets it for each node that it processes.
_location: ContextVar[str | None] = ContextVar("location", default=None)

set_location = _location.set


@contextmanager
def located() -> Iterator[None]:
    """A context in which a pass may call `set_location`; after it, nodes are built without a location again."""
    token = _location.set(None)
    try:
        yield
    finally:
        _location.reset(token)


def build(op: str, *operands: Node, type: TensorType | None = None, **attrs: Any) -> Node:
    """A node of the operation `op`; its type is checked and inferred by the operation's rule."""
    return make_node(op, operands, attrs, type, _location.get())


# Sources


def splat(value: float | bool, type: TensorType) -> Node:
    """A constant of `type` whose every element is `value`."""
    return build("constant", type=type, value=type.dtype.number(value))


def zeros(type: TensorType) -> Node:
    return splat(0, type)


def is_zero(x: Node) -> bool:
    """Whether every element is known to be zero, of either sign."""
    return x.op == "constant" and bool(x.attrs["value"] == 0)


def iota(type: TensorType, axis: int) -> Node:
    """Each element is its position along `axis`."""
    return build("iota", type=type, axis=axis)


# Elementwise


def negate(x: Node) -> Node:
    return build("negate", x)


def absolute(x: Node) -> Node:
    return build("abs", x)


def sign(x: Node) -> Node:
    return build("sign", x)


def floor(x: Node) -> Node:
    return build("floor", x)


def exp(x: Node) -> Node:
    return build("exp", x)


def log(x: Node) -> Node:
    return build("log", x)


def sin(x: Node) -> Node:
    return build("sin", x)


def cos(x: Node) -> Node:
    return build("cos", x)


def logical_not(x: Node) -> Node:
    return build("not", x)


def add(x: Node, y: Node) -> Node:
    return build("add", x, y)


def add_to(so_far: Node | None, more: Node) -> Node:
    """The sum of the terms so far, if any, and one more."""
    return more if so_far is None else add(so_far, more)


def subtract(x: Node, y: Node) -> Node:
    return build("subtract", x, y)


def multiply(x: Node, y: Node) -> Node:
    return build("multiply", x, y)


def divide(x: Node, y: Node) -> Node:
    return build("divide", x, y)


def power(x: Node, y: Node) -> Node:
    return build("power", x, y)


def maximum(x: Node, y: Node) -> Node:
    return build("maximum", x, y)


def minimum(x: Node, y: Node) -> Node:
    return build("minimum", x, y)


def logical_and(x: Node, y: Node) -> Node:
    return build("and", x, y)


def equal(x: Node, y: Node) -> Node:
    return build("equal", x, y)


def less(x: Node, y: Node) -> Node:
    return build("less", x, y)


def greater(x: Node, y: Node) -> Node:
    return build("greater", x, y)


def greater_equal(x: Node, y: Node) -> Node:
    return build("greater_equal", x, y)


def where(condition: Node, chosen: Node, other: Node) -> Node:
    return build("where", condition, chosen, other)


def cast(x: Node, dtype: DType) -> Node:
    return build("cast", x, type=x.type.with_dtype(dtype))


def scale(x: Node, factor: float) -> Node:
    """`x * factor`."""
    return multiply(x, splat(factor, x.type))


def clamp(x: Node, low: int, high: int) -> Node:
    """`x` clamped to [low, high]."""
    return minimum(maximum(x, splat(low, x.type)), splat(high, x.type))


# Reductions


def reduce(op: str, x: Node, axes: Sequence[int]) -> Node:
    """`op` is sum, prod, max or min."""
    return build(op, x, axes=tuple(sorted(axes)))


def sum_over(x: Node, axes: Sequence[int]) -> Node:
    return reduce("sum", x, axes)


# Movement


def reshape(x: Node, shape: Sequence[int]) -> Node:
    return build("reshape", x, type=x.type.with_shape(tuple(shape)))


def reshaped(x: Node, shape: Sequence[int]) -> Node:
    """`x` reshaped, or `x` itself if it has that shape."""
    return x if x.shape == tuple(shape) else reshape(x, shape)


def transpose(x: Node, axes: Sequence[int]) -> Node:
    return build("transpose", x, axes=tuple(axes))


def transposed(x: Node, axes: Sequence[int]) -> Node:
    """`x` transposed, or `x` itself if its axes have that order."""
    return x if tuple(axes) == tuple(range(x.type.rank)) else transpose(x, axes)


def broadcast(x: Node, shape: Sequence[int], axes: Sequence[int]) -> Node:
    """`axes[d]` is the axis of the result that the axis d of `x` becomes."""
    return build("broadcast", x, type=x.type.with_shape(tuple(shape)), axes=tuple(axes))


def broadcast_back(reduced: Node, shape: Sequence[int], axes: Sequence[int]) -> Node:
    """Repeats the result of a reduction over `axes` to the `shape` of its operand."""
    return broadcast(reduced, shape, [axis for axis in range(len(shape)) if axis not in axes])


def slice_(x: Node, start: Sequence[int], limit: Sequence[int], stride: Sequence[int]) -> Node:
    return build("slice", x, start=tuple(start), limit=tuple(limit), stride=tuple(stride))


def computed_after(value: Node, other: Node) -> Node:
    """`value`, to be computed after `other`, which has at least one element."""
    corner = slice_(other, [0] * other.type.rank, [1] * other.type.rank, [1] * other.type.rank)
    return build("barrier", value, broadcast(reshape(corner, ()), value.shape, ()))


def slice_along(x: Node, axis: int, start: int, limit: int, stride: int = 1) -> Node:
    """A slice along one axis."""
    lows, highs, steps = [0] * x.type.rank, list(x.shape), [1] * x.type.rank
    lows[axis], highs[axis], steps[axis] = start, limit, stride
    return slice_(x, lows, highs, steps)


def pad(x: Node, low: Sequence[int], high: Sequence[int], interior: Sequence[int], value: float | bool) -> Node:
    """`value` is a Python number that matches the kind of the dtype of `x`."""
    return build("pad", x, low=tuple(low), high=tuple(high), interior=tuple(interior), value=value)


def concatenate(parts: Sequence[Node], axis: int) -> Node:
    return build("concatenate", *parts, axis=axis)


def flip(x: Node, axes: Sequence[int]) -> Node:
    return build("flip", x, axes=tuple(sorted(axes)))


def shear(
    x: Node,
    shape: Sequence[int],
    axes: Sequence[int],
    along: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
) -> Node:
    """Element o along each of `axes` is read at o·stride + k·dilation, where k is the position along its `along`."""
    attrs = dict(axes=tuple(axes), along=tuple(along), stride=tuple(stride), dilation=tuple(dilation))
    return build("shear", x, type=x.type.with_shape(tuple(shape)), **attrs)


# Indexing


def gather(x: Node, indices: Sequence[Node], axes: Sequence[int]) -> Node:
    return build("gather", x, *indices, axes=tuple(axes))


def scatter(join: str, x: Node, updates: Node, indices: Sequence[Node], axes: Sequence[int]) -> Node:
    """`join` is add, multiply, minimum, maximum or set."""
    return build(f"scatter_{join}", x, updates, *indices, axes=tuple(axes))


def scatter_add(x: Node, updates: Node, indices: Sequence[Node], axes: Sequence[int]) -> Node:
    return scatter("add", x, updates, indices, axes)


# Contraction

AxisPairs = tuple[Sequence[int], Sequence[int]]  # axes of the left operand, and the matching axes of the right


def dot(
    left: Node,
    right: Node,
    contract: AxisPairs,
    batch: AxisPairs = ((), ()),
    precision: str = "",
    backward: str = "",
) -> Node:
    """The axes of the result are the batch axes, then the free axes of `left`, then those of `right`."""
    return build(
        "dot",
        left,
        right,
        contract=(tuple(contract[0]), tuple(contract[1])),
        batch=(tuple(batch[0]), tuple(batch[1])),
        precision=precision,
        backward=backward,
    )


def precision_of(node: Node) -> dict[str, Any]:
    """The attributes of a dot or conv that determine rounding, for a replacement of it."""
    return {"precision": node.attrs["precision"], "backward": node.attrs["backward"]}


def precision_of_gradient(node: Node) -> dict[str, Any]:
    """The same attributes for a dot or conv in its gradient."""
    return {"precision": node.attrs["backward"], "backward": node.attrs["backward"]}


def free_axes_of(node: Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The free axes of both operands of a dot."""
    (left_batch, right_batch), (left_sum, right_sum) = node.attrs["batch"], node.attrs["contract"]
    left, right = node.operands
    return free_axes(left.type, left_batch, left_sum), free_axes(right.type, right_batch, right_sum)


def index_type(shape: Sequence[int]) -> TensorType:
    """The type of an array of positions, in that shape."""
    return TensorType(tuple(shape), int32)
