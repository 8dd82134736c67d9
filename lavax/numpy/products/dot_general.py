"""Products summed over axes that are chosen by number: `lax.dot_general`, on which `einsum` may be built."""
from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.numpy.products.einsum import einsum
from lavax.tracer.values.value import Value

DotDimensionNumbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]


def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    precision: Any = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Value:
    """The sums of products over contracted axes: ((of lhs, of rhs), (batch axes of lhs, of rhs)).

    The result's axes are the batch's, the others of lhs, the others of rhs. `preferred_element_type` is the dtype of
    the sums and of the result. Raises ShapeError if extents differ.
    """
    left, right = as_value(lhs), as_value(rhs)
    (of_left, of_right), (batch_left, batch_right) = dimension_numbers
    letters = iter(string.ascii_letters)
    names_left, names_right = [next(letters) for _ in left.shape], [next(letters) for _ in right.shape]
    for here, there in (*zip(of_left, of_right, strict=True), *zip(batch_left, batch_right, strict=True)):
        if left.shape[here] != right.shape[there]:
            raise shape_error(
                f"lax.dot_general: axis {here} of {left.type} and axis {there} of {right.type} have different extents"
            )
        names_right[there] = names_left[here]
    batch = [names_left[axis] for axis in batch_left]
    rest = [names_left[axis] for axis in range(left.ndim) if axis not in (*of_left, *batch_left)]
    rest += [names_right[axis] for axis in range(right.ndim) if axis not in (*of_right, *batch_right)]
    text = f"{''.join(names_left)},{''.join(names_right)}->{''.join((*batch, *rest))}"
    return einsum(
        text, left, right, precision=precision, preferred_element_type=preferred_element_type
    )
