"""Convolutions in XLA's general form."""
from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax import nn
from lavax.base.config import dtype_of_product, matmul_precision
from lavax.lax.operands import of_one_dtype
from lavax.lax.windows import padtype_to_pads, reduce_window_shape_tuple, spread_by
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.tracing.abstract_evaluation import ShapeDtype, eval_shape
from lavax.tracer.values.value import Value


class ConvDimensionNumbers(NamedTuple):
    """The axes of a convolution: (batch, channels, window…) of lhs, (out, in, window…) of rhs, and of the result."""

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


ConvGeneralDilatedDimensionNumbers = tuple[str, str, str] | ConvDimensionNumbers | None

_WINDOW = "ZYXWVUTSRQPD"


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The order of axes (batch, channels, window…) that strings such as ("NHWC", "HWIO", "NHWC") stand for."""
    of_lhs, of_rhs, of_out = dimension_numbers
    window = [letter for letter in of_rhs if letter not in "OI"]
    found = []
    for text, first in ((of_lhs, "NC"), (of_rhs, "OI"), (of_out, "NC")):
        if sorted(text) != sorted([*first, *window]):
            raise ValueError(f"lax: dimension_numbers {tuple(dimension_numbers)} must have {first} and one window")
        found.append(tuple(text.index(letter) for letter in (*first, *window)))
    return tuple(found)


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """The axes that strings, or None, stand for: without, batch, channels and window come in this order."""
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    if dimension_numbers is None:
        order = tuple(range(len(lhs_shape)))
        return ConvDimensionNumbers(order, order, order)
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))


def _letters(numbers: ConvDimensionNumbers) -> tuple[str, str, str]:
    texts = []
    for spec, first in zip(numbers, ("NC", "OI", "NC"), strict=True):
        letters = dict(zip(spec, first + _WINDOW, strict=False))
        texts.append("".join(letters[axis] for axis in range(len(spec))))
    return texts[0], texts[1], texts[2]


def conv_general_dilated(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Value:
    """The sums of products of the kernel `rhs` with the windows of `lhs`; see `lavax.nn.conv`.

    With `batch_group_count` b, the batch is b groups, of which each meets its own part of the kernel's outputs.
    `preferred_element_type` is the dtype of the sums and of the result. `out_sharding` is taken, and changes nothing.
    """
    left, right = of_one_dtype("conv_general_dilated", lhs, rhs)
    numbers = conv_dimension_numbers(left.shape, right.shape, dimension_numbers)
    count = left.ndim - 2
    spread, dilation = tuple(lhs_dilation or (1,) * count), tuple(rhs_dilation or (1,) * count)
    extents = [spread_by(left.shape[axis], step) for axis, step in zip(numbers.lhs_spec[2:], spread, strict=True)]
    spans = [spread_by(right.shape[axis], step) for axis, step in zip(numbers.rhs_spec[2:], dilation, strict=True)]
    pads = padtype_to_pads(extents, spans, window_strides, padding)
    if preferred_element_type is not None:
        left, right = lnp.astype(left, preferred_element_type), lnp.astype(right, preferred_element_type)
    groups = feature_group_count
    if batch_group_count > 1:
        left, groups = _batch_as_channels(left, numbers, batch_group_count, feature_group_count), batch_group_count
    order = _window_order(numbers)
    of_lhs, of_rhs, of_out = _letters(numbers)
    with lnp_precision(precision):
        return nn.conv(
            left, right, [window_strides[k] for k in order], [pads[k] for k in order], [spread[k] for k in order],
            [dilation[k] for k in order], (of_lhs, of_rhs, of_out), groups,
        )  # fmt: skip


def _window_order(numbers: ConvDimensionNumbers) -> list[int]:
    """lavax.nn.conv takes settings of windows in the order of the kernel's axes."""
    return sorted(range(len(numbers.rhs_spec) - 2), key=lambda place: numbers.rhs_spec[2 + place])


def lnp_precision(precision: Any) -> Any:
    """A context in which products have this precision."""
    name = dtype_of_product("conv_general_dilated", precision)
    return contextlib.nullcontext() if name is None else matmul_precision(name)


