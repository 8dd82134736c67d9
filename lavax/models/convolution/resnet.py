"""ResNets (He et al. 2016) as image classifiers: of basic blocks (18, 34) and of bottlenecks (50, 101, 152)."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax import random
from lavax.base.quick_dataclasses import dataclass
from lavax.models.activations import activation_of
from lavax.models.config import ImageClassifierConfig
from lavax.models.convolution.convolution_norm import (
    ConvolutionNorm,
    RunningStatistics,
    Statistics,
    initial_statistics,
    with_batches_tracked,
)
from lavax.models.family import Family
from lavax.models.pretrained import PretrainedModel
from lavax.nn.activations import relu
from lavax.nn.modules.linear import Linear
from lavax.nn.modules.module import Module, field
from lavax.nn.pooling import max_pool
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.values.value import Value

_REDUCTION = 4  # channels of a bottleneck's ends over those of its middle


@dataclass(frozen=True)
class ResNetConfig(ImageClassifierConfig):
    """Settings of a `ResNet`, by the names of its config.json; by default those of ResNet-50."""

    model_type: str = "resnet"
    embedding_size: int = 64
    hidden_sizes: tuple[int, ...] = (256, 512, 1024, 2048)
    depths: tuple[int, ...] = (3, 4, 6, 3)
    layer_type: str = "bottleneck"
    hidden_act: str = "relu"
    downsample_in_first_stage: bool = False
    downsample_in_bottleneck: bool = False


class Block(Module):
    """Convolutions whose result is added to their input, or to a projection of it."""

    layers: tuple[ConvolutionNorm, ...]
    shortcut: ConvolutionNorm | None
    activation: str = field(static=True)

    def __init__(
        self, config: ResNetConfig, in_channels: int, out_channels: int, stride: int, *, key: ArrayLike, dtype: Any
    ) -> None:
        keys = iter(random.split(key, 4))

        def layer(before: int, after: int, window: int, step: int) -> ConvolutionNorm:
            return ConvolutionNorm(before, after, window, step, key=next(keys), dtype=dtype)

        if config.layer_type == "bottleneck":
            narrow, early = out_channels // _REDUCTION, config.downsample_in_bottleneck
            self.layers = (
                layer(in_channels, narrow, 1, stride if early else 1),
                layer(narrow, narrow, 3, 1 if early else stride),
                layer(narrow, out_channels, 1, 1),
            )
        else:
            self.layers = (layer(in_channels, out_channels, 3, stride), layer(out_channels, out_channels, 3, 1))
        projects = in_channels != out_channels or stride != 1
        self.shortcut = layer(in_channels, out_channels, 1, stride) if projects else None
        self.activation = config.hidden_act

    def __call__(self, path: str, x: Value, running: RunningStatistics) -> Value:
        activation, hidden = activation_of(self.activation), x
        for number, layer in enumerate(self.layers):
            hidden = relu(hidden) if number else hidden  # whatever hidden_act says, as in transformers
            hidden = running(f"{path}.layers.{number}", layer, hidden)
        kept = x if self.shortcut is None else running(f"{path}.shortcut", self.shortcut, x)
        return activation(hidden + kept)


class ResNet(PretrainedModel):
    """Images [N, 3, H, W] to logits [N, classes].

        logits = model(images)                                       # with the running statistics
        logits, statistics = model(images, training=True)            # with those of the batch
        model = model.replace(statistics=statistics)

    `fold_batch_norm(model)` is faster in inference.
    """

    stem: ConvolutionNorm
    stages: tuple[tuple[Block, ...], ...]
    classifier: Linear
    statistics: Statistics

    def __init__(self, config: ResNetConfig, *, key: ArrayLike, dtype: Any = "float32") -> None:
        if config.layer_type not in ("bottleneck", "basic"):
            raise ValueError(f"ResNet: layer_type is 'bottleneck' or 'basic', got {config.layer_type!r}")
        keys = iter(random.split(key, 2 + sum(config.depths)))
        self.config = config
        self.stem = ConvolutionNorm(
            config.num_channels, config.embedding_size, 7, 2, key=next(keys), dtype=dtype
        )
        stages, channels = [], config.embedding_size
        for number, (width, depth) in enumerate(zip(config.hidden_sizes, config.depths, strict=True)):
            blocks = []
            for position in range(depth):
                stride = 2 if position == 0 and (number or config.downsample_in_first_stage) else 1
                blocks.append(Block(config, channels, width, stride, key=next(keys), dtype=dtype))
                channels = width
            stages.append(tuple(blocks))
        self.stages = tuple(stages)
        self.classifier = Linear(channels, config.classes, key=next(keys), dtype=dtype)
        self.statistics = initial_statistics(("stem", self.stem), ("stages", self.stages))

    def __call__(self, images: ArrayLike, *, training: bool = False) -> Any:
        given = self.config.images_of("ResNet", images)
        running = RunningStatistics(self.statistics, training)
        x = activation_of(self.config.hidden_act)(running("stem", self.stem, given))
        x = max_pool(x, (3, 3), 2, 1)
        for number, stage in enumerate(self.stages):
            for position, block in enumerate(stage):
                x = block(f"stages.{number}.{position}", x, running)
        logits = self.classifier(lnp.mean(x, axis=(2, 3)))
        return (logits, running.after) if training else logits


FAMILY = Family(
    ResNetConfig,
    ResNet,
    (
        (r"^statistics\.(.+)\.mean$", r"\1.norm.running_mean"),
        (r"^statistics\.(.+)\.variance$", r"\1.norm.running_var"),
        (r"^stem\.", "resnet.embedder.embedder."),
        (r"^stages\.(\d+)\.(\d+)\.", r"resnet.encoder.stages.\1.layers.\2."),
        (r"\.layers\.(\d+)\.(convolution|norm)\.", r".layer.\1.\2."),
        (r"\.norm\.", ".normalization."),
        (r"^classifier\.", "classifier.1."),
    ),
    published=with_batches_tracked,
    optional=r"\.num_batches_tracked$",
)
