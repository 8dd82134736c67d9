"""Encoders of text: BERT and its relatives, alone and for tasks, and embeddings of sentences from them."""
from lavax.models.encoders.bert import BertConfig
from lavax.models.encoders.distilbert import DistilBertConfig
from lavax.models.encoders.encoder import Encoder
from lavax.models.encoders.roberta import RobertaConfig
from lavax.models.encoders.tasks import (
    MaskedLanguageModel,
    QuestionAnswerer,
    SequenceClassifier,
    TokenClassifier,
)

__all__ = [
    "BertConfig",
    "DistilBertConfig",
    "Encoder",
    "MaskedLanguageModel",
    "QuestionAnswerer",
    "RobertaConfig",
    "SequenceClassifier",
    "TokenClassifier",
]
