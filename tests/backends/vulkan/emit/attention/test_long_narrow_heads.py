"""Attention of 16 bits whose heads no kernel holds is made of products in its precision."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.nn as nn
import lavax.numpy as lnp
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, MatrixShape
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph
from lavax.ir.types import DTYPES
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.simplify import remove_stop_gradient
from tests.backends.vulkan.run.execution import assert_agrees, backend_with

SHAPES = ((2, 9, 1, 264), (2, 21, 1, 264), (2, 21, 1, 264))  # more than kernels keep in registers
MATRICES = tuple(MatrixShape(dtype, 16, 16, 16) for dtype in ("bf16", "f16"))
GPU = replace(GENERIC_GPU, matrices=MATRICES, float16=True, storage_16bit=True, memory_model=True)


def attended(q: Any, k: Any, v: Any) -> Any:
    return nn.dot_product_attention(q / 4, k, v)


def gradients(q: Any, k: Any, v: Any) -> Any:
    """In the middle of a graph."""

    def loss(*args: Any) -> Any:
        return lnp.sum(lnp.sin(attended(*args).astype("float32")))

    return lx.grad(loss, argnums=(0, 1, 2))(q, k, v)


def traced(function: Any, dtype: str) -> Graph:
    kinds = [lx.ShapeDtype(shape, DTYPES[dtype].user) for shape in SHAPES]
    return remove_stop_gradient(lx.trace(function)(*kinds))


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("function, count", [(attended, 2), (gradients, 6)])
def test_products_have_the_precision_where_operands_are_staged(function: Any, count: int, dtype: str) -> None:
    graph = traced(function, dtype)
    for profile, precision in ((GPU, dtype), (CPU_DRIVER, "")):
        nodes = prepare(graph, target_of(profile, 1 << 36, 1 << 34)).nodes
        assert not any(node.op.startswith("attention") for node in nodes)
        assert [node.attrs["precision"] for node in nodes if node.op == "dot"] == [precision] * count


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("function", [attended, gradients])
def test_values_are_those_of_the_interpreter(function: Any, dtype: str, kind: str) -> None:
    generator = np.random.default_rng(4)
    arrays = [DTYPES[dtype].rounded(generator.normal(size=shape).astype(np.float32)) for shape in SHAPES]
    assert_agrees(traced(function, dtype), arrays, device=backend_with(kind=kind))
