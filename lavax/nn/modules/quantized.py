"""Layers whose weights are integers of 8 or 4 bits with a scale for each group: they are read so, and widened on the
way into the product."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

import lavax.numpy as lnp
from lavax.nn.modules.linear import Embedding, Linear
from lavax.nn.modules.module import Module, field
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.tracing.placement import device_put
from lavax.tracer.values.value import Value

__all__ = ["QuantizedEmbedding", "QuantizedLinear", "QuantizedMatrix"]


@dataclass(frozen=True)
class _Kind:
    """A form of integers: the largest one, and how many share a byte."""

    largest: int
    per_byte: int


KINDS = {"int8": _Kind(127, 1), "int4": _Kind(7, 2)}

# How far the lower and the upper half of a byte lie from the top of a word, from where shifts extend the sign.
_TO_THE_TOP = np.array([28, 24], np.int32)


class QuantizedMatrix(Module):
    """A matrix [rows, columns] as integers, in groups along its rows that share a scale.

    An element is scale · integer, and the largest of a group has the integer ±127 or ±7, so rounding moves an element
    by at most half a scale. `integers` is int8 [rows, groups, group], or for "int4" uint8 [rows, groups, group / 2]:
    the lower half of a byte holds element 2i of the group, the upper half 2i + 1, in two's complement. `scales` is
    float32 [rows, groups]. The last group of a row may be longer than its columns; what is beyond them is 0.
    """

    integers: Any
    scales: Any
    kind: str = field(static=True)
    columns: int = field(static=True)

    @classmethod
    def of(cls, matrix: Any, kind: str = "int8", group: int = 64) -> Self:
        """The matrix, rounded. `group` elements of a row share a scale.

        Raises ValueError for another kind than "int8" and "int4", for groups of an odd or no number of elements, or if
        `matrix` is no matrix.
        """
        if kind not in KINDS:
            raise ValueError(f"QuantizedMatrix: kind is one of {', '.join(map(repr, KINDS))}, got {kind!r}")
        if group < 2 or group % 2:
            raise ValueError(f"QuantizedMatrix: a group has an even number of elements, got {group}")
        given = np.asarray(matrix).astype(np.float32)
        if given.ndim != 2:
            raise ValueError(f"QuantizedMatrix: a matrix has two axes, got the shape {given.shape}")
        rows, columns = given.shape
        padded = np.pad(given, ((0, 0), (0, -columns % group))).reshape(rows, -1, group)
        form = KINDS[kind]
        scales = np.abs(padded).max(axis=-1) / form.largest
        integers = np.rint(padded / np.where(scales == 0, 1, scales)[..., None]).astype(np.int8)
        if form.per_byte == 2:
            halves = integers.view(np.uint8) & 15
            integers = halves[..., ::2] | halves[..., 1::2] << 4
        return cls(device_put(integers), device_put(scales), kind, columns)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return int(self.integers.shape[0]), self.columns

    @property
    def _group(self) -> int:
        return int(self.integers.shape[2]) * KINDS[self.kind].per_byte

    def _widened(self, integers: Any, scales: Any, dtype: Any) -> Value:
        """Integers [..., groups, bytes] as elements of `dtype`, [..., groups, group], or [..., group / 2, 2]."""
        found = as_value(integers)
        if KINDS[self.kind].per_byte == 2:
            words = lnp.expand_dims(lnp.astype(found, "int32"), -1)
            found = lnp.right_shift(lnp.left_shift(words, _TO_THE_TOP), 28)
        scale = lnp.reshape(scales, (*scales.shape, *(1,) * (found.ndim - scales.ndim)))
        made: Value = lnp.astype(lnp.astype(found, scale.dtype) * scale, dtype)
        return made

    def product(self, x: ArrayLike) -> Value:
        """x·matrixᵀ: [..., columns] to [..., rows], in the dtype of `x`. Nothing but the integers is read of it."""
        given = as_value(x)
        weights = self._widened(self.integers, self.scales, given.dtype)
        room = self.scales.shape[1] * self._group - self.columns
        padded = lnp.pad(given, ((0, 0),) * (given.ndim - 1) + ((0, room),)) if room else given
        grouped = lnp.reshape(padded, (*given.shape[:-1], *weights.shape[1:]))
        inner = "abc"[: weights.ndim - 1]
        return lnp.einsum(f"...{inner},r{inner}->...r", grouped, weights)

    def rows(self, indices: ArrayLike) -> Value:
        """Rows by their index: integers [...] to float32 [..., columns]."""
        integers, scales = lnp.take(self.integers, indices, axis=0), lnp.take(self.scales, indices, axis=0)
        found = self._widened(integers, scales, self.scales.dtype)
        whole = lnp.reshape(found, (*as_value(indices).shape, -1))
        return whole[..., : self.columns] if whole.shape[-1] > self.columns else whole

    def dequantized(self) -> Value:
        """The matrix with its rounding: float32 [rows, columns]."""
        return self.rows(lnp.arange(self.shape[0], dtype="int32"))


class QuantizedLinear(Module):
    """A `Linear` with a `QuantizedMatrix`: x·matrixᵀ + bias."""

    matrix: QuantizedMatrix
    bias: Any

    @classmethod
    def from_linear(cls, layer: Linear, kind: str = "int8", group: int = 64) -> Self:
        """The layer with rounded weights; its bias stays. See `QuantizedMatrix.of`."""
        return cls(QuantizedMatrix.of(layer.weight, kind, group), layer.bias)

    def __call__(self, x: ArrayLike) -> Value:
        product = self.matrix.product(x)
        return product if self.bias is None else product + self.bias


class QuantizedEmbedding(Module):
    """An `Embedding` with a `QuantizedMatrix`; its rows are of the dtype that the table had."""

    matrix: QuantizedMatrix
    dtype: str = field(static=True)

    @classmethod
    def from_embedding(cls, layer: Embedding, kind: str = "int8", group: int = 64) -> Self:
        """The layer with rounded weights. See `QuantizedMatrix.of`."""
        return cls(QuantizedMatrix.of(layer.weight, kind, group), str(layer.weight.dtype))

    def __call__(self, indices: ArrayLike) -> Value:
        return lnp.astype(self.matrix.rows(indices), self.dtype)

    def attend(self, x: ArrayLike) -> Value:
        """x·matrixᵀ: [..., features] to [..., count]."""
        return self.matrix.product(x)
