"""Convolution in any number of dimensions, with any order of the operands' dimensions."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from lavax.ir.types import bool_
from lavax.nn.windows import Padding, PerAxis, paddings, per_axis, span_of
from lavax.numpy._core.broadcasting import common_dtype
from lavax.numpy._core.errors import dtype_error, shape_error
from lavax.numpy._core.movement import reshaped, transposed
from lavax.numpy._core.operands import ArrayLike
from lavax.numpy.arrays.rearranging import flip
from lavax.numpy.products.linear_algebra import precision_attributes
from lavax.tracer import bind
from lavax.tracer.values.value import Value

__all__ = ["conv", "conv_transpose"]

# Letters of window axes in the default order, from the last axis backwards.
_WINDOW_LETTERS = "DHW"


class DimensionOrder(NamedTuple):
    """The meaning of each axis of the input, the kernel and the result."""

    lhs: str
    rhs: str
    out: str

    @property
    def window(self) -> str:
        """The window axes, in the order of the kernel."""
        return "".join(letter for letter in self.rhs if letter not in "OI")


def _layout(name: str, given: Sequence[str] | None, lhs: Value, rhs: Value) -> DimensionOrder:
    if given is None:
        count = lhs.ndim - 2
        if not 0 <= count <= len(_WINDOW_LETTERS):
            raise shape_error(f"{name}: without dimension_numbers the input has 2 to 5 axes, got {lhs.type}")
        letters = _WINDOW_LETTERS[len(_WINDOW_LETTERS) - count :]
        given = (f"NC{letters}", f"OI{letters}", f"NC{letters}")
    if len(given) != 3 or not all(isinstance(part, str) for part in given):
        raise ValueError(f"{name}: dimension_numbers are three strings such as ('NHWC', 'HWIO', 'NHWC'), got {given}")
    layout = DimensionOrder(*given)
    for text, own in zip(layout, ("NC", "OI", "NC"), strict=True):
        if sorted(text) != sorted(own + layout.window) or len(set(text)) != len(text):
            raise ValueError(f"{name}: dimension_numbers {tuple(layout)} must have N, C, O, I and the same window axes")
    for value, text in ((lhs, layout.lhs), (rhs, layout.rhs)):
        if value.ndim != len(text):
            raise shape_error(f"{name}: {value.type} does not have the {len(text)} axes {text}")
    return layout


def _operands(name: str, lhs: ArrayLike, rhs: ArrayLike) -> tuple[Value, Value]:
    left, right = common_dtype([lhs, rhs])
    if left.type.dtype == bool_:
        raise dtype_error(f"{name}: not defined for truth values, got {left.type}; cast them to a number first")
    return left, right


def _split(value: Value, axis: int, groups: int) -> Value:
    """An axis as two: the group, and the position in it."""
    shape = (*value.shape[:axis], groups, value.shape[axis] // groups, *value.shape[axis + 1 :])
    return reshaped(value, shape)


def _check_channels(name: str, lhs: Value, rhs: Value, layout: DimensionOrder, groups: int) -> None:
    channels, features = lhs.shape[layout.lhs.index("C")], rhs.shape[layout.rhs.index("O")]
    of_kernel = rhs.shape[layout.rhs.index("I")]
    if groups < 1 or channels % groups or features % groups:
        raise shape_error(
            f"{name}: {groups} groups must divide the {channels} channels of {lhs.type} "
            f"and the {features} features of {rhs.type}"
        )
    if of_kernel != channels // groups:
        raise shape_error(
            f"{name}: {lhs.type} has {channels // groups} channels a group, the kernel {rhs.type} {of_kernel}"
        )


def _convolved(lhs: Value, rhs: Value, layout: DimensionOrder, groups: int, attrs: dict[str, Any]) -> Value:
    """The convolution of operands that fit. With groups, an axis "G" precedes that of channels."""
    names = list(layout)
    if groups > 1:
        lhs, rhs = _split(lhs, layout.lhs.index("C"), groups), _split(rhs, layout.rhs.index("O"), groups)
        names = [layout.lhs.replace("C", "GC"), layout.rhs.replace("O", "GO"), layout.out.replace("C", "GC")]
    of_lhs, of_rhs, of_out = names

    def places(letters: tuple[str, str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return tuple(map(of_lhs.index, letters[0])), tuple(map(of_rhs.index, letters[1]))

    group = "G" if groups > 1 else ""
    window = places((layout.window, layout.window))
    attrs = {**attrs, **precision_attributes("conv", lhs)}
    result = bind("conv", lhs, rhs, window=window, contract=places(("C", "I")), batch=places((group, group)), **attrs)
    made = group + "".join(letter for letter in of_lhs if letter not in "GC") + "C"
    moved = transposed(result, [made.index(letter) for letter in of_out])
    if groups == 1:
        return moved
    axis = layout.out.index("C")
    return reshaped(moved, (*moved.shape[:axis], groups * moved.shape[axis + 1], *moved.shape[axis + 2 :]))


def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: PerAxis = 1,
    padding: Padding = "VALID",
    lhs_dilation: PerAxis = 1,
    rhs_dilation: PerAxis = 1,
    dimension_numbers: Sequence[str] | None = None,
    feature_group_count: int = 1,
) -> Value:
    """The sums of products of the kernel `rhs` with the windows of `lhs`. The kernel is not reversed.

    `dimension_numbers` name the axes of `lhs`, `rhs` and the result: N examples, C channels, O and I the channels of
    the result and of the input, other letters the axes along which windows move, as in ("NHWC", "HWIO", "NHWC"); None
    is ("NCHW", "OIHW", "NCHW"), with fewer or more window axes as `lhs` has. Numbers may be given once or per window
    axis, in the order of `rhs`. Windows move by `window_strides` over `lhs`, which is first spread by `lhs_dilation` (a
    fractional stride), then padded with zeros: "VALID" by none, "SAME" for ceil(extent / stride) windows, or by a
    number or by pairs (before, after); negative ones cut. The kernel is spread by `rhs_dilation`. With
    `feature_group_count` groups, channels meet only those of their group: I is C / groups; a depthwise convolution has
    one group per channel.

    The dtype is the common dtype of the operands; floats are summed in float32. Raises ShapeError if shapes do not
    fit, DtypeError for truth values, ValueError for invalid `dimension_numbers`.
    """
    left, right = _operands("conv", lhs, rhs)
    layout = _layout("conv", dimension_numbers, left, right)
    count = len(layout.window)
    strides = per_axis("conv", "window_strides", window_strides, count)
    spread = per_axis("conv", "lhs_dilation", lhs_dilation, count)
    dilation = per_axis("conv", "rhs_dilation", rhs_dilation, count)
    if isinstance(padding, str) and padding.upper() != "VALID" and max((*spread, 1)) > 1:
        raise ValueError(f"conv: with lhs_dilation give padding as numbers, not {padding!r}, or call conv_transpose")
    _check_channels("conv", left, right, layout, feature_group_count)
    extents = [left.shape[layout.lhs.index(letter)] for letter in layout.window]
    windows = [right.shape[layout.rhs.index(letter)] for letter in layout.window]
    if 0 in windows:
        raise shape_error(f"conv: the kernel {right.type} has windows of no elements")
    spans = [span_of(window, step) for window, step in zip(windows, dilation, strict=True)]
    pads = paddings("conv", padding, extents, spans, strides)
    attrs: dict[str, Any] = dict(
        stride=strides,
        low=tuple(before for before, _ in pads),
        high=tuple(after for _, after in pads),
        interior=tuple(step - 1 for step in spread),
        dilation=dilation,
    )
    return _convolved(left, right, layout, feature_group_count, attrs)


def _transposed_padding(padding: Padding, spans: Sequence[int], strides: Sequence[int]) -> Any:
    """The padding of the spread input.

    For "VALID" every element meets the whole kernel, and at least stride elements of the result belong to each; for
    "SAME" the result is stride times as long.
    """
    if not isinstance(padding, str):
        return padding
    pads, own = [], padding.upper()
    for span, stride in zip(spans, strides, strict=True):
        if own == "VALID":
            total, before = span + max(span, stride) - 2, span - 1
        elif own == "SAME":
            total = span + stride - 2
            before = span - 1 if stride > span - 1 else -(-total // 2)
        else:
            raise ValueError(f"conv_transpose: padding is 'VALID', 'SAME' or numbers, got {padding!r}")
        pads.append((before, total - before))
    return pads


def conv_transpose(
    lhs: ArrayLike,
    rhs: ArrayLike,
    strides: PerAxis = 1,
    padding: Literal["VALID", "SAME", "valid", "same"] | int | Sequence[int] | Sequence[tuple[int, int]] = "SAME",
    rhs_dilation: PerAxis = 1,
    dimension_numbers: Sequence[str] | None = None,
    transpose_kernel: bool = False,
    feature_group_count: int = 1,
) -> Value:
    """A convolution of `lhs` spread by `strides`: it enlarges arrays, as the gradient of `conv` does.

    The result is `strides` times as long with padding "SAME", (extent - 1)·stride + max(window, stride) with "VALID";
    numbers pad the spread input. With `transpose_kernel` the result is the gradient by its input of the `conv` with
    this kernel: its window axes are reversed, and its O and I are exchanged. All else is as in `conv`, groups too: so
    O of a transposed kernel counts the channels of `lhs`, and I the channels of the result in a group.
    """
    left, right = _operands("conv_transpose", lhs, rhs)
    layout = _layout("conv_transpose", dimension_numbers, left, right)
    count = len(layout.window)
    steps = per_axis("conv_transpose", "strides", strides, count)
    dilation = per_axis("conv_transpose", "rhs_dilation", rhs_dilation, count)
    windows = [right.shape[layout.rhs.index(letter)] for letter in layout.window]
    spans = [span_of(window, step) for window, step in zip(windows, dilation, strict=True)]
    if transpose_kernel:
        right = flip(right, tuple(layout.rhs.index(letter) for letter in layout.window))
        layout = layout._replace(rhs=layout.rhs.translate(str.maketrans("OI", "IO")))
        right = _by_result(right, layout, feature_group_count)
    pads = _transposed_padding(padding, spans, steps)
    return conv(left, right, 1, pads, steps, dilation, tuple(layout), feature_group_count)


def _by_result(kernel: Value, layout: DimensionOrder, groups: int) -> Value:
    """A kernel whose axis I counts all groups and whose axis O one of them, as one where it is the other way."""
    inputs, outputs = layout.rhs.index("I"), layout.rhs.index("O")
    if groups == 1:
        return kernel
    if groups < 1 or kernel.shape[inputs] % groups:
        channels = kernel.shape[inputs]
        raise shape_error(f"conv_transpose: {groups} groups must divide the {channels} channels of the input")
    split = _split(kernel, inputs, groups)
    # The axis of groups stands at `inputs` now, and moves to just before the axis O.
    order = [axis for axis in range(split.ndim) if axis != inputs]
    order.insert(order.index(outputs + (outputs > inputs)), inputs)
    moved = transposed(split, order)
    place = order.index(inputs)
    return reshaped(moved, (*moved.shape[:place], groups * moved.shape[place + 1], *moved.shape[place + 2 :]))
