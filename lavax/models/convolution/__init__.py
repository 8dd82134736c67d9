"""Convolution nets as image classifiers."""
from lavax.models.convolution.convnext import ConvNext, ConvNextConfig
from lavax.models.convolution.convolution_norm import fold_batch_norm
from lavax.models.convolution.resnet import ResNet, ResNetConfig

__all__ = ["ConvNext", "ConvNextConfig", "ResNet", "ResNetConfig", "fold_batch_norm"]
