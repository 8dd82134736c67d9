"""Encoders with layers for a task: Devlin et al. (2018), section 3."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import lavax.numpy as lnp
from lavax import random
from lavax.models.activations import activation_of
from lavax.models.encoders.encoder import Encoder
from lavax.models.pretrained import PretrainedModel
from lavax.nn.modules.linear import Linear
from lavax.nn.modules.module import Module, field
from lavax.nn.modules.normalization import LayerNorm
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.values.value import Value


class TaskModel(PretrainedModel):
    """An encoder, and layers for a task after it: called as `Encoder` is, `model(ids, mask, token_types)`."""

    task: ClassVar[str]  # the end of transformers' name of the class
    encoder: Encoder

    def __init__(self, config: Any, *, key: ArrayLike, dtype: Any = "float32", pools: bool = False) -> None:
        """`pools` tells whether the task needs `Encoder.pooled`."""
        self.config = config.for_task(self.task)
        self.encoder = Encoder(config.of_encoder(pools), key=key, dtype=dtype)

    @classmethod
    def with_encoder(cls, trained: Encoder | TaskModel, *, key: ArrayLike, **settings: Any) -> Self:
        """A trained encoder, or that of a model for another task, with new layers for this one. `settings` replace
        those of its configuration.

            model = SequenceClassifier.with_encoder(models.load(folder), id2label={0: "bad", 1: "good"}, key=key)
        """
        encoder = trained.encoder if isinstance(trained, TaskModel) else trained
        made = cls(replace(encoder.config, **settings), key=key, dtype=encoder.norm.weight.dtype)
        pooler = made.encoder.pooler if encoder.pooler is None else encoder.pooler
        return made.replace(encoder=encoder.replace(pooler=pooler, config=made.encoder.config))


class MaskedHead(Module):
    """Hidden states before they are compared with the embeddings of all tokens."""

    dense: Linear
    norm: LayerNorm
    bias: Any  # [vocabulary]
    activation: str = field(static=True)

    def __init__(self, config: Any, *, key: ArrayLike, dtype: Any) -> None:
        self.dense = Linear(config.hidden_size, config.hidden_size, key=key, dtype=dtype)
        self.norm = LayerNorm(config.hidden_size, config.layer_norm_eps, dtype=dtype)
        self.bias = lnp.zeros((config.vocab_size,), dtype)
        self.activation = config.masked_activation

    def __call__(self, hidden: Value) -> Value:
        return self.norm(activation_of(self.activation)(self.dense(hidden)))


class MaskedLanguageModel(TaskModel):
    """Which tokens stand at masked places: ids [B, T] to logits [B, T, vocabulary].

        loss = nn.cross_entropy(model(ids, mask), labels, axis=-1)     # labels are -100 where no token was masked

    The matrix of the last layer is that of the embeddings.
    """

    task: ClassVar[str] = "ForMaskedLM"
    head: MaskedHead

    def __init__(self, config: Any, *, key: ArrayLike, dtype: Any = "float32") -> None:
        if not config.tie_word_embeddings:
            raise ValueError("MaskedLanguageModel: tie_word_embeddings is false, but the last layer is the embeddings")
        for_encoder, for_head = random.split(key)
        super().__init__(config, key=for_encoder, dtype=dtype)
        self.head = MaskedHead(config, key=for_head, dtype=dtype)

    def __call__(self, ids: ArrayLike, mask: ArrayLike | None = None, token_types: ArrayLike | None = None) -> Value:
        hidden = self.head(self.encoder(ids, mask, token_types))
        logits: Value = self.encoder.tokens.attend(hidden) + self.head.bias
        return logits


class SequenceClassifier(TaskModel):
    """What a text, or a pair of texts, is, by its first token: ids [B, T] to logits [B, labels]."""

    task: ClassVar[str] = "ForSequenceClassification"
    dense: Linear | None  # before the last layer; None if that takes `Encoder.pooled`
    out: Linear

    def __init__(self, config: Any, *, key: ArrayLike, dtype: Any = "float32") -> None:
        keys, width, pools = random.split(key, 3), config.hidden_size, not config.classifier_activation
        super().__init__(config, key=keys[0], dtype=dtype, pools=pools)
        self.dense = None if pools else Linear(width, width, key=keys[1], dtype=dtype)
        self.out = Linear(width, config.classes, key=keys[2], dtype=dtype)

    def __call__(self, ids: ArrayLike, mask: ArrayLike | None = None, token_types: ArrayLike | None = None) -> Value:
        hidden = self.encoder(ids, mask, token_types)
        if self.dense is None:
            return self.out(self.encoder.pooled(hidden))
        return self.out(activation_of(self.config.classifier_activation)(self.dense(hidden[:, 0])))


class TokenClassifier(TaskModel):
    """What each token is: ids [B, T] to logits [B, T, labels]."""

    task: ClassVar[str] = "ForTokenClassification"
    classifier: Linear

    def __init__(self, config: Any, *, key: ArrayLike, dtype: Any = "float32") -> None:
        for_encoder, for_classifier = random.split(key)
        super().__init__(config, key=for_encoder, dtype=dtype)
        self.classifier = Linear(config.hidden_size, config.classes, key=for_classifier, dtype=dtype)

    def __call__(self, ids: ArrayLike, mask: ArrayLike | None = None, token_types: ArrayLike | None = None) -> Value:
        return self.classifier(self.encoder(ids, mask, token_types))


class QuestionAnswerer(TaskModel):
    """Where the answer to a question stands in a text: ids [B, T] of both to logits [B, T] of its first token, and
    [B, T] of its last one."""

    task: ClassVar[str] = "ForQuestionAnswering"
    spans: Linear

    def __init__(self, config: Any, *, key: ArrayLike, dtype: Any = "float32") -> None:
        for_encoder, for_outputs = random.split(key)
        super().__init__(config, key=for_encoder, dtype=dtype)
        self.spans = Linear(config.hidden_size, 2, key=for_outputs, dtype=dtype)

    def __call__(
        self, ids: ArrayLike, mask: ArrayLike | None = None, token_types: ArrayLike | None = None
    ) -> tuple[Value, Value]:
        logits = self.spans(self.encoder(ids, mask, token_types))
        return logits[..., 0], logits[..., 1]


TASKS: dict[str, type[TaskModel]] = {
    made.task: made for made in (MaskedLanguageModel, SequenceClassifier, TokenClassifier, QuestionAnswerer)
}


def build(config: Any, *, key: ArrayLike, dtype: Any = "float32") -> PretrainedModel:
    """The model for the configuration's task. Without one, or with one that lavax does not have, the encoder alone."""
    kind: Callable[..., PretrainedModel] = TASKS.get(config.task, Encoder)
    return kind(config, key=key, dtype=dtype)
