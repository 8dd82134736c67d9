"""The architectures are the same in both libraries: losses and gradients, in small."""
from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import lavax as lx
from benchmarks.architectures import library
from benchmarks.architectures.workloads import ARCHITECTURES, workload
from benchmarks.models.workload import ModelWorkload, normal, tokens

# Those of a few seconds; the others are made of the same functions.
SMALL: dict[str, ModelWorkload] = {
    "bert": workload(
        "bert",
        partial(library.bert, layers=1, width=64, words=50),
        lambda g: (tokens(g, 50, 2, 8), tokens(g, 50, 2, 8)),
    ),
    "lstm": workload(
        "lstm", partial(library.lstm, width=16, words=30), lambda g: (tokens(g, 30, 5, 3), tokens(g, 30, 5, 3))
    ),
    "graph-network": workload(
        "graph-network",
        library.graph_network,
        lambda g: (normal(g, 20, 128), tokens(g, 20, 60), tokens(g, 20, 60), tokens(g, 40, 20)),
    ),
    "wavenet": workload(
        "wavenet", partial(library.wavenet, width=4), lambda g: (normal(g, 1, 1, 40), normal(g, 1, 1, 40))
    ),
}


def test_every_architecture_has_a_name_and_inputs() -> None:
    assert len({name for name, _, _ in ARCHITECTURES}) == len(ARCHITECTURES) >= 11
    assert all(draw(np.random.default_rng(0)) for name, _, draw in ARCHITECTURES if name in ("dcgan", "video"))


@pytest.mark.parametrize("name", SMALL)
def test_losses_and_gradients_are_those_of_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch, of which a twin is, is not installed")
    small = SMALL[name]
    inputs = small.draw(np.random.default_rng(0))
    weights = lx.compile(small.build)(lx.random.key(0))
    (loss, _), gradients = lx.compile(lx.value_and_grad(small.loss, has_aux=True))(weights, *inputs)
    twin = small.twin()
    twin.load_state_dict({name: torch.from_numpy(np.array(weight)) for name, weight in weights.items()})
    given: list[Any] = [torch.from_numpy(array) for array in inputs]
    expected = small.twin_loss(twin, *(x if x.is_floating_point() else x.long() for x in given))
    expected.backward()
    np.testing.assert_allclose(float(loss), float(expected.detach()), rtol=1e-5)
    for key, weight in twin.named_parameters():
        found = np.asarray(gradients[key])
        np.testing.assert_allclose(found, weight.grad.numpy(), atol=2e-5 * float(weight.grad.abs().max()), err_msg=key)
