"""Whisper: Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision" (2022)."""
from __future__ import annotations

from typing import Any

from lavax import random
from lavax.models.family import Family
from lavax.models.pretrained import PretrainedModel
from lavax.models.tensors import Tensors, with_prefix
from lavax.models.whisper.config import WhisperConfig
from lavax.models.whisper.decoder import WhisperCache, WhisperDecoder
from lavax.models.whisper.encoder import WhisperEncoder
from lavax.nn.modules.linear import Linear
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.values.value import Value


class Whisper(PretrainedModel):
    """Speech to text: `logits = model(spectrograms, ids)`.

    `spectrograms` are [B, num_mel_bins, 2·max_source_positions] (see `log_mel_spectrogram`), `ids` integers [B, T] with
    T up to max_target_positions, and the result is [B, T, vocab_size]. `transcribe` turns sound into text with it. The
    output layer is the table of embeddings, unless the configuration says otherwise. There is no dropout.
    """

    encoder: WhisperEncoder
    decoder: WhisperDecoder
    head: Linear | None

    def __init__(self, config: WhisperConfig, *, key: ArrayLike, dtype: Any = "float32") -> None:
        keys = random.split(key, 3)
        self.config = config
        self.encoder = WhisperEncoder(config, key=keys[0], dtype=dtype)
        self.decoder = WhisperDecoder(config, key=keys[1], dtype=dtype)
        self.head = None if config.tie_word_embeddings else Linear(
            config.d_model, config.vocab_size, bias=False, key=keys[2], dtype=dtype
        )

    def __call__(self, spectrograms: ArrayLike, ids: ArrayLike) -> Value:
        return self.logits(self.decoder(ids, self.encoder(spectrograms)))

    def empty_cache(self, spectrograms: ArrayLike, length: int, dtype: Any = None) -> WhisperCache:
        """What the decoder keeps of the sound, and room for `length` tokens in each row."""
        return self.decoder.empty_cache(self.encoder(spectrograms), length, dtype)

    def extend(self, ids: ArrayLike, cache: WhisperCache) -> tuple[Value, WhisperCache]:
        """The states [B, T, d_model] of T more tokens in each row, and the cache with them."""
        return self.decoder.extend(ids, cache)

    def logits(self, hidden: ArrayLike) -> Value:
        """The scores of all tokens to come next: [..., d_model] to [..., vocab_size]."""
        return self.decoder.tokens.attend(hidden) if self.head is None else self.head(hidden)


def _prepared(tensors: Tensors, config: Any) -> Tensors:
    """Files of the model without its output layer lack the prefix."""
    return with_prefix(tensors, "model.", besides=r"proj_out\.")


FAMILY = Family(
    WhisperConfig,
    Whisper,
    (
        (r"^(encoder|decoder)\.", r"model.\1."),
        (r"^head\.", "proj_out."),
        (r"\.first\.", ".conv1."),
        (r"\.second\.", ".conv2."),
        (r"^(model\.encoder)\.positions$", r"\1.embed_positions.weight"),
        (r"^(model\.decoder)\.(tokens|positions)\.", r"\1.embed_\2."),
        (r"^(model\.\w+)\.norm\.", r"\1.layer_norm."),
        (r"\.blocks\.", ".layers."),
        (r"\.feed_forward\.expand\.", ".fc1."),
        (r"\.feed_forward\.contract\.", ".fc2."),
        (r"\.feed_forward_norm\.", ".final_layer_norm."),
        (r"\.attention_norm\.", ".self_attn_layer_norm."),
        (r"\.cross_attention_norm\.", ".encoder_attn_layer_norm."),
        (r"\.attention\.", ".self_attn."),
        (r"\.cross_attention\.", ".encoder_attn."),
        (r"_attn\.query\.", "_attn.q_proj."),
        (r"_attn\.key\.", "_attn.k_proj."),
        (r"_attn\.value\.", "_attn.v_proj."),
        (r"_attn\.out\.", "_attn.out_proj."),
    ),
    prepared=_prepared,
    optional=r"^proj_out\.weight$",  # the table of embeddings once more
)
