"""What every family of models can: weights of integers and of 16 bits, adapters on its layers."""
from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import models, nn
from lavax.models import lora
from lavax.models.family import family_of, kind_of
from lavax.nn.modules.quantized import QuantizedEmbedding, QuantizedLinear, QuantizedMatrix
from tests.lavax.models.language import token_ids
from tests.lavax.models.seeded import assert_close, seeded, seeded_model

pytestmark = pytest.mark.usefixtures("reference_backend")

IDS = token_ids(48, 2, 7)
DECODER: dict[str, Any] = dict(
    vocab_size=48, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
    num_key_value_heads=1, head_dim=8, max_position_embeddings=32,
)  # fmt: skip
ENCODER: dict[str, Any] = dict(
    vocab_size=48, hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2,
    max_position_embeddings=16,
)  # fmt: skip
WHISPER: dict[str, Any] = dict(
    model_type="whisper", vocab_size=48, num_mel_bins=8, d_model=16, encoder_layers=1, encoder_attention_heads=2,
    encoder_ffn_dim=24, decoder_layers=2, decoder_attention_heads=2, decoder_ffn_dim=24, max_source_positions=6,
    max_target_positions=16,
)  # fmt: skip
UNET: dict[str, Any] = dict(
    _class_name="UNet2DConditionModel", sample_size=8, block_out_channels=(8, 16), layers_per_block=1,
    down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    norm_num_groups=4, cross_attention_dim=12, attention_head_dim=2,
)  # fmt: skip
SOUND = seeded("sound", (2, 8, 12))
NET: dict[str, Any] = dict(hidden_sizes=(8, 16), depths=(1, 2))
IMAGES = seeded("images", (2, 3, 16, 16))
LATENTS, CONTEXT = seeded("latents", (2, 4, 8, 8)), seeded("context", (2, 5, 12))


def of_tokens(model: Any) -> Any:
    return model(IDS)


def of_actions(model: Any) -> Any:
    heard = tuple(seeded(f"layer {layer}", (2, 5, 1, 6)) for layer in range(2))
    return model(seeded("actions", (2, 3, 2)), np.array([0.3, 0.8], np.float32), model.prefix(heard, heard))


def token_by_token(model: Any) -> Any:
    """The logits, by way of a cache."""
    is_whisper = hasattr(model, "encoder")
    cache = model.empty_cache(SOUND, 7) if is_whisper else model.empty_cache(2, 7)
    hidden, cache = model.extend(IDS[:, :3], cache)
    made = [model.logits(hidden)]
    for place in range(3, 7):
        hidden, cache = model.extend(IDS[:, place : place + 1], cache)
        made.append(model.logits(hidden))
    return lnp.concatenate(made, axis=1)


def of_images(model: Any) -> Any:
    return model(IMAGES)


def of_latents(model: Any) -> Any:
    return model(LATENTS, np.array([3, 700]), CONTEXT)


# A name -> what config.json says, and the model's result.
FAMILIES: dict[str, tuple[dict[str, Any], Callable[[Any], Any]]] = {
    "llama": (dict(DECODER, model_type="llama"), token_by_token),
    "qwen3": (dict(DECODER, model_type="qwen3", tie_word_embeddings=True), token_by_token),
    "gemma2": (dict(DECODER, model_type="gemma2", attn_logit_softcapping=5.0, sliding_window=4), token_by_token),
    "phi3": (dict(DECODER, model_type="phi3"), token_by_token),
    "mixtral": (dict(DECODER, model_type="mixtral", num_local_experts=4), token_by_token),
    "gpt2": (dict(model_type="gpt2", vocab_size=48, n_positions=16, n_embd=16, n_layer=2, n_head=2), token_by_token),
    "mamba": (dict(model_type="mamba", vocab_size=48, hidden_size=16, num_hidden_layers=2), token_by_token),
    "mamba2": (
        dict(model_type="mamba2", vocab_size=48, hidden_size=16, num_hidden_layers=2, num_heads=4, head_dim=8,
             state_size=6, n_groups=2, chunk_size=3),
        token_by_token,
    ),
    "bert": (dict(ENCODER, model_type="bert"), of_tokens),
    "bert for masked words": (dict(ENCODER, model_type="bert", architectures=["BertForMaskedLM"]), of_tokens),
    "roberta for texts": (
        dict(ENCODER, model_type="roberta", architectures=["RobertaForSequenceClassification"]), of_tokens,
    ),
    "distilbert": (
        dict(model_type="distilbert", vocab_size=48, dim=16, hidden_dim=24, n_layers=1, n_heads=2), of_tokens,
    ),
    "whisper": (WHISPER, lambda model: model(SOUND, IDS)),
    "whisper with a cache": (WHISPER, token_by_token),
    "clip": (dict(ENCODER, model_type="clip_text_model"), of_tokens),
    "vit": (dict(ENCODER, model_type="vit", image_size=16, patch_size=8), of_images),
    "smolvla": (
        dict(
            type="smolvla", chunk_size=4, max_state_dim=3, max_action_dim=2, num_vlm_layers=2, vlm_hidden_size=16,
            num_attention_heads=2, num_key_value_heads=1, head_dim=6,
        ),
        of_actions,
    ),
    "resnet": (dict(NET, model_type="resnet", embedding_size=8), of_images),
    "convnext": (dict(NET, model_type="convnext"), of_images),
    "convnextv2": (dict(NET, model_type="convnextv2"), of_images),
    "unet": (UNET, of_latents),
    "unet with linear projections": (dict(UNET, use_linear_projection=True), of_latents),
}  # fmt: skip
every_family = pytest.mark.parametrize(("data", "result"), FAMILIES.values(), ids=FAMILIES.keys())


