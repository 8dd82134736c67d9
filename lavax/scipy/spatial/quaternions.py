"""Unit quaternions (x, y, z, w) [..., 4] as rotations, and what they are made of."""
from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import lavax.numpy as lnp
from lavax.tracer.values.value import Value

_SMALL = 1e-3  # an angle below which series are used
_AXES = "xyz"


def normalized(quat: Any) -> Value:
    """The quaternion of length 1."""
    result: Value = quat / lnp.sqrt(lnp.sum(quat * quat, axis=-1, keepdims=True))
    return result


def product(left: Any, right: Any) -> Value:
    """The rotation by `right`, then by `left`."""
    a, b = left[..., :3], right[..., :3]
    vector = left[..., 3:] * b + right[..., 3:] * a + lnp.cross(a, b)
    return lnp.concatenate([vector, left[..., 3:] * right[..., 3:] - lnp.sum(a * b, axis=-1, keepdims=True)], axis=-1)


def conjugate(quat: Any) -> Value:
    """The inverse rotation."""
    result: Value = quat * lnp.asarray([-1.0, -1.0, -1.0, 1.0], dtype=quat.dtype)
    return result


def to_matrix(quat: Any) -> Value:
    """[..., 3, 3]."""
    x, y, z, w = (quat[..., number] for number in range(4))
    rows = [
        [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
    ]
    return lnp.stack([lnp.stack(row, axis=-1) for row in rows], axis=-2)


def from_matrix(matrix: Any) -> Value:
    """Of rotation matrices [..., 3, 3]: of four forms, that with the largest component (Markley 2008)."""
    m = [[matrix[..., row, column] for column in range(3)] for row in range(3)]
    trace = m[0][0] + m[1][1] + m[2][2]
    forms = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        parts: list[Any] = [None] * 4
        parts[i] = 1 - trace + 2 * m[i][i]
        parts[j], parts[k], parts[3] = m[j][i] + m[i][j], m[k][i] + m[i][k], m[k][j] - m[j][k]
        forms.append(lnp.stack(parts, axis=-1))
    forms.append(lnp.stack([m[2][1] - m[1][2], m[0][2] - m[2][0], m[1][0] - m[0][1], 1 + trace], axis=-1))
    chosen = lnp.argmax(lnp.stack([m[0][0], m[1][1], m[2][2], trace], axis=-1), axis=-1)[..., None, None]
    found = lnp.take_along_axis(lnp.stack(forms, axis=-2), chosen, axis=-2)[..., 0, :]
    return normalized(found)


def from_vector(vector: Any) -> Value:
    """Of rotation vectors [..., 3]: the axis times the angle."""
    squares = lnp.sum(vector * vector, axis=-1, keepdims=True)
    is_small = squares < _SMALL**2
    angle = lnp.sqrt(lnp.where(is_small, 1.0, squares))
    scale = lnp.where(is_small, 0.5 - squares / 48, lnp.sin(angle / 2) / angle)
    cosine = lnp.where(is_small, 1 - squares / 8, lnp.cos(angle / 2))
    return lnp.concatenate([scale * vector, cosine], axis=-1)


def to_vector(quat: Any) -> Value:
    """[..., 3], of angles from 0 to π."""
    upright = lnp.where(quat[..., 3:] < 0, -quat, quat)
    vector, w = upright[..., :3], upright[..., 3:]
    squares = lnp.sum(vector * vector, axis=-1, keepdims=True)
    is_small = squares < (_SMALL / 2) ** 2
    sine = lnp.sqrt(lnp.where(is_small, 1.0, squares))
    scale = lnp.where(is_small, 2 + squares / 3, 2 * lnp.arctan2(sine, w) / sine)
    result: Value = scale * vector
    return result


def magnitude(quat: Any) -> Value:
    """The angle from 0 to π."""
    sine = lnp.sqrt(lnp.sum(lnp.square(quat[..., :3]), axis=-1))
    return 2 * lnp.arctan2(sine, lnp.abs(quat[..., 3]))


def about(axis: str, angle: Any) -> Value:
    """The rotation by `angle` about "x", "y" or "z"."""
    sine, zero = lnp.sin(angle / 2), lnp.zeros_like(angle)
    parts = [sine if axis == each else zero for each in _AXES]
    return lnp.stack([*parts, lnp.cos(angle / 2)], axis=-1)


def require_axes(function: str, seq: str, most: int = 3) -> bool:
    """Whether the axes turn along (upper case). Raises ValueError for anything else than one to three axes."""
    lower = seq.lower()
    same_case = seq in (lower, seq.upper())
    wrong = not 1 <= len(seq) <= most or not set(_AXES).issuperset(lower) or not same_case
    if wrong or any(a == b for a, b in pairwise(lower)):
        raise ValueError(f"Rotation.{function}: seq is up to three of xyz, or of XYZ, no two alike in a row: {seq!r}")
    return seq != lower


def from_angles(seq: str, angles: list[Any]) -> Value:
    """Of angles about the axes `seq` one after the other; upper-case axes turn along."""
    turning = require_axes("from_euler", seq)
    found = about(seq[0].lower(), angles[0])
    for axis, angle in zip(seq[1:].lower(), angles[1:], strict=True):
        other = about(axis, angle)
        found = product(found, other) if turning else product(other, found)
    return found


def to_angles(quat: Any, seq: str) -> Value:
    """[..., 3]: the angles about three axes (Bernardes and Viollet 2022); the last is 0 where two axes coincide."""
    turning = require_axes("as_euler", seq)
    if len(seq) != 3:
        raise ValueError(f"Rotation.as_euler: seq must name three axes, got {seq!r}")
    i, j, k = (_AXES.index(axis) for axis in (seq.lower()[::-1] if turning else seq))
    is_symmetric = i == k
    if is_symmetric:
        k = 3 - i - j
    sign = (i - j) * (j - k) * (k - i) // 2
    first, second, third, w = quat[..., i], quat[..., j], quat[..., k] * sign, quat[..., 3]
    a, b, c, d = (
        (w, first, second, third) if is_symmetric else (w - second, first + third, second + w, third - first)
    )
    middle = 2 * lnp.arctan2(lnp.hypot(c, d), lnp.hypot(a, b))
    half_sum, half_difference = lnp.arctan2(b, a), lnp.arctan2(d, c)
    is_zero, is_half = middle < 1e-6, lnp.abs(middle - math.pi) < 1e-6
    starts = [half_sum - half_difference, half_sum + half_difference]
    if turning:
        starts.reverse()
    lone = lnp.where(is_zero, 2 * half_sum, 2 * half_difference * (1 if turning else -1))
    is_lone = is_zero | is_half
    outer = [lnp.where(is_lone, lone, starts[0]), lnp.where(is_lone, 0.0, starts[1])]
    if not is_symmetric:
        outer[0 if turning else 1] = outer[0 if turning else 1] * sign
        middle = middle - math.pi / 2
    angles = lnp.stack([outer[0], middle, outer[1]], axis=-1)
    turns = lnp.where(angles < -math.pi, 1.0, lnp.where(angles > math.pi, -1.0, 0.0))
    result: Value = angles + 2 * math.pi * turns
    return result
