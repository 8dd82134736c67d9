"""RoBERTa, and CamemBERT and XLM-RoBERTa, which differ in their texts alone: Liu et al. (2019)."""
from __future__ import annotations

from typing import ClassVar

from lavax.base.quick_dataclasses import dataclass
from lavax.models.encoders.bert import ENCODER_NAMES, OPTIONAL, BertConfig, adapted, prepared
from lavax.models.encoders.tasks import build
from lavax.models.family import Family


@dataclass(frozen=True)
class RobertaConfig(BertConfig):
    """Settings of an `Encoder`, by the names of RoBERTa's config.json."""

    model_type: str = "roberta"
    vocab_size: int = 50265
    pad_token_id: int = 1

    counted_positions: ClassVar[bool] = True
    classifier_activation: ClassVar[str] = "tanh"

    @property
    def longest(self) -> int:
        """The most tokens of a text."""
        return self.max_position_embeddings - self.pad_token_id - 1

    @property
    def masked_activation(self) -> str:
        """The activation in the layers that predict masked tokens."""
        return "gelu"


FAMILY = Family(
    RobertaConfig,
    build,
    (
        (r"^encoder\.", "roberta."),
        *ENCODER_NAMES,
        (r"^head\.dense\.", "lm_head.dense."),
        (r"^head\.norm\.", "lm_head.layer_norm."),
        (r"^head\.bias$", "lm_head.bias"),
        (r"^dense\.", "classifier.dense."),
        (r"^out\.", "classifier.out_proj."),
        (r"^spans\.", "qa_outputs."),
    ),
    prepared=prepared,
    adapted=adapted,
    optional=OPTIONAL,
)
