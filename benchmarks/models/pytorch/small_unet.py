"""The small convolutional U-Net, with the names that lavax gives its weights."""
from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional


def _convolution(inner: int, outer: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inner, outer, 3, stride, padding=1, bias=False)


class Residual(nn.Module):
    def __init__(self, inner: int, outer: int, groups: int) -> None:
        super().__init__()
        self.norm1 = nn.GroupNorm(groups, inner)
        self.conv1 = _convolution(inner, outer)
        self.norm2 = nn.GroupNorm(groups, outer)
        self.conv2 = _convolution(outer, outer)
        self.shortcut = nn.Conv2d(inner, outer, 1, bias=False) if inner != outer else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.conv1(functional.silu(self.norm1(x)))
        hidden = self.conv2(functional.silu(self.norm2(hidden)))
        return hidden + (x if self.shortcut is None else self.shortcut(x))


class SmallUNet(nn.Module):
    """Latents [batch, channels, height, width] to noise of the same shape."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        widths = [config["base_channels"] * 2**level for level in range(config["levels"])]
        groups, below = config["norm_num_groups"], [*widths[1:], widths[-1]]
        self.conv_in = _convolution(config["in_channels"], widths[0])
        inner = [widths[0], *widths[:-1]]
        self.down = nn.ModuleList(Residual(*pair, groups) for pair in zip(inner, widths, strict=True))
        self.downsamples = nn.ModuleList(_convolution(width, width, 2) for width in widths[:-1])
        self.middle = Residual(widths[-1], widths[-1], groups)
        pairs = list(zip(below, widths, strict=True))[::-1]
        self.up = nn.ModuleList(Residual(lower + own, own, groups) for lower, own in pairs)
        self.norm_out = nn.GroupNorm(groups, widths[0])
        self.conv_out = _convolution(widths[0], config["in_channels"])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x, kept = self.conv_in(x), []
        for level, residual in enumerate(self.down):
            x = residual(x)
            kept.append(x)
            x = self.downsamples[level](x) if level < len(self.downsamples) else x
        x = self.middle(x)
        for level, residual in enumerate(self.up):
            x = functional.interpolate(x, scale_factor=2, mode="nearest") if level else x
            x = residual(torch.cat([x, kept.pop()], 1))
        return self.conv_out(functional.silu(self.norm_out(x)))
