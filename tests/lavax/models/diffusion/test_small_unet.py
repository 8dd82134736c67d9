"""The small U-Net: its size, the same in torch, training, files."""
from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import io, models
from lavax.models.diffusion.small_unet import FAMILY, SMALL_TRAINING_UNET, SmallUNet, SmallUNetConfig
from tests.lavax.models.seeded import assert_close, gradients_by_name, seeded_model

TINY = SmallUNetConfig(base_channels=8, norm_num_groups=4)


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def loss(model: SmallUNet, noisy: Any, noise: Any) -> Any:
    return lnp.mean((model(noisy) - noise) ** 2)


def reference(weights: dict[str, Any], x: Any) -> Any:
    """The same by functions of torch, from weights by the paths of the model's leaves."""
    from torch.nn import functional

    def normed(name: str, x: Any) -> Any:
        scale, offset = weights[f"{name}.weight"], weights[f"{name}.bias"]
        return functional.silu(functional.group_norm(x, 4, scale, offset, 1e-5))

    def convolved(name: str, x: Any, stride: int = 1, padding: int = 1) -> Any:
        return functional.conv2d(x, weights[f"{name}.weight"], stride=stride, padding=padding)

    def residual(name: str, x: Any) -> Any:
        inner = convolved(f"{name}.conv1", normed(f"{name}.norm1", x))
        inner = convolved(f"{name}.conv2", normed(f"{name}.norm2", inner))
        shortcut = f"{name}.shortcut"
        return inner + (convolved(shortcut, x, padding=0) if f"{shortcut}.weight" in weights else x)

    x = convolved("conv_in", x)
    first = residual("down.0", x)
    second = residual("down.1", convolved("downsamples.0", first, 2))
    third = residual("down.2", convolved("downsamples.1", second, 2))
    x = residual("up.0", _joined(residual("middle", third), third))
    x = residual("up.1", _joined(functional.interpolate(x, scale_factor=2), second))
    x = residual("up.2", _joined(functional.interpolate(x, scale_factor=2), first))
    return convolved("conv_out", normed("norm_out", x))


def _joined(*parts: Any) -> Any:
    import torch

    return torch.cat(parts, 1)


@pytest.mark.usefixtures("reference_backend")
def test_outputs_and_gradients_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch", reason="compares with torch")
    model, noisy, noise = seeded_model(FAMILY, TINY), draw(2, 4, 8, 8, seed=1), draw(2, 4, 8, 8, seed=2)
    leaves = gradients_by_name(FAMILY, model)
    weights = {name: torch.tensor(value, requires_grad=True) for name, value in leaves.items()}
    wanted = reference(weights, torch.from_numpy(noisy))
    assert_close(model(noisy), wanted.detach().numpy(), 1e-5)
    torch.mean((wanted - torch.from_numpy(noise)) ** 2).backward()
    found = gradients_by_name(FAMILY, lx.grad(loss)(model, noisy, noise))
    assert found.keys() == weights.keys()
    for name, value in found.items():
        assert_close(value, weights[name].grad.numpy(), 1e-3, name)


@pytest.mark.usefixtures("reference_backend")
def test_recorded_values() -> None:
    """Of the reference above by torch 2.13.0."""
    model, noisy, noise = seeded_model(FAMILY, TINY), draw(2, 4, 8, 8, seed=1), draw(2, 4, 8, 8, seed=2)
    recorded = [[1.125701, 0.34245, -1.024034, 0.229901], [0.385057, 0.563104, -0.477239, -0.332731]]
    assert_close(model(noisy)[:, :, 3, 5], recorded, 1e-5)
    assert float(loss(model, noisy, noise)) == pytest.approx(1.3363388, rel=1e-5)


def test_the_training_workload_has_the_size_of_the_paper() -> None:
    form = lx.eval_shape(lambda: SmallUNet(SMALL_TRAINING_UNET, key=lx.random.key(0)))
    assert sum(math.prod(leaf.shape) for leaf in lx.tree.leaves(form)) == 5_294_080


def test_nothing_is_gathered_where_the_resolution_doubles() -> None:
    """Nearest neighbours twice as large are a broadcast, and the gradient of that is a sum."""
    form = lx.eval_shape(lambda: SmallUNet(TINY, key=lx.random.key(0)))
    latents = lx.ShapeDtype((2, 4, 8, 8), "float32")
    text = lx.compile(lx.value_and_grad(loss)).lower(form, latents, latents).as_text("optimized")
    assert "conv" in text
    assert "gather" not in text
    assert "scatter" not in text


@pytest.mark.usefixtures("reference_backend")
def test_a_saved_model_is_loaded(tmp_path: Path) -> None:
    model = seeded_model(FAMILY, TINY)
    io.save_pretrained(model, tmp_path)
    read = models.load(tmp_path)
    assert read.config == model.config.from_json(model.config.to_json())
    for ours, theirs in zip(lx.tree.leaves(model), lx.tree.leaves(read), strict=True):
        assert np.array_equal(ours, theirs)


def test_a_shape_that_does_not_halve_is_refused() -> None:
    form = lx.eval_shape(lambda: SmallUNet(TINY, key=lx.random.key(0)))
    with pytest.raises(lx.ShapeError, match="multiples of 4"):
        lx.eval_shape(lambda model: model(lnp.zeros((1, 4, 8, 6))), form)


def test_training_steps_on_the_device_lower_the_loss() -> None:
    model = seeded_model(FAMILY, SmallUNetConfig(base_channels=4, levels=2, norm_num_groups=2))
    noisy, noise = draw(1, 4, 4, 4, seed=1), draw(1, 4, 4, 4, seed=2)

    @lx.compile(donate_argnums=0)
    def step(model: SmallUNet, noisy: Any, noise: Any) -> Any:
        value, gradients = lx.value_and_grad(loss)(model, noisy, noise)
        return lx.tree.map(lambda weight, gradient: weight - 0.1 * gradient, model, gradients), value

    losses = []
    for _ in range(6):
        model, value = step(model, noisy, noise)
        losses.append(float(value))
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.8 * losses[0]
