"""The architectures are the same in both libraries: losses and gradients, in small."""
from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import lavax as lx
from benchmarks.architectures import (
    alignments,
    diffusion,
    experts,
    fields,
    generators,
    library,
    mixers,
    operators,
    pairs,
    pixels,
    relative_bias,
    sets,
    sizes,
    solvers,
    sound,
    state_spaces,
    structures,
    tables,
    transformers,
)
from benchmarks.architectures.sizes import ARCHITECTURES, Draw, Loss
from benchmarks.architectures.workloads import workload
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

# With the interpreter, so that nothing is compiled for seconds; those that take it seconds are made of the same.
INTERPRETED: dict[str, tuple[Loss, Draw]] = {
    "experts by products": (
        partial(experts.by_products, layers=1, experts=4, room=20, inner=32), sizes.normals((32, 16), (32, 16)),
    ),
    "experts by sorting": (
        partial(experts.by_sorting, layers=1, experts=4, room=20, inner=32), sizes.normals((32, 16), (32, 16)),
    ),
    "mamba": (partial(state_spaces.mamba, layers=1, states=4), sizes.normals((2, 9, 16), (2, 9, 16))),
    "s4d": (partial(state_spaces.s4d, layers=1, states=4), sizes.normals((2, 8, 16), (2, 8, 16))),
    "fourier operator": (
        partial(operators.fourier_operator, layers=2, width=4, kept=4), sizes.normals((2, 3, 16, 16), (2, 1, 16, 16)),
    ),
    "perceiver": (
        partial(mixers.perceiver, layers=1, latents=6, width=32), lambda g: (normal(g, 2, 20, 12), tokens(g, 1000, 2)),
    ),
    "t5": (
        partial(relative_bias.t5, layers=1, width=64, words=50),
        lambda g: (*sizes.texts(50, 2, 12)(g), relative_bias.buckets(12)),
    ),
    "swin": (partial(relative_bias.swin, blocks=(2, 1), width=32), sizes.windows(1, (14, 7), 7)),
    "siren": (partial(fields.siren, width=16, layers=2, first=3.0), sizes.normals((32, 2), (32,))),
    "nerf": (partial(fields.nerf, samples=4, width=16, octaves=(2, 2)), sizes.normals((8, 3), (8, 3), (8, 3))),
    "real nvp": (partial(generators.real_nvp, couplings=2, inner=16), sizes.normals((16, 6))),
    "vq vae": (partial(generators.vq_vae, codes=16, width=8), sizes.normals((2, 3, 16, 16))),
    "graph attention": (partial(sets.graph_attention, heads=2, width=4), sizes.graphs(20, 60)),
    "neural ode": (
        partial(solvers.neural_ode, width=16, steps=3), lambda g: (normal(g, 8, 4), tokens(g, 10, 8)),
    ),
    "equilibrium": (partial(solvers.equilibrium, width=16), lambda g: (normal(g, 8, 4), tokens(g, 1000, 8))),
    "ctc": (
        partial(alignments.ctc, width=8, words=12), lambda g: (normal(g, 2, 20, 80), 1 + tokens(g, 11, 2, 5)),
    ),
    "random field": (
        partial(alignments.random_field, count=5), lambda g: (normal(g, 6, 3, 8), tokens(g, 5, 6, 3)),
    ),
    "temporal": (partial(sound.temporal, layers=2, width=8), sizes.normals((2, 4, 32), (2, 1, 32))),
    "clip": (partial(pairs.clip, width=16), sizes.paired(8, 12, 10)),
    "smoothed": (partial(pairs.smoothed, words=40, width=16), sizes.texts(40, 8)),
    "factors": (partial(pairs.factors, sizes=(20, 10)), sizes.ratings(16, 20, 10)),
    "vit with registers": (
        partial(transformers.vit_with_registers, layers=1, width=64, registers=2), sizes.images(1, 224, (1000, 1)),
    ),
    "t5 in pairs": (
        partial(transformers.t5_in_pairs, layers=1, width=64, words=50), sizes.paired_texts(50, 2, 12),
    ),
    "super-resolution": (
        partial(pixels.super_resolution, blocks=1, width=8), sizes.normals((2, 3, 8, 8), (2, 3, 16, 16)),
    ),
    "autoencoder": (
        partial(pixels.autoencoder, width=8, latent=6), sizes.normals((2, 3, 32, 32), (2, 6)),
    ),
    "diffusion policy": (partial(diffusion.diffusion_policy, widths=(16, 32)), sizes.actions(3, 8, 2, 5, last=10)),
    "diffusion transformer": (
        partial(diffusion.diffusion_transformer, layers=1, width=64),
        sizes.latents(2, 8, lambda g: (tokens(g, 1001, 2),), last=10),
    ),
    "feature transformer": (
        partial(tables.feature_transformer, layers=1, width=24, heads=2), sizes.normals((6, 5), (6,)),
    ),
    "bags": (partial(tables.bags, words=20, width=8, inner=16), sizes.bags(6, 20, 3, 4)),
    "pair blocks": (partial(structures.pair_blocks, layers=1, heads=2), sizes.normals((6, 6, 8), (6, 6, 8))),
    "hashed field": (partial(fields.hashed_field, levels=3, entries=64, width=8), sizes.uniform(20, 3)),
    "messages": (partial(sets.messages, layers=1, width=8), sizes.meshes(20, 60)),
    "duality": (
        partial(state_spaces.duality, layers=1, states=4, head=8, chunk=4), sizes.normals((2, 12, 16), (2, 12, 16)),
    ),
    "speech features": (partial(sound.speech_features, width=16), sizes.normals((1, 1, 1600), (1, 4, 8))),
}  # fmt: skip


def test_every_architecture_has_a_name_and_inputs() -> None:
    assert len({name for name, _, _ in ARCHITECTURES}) == len(ARCHITECTURES) >= 11
    assert all(draw(np.random.default_rng(0)) for name, _, draw in ARCHITECTURES if name in ("dcgan", "video"))


@pytest.mark.parametrize("name", SMALL)
def test_losses_and_gradients_are_those_of_pytorch(name: str) -> None:
    check(SMALL[name])


@pytest.mark.usefixtures("reference_backend")
@pytest.mark.parametrize("name", INTERPRETED)
def test_architectures_of_other_kinds_are_those_of_pytorch(name: str) -> None:
    check(workload(name, *INTERPRETED[name]))


def check(small: ModelWorkload) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch, of which a twin is, is not installed")
    inputs = small.draw(np.random.default_rng(0))
    weights = lx.compile(small.build)(lx.random.key(0))
    (loss, _), gradients = lx.compile(lx.value_and_grad(small.loss, has_aux=True))(weights, *inputs)
    twin = small.twin()
    twin.load_state_dict({name: torch.from_numpy(np.array(weight)) for name, weight in weights.items()})
    given: list[Any] = [torch.from_numpy(array) for array in inputs]
    expected = small.twin_loss(twin, *(x if x.is_floating_point() else x.long() for x in given))
    expected.backward()
    np.testing.assert_allclose(float(loss), float(expected.detach()), rtol=1e-5)
    largest = max(float(weight.grad.abs().max()) for weight in twin.parameters())
    for key, weight in twin.named_parameters():
        found = np.asarray(gradients[key])
        # A norm that follows takes a bias away: its gradient is rounding.
        size = max(float(weight.grad.abs().max()), 1e-4 * largest)
        np.testing.assert_allclose(found, weight.grad.numpy(), atol=2e-5 * size, err_msg=key)
