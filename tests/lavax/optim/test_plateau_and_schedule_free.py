"""Learning rates that follow the loss, and optimizers without a schedule: by their definitions, and against optax."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import optim
from tests.closeness import close
from tests.lavax.optim.optimizer_cases import gradients, start

pytestmark = pytest.mark.usefixtures("reference_backend")

# Falls, stays, and falls again.
LOSSES = np.array([3, 2.5, 2, 2.02, 2.01, 2.01, 2, 2, 2.03, 2, 2, 2.01, 2, 2, 1.5, 1, 1, 1, 1.2, 1], np.float32)


def scales(**settings: Any) -> list[float]:
    """What updates of 1 become along LOSSES."""
    optimizer = optim.reduce_on_plateau(**settings)
    state, found = optimizer.init(np.float32(1)), []
    for value in LOSSES:
        update, state = optimizer.update(np.float32(1), state, value=value)
        found.append(float(update))
    return found


def test_a_plateau_shrinks_updates() -> None:
    close(scales(patience=3, factor=0.5), [1] * 5 + [0.5] * 3 + [0.25] * 3 + [0.125] * 7 + [0.0625] * 2)
    close(scales(patience=3, factor=0.5, cooldown=4), [1] * 5 + [0.5] * 7 + [0.25] * 7 + [0.125])
    close(scales(patience=3, factor=0.5, min_scale=0.3), [1] * 5 + [0.5] * 3 + [0.3] * 12)
    expected = [1] * 5 + [0.5] * 4 + [0.25] * 2 + [0.125] * 2 + [0.0625] * 6 + [0.03125]
    close(scales(patience=1, factor=0.5, accumulation_size=2), expected)


PLATEAUS: list[dict[str, Any]] = [
    {"patience": 3},
    {"patience": 2, "cooldown": 3, "factor": 0.5},
    {"patience": 2, "accumulation_size": 3, "min_scale": 0.05},
    {"patience": 4, "rtol": 0.0, "atol": 0.05},
]


@pytest.mark.parametrize("settings", PLATEAUS)
def test_a_plateau_is_that_of_optax(settings: dict[str, Any]) -> None:
    optax = pytest.importorskip("optax", reason="optax is the oracle")
    theirs = optax.contrib.reduce_on_plateau(**settings)
    held, expected = theirs.init(np.float32(1)), []
    for value in LOSSES:
        update, held = theirs.update(np.float32(1), held, value=value)
        expected.append(float(update))
    close(scales(**settings), expected)


def test_schedule_free_is_its_equations() -> None:
    """Equations 5 to 7 in float64, for plain descent: each step weighs the same."""
    b1, rate, slopes = 0.8, 0.1, [np.float32(slope) for slope in (1, -3, 2, 0.5)]
    optimizer = optim.schedule_free(optim.sgd(rate), rate, b1=b1)
    params: Any = np.float32(2)
    state = optimizer.init(params)
    z = x = 2.0
    for number, slope in enumerate(slopes, 1):
        updates, state = optimizer.update(slope, state, params)
        params = optim.apply_updates(params, updates)
        z -= rate * float(slope)
        x += (z - x) / number
        close(params, (1 - b1) * z + b1 * x)
        close(optim.schedule_free_eval_params(state, params), x)


def test_schedule_free_is_that_of_optax() -> None:
    optax = pytest.importorskip("optax", reason="optax is the oracle")
    results = []
    for library, around in ((optim, optim.schedule_free), (optax, optax.contrib.schedule_free)):
        rate = library.linear_schedule(0.0, 0.1, 3)
        optimizer = around(library.adam(rate, b1=0.0), rate, b1=0.7)
        params = start()
        state = optimizer.init(lx.tree.map(lnp.asarray, params) if library is optim else to_jax(params))
        for step in range(6):
            updates, state = optimizer.update(gradients(step), state, params)
            params = library.apply_updates(params, updates)
        results.append([np.asarray(leaf) for leaf in lx.tree.leaves(params)])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def to_jax(params: Any) -> Any:
    jax = pytest.importorskip("jax", reason="optax needs it")
    return jax.tree.map(jax.numpy.asarray, params)


def test_parameters_and_state_are_donated_together() -> None:
    start = lnp.asarray(np.ones(3, np.float32))
    free, ahead = optim.schedule_free(optim.sgd(0.1), 0.1), optim.lookahead(optim.sgd(0.1), 2, 0.5)
    for optimizer, params in ((free, lnp.copy(start)), (ahead, optim.LookaheadParams.init_synced(start))):

        @lx.compile(donate_argnums=(0, 1))
        def step(params: Any, state: Any, optimizer: Any = optimizer) -> Any:
            updates, state = optimizer.update(lx.tree.leaves(params)[0], state, params)
            return optim.apply_updates(params, updates), state

        params, state = step(params, optimizer.init(params))
        params, _ = step(params, state)
        assert all(float(leaf[0]) < 1 for leaf in lx.tree.leaves(params))


def test_narrow_parameters_have_wide_states() -> None:
    params = lnp.astype(np.ones(3, np.float32), "bfloat16")
    optimizer = optim.schedule_free(optim.sgd(0.1), 0.1)
    state = optimizer.init(params)
    assert str(state.z.dtype) == "float32"
    assert str(optim.schedule_free_eval_params(state, params).dtype) == "bfloat16"


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="factor lies between 0 and 1, got 2"):
        optim.reduce_on_plateau(factor=2)
    with pytest.raises(ValueError, match="rtol or atol must be positive"):
        optim.reduce_on_plateau(rtol=0)
    with pytest.raises(ValueError, match="b1 lies above 0"):
        optim.schedule_free(optim.sgd(0.1), 0.1, b1=0)
    with pytest.raises(TypeError, match="state is that of schedule_free, got EmptyState"):
        optim.schedule_free_eval_params(optim.EmptyState(), 1.0)  # type: ignore[arg-type]


def test_losses_have_the_names_of_optax() -> None:
    assert optim.softmax_cross_entropy_with_integer_labels is optim.losses.softmax_cross_entropy_with_integer_labels
    optax = pytest.importorskip("optax", reason="optax has the names")
    for name in set(optim.losses.__all__) & set(dir(optax)):
        assert getattr(optim, name) is getattr(optim.losses, name), name
