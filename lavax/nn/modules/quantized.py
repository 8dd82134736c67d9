"""Layers whose weights are integers of 8 or 4 bits with a scale for each group: they are read so, and widened on the
way into the product."""
from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

import lavax.numpy as lnp
from lavax.base.quick_dataclasses import dataclass
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

    def to_the_top(self) -> Value:
        """How far the integers of a word lie from its top, from where a shift extends the sign.

        Computed, not read: a shader knows the shifts of four integers when it is compiled.
        """
        return 32 - self.bits - self.bits * lnp.arange(self.per_word, dtype="int32")


_AT_ONCE = 1 << 24  # elements that are rounded at once, in some of the host's memory
KINDS = {"int8": _Kind(8, 127), "int4": _Kind(4, 7)}


class QuantizedMatrix(Module):
    """A matrix [rows, columns], or several [..., rows, columns], as integers in groups along rows that share a scale.

    An element is scale · integer, and the largest of a group has the integer ±127 or ±7, so rounding moves an element
    by at most half a scale. With `zeros`, for matrices whose groups are not around 0, an element is scale · integer +
    zero, and a group's least and largest elements have the least and the largest integer of 8 or 4 bits.

    `integers` is int32 [..., rows, groups, words]: a word holds four elements of "int8" or eight of "int4", the first
    one in its lowest bits. `scales`, and `zeros` unless they are None, are float32 [..., rows, groups]. The last group
    of a row may be longer than its columns; what is beyond them counts nowhere.
    """

    integers: Any
    scales: Any
    zeros: Any
    kind: str = field(static=True)
    columns: int = field(static=True)

    @classmethod
    def of(cls, matrix: Any, kind: str = "int8", group: int = 64, *, symmetric: bool = True) -> Self:
        """The matrix, rounded. `group` elements of a row share a scale, and unless `symmetric` a zero.

        Raises ValueError for another kind than "int8" and "int4", for groups that fill no whole words of 32 bits, or if
        `matrix` is no matrix.
        """
        if kind not in KINDS:
            raise ValueError(f"QuantizedMatrix: kind is one of {', '.join(map(repr, KINDS))}, got {kind!r}")
        form = KINDS[kind]
        if group < 1 or group % form.per_word:
            raise ValueError(f"QuantizedMatrix: a group of {kind} is a multiple of {form.per_word}, got {group}")
        given = np.asarray(matrix)
        if given.ndim < 2:
            raise ValueError(f"QuantizedMatrix: a matrix has two axes, got the shape {given.shape}")
        *leading, columns = given.shape
        rows = given.reshape(-1, columns)
        step = max(_AT_ONCE // max(columns, 1), 1)
        slabs = [_packed(rows[first : first + step], form, group, symmetric) for first in range(0, len(rows), step)]
        words, scales, zeros = (
            np.concatenate(parts).reshape(*leading, *parts[0].shape[1:]) for parts in zip(*slabs, strict=True)
        )
        return cls(device_put(words), device_put(scales), None if symmetric else device_put(zeros), kind, columns)

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the matrix: rows and columns last."""
        return *map(int, self.integers.shape[:-2]), self.columns

    def product(self, x: ArrayLike) -> Value:
        """x·matrixᵀ: [..., columns] to [..., rows], in the dtype of `x`. Nothing but the integers is read of it."""
        return self.contracted("...c,rc->...r", x)

    def contracted(self, subscripts: str, x: ArrayLike) -> Value:
        """`einsum` of `x` and the matrix over the columns, the last axis of both, such as "nc,erc->enr"."""
        given = as_value(x)
        weights = lnp.astype(self._scaled(), given.dtype)
        grouping = weights.shape[-3:]
        room = math.prod(grouping) - self.columns
        padded = lnp.pad(given, ((0, 0),) * (given.ndim - 1) + ((0, room),)) if room else given
        terms, result = subscripts.split("->")
        column = terms[-1]
        if column in result or terms.count(column) != 2:
            raise ValueError(f"QuantizedMatrix: {subscripts!r} must sum over the last axis of both")
        grouped = lnp.reshape(padded, (*given.shape[:-1], *grouping))
        made = lnp.einsum(f"{terms.replace(column, 'GWE')}->{result}", grouped, weights)
        if self.zeros is None:
            return made
        sums, zeros = lnp.sum(grouped, axis=(-2, -1)), lnp.astype(self.zeros, given.dtype)
        return made + lnp.einsum(f"{terms.replace(column, 'G')}->{result}", sums, zeros)

    def at(self, indices: ArrayLike) -> QuantizedMatrix:
        """The same of a part: rows, or of several matrices those at `indices` along the first axis."""
        parts = {"integers": self.integers, "scales": self.scales, "zeros": self.zeros}
        given = {name: part for name, part in parts.items() if part is not None}
        taken = {name: lnp.take(part, indices, axis=0, mode="promise_in_bounds") for name, part in given.items()}
        return self.replace(**taken)

    def rows(self, indices: ArrayLike) -> Value:
        """Rows by their index: integers [...] to float32 [..., columns]."""
        return self.at(indices).dequantized()

    def dequantized(self) -> Value:
        """The matrix with its rounding, in float32."""
        found = self._scaled()
        if self.zeros is not None:
            found = found + lnp.expand_dims(self.zeros, (-1, -2))
        whole = lnp.reshape(found, (*found.shape[:-3], -1))
        return whole[..., : self.columns] if whole.shape[-1] > self.columns else whole

    def _scaled(self) -> Value:
        """Scales times integers, [..., rows, groups, words, elements of a word]."""
        form = KINDS[self.kind]
        at_the_top = lnp.left_shift(lnp.expand_dims(self.integers, -1), form.to_the_top())
        integers = lnp.astype(lnp.right_shift(at_the_top, 32 - form.bits), self.scales.dtype)
        made: Value = integers * lnp.expand_dims(self.scales, (-1, -2))
        return made


def _packed(rows: np.ndarray, form: _Kind, group: int, symmetric: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows [N, columns] as words [N, groups, words], with the scales and zeros [N, groups]."""
    padded = np.pad(rows.astype(np.float32), ((0, 0), (0, -rows.shape[1] % group)), mode="edge")
    grouped = padded.reshape(len(rows), -1, group)
    if symmetric:
        scales = np.abs(grouped).max(axis=-1) / form.largest
        zeros = np.zeros_like(scales)
    else:
        least, largest = grouped.min(axis=-1), grouped.max(axis=-1)
        scales = (largest - least) / (2 * form.largest + 1)
        zeros = least + (form.largest + 1) * scales
    steps = (grouped - zeros[..., None]) / np.where(scales == 0, 1, scales)[..., None]
    integers = np.clip(np.rint(steps), -form.largest - 1, form.largest).astype(np.int32)
    own_bits = integers.view(np.uint32) & ((1 << form.bits) - 1)
    parts = own_bits.reshape(*grouped.shape[:2], group // form.per_word, form.per_word)
    places = np.arange(form.per_word, dtype=np.uint32) * form.bits
    return np.bitwise_or.reduce(parts << places, axis=-1).view(np.int32), scales, zeros


class QuantizedLinear(Module):
    """A `Linear` with a `QuantizedMatrix`: x·matrixᵀ + bias."""

    matrix: QuantizedMatrix
    bias: Any

    @classmethod
    def from_linear(cls, layer: Linear, kind: str = "int8", group: int = 64, *, symmetric: bool = True) -> Self:
        """The layer with rounded weights; its bias stays. See `QuantizedMatrix.of`."""
        return cls(QuantizedMatrix.of(layer.weight, kind, group, symmetric=symmetric), layer.bias)

    def __call__(self, x: ArrayLike) -> Value:
        product = self.matrix.product(x)
        return product if self.bias is None else product + self.bias


class QuantizedEmbedding(Module):
    """An `Embedding` with a `QuantizedMatrix`; its rows are of the dtype that the table had."""

    matrix: QuantizedMatrix
    dtype: str = field(static=True)

    @classmethod
    def from_embedding(cls, layer: Embedding, kind: str = "int8", group: int = 64, *, symmetric: bool = True) -> Self:
        """The layer with rounded weights. See `QuantizedMatrix.of`."""
        return cls(QuantizedMatrix.of(layer.weight, kind, group, symmetric=symmetric), str(layer.weight.dtype))

    def __call__(self, indices: ArrayLike) -> Value:
        return lnp.astype(self.matrix.rows(indices), self.dtype)

    def attend(self, x: ArrayLike) -> Value:
        """x·matrixᵀ: [..., features] to [..., count]."""
        return self.matrix.product(x)
