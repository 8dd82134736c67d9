"""States and sums in float32 for narrow parameters, and updates of many arrays in few kernels."""
from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import optim
from tests.lavax.optim.optimizer_cases import CASES, NAMES, gradients, start


@pytest.mark.usefixtures("reference_backend")
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(("name", "arguments"), CASES, ids=NAMES)
def test_narrow_parameters_keep_their_dtype_and_have_a_float32_state(
    name: str, arguments: dict[str, Any], dtype: str
) -> None:
    optimizer = getattr(optim, name)(**arguments)
    params, gradient = (
        lx.tree.map(lambda leaf: lnp.astype(lnp.asarray(leaf), getattr(lnp, dtype)), tree)
        for tree in (start(), gradients(0))
    )
    state = optimizer.init(params)
    updates, following = optimizer.update(gradient, state, params)
    moved = optim.apply_updates(params, updates)
    assert all(leaf.dtype == getattr(lnp, dtype) for leaf in lx.tree.leaves(moved))
    assert lx.tree.structure(following) is lx.tree.structure(state)
    kinds = [(leaf.shape, leaf.dtype) for leaf in lx.tree.leaves(state)]
    assert kinds == [(leaf.shape, leaf.dtype) for leaf in lx.tree.leaves(following)]
    assert {str(kind) for _, kind in kinds} <= {"float32", "int32", "bool"}


@pytest.mark.usefixtures("reference_backend")
@pytest.mark.parametrize("name", ["adam", "adamw", "nadamw", "amsgrad", "lion", "muon"])
def test_the_first_moment_may_be_kept_in_bfloat16(name: str) -> None:
    params = start()
    optimizer = getattr(optim, name)(0.1, mu_dtype=lnp.bfloat16)
    state = optimizer.init(params)
    _, following = optimizer.update(gradients(0), state, params)
    for held in (state, following):
        moments = [leaf for mu in optim.tree.get_all(held, "mu") for leaf in lx.tree.leaves(mu)]
        assert moments and all(leaf.dtype == lnp.bfloat16 for leaf in moments)


def network() -> Any:
    """The weights of ten layers, as shapes."""
    sizes = [8, *[16] * 9, 4]
    return [
        {"weight": lx.ShapeDtype((wide, deep), "float32"), "bias": lx.ShapeDtype((wide,), "float32")}
        for deep, wide in pairwise(sizes)
    ]


@pytest.mark.parametrize(
    ("optimizer", "most"),
    [
        (optim.sgd(0.1), 6),
        (optim.sgd(0.1, momentum=0.9, nesterov=True), 6),
        (optim.adam(1e-3), 6),
        (optim.adamw(optim.warmup_cosine_decay_schedule(0.0, 1e-3, 10, 100)), 6),
        (optim.lion(1e-4), 6),
        (optim.radam(1e-3), 6),
        (optim.adabelief(1e-3), 6),
        # Small arrays are reduced as one.
        (optim.apply_if_finite(optim.adamw(1e-3), 5), 12),
        (optim.chain(optim.clip_by_global_norm(1.0), optim.adamw(1e-3)), 13),
    ],
)
def test_ten_layers_are_updated_in_few_kernels(optimizer: Any, most: int) -> None:
    def step(params: Any, state: Any, gradient: Any) -> Any:
        updates, state = optimizer.update(gradient, state, params)
        return optim.apply_updates(params, updates), state

    params = network()
    state = lx.eval_shape(optimizer.init, params)
    text = lx.compile(step, donate_argnums=(0, 1)).lower(params, state, params).as_text("kernels")
    kernels = [line for line in text.splitlines() if line.startswith("kernel ")]
    assert 1 <= len(kernels) <= most, text[:2000]
    # The reductions of arrays run at once: none waits for another.
    assert sum("after_barrier" in line for line in kernels) <= 3, kernels


def test_a_donated_step_on_the_device_is_the_step_of_the_interpreter() -> None:
    optimizer = optim.chain(
        optim.clip_by_global_norm(1.0),
        optim.multi_transform(
            {"decay": optim.adamw(0.1, weight_decay=0.1), "plain": optim.lion(0.01)},
            lambda params: lx.tree.map(lambda leaf: "decay" if lnp.ndim(leaf) == 2 else "plain", params),
        ),
    )

    def step(params: Any, state: Any, gradient: Any) -> Any:
        updates, state = optimizer.update(gradient, state, params)
        return optim.apply_updates(params, updates), state

    compiled = lx.compile(step, donate_argnums=(0, 1))
    params, state = start(), optimizer.init(start())
    graph_params, held = start(), [np.asarray(leaf) for leaf in lx.tree.leaves(optimizer.init(start()))]
    flat = lx.tree.leaves(graph_params)
    graph = lx.trace(step)(params, state, gradients(0))
    for number in range(3):
        params, state = compiled(params, state, gradients(number))
        found = lx.ir.interpret(graph, *flat, *held, *lx.tree.leaves(gradients(number)), dtype=np.float64)
        flat, held = list(found[:3]), list(found[3:])
    for one, other in zip(lx.tree.leaves(params), flat, strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("reference_backend")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_norms_of_small_and_large_arrays(dtype: str) -> None:
    draw = np.random.default_rng(0).standard_normal
    shapes = [(3, 4), (50, 60), (7,), (), (0, 3), (2048,), (2049,)]
    tree = [lnp.astype(np.asarray(draw(shape), np.float32), dtype) for shape in shapes]
    flat = np.concatenate([np.asarray(leaf).astype(np.float64).ravel() for leaf in tree])
    np.testing.assert_allclose(float(optim.global_norm(tree)), np.linalg.norm(flat), rtol=1e-6)
    for order in (1, np.inf):
        np.testing.assert_allclose(float(optim.tree.norm(tree, order)), np.linalg.norm(flat, order), rtol=1e-6)
    assert float(optim.tree.norm([np.zeros((0, 2), np.float32)], np.inf)) == 0
    assert bool(optim.all_finite(tree)) and bool(optim.all_finite({}))
    for place in (0, 1, 3):
        assert not bool(optim.all_finite([*tree[:place], tree[place] / 0, *tree[place + 1 :]]))
