"""The models of the benchmark: those of Meganeura's paper."""
from __future__ import annotations

from typing import Any

import numpy as np

import lavax.numpy as lnp
from benchmarks.models.workload import ModelWorkload, normal


def _squared_error(model: Any, x: Any, target: Any) -> tuple[Any, Any]:
    return lnp.mean((model(x) - target) ** 2), None


def _squared_error_in_pytorch(twin: Any, x: Any, target: Any) -> Any:
    return (twin(x) - target).square().mean()


def small_unet() -> ModelWorkload:
    """A convolutional U-Net of 5.3 million weights that predicts the noise of two latents of 4 x 32 x 32."""
    from lavax.models.diffusion.small_unet import SMALL_TRAINING_UNET, SmallUNet

    def twin() -> Any:
        from benchmarks.models.pytorch.small_unet import SmallUNet

        return SmallUNet(SMALL_TRAINING_UNET.to_json())

    def draw(generator: np.random.Generator) -> tuple[np.ndarray, ...]:
        return normal(generator, 2, 4, 32, 32), normal(generator, 2, 4, 32, 32)

    def build(key: Any) -> SmallUNet:
        return SmallUNet(SMALL_TRAINING_UNET, key=key)

    return ModelWorkload("small U-Net, 2 latents", build, twin, draw, _squared_error, _squared_error_in_pytorch)


WORKLOADS = (small_unet,)
