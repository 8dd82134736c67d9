"""DistilBERT: BERT's blocks, half as many, without token types. Sanh et al. (2019)."""
from __future__ import annotations

from typing import ClassVar

from lavax.base.quick_dataclasses import dataclass
from lavax.models.activations import activation_of
from lavax.models.encoders.bert import OPTIONAL, prepared
from lavax.models.encoders.config import EncoderConfig
from lavax.models.encoders.tasks import build
from lavax.models.family import Family


@dataclass(frozen=True)
class DistilBertConfig(EncoderConfig):
    """Settings of an `Encoder`, by the names of DistilBERT's config.json; properties give BERT's names."""

    model_type: str = "distilbert"
    vocab_size: int = 30522
    dim: int = 768
    n_layers: int = 6
    n_heads: int = 12
    hidden_dim: int = 3072
    activation: str = "gelu"
    max_position_embeddings: int = 512

    hidden_size = property(lambda self: self.dim)
    num_hidden_layers = property(lambda self: self.n_layers)
    num_attention_heads = property(lambda self: self.n_heads)
    intermediate_size = property(lambda self: self.hidden_dim)
    hidden_act = property(lambda self: self.activation)
    masked_activation = property(lambda self: self.activation)
    longest = property(lambda self: self.max_position_embeddings)
    layer_norm_eps = 1e-12
    type_vocab_size = 0
    pools = False
    counted_positions = False
    classifier_activation: ClassVar[str] = "relu"

    def check(self) -> None:
        """Raises ValueError for settings that `Encoder` does not have."""
        if self.dim % self.n_heads:
            raise ValueError(f"Encoder: n_heads={self.n_heads} must divide dim={self.dim}")
        activation_of(self.activation)


_START = r"^(distilbert\.|)"

FAMILY = Family(
    DistilBertConfig,
    build,
    (
        (r"^encoder\.", "distilbert."),
        (rf"{_START}tokens\.", r"\1embeddings.word_embeddings."),
        (rf"{_START}positions\.", r"\1embeddings.position_embeddings."),
        (rf"{_START}norm\.", r"\1embeddings.LayerNorm."),
        (rf"{_START}blocks\.", r"\1transformer.layer."),
        (r"\.attention\.query\.", ".attention.q_lin."),
        (r"\.attention\.key\.", ".attention.k_lin."),
        (r"\.attention\.value\.", ".attention.v_lin."),
        (r"\.attention\.out\.", ".attention.out_lin."),
        (r"\.attention_norm\.", ".sa_layer_norm."),
        (r"\.expand\.", ".ffn.lin1."),
        (r"\.contract\.", ".ffn.lin2."),
        (r"\.feed_forward_norm\.", ".output_layer_norm."),
        (r"^head\.dense\.", "vocab_transform."),
        (r"^head\.norm\.", "vocab_layer_norm."),
        (r"^head\.bias$", "vocab_projector.bias"),
        (r"^dense\.", "pre_classifier."),
        (r"^out\.", "classifier."),
        (r"^spans\.", "qa_outputs."),
    ),
    prepared=prepared,
    optional=OPTIONAL,
)
