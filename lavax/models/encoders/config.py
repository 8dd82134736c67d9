"""What configurations of all encoders have."""
from __future__ import annotations

import re
from dataclasses import replace
from typing import Self

from lavax.base.quick_dataclasses import dataclass
from lavax.models.config import ClassifierConfig

# "model_type" -> what the names of transformers' classes begin with.
_CLASSES = {
    "bert": "Bert",
    "camembert": "Camembert",
    "distilbert": "DistilBert",
    "roberta": "Roberta",
    "xlm-roberta": "XLMRoberta",
}


@dataclass(frozen=True)
class EncoderConfig(ClassifierConfig):
    """Labels, and what the model is for: "architectures" names transformers' class, such as "BertForMaskedLM"."""

    model_type: str = "bert"
    architectures: tuple[str, ...] | None = None
    tie_word_embeddings: bool = True

    @property
    def task(self) -> str:
        """The end of the class's name from "For" on; empty for an encoder alone."""
        found = re.search(r"For[A-Z]\w+$", self.architectures[0]) if self.architectures else None
        return found[0] if found else ""

    def for_task(self, task: str) -> Self:
        """The same configuration for another task, such as "ForMaskedLM"."""
        return replace(self, architectures=(_CLASSES[self.model_type] + task,))

    def of_encoder(self, pools: bool) -> Self:
        """The same configuration for the encoder within a model whose task needs a pooling layer, or does not."""
        return self.for_task("Model")
