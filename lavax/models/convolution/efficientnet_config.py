"""Settings of EfficientNets, and the blocks that follow from them: Tan and Le (2019)."""
from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from lavax.base.quick_dataclasses import dataclass
from lavax.models.activations import activation_of
from lavax.models.config import ImageClassifierConfig

_STEM, _TOP = 32, 1280  # channels of the first and the last convolution at width 1
# Settings with an entry for each stage.
_BY_STAGE = ("in_channels", "out_channels", "kernel_sizes", "strides", "num_block_repeats", "expand_ratios")
_POOLING = ("mean", "max")


class BlockSettings(NamedTuple):
    """What one block of an EfficientNet is like."""

    in_channels: int
    out_channels: int
    window: int
    stride: int
    expansion: int  # channels of the depthwise convolution over those of the input
    padding: tuple[int, int]  # before and after, of the depthwise convolution
    adds_input: bool
    drop_rate: float


@dataclass(frozen=True)
class EfficientNetConfig(ImageClassifierConfig):
    """Settings of an `EfficientNet`, by the names of its config.json; by default those of EfficientNet-B7."""

    model_type: str = "efficientnet"
    width_coefficient: float = 2.0
    depth_coefficient: float = 3.1
    depth_divisor: int = 8
    kernel_sizes: tuple[int, ...] = (3, 3, 5, 3, 5, 5, 3)
    in_channels: tuple[int, ...] = (32, 16, 24, 40, 80, 112, 192)
    out_channels: tuple[int, ...] = (16, 24, 40, 80, 112, 192, 320)
    depthwise_padding: tuple[int, ...] = ()  # numbers of blocks that pad as much before as after at a stride of 2
    strides: tuple[int, ...] = (1, 2, 2, 2, 1, 2, 1)
    num_block_repeats: tuple[int, ...] = (1, 2, 2, 3, 3, 4, 1)
    expand_ratios: tuple[int, ...] = (1, 6, 6, 6, 6, 6, 6)
    squeeze_expansion_ratio: float = 0.25
    hidden_act: str = "swish"
    hidden_dim: int = 2560
    pooling_type: str = "mean"
    batch_norm_eps: float = 0.001
    batch_norm_momentum: float = 0.99
    dropout_rate: float = 0.5
    drop_connect_rate: float = 0.2

    @property
    def stem_channels(self) -> int:
        """Channels after the first convolution."""
        return self.channels(_STEM)

    @property
    def least_pixels(self) -> tuple[int, int]:
        """Height and width of the smallest images, of which the last block has one pixel left."""
        size = 1
        for block in reversed(list(self.blocks())):
            if block.stride == 2:
                size = 2 * (size - 1) + block.window - sum(block.padding)
        return 2 * size, 2 * size

    def channels(self, at_width_1: int) -> int:
        """Channels at the configured width: a multiple of `depth_divisor`, at least 90 % of the exact number."""
        exact, unit = at_width_1 * self.width_coefficient, self.depth_divisor
        rounded = max(unit, int(exact + unit / 2) // unit * unit)
        return rounded + unit if rounded < 0.9 * exact else rounded

    def blocks(self) -> Iterator[BlockSettings]:
        """The blocks in order; only the first of a stage changes the number of channels or the resolution."""
        repeats = [math.ceil(self.depth_coefficient * count) for count in self.num_block_repeats]
        number, total = 0, sum(repeats)
        for stage, count in enumerate(repeats):
            before, after = self.channels(self.in_channels[stage]), self.channels(self.out_channels[stage])
            for position in range(count):
                stride = 1 if position else self.strides[stage]
                around = self.kernel_sizes[stage] // 2
                yield BlockSettings(
                    in_channels=after if position else before,
                    out_channels=after,
                    window=self.kernel_sizes[stage],
                    stride=stride,
                    expansion=self.expand_ratios[stage],
                    padding=(around - (stride == 2 and number not in self.depthwise_padding), around),
                    adds_input=position > 0,
                    drop_rate=self.drop_connect_rate * number / total,
                )
                number += 1

    def check(self) -> None:
        """Raises ValueError for settings that contradict each other, or that `EfficientNet` does not have."""
        if len({len(getattr(self, name)) for name in _BY_STAGE}) != 1:
            raise ValueError(f"EfficientNet: {', '.join(_BY_STAGE)} have an entry for each stage, and so one length")
        for stage, (made, taken) in enumerate(zip((_STEM, *self.out_channels), self.in_channels, strict=False)):
            if self.channels(made) != self.channels(taken):
                raise ValueError(f"EfficientNet: in_channels[{stage}] is {made}, which come from before, got {taken}")
        if any(window % 2 == 0 for window in self.kernel_sizes) or any(stride not in (1, 2) for stride in self.strides):
            raise ValueError(
                f"EfficientNet: kernel_sizes are odd and strides 1 or 2, got {self.kernel_sizes} and {self.strides}"
            )
        if self.hidden_dim != self.channels(_TOP):
            raise ValueError(
                f"EfficientNet: hidden_dim is {self.channels(_TOP)} at width_coefficient={self.width_coefficient}, "
                f"got {self.hidden_dim}"
            )
        if self.pooling_type not in _POOLING:
            raise ValueError(f"EfficientNet: pooling_type is 'mean' or 'max', got {self.pooling_type!r}")
        activation_of(self.hidden_act)
