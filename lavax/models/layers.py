"""The layers of a model that hold one matrix, by their paths, and models with other layers in their places."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from lavax.nn.modules.linear import Embedding, Linear
from lavax.nn.modules.module import Module
from lavax.nn.modules.quantized import QuantizedEmbedding, QuantizedLinear

MatrixLayer = Linear | Embedding | QuantizedLinear | QuantizedEmbedding
ModelT = TypeVar("ModelT", bound=Module)


def matrix_layers(model: Any) -> Iterator[tuple[str, MatrixLayer]]:
    """The layers with a matrix, each with its path, such as "layers.0.attention.query"."""
    return layers_of(model, MatrixLayer)


def layers_of(model: Any, kind: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The layers of that class, or of those classes, each with its path."""
    if isinstance(model, kind):
        yield path, model
        return
    for name, child in _children(model):
        yield from layers_of(child, kind, f"{path}.{name}" if path else name)


def with_layers(model: ModelT, others: Mapping[str, Any]) -> ModelT:
    """The model with `others`, by their paths, in the places of its own layers."""
    found: ModelT = _replaced(model, "", others)
    return found


def _replaced(node: Any, path: str, others: Mapping[str, Any]) -> Any:
    if path in others:
        return others[path]
    made = {name: _replaced(child, f"{path}.{name}" if path else name, others) for name, child in _children(node)}
    if isinstance(node, Module):
        changed = {name: child for name, child in made.items() if child is not getattr(node, name)}
        return node.replace(**changed) if changed else node
    if isinstance(node, tuple) and made:
        same = all(old is new for old, new in zip(node, made.values(), strict=True))
        return node if same else tuple(made.values())
    return node


def _children(node: Any) -> list[tuple[str, Any]]:
    if isinstance(node, tuple):
        return [(str(number), child) for number, child in enumerate(node)]
    if isinstance(node, Module):
        return [(name, child) for name, child in vars(node).items() if isinstance(child, (Module, tuple))]
    return []
