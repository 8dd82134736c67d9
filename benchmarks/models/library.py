"""The models of the benchmark: those of Meganeura's paper, and a language model of 355 million weights."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import lavax as lx
import lavax.numpy as lnp
from benchmarks.models.workload import Arrays, ModelWorkload, normal, tokens
from lavax import nn

SMOLLM2: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 49152,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "rms_norm_eps": 1e-5,
    "rope_theta": 100000.0,
    "tie_word_embeddings": True,
    "max_position_embeddings": 8192,
}
SMOLLM2_LARGE: dict[str, Any] = {
    **SMOLLM2,
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 24,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "rope_theta": 130000.0,
}
GPT2_MEDIUM: dict[str, Any] = {
    "model_type": "gpt2",
    "vocab_size": 50257,
    "n_positions": 1024,
    "n_embd": 1024,
    "n_layer": 24,
    "n_head": 16,
}


def _squared_error(model: Any, x: Any, target: Any) -> tuple[Any, Any]:
    return lnp.mean((model(x) - target) ** 2), None


def _squared_error_in_pytorch(twin: Any, x: Any, target: Any) -> Any:
    return (twin(x) - target).square().mean()


def _next_token(model: Any, ids: Any, following: Any) -> tuple[Any, Any]:
    log_probabilities = nn.log_softmax(model(ids))
    return -lnp.mean(lnp.take_along_axis(log_probabilities, following[..., None], axis=-1)), None


def _next_token_in_pytorch(twin: Any, ids: Any, following: Any) -> Any:
    from torch.nn import functional

    return functional.cross_entropy(twin(ids).flatten(0, 1), following.flatten())


# Factor of random embeddings: logits near 0, as before training; a table of ones would give infinities.
_EMBEDDING = 0.02


def llama_model(config: dict[str, Any], key: Any, dtype: Any = "float32") -> Any:
    """A language model with random weights, of the size that trained ones have."""
    from lavax.models.llama import Llama
    from lavax.models.llama_config import LlamaConfig

    model = Llama(LlamaConfig.from_json(config), key=key, dtype=dtype)
    table = model.embedding.weight * _EMBEDDING
    return model.replace(embedding=model.embedding.replace(weight=table.astype(dtype)))


def _drawn_texts(vocabulary: int, batch: int, length: int) -> Callable[[np.random.Generator], Arrays]:
    """Draws tokens, and those that follow them."""
    return lambda generator: (
        tokens(generator, vocabulary, batch, length),
        tokens(generator, vocabulary, batch, length),
    )


def smollm2(batch: int, length: int) -> ModelWorkload:
    """SmolLM2-135M on `batch` rows of `length` tokens."""

    def twin() -> Any:
        from benchmarks.models.pytorch.llama import Llama

        return Llama(SMOLLM2)

    name = f"SmolLM2-135M, {batch} x {length}"
    draw = _drawn_texts(SMOLLM2["vocab_size"], batch, length)
    return ModelWorkload(name, partial(llama_model, SMOLLM2), twin, draw, _next_token, _next_token_in_pytorch)


def gpt2(config: dict[str, Any], batch: int, length: int) -> ModelWorkload:
    """GPT-2 on `batch` rows of `length` tokens; GPT-2 medium has 355 million weights."""
    from lavax.models.gpt2 import GPT2, GPT2Config

    def twin() -> Any:
        from benchmarks.models.pytorch.gpt2 import GPT2

        return GPT2(config)

    def build(key: Any) -> Any:
        model = GPT2(GPT2Config.from_json(config), key=key)
        smaller = {
            name: table.replace(weight=table.weight * _EMBEDDING)
            for name, table in (("tokens", model.tokens), ("positions", model.positions))
        }
        return model.replace(**smaller)

    name = f"GPT-2 medium, {batch} x {length}"
    draw = _drawn_texts(config["vocab_size"], batch, length)
    return ModelWorkload(name, build, twin, draw, _next_token, _next_token_in_pytorch, prefix="transformer.")


def small_unet() -> ModelWorkload:
    """A convolutional U-Net of 5.3 million weights that predicts the noise of two latents of 4 x 32 x 32."""
    from lavax.models.diffusion.small_unet import SMALL_TRAINING_UNET, SmallUNet

    def twin() -> Any:
        from benchmarks.models.pytorch.small_unet import SmallUNet

        return SmallUNet(SMALL_TRAINING_UNET.to_json())

    def draw(generator: np.random.Generator) -> tuple[np.ndarray, ...]:
        return normal(generator, 2, 4, 32, 32), normal(generator, 2, 4, 32, 32)

    build = partial(SmallUNet, SMALL_TRAINING_UNET)
    return ModelWorkload(
        "small U-Net, 2 latents", lambda key: build(key=key), twin, draw, _squared_error, _squared_error_in_pytorch
    )


def smolvla_expert() -> ModelWorkload:
    """SmolVLA's action expert at one step of its denoising: 50 actions that read 16 tokens of context."""
    from lavax.models.smolvla import SMOLVLA_BASE, SmolVLA

    def call(model: SmolVLA, actions: Any, times: Any, keys: Any, values: Any) -> Any:
        return model(actions, times, model.prefix(keys, values))

    def loss(model: SmolVLA, *inputs: Any) -> tuple[Any, Any]:
        *arguments, velocities = inputs
        return lnp.mean((call(model, *arguments) - velocities) ** 2), None

    def twin() -> Any:
        from benchmarks.models.pytorch.smolvla import SmolVLA

        return SmolVLA(SMOLVLA_BASE)

    def twin_loss(twin: Any, *inputs: Any) -> Any:
        *arguments, velocities = inputs
        return (twin(*arguments) - velocities).square().mean()

    def draw(generator: np.random.Generator) -> tuple[np.ndarray, ...]:
        config = SMOLVLA_BASE
        context = (config.num_vlm_layers, 1, 16, config.num_key_value_heads, config.head_dim)
        actions = (1, config.chunk_size, config.max_action_dim)
        times = np.array([0.7], np.float32)
        read = normal(generator, *context), normal(generator, *context)
        return normal(generator, *actions), times, *read, normal(generator, *actions)

    build = partial(SmolVLA, SMOLVLA_BASE)
    return ModelWorkload(
        "SmolVLA expert, 50 actions",
        lambda key: build(key=key),
        twin,
        draw,
        loss,
        twin_loss,
        prefix="model.",
        arguments=4,
        call=call,
    )


