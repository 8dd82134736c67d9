"""From text to images: the models of a published folder, put together."""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax import random
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import float32, uint8
from lavax.models.diffusion.autoencoder import Autoencoder
from lavax.models.diffusion.prompts import PromptTokenizer
from lavax.models.diffusion.samplers import Sampler, ddim
from lavax.models.diffusion.sampling import guided, sampling
from lavax.models.diffusion.schedule import NoiseSchedule
from lavax.models.diffusion.unet import UNet
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.compiled.compile import compile
from lavax.tracer.values.value import Value


@dataclass(frozen=True)
class TextToImage:
    """Stable Diffusion 1 and 2: text encoder, U-Net, autoencoder and noise schedule of one folder.

        make = diffusion.load_pipeline("stable-diffusion-v1-5")
        images = make(["a lighthouse in fog"], key=lx.random.key(0))     # uint8 [1, 512, 512, 3]

    Four functions are compiled when first used, and again for another size or number of images: the text, a step with
    guidance and one without, the decoder.
    """

    tokenizer: PromptTokenizer
    text_encoder: Any  # tokens [N, T] -> [N, T, D]
    unet: UNet
    autoencoder: Autoencoder
    schedule: NoiseSchedule

    def __call__(
        self,
        prompts: str | Sequence[str],
        *,
        key: ArrayLike,
        negative: str = "",
        height: int | None = None,
        width: int | None = None,
        **settings: Any,
    ) -> np.ndarray:
        """Images uint8 [N, height, width, 3] of `prompts`; the other arguments are those of `images`.

        `height` and `width` are pixels, by default as the model was trained. Raises ValueError if the autoencoder
        cannot make that size.
        """
        texts = [prompts] if isinstance(prompts, str) else list(prompts)
        shape = self._latent_shape(len(texts), height, width)
        for_start, for_steps = random.split(key)
        context = self.context(texts, height, width)
        away = self.away_from([negative] * len(texts), height, width)
        return self.images(random.normal(for_start, shape), context, away, key=for_steps, **settings)

    def context(self, prompts: Sequence[str], height: int | None = None, width: int | None = None) -> Any:
        """What the U-Net reads of prompts, for images of a size: [N, tokens, features]."""
        return self._encoded(self.text_encoder, self.tokenizer(prompts))

    def away_from(self, prompts: Sequence[str], height: int | None = None, width: int | None = None) -> Any:
        """As `context`, of what images should not show."""
        return self.context(prompts, height, width)

    def images(
        self,
        noise: ArrayLike,
        context: Any,
        negative: Any,
        *,
        guidance: float = 7.5,
        steps: int = 50,
        sampler: Callable[[NoiseSchedule, int], Sampler] = ddim,
        key: ArrayLike | None = None,
        progress: Callable[[range], Iterable[int]] = iter,
    ) -> np.ndarray:
        """Images uint8 [N, H, W, 3] from normal numbers [N, channels, H/8, W/8] and two contexts.

        With `guidance` of 1, `negative` has no effect and half the work is left out. `sampler` makes the steps, such as
        `diffusion.euler`; `progress` wraps them, such as tqdm.
        """
        table = sampler(self.schedule, steps)
        given: dict[str, Any] = dict(key=key, progress=progress)
        if guidance == 1:
            latents = self._sampled(self.unet, table, noise, context, **given)
        else:
            latents = self._guided(self.unet, table, noise, (negative, context, np.float32(guidance)), **given)
        return np.asarray(self._decoded(self.autoencoder, latents))

    def size(self, height: int | None = None, width: int | None = None) -> tuple[int, int]:
        """The height and width of images in pixels; None is as the model was trained."""
        usual = (self.unet.config.sample_size or 64) * self._pixels_of_latent
        return usual if height is None else height, usual if width is None else width

    @property
    def _pixels_of_latent(self) -> int:
        return int(2 ** (len(self.autoencoder.config.block_out_channels) - 1))

    def _latent_shape(self, count: int, height: int | None, width: int | None) -> tuple[int, ...]:
        multiple, sizes = self._pixels_of_latent, self.size(height, width)
        if any(size % multiple for size in sizes):
            raise ValueError(f"TextToImage: height and width must be multiples of {multiple}, got {list(sizes)}")
        return (count, self.unet.config.in_channels, *(size // multiple for size in sizes))

    @functools.cached_property
    def _encoded(self) -> Callable[..., Any]:
        return compile(lambda encoder, tokens: encoder(tokens))

    @functools.cached_property
    def _sampled(self) -> Callable[..., Value]:
        return sampling(self.schedule)

    @functools.cached_property
    def _guided(self) -> Callable[..., Value]:
        return sampling(self.schedule, guided())

    @functools.cached_property
    def _decoded(self) -> Callable[..., Value]:
        return compile(lambda autoencoder, latents: pictures(autoencoder.decode(latents)))


def pictures(images: ArrayLike) -> Value:
    """Images [N, C, H, W] with values from -1 to 1 as uint8 [N, H, W, C]."""
    shown = lnp.clip(0.5 * cast(as_value(images), float32) + 0.5, 0.0, 1.0)
    return cast(lnp.transpose(lnp.round(255 * shown), (0, 2, 3, 1)), uint8)
