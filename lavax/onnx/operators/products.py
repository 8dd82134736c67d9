"""Operators that are matrix products, and those of linear algebra."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax.onnx.operators.operator import REQUIRED, Call, Operator, converted


def _gemm(call: Call, a: Any, b: Any, c: Any = None) -> Any:
    found = (a.T if call.transA else a) @ (b.T if call.transB else b)
    scaled = found if call.alpha == 1 else converted(found * call.alpha, found.dtype)
    if c is None or not call.beta:
        return scaled
    return scaled + (c if call.beta == 1 else converted(c * call.beta, c.dtype))


def _einsum(call: Call, *inputs: Any) -> Any:
    return call.np.einsum(call.equation.replace(" ", ""), *inputs)


OPERATORS = (
    Operator("Det", lambda call, x: lnp.linalg.det(x)),
    Operator("Einsum", _einsum, {"equation": REQUIRED}, folds=True),
    Operator("Gemm", _gemm, {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}, folds=True, since=7),
    Operator("MatMul", lambda call, a, b: call.np.matmul(a, b), folds=True),
)