def _batch_as_channels(left: Value, numbers: ConvDimensionNumbers, groups: int, of_features: int) -> Value:
    batch, channels = numbers.lhs_spec[:2]
    if of_features != 1 or left.shape[batch] % groups:
        raise shape_error(
            f"lax.conv_general_dilated: batch_group_count {groups} divides the batch of {left.type}, without groups of "
            "features"
        )
    split = lnp.reshape(
        lnp.moveaxis(left, batch, 0), (groups, left.shape[batch] // groups, *_without(left.shape, batch))
    )
    place = channels + 1 - (channels > batch) + 1  # of the channels, now
    merged = lnp.moveaxis(split, 0, place - 1)
    shape = [*merged.shape[: place - 1], groups * left.shape[channels], *merged.shape[place + 1 :]]
    return lnp.moveaxis(lnp.reshape(merged, shape), 0, batch)


def _without(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Value:
    """A convolution of [batch, channels, window…] with [out, in, window…]."""
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision, preferred_element_type=preferred_element_type
    )


def conv_with_general_padding(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Value:
    """`conv` with dilations."""
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def conv_transpose(
    lhs: ArrayLike,
    rhs: ArrayLike,
    strides: Sequence[int],
    padding: Any,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: Any = None,
    use_consistent_padding: bool = False,
) -> Value:
    """A convolution of `lhs` spread by `strides`; see `lavax.nn.conv_transpose`. By default channels come last.

    Pairs in `padding` pad the spread input; with `use_consistent_padding` they are those of the convolution that this
    one is the transpose of, and cut the result.
    """
    left, right = of_one_dtype("conv_transpose", lhs, rhs)
    count = left.ndim - 2
    if dimension_numbers is None:
        window = "DHW"[3 - count :]
        dimension_numbers = (f"N{window}C", f"{window}IO", f"N{window}C")
    elif isinstance(dimension_numbers, ConvDimensionNumbers):
        dimension_numbers = _letters(dimension_numbers)
    dilation = tuple(rhs_dilation or (1,) * count)
    if use_consistent_padding and not isinstance(padding, str):
        numbers = conv_dimension_numbers(left.shape, right.shape, dimension_numbers)
        spans = [spread_by(right.shape[axis], step) for axis, step in zip(numbers.rhs_spec[2:], dilation, strict=True)]
        padding = [(span - 1 - low, span - 1 - high) for span, (low, high) in zip(spans, padding, strict=True)]
    if preferred_element_type is not None:
        left, right = lnp.astype(left, preferred_element_type), lnp.astype(right, preferred_element_type)
    with lnp_precision(precision):
        return nn.conv_transpose(
            left, right, tuple(strides), padding, dilation, dimension_numbers,
            transpose_kernel,
        )  # fmt: skip


def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Value:
    """The windows themselves: the result's channels are those of lhs times the elements of a window, in this order."""
    left = as_value(lhs)
    order = tuple(range(left.ndim))
    numbers = conv_dimension_numbers(left.shape, left.shape, dimension_numbers) if dimension_numbers else (
        ConvDimensionNumbers(order, order, order)
    )
    size, channels = 1, left.shape[numbers.lhs_spec[1]]
    for extent in filter_shape:
        size *= extent
    identity = lnp.reshape(lnp.eye(size, dtype=left.dtype), (size, 1, *filter_shape))
    kernel = lnp.tile(identity, (channels, *(1,) * (left.ndim - 1)))
    kernel = lnp.transpose(kernel, _inverse(numbers.rhs_spec))
    return conv_general_dilated(
        left, kernel, window_strides, padding, lhs_dilation, rhs_dilation, numbers, channels, 1, precision,
        preferred_element_type,
    )  # fmt: skip


def _inverse(order: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(range(len(order)), key=lambda place: order[place]))


def conv_shape_tuple(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], strides: Sequence[int], pads: Any, batch_group_count: int = 1
) -> tuple[int, ...]:
    """The shape that `conv` gives."""
    sides = padtype_to_pads(lhs_shape[2:], rhs_shape[2:], strides, pads)
    window = reduce_window_shape_tuple(lhs_shape[2:], rhs_shape[2:], strides, sides)
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *window)


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Any,
) -> tuple[int, ...]:
    """The shape that `conv_general_dilated` gives."""
    return _shape(conv_general_dilated, lhs_shape, rhs_shape, window_strides, padding, None, None, dimension_numbers)


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Any,
) -> tuple[int, ...]:
    """The shape that `conv_transpose` gives."""
    return _shape(conv_transpose, lhs_shape, rhs_shape, window_strides, padding, None, dimension_numbers)


def _shape(function: Any, lhs_shape: Sequence[int], rhs_shape: Sequence[int], *settings: Any) -> tuple[int, ...]:
    given = ShapeDtype(tuple(lhs_shape), "float32"), ShapeDtype(tuple(rhs_shape), "float32")
    found: tuple[int, ...] = eval_shape(lambda left, right: function(left, right, *settings), *given).shape
    return found
