"""CLIP's text encoder against transformers: hidden states, pooled vectors, gradients, files."""
from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import io, models
from lavax.models.vision.clip_text import FAMILY, CLIPText, CLIPTextConfig
from tests.lavax.models.seeded import assert_close, gradients_by_name, seed_torch, seeded_model

pytestmark = pytest.mark.usefixtures("reference_backend")

SMALL: dict[str, Any] = dict(
    vocab_size=50,
    hidden_size=16,
    intermediate_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    max_position_embeddings=12,
    projection_dim=8,
    eos_token_id=49,
)
TOKENS = np.array([[48, 3, 17, 5, 49, 49, 49], [48, 8, 8, 30, 2, 11, 49]], np.int32)
KINDS = ["CLIPTextModel", "CLIPTextModelWithProjection"]


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def loss(model: CLIPText, of_hidden: np.ndarray, of_pooled: np.ndarray) -> Any:
    hidden = model(TOKENS)
    return lnp.mean(hidden * of_hidden) + lnp.mean(model.pooled(TOKENS, hidden) * of_pooled)


def checkpoint(folder: Path, kind: str, **more: Any) -> Any:
    """A model of transformers that is saved in `folder`."""
    pytest.importorskip("torch", reason="compares with transformers")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transformers = pytest.importorskip("transformers", reason="compares with transformers")
        made = seed_torch(getattr(transformers, kind)(transformers.CLIPTextConfig(**{**SMALL, **more})))
        made.save_pretrained(folder)
    return made


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "more", [{}, {"eos_token_id": 2, "hidden_act": "gelu"}], ids=["", "an old configuration, another activation"]
)
def test_outputs_and_gradients_are_those_of_transformers(tmp_path: Path, kind: str, more: dict[str, Any]) -> None:
    oracle = checkpoint(tmp_path, kind, **more)
    import torch

    model, projected = models.load(tmp_path), kind == KINDS[1]
    of_hidden, of_pooled = draw(2, 7, 16, seed=1), draw(2, 8 if projected else 16, seed=2)
    found = oracle(torch.from_numpy(TOKENS).long())
    pooled = found.text_embeds if projected else found.pooler_output
    assert_close(model(TOKENS), found.last_hidden_state.detach().numpy(), 1e-5)
    assert_close(model.pooled(TOKENS, model(TOKENS)), pooled.detach().numpy(), 1e-5)

    wanted = (found.last_hidden_state * torch.from_numpy(of_hidden)).mean()
    (wanted + (pooled * torch.from_numpy(of_pooled)).mean()).backward()
    gradients = gradients_by_name(FAMILY, lx.grad(loss)(model, of_hidden, of_pooled))
    for name, parameter in oracle.named_parameters():
        ours = gradients.pop(name if name.startswith("text_") else f"text_model.{name}")
        if name.endswith("k_proj.bias"):  # zero: it adds one number to all scores of a query
            assert np.abs(ours).max() < 1e-7
        else:
            assert_close(ours, parameter.grad.numpy(), 1e-3, name)
    assert not gradients


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_model_is_read_by_transformers(tmp_path: Path, kind: str) -> None:
    oracle = checkpoint(tmp_path / "theirs", kind)
    import torch
    import transformers

    io.save_pretrained(models.load(tmp_path / "theirs"), tmp_path / "ours")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = getattr(transformers, kind).from_pretrained(tmp_path / "ours")
    tokens = torch.from_numpy(TOKENS).long()
    assert torch.equal(read(tokens).last_hidden_state, oracle(tokens).last_hidden_state)
    assert all(torch.equal(value, oracle.state_dict()[name]) for name, value in read.state_dict().items())


def test_recorded_values() -> None:
    """Of transformers 5.23.0 and torch 2.13.0."""
    model = seeded_model(FAMILY, CLIPTextConfig(**SMALL, architectures=(KINDS[1],)))
    hidden = model(TOKENS)
    recorded = [[-1.61115, 1.122125, -1.172689, -1.04381], [-1.768793, 0.689493, -1.424052, -0.830849]]
    pooled = [[-0.400578, -0.300586, -1.321969, -0.037215], [-0.082866, 0.118056, -0.671411, -0.432992]]
    assert_close(hidden[:, 4, :4], recorded, 1e-5)
    assert_close(model.pooled(TOKENS, hidden)[:, :4], pooled, 1e-5)


def test_tokens_do_not_see_later_ones() -> None:
    model = seeded_model(FAMILY, CLIPTextConfig(**SMALL))
    changed = TOKENS.copy()
    changed[:, 4:] = 1
    assert np.array_equal(model(changed)[:, :4], model(TOKENS)[:, :4])


def test_bad_settings_and_arguments_are_named() -> None:
    with pytest.raises(lx.ShapeError, match=r"tokens are \[N, T\] with T at most 12"):
        seeded_model(FAMILY, CLIPTextConfig(**SMALL))(np.zeros((1, 13), np.int32))
    with pytest.raises(ValueError, match="no activation 'square'"):
        CLIPText(CLIPTextConfig(**SMALL, hidden_act="square"), key=lx.random.key(0))