def resnet50() -> ModelWorkload:
    """ResNet-50 on four images, with the batch's statistics in training."""
    from lavax.models.convolution import ResNet, ResNetConfig

    classes = 1000
    config = ResNetConfig(num_labels=classes)

    def loss(model: Any, images: Any, labels: Any) -> tuple[Any, Any]:
        logits, statistics = model(images, training=True)
        log_probabilities = nn.log_softmax(logits)
        return -lnp.mean(lnp.take_along_axis(log_probabilities, labels[:, None], axis=1)), statistics

    def twin() -> Any:
        from benchmarks.models.pytorch.resnet import ResNet

        return ResNet(config.to_json(), classes)

    def twin_loss(twin: Any, images: Any, labels: Any) -> Any:
        from torch.nn import functional

        return functional.cross_entropy(twin(images), labels)

    def draw(generator: np.random.Generator) -> tuple[np.ndarray, ...]:
        return normal(generator, 4, 3, 224, 224), tokens(generator, classes, 4)

    return ModelWorkload(
        "ResNet-50, 4 images",
        lambda key: ResNet(config, key=key),
        twin,
        draw,
        loss,
        twin_loss,
        renewed=lambda model, statistics: model.replace(statistics=statistics),
    )


def whisper_encoder() -> ModelWorkload:
    """The encoder of Whisper-tiny on half a minute of sound."""
    from lavax.models.whisper.config import WHISPER_TINY
    from lavax.models.whisper.encoder import WhisperEncoder
    from lavax.models.whisper.whisper import FAMILY

    def twin() -> Any:
        from benchmarks.models.pytorch.whisper import WhisperEncoder

        return WhisperEncoder(WHISPER_TINY.to_json())

    def draw(generator: np.random.Generator) -> tuple[np.ndarray, ...]:
        frames, width = WHISPER_TINY.max_source_positions, WHISPER_TINY.d_model
        spectrograms = normal(generator, 1, WHISPER_TINY.num_mel_bins, WHISPER_TINY.frames)
        return spectrograms, normal(generator, 1, frames, width)

    def published(encoder: Any) -> dict[str, np.ndarray]:
        leaves = lx.tree.leaves_with_path({"encoder": encoder})
        return {FAMILY.name_in_file(str(path)): np.asarray(leaf) for path, leaf in leaves}

    build = partial(WhisperEncoder, WHISPER_TINY)
    return ModelWorkload(
        "Whisper-tiny's encoder",
        lambda key: build(key=key),
        twin,
        draw,
        _squared_error,
        _squared_error_in_pytorch,
        prefix="model.encoder.",
        published=published,
    )


WORKLOADS = (
    partial(smollm2, 1, 128),
    partial(smollm2, 4, 512),
    partial(gpt2, GPT2_MEDIUM, 4, 512),
    smolvla_expert,
    small_unet,
    resnet50,
    whisper_encoder,
)
