"""One vector for a text, from the vectors of its tokens: Reimers and Gurevych, "Sentence-BERT" (2019)."""
from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import lavax.numpy as lnp
from lavax.base.quick_dataclasses import dataclass
from lavax.io.json_files import read_json
from lavax.ir.types import float32
from lavax.models.encoders.encoder import as_mask
from lavax.models.encoders.tasks import TaskModel
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.values.value import Value

# A pooling takes hidden states [B, T, D] in float32 and weights [B, T, 1], 1 for tokens and 0 for padding.
_Pool = Callable[[Value, Value], Value]


def _first(hidden: Value, weights: Value) -> Value:
    return hidden[:, 0]


def _last(hidden: Value, weights: Value) -> Value:
    places = cast(lnp.arange(hidden.shape[1]), hidden.type.dtype)[None, :, None]
    last = lnp.argmax(lnp.where(weights > 0, places, -1.0), axis=1, keepdims=True)
    return lnp.take_along_axis(hidden, last, axis=1, mode="promise_in_bounds")[:, 0]


def _max(hidden: Value, weights: Value) -> Value:
    return lnp.max(lnp.where(weights > 0, hidden, -1e9), axis=1)


def _mean(hidden: Value, weights: Value) -> Value:
    return lnp.sum(hidden * weights, axis=1) / lnp.maximum(lnp.sum(weights, axis=1), 1e-9)


def _mean_by_root(hidden: Value, weights: Value) -> Value:
    return lnp.sum(hidden * weights, axis=1) / lnp.sqrt(lnp.maximum(lnp.sum(weights, axis=1), 1e-9))


def _weighted_mean(hidden: Value, weights: Value) -> Value:
    """Later tokens count more: the first once, the second twice, and so on. Muennighoff (2022)."""
    places = cast(lnp.arange(hidden.shape[1]), hidden.type.dtype)[None, :, None]
    return _mean(hidden, weights * (places + 1))


# Poolings by the names of sentence-transformers' settings, in the order in which several of them are joined.
POOLINGS: dict[str, _Pool] = {
    "cls_token": _first,
    "max_tokens": _max,
    "mean_tokens": _mean,
    "mean_sqrt_len_tokens": _mean_by_root,
    "weightedmean_tokens": _weighted_mean,
    "lasttoken": _last,
}


@dataclass(frozen=True)
class Pooling:
    """How vectors of tokens become one: names of `POOLINGS`, whose results are joined, and whether its length is 1."""

    modes: tuple[str, ...] = ("mean_tokens",)
    normalize: bool = True

    def __post_init__(self) -> None:
        unknown = [mode for mode in self.modes if mode not in POOLINGS]
        if unknown or not self.modes:
            raise ValueError(f"Pooling: modes are of {', '.join(POOLINGS)}, got {', '.join(unknown) or 'none'}")

    @classmethod
    def of_folder(cls, folder: str | os.PathLike[str]) -> Self:
        """What sentence-transformers' modules.json and the folders that it names say; without it, the default.

        Raises ValueError if there is a module besides the transformer, the pooling and the normalisation.
        """
        path = Path(folder)
        if not (path / "modules.json").exists():
            return cls()
        modules = read_json(path / "modules.json", list)
        kinds = {module["type"].rpartition(".")[2]: module["path"] for module in modules}
        unknown = kinds.keys() - {"Transformer", "Pooling", "Normalize"}
        if unknown or "Pooling" not in kinds:
            raise ValueError(f"{path / 'modules.json'}: modules must be Transformer, Pooling, Normalize: {list(kinds)}")
        settings = read_json(path / kinds["Pooling"] / "config.json")
        return cls(tuple(mode for mode in POOLINGS if settings.get(f"pooling_mode_{mode}")), "Normalize" in kinds)


def sentence_embeddings(
    model: Any, ids: ArrayLike, mask: ArrayLike | None = None, pooling: Pooling | None = None
) -> Value:
    """A float32 vector [D] for each text: ids [B, T] to [B, D·modes], of length 1 if `pooling.normalize`.

        pooling = models.Pooling.of_folder(folder)
        vectors = lx.compile(models.sentence_embeddings)(models.load(folder), ids, mask)

    `model` gives hidden states [B, T, D] of ids and a mask, as `Encoder` does; of a model for a task, its encoder does.
    `mask` is as there. By default, the mean over the tokens is normalised. Products of normalised vectors are cosine
    similarities.
    """
    how, given = Pooling() if pooling is None else pooling, as_value(ids)
    encoder = model.encoder if isinstance(model, TaskModel) else model
    hidden = cast(as_value(encoder(given, mask)), float32)
    is_token = lnp.ones(given.shape, bool) if mask is None else as_mask(mask, given.shape)
    weights = cast(is_token, float32)[..., None]
    made = lnp.concatenate([POOLINGS[mode](hidden, weights) for mode in how.modes], axis=-1)
    if not how.normalize:
        return made
    return made / lnp.maximum(lnp.sqrt(lnp.sum(made * made, axis=-1, keepdims=True)), 1e-12)
