"""Convolution nets as image classifiers."""
from lavax.models.convolution.convnext import ConvNext, ConvNextConfig, ConvNextV2Config
from lavax.models.convolution.convolution_norm import fold_batch_norm
from lavax.models.convolution.efficientnet import EfficientNet
from lavax.models.convolution.efficientnet_config import EfficientNetConfig
from lavax.models.convolution.resnet import ResNet, ResNetConfig

__all__ = [
    "ConvNext",
    "ConvNextConfig",
    "ConvNextV2Config",
    "EfficientNet",
    "EfficientNetConfig",
    "ResNet",
    "ResNetConfig",
    "fold_batch_norm",
]
