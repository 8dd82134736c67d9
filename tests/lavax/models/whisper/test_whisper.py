"""Whisper against transformers: spectrograms, logits, gradients, files, decoding with a cache."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import io, models
from lavax.models.whisper.config import WHISPER_TINY, WhisperConfig
from lavax.models.whisper.encoder import WhisperEncoder
from lavax.models.whisper.whisper import FAMILY, Whisper
from lavax.nn import log_softmax
from tests.lavax.models.language import token_ids, torch_checkpoint
from tests.lavax.models.seeded import assert_close, assert_gradients_close, gradients_by_name, seeded_model

pytestmark = pytest.mark.usefixtures("reference_backend")

SMALL: dict[str, Any] = dict(
    vocab_size=96, num_mel_bins=8, d_model=32, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=48,
    decoder_layers=2, decoder_attention_heads=2, decoder_ffn_dim=40, max_source_positions=10, max_target_positions=16,
    decoder_start_token_id=90, eos_token_id=91, pad_token_id=91, bos_token_id=91,
)  # fmt: skip
SOUND = np.random.default_rng(0).standard_normal((2, 8, 20)).astype(np.float32)
IDS, TARGETS = token_ids(96, 2, 7), token_ids(96, 2, 7, seed=1)


def loss(model: Whisper) -> Any:
    scores = log_softmax(model(SOUND, IDS))
    return -lnp.mean(lnp.take_along_axis(scores, lnp.asarray(TARGETS)[..., None], axis=-1))


def checkpoint(folder: Path, kind: str = "WhisperForConditionalGeneration") -> Any:
    return torch_checkpoint(kind, dict(SMALL, config="WhisperConfig"), folder)


def applied(oracle: Any) -> Any:
    import torch

    sound, ids, targets = map(torch.from_numpy, (SOUND, IDS, TARGETS))
    return oracle(sound, decoder_input_ids=ids, labels=targets)


def test_logits_and_gradients_are_those_of_transformers(tmp_path: Path) -> None:
    oracle, model = checkpoint(tmp_path), models.load(tmp_path)
    wanted = applied(oracle)
    assert_close(model(SOUND, IDS), wanted.logits.detach().numpy(), 1e-5)
    wanted.loss.backward()
    value, gradients = lx.value_and_grad(loss)(model)
    assert float(value) == pytest.approx(float(wanted.loss.detach()), rel=1e-5)
    found = gradients_by_name(FAMILY, gradients)
    assert not found.pop("model.encoder.embed_positions.weight").any()
    assert_gradients_close(found, oracle)


def test_a_saved_model_is_read_by_transformers(tmp_path: Path) -> None:
    oracle = checkpoint(tmp_path / "theirs")
    io.save_pretrained(models.load(tmp_path / "theirs"), tmp_path / "ours")
    read, report = type(oracle).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    assert all(np.array_equal(value, oracle.state_dict()[name]) for name, value in read.state_dict().items())


def test_a_file_without_the_prefix_is_read(tmp_path: Path) -> None:
    oracle = checkpoint(tmp_path, "WhisperModel")
    import torch

    wanted = oracle.encoder(torch.from_numpy(SOUND)).last_hidden_state
    assert_close(models.load(tmp_path).encoder(SOUND), wanted.detach().numpy(), 1e-5)


def test_a_cached_decode_is_the_forward_pass() -> None:
    model = seeded_model(FAMILY, WhisperConfig(**_known()))
    wanted = model(SOUND, IDS)
    hidden, cache = model.extend(IDS[:, :2], model.empty_cache(SOUND, 7))
    made = [model.logits(hidden)]
    for position in range(2, 7):
        hidden, cache = model.extend(IDS[:, position : position + 1], cache)
        made.append(model.logits(hidden))
    assert_close(np.concatenate(made, axis=1), wanted, 1e-5)


# Of transformers 5.23.0 and torch 2.13.0: the last logits of the first row, the loss, sums of squares of gradients.
RECORDED: dict[str, Any] = {
    "logits": [-0.92963, 0.268692, 0.442383, 0.596721, -0.118486],
    "loss": 5.10778,
    "squares": {
        "model.encoder.conv1.weight": 1.732394,
        "model.encoder.layers.1.self_attn.q_proj.weight": 0.02392927,
        "model.decoder.layers.0.encoder_attn.v_proj.bias": 0.04067852,
        "model.decoder.embed_tokens.weight": 2.921395,
    },
}


def _known() -> dict[str, Any]:
    return {name: value for name, value in SMALL.items() if name not in ("pad_token_id", "bos_token_id")}


def test_recorded_values() -> None:
    model = seeded_model(FAMILY, WhisperConfig(**_known()))
    assert_close(model(SOUND, IDS)[0, -1, :5], RECORDED["logits"], 1e-4)
    value, gradients = lx.value_and_grad(loss)(model)
    assert float(value) == pytest.approx(RECORDED["loss"], rel=1e-5)
    found = gradients_by_name(FAMILY, gradients)
    for name, squares in RECORDED["squares"].items():
        assert float(np.sum(np.square(found[name]))) == pytest.approx(squares, rel=2e-3), name


def test_the_encoder_of_whisper_tiny_has_its_shape_and_weights() -> None:
    encoder = lx.eval_shape(lambda: WhisperEncoder(WHISPER_TINY, key=lx.random.key(0)))
    assert sum(np.prod(leaf.shape) for leaf in lx.tree.leaves(encoder)) == 8_208_384
    sound = lx.ShapeDtype((1, 80, 3000), "float32")
    assert lx.eval_shape(lambda encoder, x: encoder(x), encoder, sound).shape == (1, 1500, 384)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"decoder_attention_heads": 5}, "d_model=32 must be a multiple of its 5 attention heads"),
        ({"scale_embedding": True}, "scale_embedding is true"),
        ({"activation_function": "gilu"}, "no activation 'gilu'"),
    ],
)
def test_settings_that_the_model_does_not_have_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Whisper(WhisperConfig(**_known() | change), key=lx.random.key(0))


def test_bad_arguments_are_named() -> None:
    model = seeded_model(FAMILY, WhisperConfig(**_known()))
    with pytest.raises(lx.ShapeError, match=r"spectrograms are \[B, 8, 20\], got f32\[2,8,19\]"):
        model(SOUND[..., 1:], IDS)
    with pytest.raises(lx.ShapeError, match=r"ids are \[B, T\] with T up to 16"):
        model(SOUND, np.zeros((2, 17), int))
