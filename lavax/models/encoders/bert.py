"""BERT: Devlin et al. (2018)."""
from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, ClassVar, Self

from lavax.base.quick_dataclasses import dataclass
from lavax.models.activations import activation_of
from lavax.models.encoders.config import EncoderConfig
from lavax.models.encoders.tasks import TASKS, build
from lavax.models.family import Family
from lavax.models.tensors import Tensors, renamed


@dataclass(frozen=True)
class BertConfig(EncoderConfig):
    """Settings of an `Encoder`, by the names of BERT's config.json."""

    model_type: str = "bert"
    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12
    pad_token_id: int = 0
    add_pooling_layer: bool | None = None  # for `Encoder.pooled`; by default, where the task needs it
    position_embedding_type: str = "absolute"
    is_decoder: bool = False

    # Whether positions count the tokens that are not padding, from pad_token_id + 1 on.
    counted_positions: ClassVar[bool] = False
    # What a classifier of texts applies after a layer of its own; empty if it takes `Encoder.pooled`.
    classifier_activation: ClassVar[str] = ""

    @property
    def longest(self) -> int:
        """The most tokens of a text."""
        return self.max_position_embeddings

    @property
    def masked_activation(self) -> str:
        """The activation in the layers that predict masked tokens."""
        return self.hidden_act

    @property
    def pools(self) -> bool:
        """Whether an encoder alone has a pooling layer."""
        return self.add_pooling_layer is not False

    def of_encoder(self, pools: bool) -> Self:
        """The same configuration for the encoder within a model whose task needs the pooling layer, or does not."""
        return replace(super().of_encoder(pools), add_pooling_layer=pools or self.add_pooling_layer is True)

    def check(self) -> None:
        """Raises ValueError for settings that `Encoder` does not have."""
        if self.position_embedding_type != "absolute":
            raise ValueError(f"Encoder: position_embedding_type is {self.position_embedding_type!r}, not 'absolute'")
        if self.is_decoder:
            raise ValueError("Encoder: is_decoder is true, but all tokens see one another here")
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"Encoder: num_attention_heads={self.num_attention_heads} must divide hidden_size={self.hidden_size}"
            )
        activation_of(self.hidden_act)


# What files hold besides the model: layers for other tasks, copies of the embeddings, and buffers that are not weights.
OPTIONAL = (
    r"^(cls|lm_head|classifier|pre_classifier|qa_outputs|vocab_transform|vocab_layer_norm|vocab_projector)\."
    r"|\.position_ids$"
)

_OLDER_NAMES = ((r"LayerNorm\.gamma$", "LayerNorm.weight"), (r"LayerNorm\.beta$", "LayerNorm.bias"))
_PREFIX = (r"^(bert|roberta|distilbert)\.", "")


def prepared(tensors: Tensors, config: Any) -> Tensors:
    """The first published files call scale and offset otherwise. Models for tasks hold the encoder under a prefix."""
    changes = _OLDER_NAMES if config.task in TASKS else (*_OLDER_NAMES, _PREFIX)

    def name_today(name: str) -> str:
        for pattern, replacement in changes:
            name = re.sub(pattern, replacement, name)
        return name

    return renamed(tensors, name_today)


def adapted(config: Any, tensors: Tensors) -> Any:
    """Only the tensors tell whether there is a pooling layer. Files for a task that does not use it may have it too."""
    return replace(config, add_pooling_layer=any(name.endswith("pooler.dense.weight") for name in tensors))


_START = r"^(bert\.|roberta\.|)"
# What files call the encoder's layers: by themselves, or within a model for a task.
ENCODER_NAMES = (
    (rf"{_START}tokens\.", r"\1embeddings.word_embeddings."),
    (rf"{_START}positions\.", r"\1embeddings.position_embeddings."),
    (rf"{_START}token_types\.", r"\1embeddings.token_type_embeddings."),
    (rf"{_START}norm\.", r"\1embeddings.LayerNorm."),
    (rf"{_START}pooler\.", r"\1pooler.dense."),
    (rf"{_START}blocks\.", r"\1encoder.layer."),
    (r"\.attention\.(query|key|value)\.", r".attention.self.\1."),
    (r"\.attention\.out\.", ".attention.output.dense."),
    (r"\.attention_norm\.", ".attention.output.LayerNorm."),
    (r"\.expand\.", ".intermediate.dense."),
    (r"\.contract\.", ".output.dense."),
    (r"\.feed_forward_norm\.", ".output.LayerNorm."),
)

FAMILY = Family(
    BertConfig,
    build,
    (
        (r"^encoder\.", "bert."),
        *ENCODER_NAMES,
        (r"^head\.dense\.", "cls.predictions.transform.dense."),
        (r"^head\.norm\.", "cls.predictions.transform.LayerNorm."),
        (r"^head\.bias$", "cls.predictions.bias"),
        (r"^out\.", "classifier."),
        (r"^spans\.", "qa_outputs."),
    ),
    prepared=prepared,
    adapted=adapted,
    optional=OPTIONAL,
)
