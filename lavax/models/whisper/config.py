"""Settings of Whisper models."""
from __future__ import annotations

from lavax.base.quick_dataclasses import dataclass
from lavax.models.activations import activation_of
from lavax.models.config import Config


@dataclass(frozen=True)
class WhisperConfig(Config):
    """Settings of a `Whisper`, by the names of its config.json; the defaults are those of whisper-tiny."""

    model_type: str = "whisper"
    vocab_size: int = 51865
    num_mel_bins: int = 80
    d_model: int = 384
    encoder_layers: int = 4
    encoder_attention_heads: int = 6
    encoder_ffn_dim: int = 1536
    decoder_layers: int = 4
    decoder_attention_heads: int = 6
    decoder_ffn_dim: int = 1536
    max_source_positions: int = 1500
    max_target_positions: int = 448
    activation_function: str = "gelu"
    scale_embedding: bool = False
    tie_word_embeddings: bool = True
    decoder_start_token_id: int = 50257
    eos_token_id: int = 50257

    @property
    def frames(self) -> int:
        """The columns of a spectrogram that the encoder takes."""
        return 2 * self.max_source_positions

    def check(self) -> None:
        """Raises ValueError for settings that `Whisper` does not have."""
        for heads in (self.encoder_attention_heads, self.decoder_attention_heads):
            if self.d_model % heads:
                raise ValueError(f"Whisper: d_model={self.d_model} must be a multiple of its {heads} attention heads")
        if self.d_model % 2:
            raise ValueError(f"Whisper: d_model={self.d_model} must be even, half sines and half cosines")
        if self.scale_embedding:
            raise ValueError("Whisper: scale_embedding is true, which no published model has")
        activation_of(self.activation_function)


WHISPER_TINY = WhisperConfig()
