"""Products whose sums are kept in a dtype that the caller prefers."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lavax.ir.types import DType, bfloat16, float16, float32
from lavax.numpy._core.operands import cast
from lavax.numpy._core.promotion import join
from lavax.tracer import dtype_of
from lavax.tracer.values.value import Value

# The precision at which float32 operands of these dtypes are exact.
_EXACT: dict[DType, str] = {bfloat16: "bfloat16", float16: "float16"}


def in_element_type(
    product: Callable[[Sequence[Value], Any], Value],
    operands: Sequence[Value],
    preferred: Any,
    precision: Any,
) -> Value:
    """`product(operands, precision)` with sums in the dtype `preferred`, for operands of one dtype.

    Operands become that dtype first if it is wider than theirs: products of bfloat16 and float16 keep the speed of
    those dtypes, because their numbers are not rounded again. Of a narrower dtype the result is cast.
    """
    wanted, held = dtype_of(preferred), operands[0].type.dtype
    if join(held, wanted) != wanted:
        return cast(product(operands, precision), wanted)
    chosen = _EXACT.get(held) if wanted == float32 and precision is None else None
    return product([cast(operand, wanted) for operand in operands], precision if chosen is None else chosen)
