"""EfficientNets (Tan and Le 2019) as image classifiers: depthwise blocks, at any width and depth."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax import random
from lavax.models.activations import activation_of
from lavax.models.convolution.convolution_norm import (
    ConvolutionNorm,
    RunningStatistics,
    Statistics,
    initial_statistics,
    with_batches_tracked,
)
from lavax.models.convolution.efficientnet_config import BlockSettings, EfficientNetConfig
from lavax.models.family import Family
from lavax.models.pretrained import PretrainedModel
from lavax.nn.activations import sigmoid
from lavax.nn.modules.convolution import Conv2d
from lavax.nn.modules.dropout import dropout
from lavax.nn.modules.linear import Linear
from lavax.nn.modules.module import Module, field
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.values.value import Value


class SqueezeExcite(Module):
    """Channels scaled by a small network of their means (Hu et al. 2018)."""

    reduce: Conv2d
    expand: Conv2d
    activation: str = field(static=True)

    def __init__(self, channels: int, inner: int, activation: str, *, key: ArrayLike, dtype: Any) -> None:
        for_reduce, for_expand = random.split(key)
        self.reduce = Conv2d(channels, inner, 1, key=for_reduce, dtype=dtype)
        self.expand = Conv2d(inner, channels, 1, key=for_expand, dtype=dtype)
        self.activation = activation

    def __call__(self, x: Value) -> Value:
        means = lnp.mean(x, axis=(2, 3), keepdims=True)
        return x * sigmoid(self.expand(activation_of(self.activation)(self.reduce(means))))


class Block(Module):
    """Expansion, depthwise convolution, squeeze-and-excite, projection (MBConv; Sandler et al. 2018, figure 4)."""

    expansion: ConvolutionNorm | None
    depthwise: ConvolutionNorm
    squeeze_excite: SqueezeExcite
    projection: ConvolutionNorm
    adds_input: bool = field(static=True)
    drop_rate: float = field(static=True)
    activation: str = field(static=True)

    def __init__(self, config: EfficientNetConfig, made: BlockSettings, *, key: ArrayLike, dtype: Any) -> None:
        for_expansion, for_depthwise, for_excitation, for_projection = random.split(key, 4)
        wide, inner = made.in_channels * made.expansion, int(made.in_channels * config.squeeze_expansion_ratio)
        eps, momentum = config.batch_norm_eps, config.batch_norm_momentum
        # The expansion's batch norm keeps the default momentum, as in transformers.
        self.expansion = (
            ConvolutionNorm(made.in_channels, wide, 1, eps=eps, key=for_expansion, dtype=dtype)
            if made.expansion != 1
            else None
        )
        self.depthwise = ConvolutionNorm(
            wide, wide, made.window, made.stride, wide, (made.padding, made.padding),
            eps=eps, momentum=momentum, key=for_depthwise, dtype=dtype,
        )  # fmt: skip
        self.squeeze_excite = SqueezeExcite(wide, max(1, inner), config.hidden_act, key=for_excitation, dtype=dtype)
        self.projection = ConvolutionNorm(
            wide, made.out_channels, 1, eps=eps, momentum=momentum, key=for_projection, dtype=dtype
        )
        self.adds_input, self.drop_rate, self.activation = made.adds_input, made.drop_rate, config.hidden_act

    def __call__(self, path: str, x: Value, running: RunningStatistics, key: ArrayLike | None) -> Value:
        activation, hidden = activation_of(self.activation), x
        if self.expansion is not None:
            hidden = activation(running(f"{path}.expansion", self.expansion, hidden))
        hidden = self.squeeze_excite(activation(running(f"{path}.depthwise", self.depthwise, hidden)))
        hidden = running(f"{path}.projection", self.projection, hidden)
        if not self.adds_input:
            return hidden
        # Stochastic depth (Huang et al. 2016): the block is there for an image as a whole, or is not.
        return x + (hidden if key is None else dropout(hidden, self.drop_rate, key, shared_axes=(1, 2, 3)))


class EfficientNet(PretrainedModel):
    """Images [N, 3, H, W] to logits [N, classes].

        logits = model(images)                                          # with the running statistics
        logits, statistics = model(images, training=True, key=key)      # with those of the batch
        model = model.replace(statistics=statistics)

    With a key there is stochastic depth, by `drop_connect_rate`, and dropout before the classifier, by `dropout_rate`.
    `fold_batch_norm(model)` is faster in inference.
    """

    stem: ConvolutionNorm
    blocks: tuple[Block, ...]
    top: ConvolutionNorm
    classifier: Linear
    statistics: Statistics

    def __init__(self, config: EfficientNetConfig, *, key: ArrayLike, dtype: Any = "float32") -> None:
        config.check()
        settings = tuple(config.blocks())
        for_stem, for_top, for_classifier, *keys = random.split(key, 3 + len(settings))
        eps, momentum = config.batch_norm_eps, config.batch_norm_momentum
        self.config = config
        self.stem = ConvolutionNorm(
            config.num_channels, config.stem_channels, 3, 2, padding=((0, 1), (0, 1)),
            eps=eps, momentum=momentum, key=for_stem, dtype=dtype,
        )  # fmt: skip
        self.blocks = tuple(
            Block(config, made, key=for_block, dtype=dtype) for made, for_block in zip(settings, keys, strict=True)
        )
        self.top = ConvolutionNorm(
            settings[-1].out_channels, config.hidden_dim, 1, eps=eps, momentum=momentum, key=for_top, dtype=dtype
        )
        self.classifier = Linear(config.hidden_dim, config.classes, key=for_classifier, dtype=dtype)
        self.statistics = initial_statistics(("stem", self.stem), ("blocks", self.blocks), ("top", self.top))

    def __call__(self, images: ArrayLike, *, training: bool = False, key: ArrayLike | None = None) -> Any:
        given = self.config.images_of("EfficientNet", images, self.config.least_pixels)
        activation, running = activation_of(self.config.hidden_act), RunningStatistics(self.statistics, training)
        count = len(self.blocks) + 1
        *keys, for_dropout = [None] * count if key is None else random.split(key, count)
        x = activation(running("stem", self.stem, given))
        for number, (block, for_block) in enumerate(zip(self.blocks, keys, strict=True)):
            x = block(f"blocks.{number}", x, running, for_block)
        x = activation(running("top", self.top, x))
        pooled = lnp.mean(x, axis=(2, 3)) if self.config.pooling_type == "mean" else lnp.max(x, axis=(2, 3))
        pooled = pooled if for_dropout is None else dropout(pooled, self.config.dropout_rate, for_dropout)
        logits = self.classifier(pooled)
        return (logits, running.after) if training else logits


FAMILY = Family(
    EfficientNetConfig,
    EfficientNet,
    (
        (r"^statistics\.(.+)\.mean$", r"\1.norm.running_mean"),
        (r"^statistics\.(.+)\.variance$", r"\1.norm.running_var"),
        (r"^stem\.convolution\.", "efficientnet.embeddings.convolution."),
        (r"^stem\.norm\.", "efficientnet.embeddings.batchnorm."),
        (r"^top\.convolution\.", "efficientnet.encoder.top_conv."),
        (r"^top\.norm\.", "efficientnet.encoder.top_bn."),
        (r"^blocks\.", "efficientnet.encoder.blocks."),
        (r"\.expansion\.convolution\.", ".expansion.expand_conv."),
        (r"\.expansion\.norm\.", ".expansion.expand_bn."),
        (r"\.depthwise\.convolution\.", ".depthwise_conv.depthwise_conv."),
        (r"\.depthwise\.norm\.", ".depthwise_conv.depthwise_norm."),
        (r"\.projection\.convolution\.", ".projection.project_conv."),
        (r"\.projection\.norm\.", ".projection.project_bn."),
    ),
    published=with_batches_tracked,
    optional=r"\.num_batches_tracked$",
)
