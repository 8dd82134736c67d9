"""What text generation asks of a language model."""
from __future__ import annotations

from typing import Any, Protocol

from lavax.nn.modules.cache import KeyValueCache
from lavax.nn.modules.module import Module
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.values.value import Value


class DecoderCache(Module):
    """The keys and values of all layers, and how many of each row are filled: `lengths`, int32 [B]."""

    layers: tuple[KeyValueCache, ...]
    lengths: Any


class LanguageModel(Protocol):
    """A model that predicts the next token. Its cache is a pytree whose field `lengths`, int32 [B], counts tokens.

    A configuration may have `longest` (or `max_position_embeddings`), the most tokens of a text, and `vocab_size`,
    against which prompts are checked.

    The `extend` of a model with a true `takes_counts` also takes `counts`, int32 [B]: how many of each row's tokens are
    there, the others being padding.
    """

    config: Any

    def __call__(self, ids: ArrayLike) -> Value: ...

    def empty_cache(self, batch: int, length: int, dtype: Any = None) -> Any: ...

    def extend(self, ids: ArrayLike, cache: Any) -> tuple[Value, Any]: ...

    def logits(self, hidden: ArrayLike) -> Value: ...
