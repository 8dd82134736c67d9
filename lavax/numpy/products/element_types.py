"""Products whose sums are kept in a dtype that the caller prefers."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

from lavax.ir.types import DType, bfloat16, float16, float32
from lavax.numpy._core.broadcasting import common_dtype
from lavax.numpy._core.operands import cast
from lavax.numpy._core.promotion import join
from lavax.tracer import dtype_of
from lavax.tracer.values.value import Value

Given = ParamSpec("Given")

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


def with_element_type(product: Callable[Given, Value]) -> Callable[Given, Value]:
    """A product of its first two arguments that keeps its sums in the dtype of its argument `preferred_element_type`.

    `product` itself takes that argument, and `precision`, and is called without it.
    """
    signature = inspect.signature(product)
    place = list(signature.parameters).index("preferred_element_type")

    @functools.wraps(product)
    def wrapped(*args: Given.args, **kwargs: Given.kwargs) -> Value:
        if len(args) <= place and kwargs.get("preferred_element_type") is None:
            return product(*args, **kwargs)
        given = signature.bind(*args, **kwargs)
        preferred = given.arguments.pop("preferred_element_type")
        if preferred is None:
            return product(*given.args, **given.kwargs)
        first, second, *_ = given.arguments

        def of_pair(pair: Sequence[Value], precision: Any) -> Value:
            given.arguments.update({first: pair[0], second: pair[1], "precision": precision})
            return product(*given.args, **given.kwargs)

        operands = common_dtype([given.arguments[first], given.arguments[second]])
        return in_element_type(of_pair, operands, preferred, given.arguments.get("precision"))

    return wrapped
