"""Layers whose weights are integers of 8 or 4 bits with a scale for each group: they are read so, and widened on the
way into the product."""
from __future__ import annotations

import math
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
    """A form of integers: their bits, in two's complement, and the largest one that is used."""

    bits: int
    largest: int

    @property
    def per_word(self) -> int:
        return 32 // self.bits

    @property
    def to_the_top(self) -> np.ndarray:
        """How far the integers of a word lie from its top, from where a shift extends the sign."""
        return np.arange(32 - self.bits, -1, -self.bits, dtype=np.int32)


KINDS = {"int8": _Kind(8, 127), "int4": _Kind(4, 7)}


class QuantizedMatrix(Module):
    """A matrix [rows, columns] as integers, in groups along its rows that share a scale.

    An element is scale · integer, and the largest of a group has the integer ±127 or ±7, so rounding moves an element
    by at most half a scale. `integers` is int32 [rows, groups, words]: a word holds four elements of "int8" or eight of
    "int4", the first one in its lowest bits. `scales` is float32 [rows, groups]. The last group of a row may be longer
    than its columns; what is beyond them is 0.
    """

    integers: Any
    scales: Any
    kind: str = field(static=True)
    columns: int = field(static=True)

    @classmethod
    def of(cls, matrix: Any, kind: str = "int8", group: int = 64) -> Self:
        """The matrix, rounded. `group` elements of a row share a scale.

        Raises ValueError for another kind than "int8" and "int4", for groups that fill no whole words of 32 bits, or if
        `matrix` is no matrix.
        """
        if kind not in KINDS:
            raise ValueError(f"QuantizedMatrix: kind is one of {', '.join(map(repr, KINDS))}, got {kind!r}")
        form = KINDS[kind]
        if group < 1 or group % form.per_word:
            raise ValueError(f"QuantizedMatrix: a group of {kind} is a multiple of {form.per_word}, got {group}")
        given = np.asarray(matrix).astype(np.float32)
        if given.ndim != 2:
            raise ValueError(f"QuantizedMatrix: a matrix has two axes, got the shape {given.shape}")
        rows, columns = given.shape
        padded = np.pad(given, ((0, 0), (0, -columns % group))).reshape(rows, -1, group)
        scales = np.abs(padded).max(axis=-1) / form.largest
        integers = np.rint(padded / np.where(scales == 0, 1, scales)[..., None]).astype(np.int32)
        own_bits = integers.view(np.uint32) & ((1 << form.bits) - 1)
        parts = own_bits.reshape(rows, -1, group // form.per_word, form.per_word)
        places = np.arange(form.per_word, dtype=np.uint32) * form.bits
        words = np.bitwise_or.reduce(parts << places, axis=-1).view(np.int32)
        return cls(device_put(words), device_put(scales), kind, columns)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return int(self.integers.shape[0]), self.columns

    def _widened(self, words: Any, scales: Any, dtype: Any) -> Value:
        """Words [..., groups, words] as their elements, [..., groups, words, elements], of `dtype`."""
        form = KINDS[self.kind]
        at_the_top = lnp.left_shift(lnp.expand_dims(words, -1), form.to_the_top)
        integers = lnp.right_shift(at_the_top, 32 - form.bits)
        made: Value = lnp.astype(lnp.astype(integers, scales.dtype) * lnp.expand_dims(scales, (-1, -2)), dtype)
        return made

    def product(self, x: ArrayLike) -> Value:
        """x·matrixᵀ: [..., columns] to [..., rows], in the dtype of `x`. Nothing but the integers is read of it."""
        given = as_value(x)
        weights = self._widened(self.integers, self.scales, given.dtype)
        room = math.prod(weights.shape[1:]) - self.columns
        padded = lnp.pad(given, ((0, 0),) * (given.ndim - 1) + ((0, room),)) if room else given
        grouped = lnp.reshape(padded, (*given.shape[:-1], *weights.shape[1:]))
        return lnp.einsum("...gwe,rgwe->...r", grouped, weights)

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
