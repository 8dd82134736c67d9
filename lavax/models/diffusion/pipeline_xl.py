"""Stable Diffusion XL: from text to images with two text encoders."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.base.quick_dataclasses import dataclass
from lavax.models.diffusion.pipeline import TextToImage
from lavax.models.diffusion.prompts import PromptTokenizer
from lavax.models.vision.clip_text import CLIPText
from lavax.tracer.compiled.compile import compile
from lavax.tracer.values.value import Value


@dataclass(frozen=True)
class TextToImageXL(TextToImage):
    """Stable Diffusion XL (Podell et al. 2023). It is used as `TextToImage` is.

    The U-Net reads the hidden states of both encoders side by side, the second one's vector of the whole text, and the
    size of the images. With `zeros_for_empty`, an empty negative prompt stands for zeros, not for the text "".
    """

    second_tokenizer: PromptTokenizer
    second_text_encoder: CLIPText
    zeros_for_empty: bool = True

    def context(self, prompts: Sequence[str], height: int | None = None, width: int | None = None) -> dict[str, Any]:
        """What the U-Net reads of prompts: `context` [N, tokens, features], `pooled` [N, features], `sizes` [N, 6]."""
        encoders = self.text_encoder, self.second_text_encoder
        context, pooled = self._encoded(encoders, (self.tokenizer(prompts), self.second_tokenizer(prompts)))
        high, wide = self.size(height, width)
        sizes = np.tile(np.array([high, wide, 0, 0, high, wide], np.float32), (len(prompts), 1))
        return {"context": context, "pooled": pooled, "sizes": sizes}

    def away_from(self, prompts: Sequence[str], height: int | None = None, width: int | None = None) -> dict[str, Any]:
        """As `context`, of what images should not show."""
        made = self.context(prompts, height, width)
        if not self.zeros_for_empty or any(prompts):
            return made
        return {**made, **{name: lnp.zeros_like(made[name]) for name in ("context", "pooled")}}

    @functools.cached_property
    def _encoded(self) -> Callable[..., Any]:
        return compile(_both)


def _both(encoders: tuple[CLIPText, CLIPText], tokens: tuple[Value, Value]) -> tuple[Value, Value]:
    """Hidden states of both encoders before their last blocks, side by side, and the second one's vector."""
    first, second = (encoder.before_last(each) for encoder, each in zip(encoders, tokens, strict=True))
    last = encoders[1]
    pooled = last.pooled(tokens[1], last.norm(last.blocks[-1](second)))
    return lnp.concatenate([first, second], axis=-1), pooled
