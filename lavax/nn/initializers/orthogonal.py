"""Weights that are orthogonal matrices."""
from __future__ import annotations

import math
from typing import Any

import lavax.numpy as lnp
from lavax import random
from lavax.nn.initializers.initializer import Initializer
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike
from lavax.numpy._core.shape_arguments import checked_shape
from lavax.random.continuous import Extents
from lavax.tracer.values.value import Value


def orthogonal(scale: float = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """An initializer of orthogonal matrices times `scale`, uniformly distributed (Saxe et al. 2014).

    Columns lie along `column_axis`, all other axes together are rows. If there are more rows than columns, columns are
    orthonormal, else rows. Shapes have at least two axes.
    """
    default = dtype

    def init(key: ArrayLike, shape: Extents, dtype: Any = None) -> Value:
        held = default if dtype is None else dtype
        extents = checked_shape("orthogonal", shape)
        if len(extents) < 2 or not -len(extents) <= column_axis < len(extents):
            raise shape_error(f"orthogonal: a shape of two axes or more, with the axis {column_axis}, got {extents}")
        if 0 in extents:
            return lnp.zeros(extents, held)
        place = column_axis % len(extents)
        columns = extents[place]
        others = extents[:place] + extents[place + 1 :]
        matrix = random.orthogonal(key, math.prod(others), (), held, columns)
        return lnp.moveaxis(lnp.reshape(matrix, (*others, columns)), -1, place) * scale

    return init


def delta_orthogonal(scale: float = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """An initializer of kernels [..., in, out]: an orthogonal matrix in the middle of the window, zeros around it.

    So a deep convolution network starts as an isometry (Xiao et al. 2018). Windows have one to three axes, and `in`
    is at most `out`.
    """
    default = dtype

    def init(key: ArrayLike, shape: Extents, dtype: Any = None) -> Value:
        held = default if dtype is None else dtype
        extents = checked_shape("delta_orthogonal", shape)
        if not 3 <= len(extents) <= 5 or extents[-1] < extents[-2]:
            raise shape_error(
                f"delta_orthogonal: a shape [..., in, out] with 1 to 3 axes of the window and in <= out, got {extents}"
            )
        matrix = orthogonal(scale, column_axis, held)(key, extents[-2:])
        pads = [((extent - 1) // 2, extent - 1 - (extent - 1) // 2) for extent in extents[:-2]]
        return lnp.pad(lnp.reshape(matrix, (*(1 for _ in pads), *extents[-2:])), [*pads, (0, 0), (0, 0)])

    return init
