"""Rotations and their interpolation, as pytrees."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lavax.numpy as lnp
from lavax import linalg, random
from lavax.base.quick_dataclasses import dataclass
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike
from lavax.scipy.spatial import quaternions
from lavax.tracer.pytrees.registration import register_dataclass
from lavax.tracer.values.value import Value

__all__ = ["Rotation", "Slerp"]


def _with_axes(function: str, x: ArrayLike, *extents: int) -> Value:
    value = as_floating(x)
    if value.shape[-len(extents) :] != extents:
        raise shape_error(f"Rotation.{function} takes [..., {', '.join(map(str, extents))}], got {value.type}")
    return value


@register_dataclass
@dataclass(frozen=True)
class Rotation:
    """One rotation, or several: unit quaternions (x, y, z, w) [..., 4]. Made by the methods `from_…`."""

    quat: Any

    @classmethod
    def from_quat(cls, quat: ArrayLike) -> Rotation:
        """Of quaternions [..., 4], which are normalised."""
        return cls(quaternions.normalized(_with_axes("from_quat", quat, 4)))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Rotation:
        """Of rotation matrices [..., 3, 3]."""
        return cls(quaternions.from_matrix(_with_axes("from_matrix", matrix, 3, 3)))

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, degrees: bool = False) -> Rotation:
        """Of axes times angles [..., 3]."""
        vector = _with_axes("from_rotvec", rotvec, 3)
        return cls(quaternions.from_vector(lnp.deg2rad(vector) if degrees else vector))

    @classmethod
    def from_mrp(cls, mrp: ArrayLike) -> Rotation:
        """Of modified Rodrigues parameters [..., 3]: axes times the tangents of a quarter of the angles."""
        vector = _with_axes("from_mrp", mrp, 3)
        squares = lnp.sum(vector * vector, axis=-1, keepdims=True)
        return cls(lnp.concatenate([2 * vector, 1 - squares], axis=-1) / (1 + squares))

    @classmethod
    def from_euler(cls, seq: str, angles: ArrayLike, degrees: bool = False) -> Rotation:
        """Of angles about the axes `seq`, as "zyx": fixed axes, or in upper case axes that turn along.

        `angles` is [..., len(seq)], or a number or [n] for one axis. Raises ValueError for other axes, ShapeError for
        another number of angles.
        """
        quaternions.require_axes("from_euler", seq)
        value = as_floating(angles)
        value = lnp.deg2rad(value) if degrees else value
        if len(seq) == 1:
            value = value[..., None] if not value.ndim or value.shape[-1] != 1 else value
        if not value.ndim or value.shape[-1] != len(seq):
            raise shape_error(f"Rotation.from_euler: {seq!r} needs angles [..., {len(seq)}], got {value.type}")
        return cls(quaternions.from_angles(seq, [value[..., number] for number in range(len(seq))]))

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """The rotation that changes nothing, or `num` of them."""
        shape = (4,) if num is None else (num, 4)
        return cls(lnp.broadcast_to(lnp.asarray([0.0, 0.0, 0.0, 1.0], dtype=dtype), shape))

    @classmethod
    def random(cls, random_key: ArrayLike, num: int | None = None) -> Rotation:
        """Uniformly distributed: one, or `num`."""
        return cls.from_quat(random.normal(random_key, (4,) if num is None else (num, 4)))

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """Several in one, in a row."""
        return cls(lnp.concatenate([lnp.reshape(each.quat, (-1, 4)) for each in rotations], axis=0))

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Value:
        """[..., 4]: (x, y, z, w), or (w, x, y, z); with `canonical`, w is not negative."""
        quat = lnp.where(self.quat[..., 3:] < 0, -self.quat, self.quat) if canonical else self.quat
        return lnp.roll(quat, 1, axis=-1) if scalar_first else quat

    def as_matrix(self) -> Value:
        """Rotation matrices [..., 3, 3]."""
        return quaternions.to_matrix(self.quat)

    def as_rotvec(self, degrees: bool = False) -> Value:
        """Axes times angles from 0 to π, [..., 3]."""
        vector = quaternions.to_vector(self.quat)
        return lnp.rad2deg(vector) if degrees else vector

    def as_mrp(self) -> Value:
        """Modified Rodrigues parameters [..., 3], of length at most 1."""
        upright = self.as_quat(canonical=True)
        return lnp.divide(upright[..., :3], 1 + upright[..., 3:])

    def as_euler(self, seq: str, degrees: bool = False) -> Value:
        """Angles [..., 3] about three axes, as of `from_euler`."""
        angles = quaternions.to_angles(self.quat, seq)
        return lnp.rad2deg(angles) if degrees else angles

    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Value:
        """Vectors [..., 3] turned, or turned back; rotations and vectors broadcast."""
        value, matrix = _with_axes("apply", vectors, 3), self.as_matrix()
        return lnp.einsum("...ji,...j->...i" if inverse else "...ij,...j->...i", matrix, value)

    def inv(self) -> Rotation:
        """The inverse."""
        return Rotation(quaternions.conjugate(self.quat))

    def magnitude(self) -> Value:
        """The angle [...], from 0 to π."""
        return quaternions.magnitude(self.quat)

    def mean(self, weights: ArrayLike | None = None) -> Rotation:
        """The rotation nearest to several, in the mean of squared sines (Markley et al. 2007)."""
        rows = lnp.reshape(self.quat, (-1, 4))
        shares = lnp.ones(rows.shape[0], dtype=rows.dtype) if weights is None else as_floating(weights)
        return Rotation(linalg.eigh(lnp.matmul(lnp.matrix_transpose(rows) * shares, rows)).eigenvectors[:, -1])

    @property
    def single(self) -> bool:
        """Whether it is one rotation."""
        return self.quat.ndim == 1  # type: ignore[no-any-return]

    def __mul__(self, other: Rotation) -> Rotation:
        return Rotation(quaternions.product(self.quat, other.quat))

    def __getitem__(self, index: Any) -> Rotation:
        if self.single:
            raise TypeError("a single Rotation has no parts")
        return Rotation(self.quat[index])

    def __len__(self) -> int:
        if self.single:
            raise TypeError("a single Rotation has no len()")
        return int(self.quat.shape[0])


@register_dataclass
@dataclass(frozen=True, init=False)
class Slerp:
    """Rotations at rising times [n], n >= 2, and between them turning evenly: `Slerp(times, rotations)(t)`."""

    times: Any
    timedelta: Any
    rotations: Rotation
    rotvecs: Any

    def __init__(self, times: ArrayLike, rotations: Rotation) -> None:
        value = as_floating(times)
        if rotations.single or value.shape != (len(rotations),) or len(rotations) < 2:
            raise shape_error(f"Slerp takes n >= 2 times and n rotations, got {value.type}, {rotations.quat.type}")
        turns = (rotations[:-1].inv() * rotations[1:]).as_rotvec()
        fields = {"times": value, "timedelta": lnp.diff(value), "rotations": rotations[:-1], "rotvecs": turns}
        for name, field in fields.items():
            object.__setattr__(self, name, field)

    @classmethod
    def init(cls, times: ArrayLike, rotations: Rotation) -> Slerp:
        """The constructor, by JAX's name."""
        return cls(times, rotations)

    def __call__(self, times: ArrayLike) -> Rotation:
        """The rotations at `times` [...]; beyond the ends they go on turning."""
        value = as_floating(times)
        place = lnp.clip(lnp.searchsorted(self.times, value, side="right") - 1, 0, len(self.rotations) - 1)
        fraction = (value - self.times[place]) / self.timedelta[place]
        return self.rotations[place] * Rotation.from_rotvec(self.rotvecs[place] * fraction[..., None])


