"""Models whose matrices are integers of 8 or 4 bits."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import lavax.numpy as lnp
from lavax import random
from lavax.base.quick_dataclasses import dataclass
from lavax.models.layers import layers_of, matrix_layers, with_layers
from lavax.nn.modules.linear import Embedding, Linear
from lavax.nn.modules.mixture_of_experts import MixtureOfExperts
from lavax.nn.modules.module import Module
from lavax.nn.modules.quantized import QuantizedEmbedding, QuantizedLinear, QuantizedMatrix
from lavax.tracer.pytrees import pytree

__all__ = ["Rounding", "dequantize", "quantize", "rounded_paths", "with_matrices"]

ModelT = TypeVar("ModelT", bound=Module)

_OF_EXPERTS = ("gate", "up", "down")


@dataclass(frozen=True)
class Rounding:
    """To what matrices are rounded: see `QuantizedMatrix.of`."""

    kind: str = "int8"
    group: int = 64
    symmetric: bool = True

    def of(self, matrix: Any) -> QuantizedMatrix:
        """The matrix, rounded."""
        return QuantizedMatrix.of(matrix, self.kind, self.group, symmetric=self.symmetric)


def quantize(model: ModelT, kind: str = "int8", group: int = 64, *, symmetric: bool = True) -> ModelT:
    """The model with the matrices of its linear layers, embeddings and experts rounded to "int8" or "int4".

    `group` weights share a scale, and unless `symmetric` a zero, which serves groups that are not around 0. Norms,
    biases and the routers of experts stay. Raises ValueError for another kind.
    """
    rounding, chosen = Rounding(kind, group, symmetric), rounded_paths(model)
    leaves, structure = pytree.flatten(model)
    pairs = zip(pytree.paths(structure), leaves, strict=True)
    return with_matrices(model, {path: rounding.of(leaf) for path, leaf in pairs if path in chosen})


def rounded_paths(model: Module) -> frozenset[str]:
    """The paths of the leaves that `quantize` rounds. A router stays: rounded, it would choose other experts."""
    mixtures = [path for path, _ in layers_of(model, MixtureOfExperts)]
    layers = (path for path, layer in matrix_layers(model) if isinstance(layer, (Linear, Embedding)))
    matrices = [_leaf(path, "weight") for path in layers if path.rpartition(".")[0] not in mixtures]
    return frozenset([*matrices, *(_leaf(path, name) for path in mixtures for name in _OF_EXPERTS)])


def with_matrices(model: ModelT, matrices: Mapping[str, QuantizedMatrix]) -> ModelT:
    """The model with rounded matrices in place of the leaves at their paths."""
    made: dict[str, Module] = {}
    for path, layer in matrix_layers(model):
        matrix = matrices.get(_leaf(path, "weight"))
        if matrix is not None and isinstance(layer, Linear):
            made[path] = QuantizedLinear(matrix, layer.bias)
        elif matrix is not None and isinstance(layer, Embedding):
            made[path] = QuantizedEmbedding(matrix, str(layer.weight.dtype))
    for path, mixture in layers_of(model, MixtureOfExperts):
        found = {name: matrices.get(_leaf(path, name)) for name in _OF_EXPERTS}
        if None not in found.values():
            made[path] = mixture.replace(**found)
    return with_layers(model, made)


def _leaf(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def dequantize(model: ModelT) -> ModelT:
    """The model with weights of floating point again, with their rounding; it can be trained and saved."""
    return with_layers(model, dict(_in_floats(model)))


def _in_floats(model: Module) -> Iterator[tuple[str, Module]]:
    for path, layer in matrix_layers(model):
        if isinstance(layer, QuantizedLinear):
            linear = Linear(1, 1, bias=False, key=random.key(0))
            yield path, linear.replace(weight=layer.matrix.dequantized(), bias=layer.bias)
        elif isinstance(layer, QuantizedEmbedding):
            weight = lnp.astype(layer.matrix.dequantized(), layer.dtype)
            yield path, Embedding(1, 1, key=random.key(0)).replace(weight=weight)
    for path, mixture in layers_of(model, MixtureOfExperts):
        held = {name: getattr(mixture, name) for name in _OF_EXPERTS}
        floats = {name: each.dequantized() for name, each in held.items() if isinstance(each, QuantizedMatrix)}
        if floats:
            yield path, mixture.replace(**floats)
