"""Models whose matrices are integers of 8 or 4 bits."""
from __future__ import annotations

from typing import TypeVar

import lavax.numpy as lnp
from lavax import random
from lavax.models.layers import matrix_layers, with_layers
from lavax.nn.modules.linear import Embedding, Linear
from lavax.nn.modules.module import Module
from lavax.nn.modules.quantized import QuantizedEmbedding, QuantizedLinear

__all__ = ["dequantize", "quantize"]

ModelT = TypeVar("ModelT", bound=Module)


def quantize(model: ModelT, kind: str = "int8", group: int = 64) -> ModelT:
    """The model with the matrices of its linear layers and embeddings rounded to "int8" or "int4".

    `group` weights share a scale. Norms and biases stay. Raises ValueError for another kind.
    """
    made: dict[str, Module] = {}
    for path, layer in matrix_layers(model):
        if isinstance(layer, Linear):
            made[path] = QuantizedLinear.from_linear(layer, kind, group)
        elif isinstance(layer, Embedding):
            made[path] = QuantizedEmbedding.from_embedding(layer, kind, group)
    return with_layers(model, made)


def dequantize(model: ModelT) -> ModelT:
    """The model with weights of floating point again, with their rounding; it can be trained and saved."""
    made: dict[str, Module] = {}
    for path, layer in matrix_layers(model):
        if isinstance(layer, QuantizedLinear):
            linear = Linear(1, 1, bias=False, key=random.key(0))
            made[path] = linear.replace(weight=layer.matrix.dequantized(), bias=layer.bias)
        elif isinstance(layer, QuantizedEmbedding):
            weight = lnp.astype(layer.matrix.dequantized(), layer.dtype)
            made[path] = Embedding(1, 1, key=random.key(0)).replace(weight=weight)
    return with_layers(model, made)
