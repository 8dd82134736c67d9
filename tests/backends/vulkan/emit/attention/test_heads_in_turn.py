"""Workgroups of causal attention start with the rows of all heads that see most columns."""
from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.backends.vulkan.emit.attention import choose, problem
from lavax.backends.vulkan.emit.attention.problem import HeadsInTurn, Problem
from lavax.backends.vulkan.emit.attention.workgroup_shape import WorkgroupShape, fitted
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile, MatrixShape
from lavax.ir import Graph
from lavax.passes.simplify import remove_stop_gradient
from tests.backends.vulkan.emit.attention.test_attention import assert_close, gpu_schedule
from tests.backends.vulkan.emit.attention.test_cooperative_attention import with_profile

WITH_MATRICES = replace(
    GENERIC_GPU, matrices=(MatrixShape("bf16", 16, 16, 16),), float16=True, storage_16bit=True, memory_model=True
)


def gradients_of(kind: Any, **options: Any) -> Graph:
    """Attention and its gradients in the middle of a graph."""

    def both(query: Any, key: Any, value: Any) -> Any:
        attend = lambda *x: nn.dot_product_attention(*x, **options)  # noqa: E731
        loss = lambda *x: lnp.sum(lnp.sin(attend(*x).astype("float32")))  # noqa: E731
        return attend(query, key, value), *lx.grad(loss, argnums=(0, 1, 2))(query, key, value)

    return remove_stop_gradient(lx.trace(both)(kind, kind, kind))


@pytest.mark.parametrize(
    ("batch", "uneven", "heads"),
    [((4, 9), True, 36), ((8, 16), True, 128), ((2, 131), True, 2), ((131,), True, 1), ((8, 16), False, 1)],
)
def test_as_many_heads_as_divide_all_take_turns(batch: tuple[int, ...], uneven: bool, heads: int) -> None:
    assert Problem(batch, 512, 512, by_keys=False, uneven=uneven).heads_in_turn == heads


@pytest.mark.parametrize(("options", "profile", "in_turn"), [
    ({"is_causal": True}, WITH_MATRICES, True),
    ({"is_causal": True}, GENERIC_GPU, True),
    ({"is_causal": True}, CPU_DRIVER, False),  # keys that a core has read are in its cache
    ({}, WITH_MATRICES, False),
])  # fmt: skip
def test_rows_of_all_heads_that_see_most_start_first(
    options: dict[str, Any], profile: DeviceProfile, in_turn: bool
) -> None:
    """Of results and queries' gradients these are the last rows, of keys' gradients the first."""
    graph = gradients_of(lx.ShapeDtype((2, 256, 24, 64), "bfloat16"), **options)
    sources = [dispatch.shader.source for dispatch in with_profile(profile).lower(graph).plan.dispatches]
    kernels = [source for source in sources if "for (int block" in source and "int group" in source]
    assert len(kernels) >= 2  # without matrices, keys' kernel has parts of the queries' gradient
    for source in kernels:
        assert (re.search(r"uint\(group\) / uint\(48\)|group / 48", source) is not None) == in_turn
    assert sum("- group;" in source for source in kernels) == (len(kernels) - 1 if options else 0)


def test_every_row_of_every_head_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six heads of several tiles each, two of them in turn."""
    monkeypatch.setattr(problem, "HEADS_IN_TURN", HeadsInTurn(most=2))
    shape = WorkgroupShape(4, 8, 4, 1, depth=4, share=8, chunk=16)
    given = lambda profile, problem, stages, *_: fitted(shape, profile, stages)  # noqa: E731
    monkeypatch.setattr(choose, "choose_workgroup_shape", given)
    graph = gradients_of(lx.ShapeDtype((2, 40, 3, 8), "float32"), is_causal=True)
    random = np.random.default_rng(0)
    arrays = [random.normal(size=node.shape).astype(np.float32) for node in graph.inputs]
    assert_close(graph, arrays, device=gpu_schedule())
