"""ResNet with bottleneck blocks."""
from __future__ import annotations

from typing import Any

import torch
from torch import nn


class ConvolutionNorm(nn.Module):
    def __init__(self, inner: int, outer: int, window: int, stride: int, activated: bool) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(inner, outer, window, stride, window // 2, bias=False)
        self.normalization = nn.BatchNorm2d(outer)
        self.activation = nn.ReLU() if activated else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.activation(self.normalization(self.convolution(x)))


class Bottleneck(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        narrow = outer // 4
        if inner != outer or stride != 1:
            self.shortcut: nn.Module = ConvolutionNorm(inner, outer, 1, stride, activated=False)
        else:
            self.shortcut = nn.Identity()
        self.layer = nn.Sequential(
            ConvolutionNorm(inner, narrow, 1, 1, activated=True),
            ConvolutionNorm(narrow, narrow, 3, stride, activated=True),
            ConvolutionNorm(narrow, outer, 1, 1, activated=False),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layer(x) + self.shortcut(x))


class Stage(nn.Module):
    def __init__(self, inner: int, outer: int, depth: int, stride: int) -> None:
        super().__init__()
        blocks = [Bottleneck(inner, outer, stride), *(Bottleneck(outer, outer, 1) for _ in range(depth - 1))]
        self.layers = nn.Sequential(*blocks)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class Encoder(nn.Module):
    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        sizes, depths = config["hidden_sizes"], config["depths"]
        inner = [config["embedding_size"], *sizes]
        self.stages = nn.ModuleList(
            Stage(inner[n], sizes[n], depth, 2 if n else 1) for n, depth in enumerate(depths)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for stage in self.stages:
            x = stage(x)
        return x


class Embedder(nn.Module):
    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.embedder = ConvolutionNorm(config["num_channels"], config["embedding_size"], 7, 2, activated=True)
        self.pooler = nn.MaxPool2d(3, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pooler(self.embedder(x))


class Backbone(nn.Module):
    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.embedder = Embedder(config)
        self.encoder = Encoder(config)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.encoder(self.embedder(x)).mean((2, 3))


class ResNet(nn.Module):
    """Images [batch, 3, height, width] to logits [batch, classes]."""

    def __init__(self, config: dict[str, Any], classes: int) -> None:
        super().__init__()
        self.resnet = Backbone(config)
        self.classifier = nn.Sequential(nn.Flatten(), nn.Linear(config["hidden_sizes"][-1], classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.resnet(x))