def seeded_of(data: dict[str, Any]) -> Any:
    family = family_of(kind_of(data))
    return seeded_model(family, family.config.from_json(data))


def of_integers() -> Iterator[Any]:
    """Every family in eight bits; in four bits, where the rule is the same, one of them daily."""
    for kind, symmetric in (("int8", True), ("int4", True), ("int4", False)):
        for name, family in FAMILIES.items():
            marks = [] if kind == "int8" or name == "llama" else [pytest.mark.long]
            yield pytest.param(kind, symmetric, *family, marks=marks, id=f"{kind}-{symmetric}-{name}")


@pytest.mark.parametrize(("kind", "symmetric", "data", "result"), list(of_integers()))
def test_models_of_integers_compute_with_the_rounded_weights(
    kind: str, symmetric: bool, data: dict[str, Any], result: Callable[[Any], Any]
) -> None:
    model = seeded_of(data)
    packed = models.quantize(model, kind, group=8, symmetric=symmetric)
    whole = models.dequantize(packed)
    assert_close(result(packed), result(whole), 2e-5)
    assert lx.tree.structure(whole) == lx.tree.structure(model)
    if kind == "int8":
        assert_close(result(packed), result(model), 0.2)


@every_family
def test_models_of_sixteen_bits_are_near_those_of_thirty_two(
    data: dict[str, Any], result: Callable[[Any], Any]
) -> None:
    model = seeded_of(data)
    half = lx.tree.map(lambda leaf: lnp.astype(leaf, "float16") if leaf.dtype == "float32" else leaf, model)
    assert_close(np.asarray(result(half)).astype(np.float32), result(model), 0.02)


@every_family
def test_adapters_are_on_attention_by_default(
    data: dict[str, Any], result: Callable[[Any], Any], tmp_path: Path
) -> None:
    """Or on all linear layers, if there is no attention."""
    model = seeded_of(data)
    start = lora.init(model, 2, key=lx.random.key(0))
    adapters = start.replace(
        layers={path: each.replace(up=0.3 * seeded(path, each.up.shape)) for path, each in start.layers.items()}
    )
    assert_close(result(lora.apply(model, adapters)), result(lora.merge(model, adapters)), 2e-5)
    lora.save(tmp_path, model, adapters)
    again = lora.load(tmp_path, model)
    assert np.array_equal(result(lora.apply(model, again)), result(lora.apply(model, adapters)))
    writes = kind_of(data) in ("llama", "qwen3", "gemma2", "phi3", "mixtral", "gpt2", "mamba", "mamba2")
    task = json.loads((tmp_path / "adapter_config.json").read_text())["task_type"]
    assert task == ("CAUSAL_LM" if writes else None)  # peft refuses a task that the model is not for


@every_family
def test_adapters_learn_beside_integers(data: dict[str, Any], result: Callable[[Any], Any]) -> None:
    packed = models.quantize(seeded_of(data), "int4", group=8)
    adapters = lora.init(packed, 2, key=lx.random.key(0))
    gradients = lx.grad(lambda a: lnp.sum(lnp.sin(result(lora.apply(packed, a)))))(adapters)
    assert all(np.abs(np.asarray(each.up)).max() > 0 for each in gradients.layers.values())


@pytest.mark.parametrize("capacity_factor", [None, 1.5])
def test_experts_are_integers_and_routers_are_not(capacity_factor: float | None) -> None:
    """All ways to compute them: every expert, those of each token, and limited room."""
    layer = nn.MixtureOfExperts(16, 24, 4, 2, capacity_factor=capacity_factor, key=lx.random.key(0))
    packed = models.quantize(layer, "int8", group=8)
    assert isinstance(packed.gate, QuantizedMatrix) and packed.gate.shape == (4, 24, 16)
    assert isinstance(packed.router, nn.Linear)
    for tokens in (1, 9):
        x = seeded("tokens", (tokens, 16))
        assert_close(packed(x), models.dequantize(packed)(x), 1e-5)
    again = models.quantize(packed, "int4", group=8)
    assert lx.tree.structure(again) == lx.tree.structure(packed)  # what is rounded stays so


def test_a_layer_of_attention_has_a_cache_without_its_weights() -> None:
    layer = nn.MultiHeadAttention(16, 4, 2, is_causal=True, key=lx.random.key(0))
    packed = models.quantize(layer, "int8", group=8)
    x, none = seeded("tokens", (2, 5, 16)), np.zeros(2, np.int32)
    found, cache = packed(x, cache=packed.empty_cache(2, 8), lengths=none)
    assert cache.keys.shape == (2, 8, 2, 4) and cache.keys.dtype == "float32"
    assert_close(found, models.dequantize(packed)(x), 1e-5)


def test_no_matrix_of_a_mixer_is_left_as_floats() -> None:
    packed = models.quantize(seeded_of(FAMILIES["mamba"][0]), "int8", group=8)
    mixer = packed.layers[0].mixer
    for layer in (mixer.project_in, mixer.select, mixer.step, mixer.project_out):
        assert isinstance(layer, QuantizedLinear)
    assert isinstance(packed.embedding, QuantizedEmbedding)
