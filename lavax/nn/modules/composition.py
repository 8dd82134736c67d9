"""Layers made of layers, and functions as layers."""
from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import lavax.numpy as lnp
from lavax import random
from lavax.nn.activations import identity, prelu, relu
from lavax.nn.modules.linear import Linear
from lavax.nn.modules.module import Module, field
from lavax.numpy._core.axes import normal_axis
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.values.value import Value

__all__ = ["MLP", "Flatten", "Identity", "Lambda", "PReLU", "Sequential", "Unflatten"]


class Identity(Module):
    """Returns what it gets; for a place where other models have a layer."""

    def __call__(self, x: ArrayLike) -> Value:
        return as_value(x)


class Lambda(Module):
    """A function as a layer: `nn.Lambda(nn.relu)`. It is part of the structure, so use one that is defined once."""

    function: Callable[..., Any] = field(static=True)

    def __call__(self, x: Any) -> Any:
        return self.function(x)


class Flatten(Module):
    """Axes from `start` to `end` as one: [N, C, H, W] to [N, C·H·W]."""

    start: int = field(static=True, default=1)
    end: int = field(static=True, default=-1)

    def __call__(self, x: ArrayLike) -> Value:
        value = as_value(x)
        first, last = (normal_axis("Flatten", axis, value.type) for axis in (self.start, self.end))
        if first > last:
            raise shape_error(f"Flatten: axis {self.start} of {value.type} does not come before axis {self.end}")
        flat = math.prod(value.shape[first : last + 1])
        return lnp.reshape(value, (*value.shape[:first], flat, *value.shape[last + 1 :]))


class Unflatten(Module):
    """The axis `axis` as several of `shape`, one of which may be -1: the inverse of `Flatten`."""

    axis: int = field(static=True)
    shape: tuple[int, ...] = field(static=True)

    def __call__(self, x: ArrayLike) -> Value:
        value = as_value(x)
        place = normal_axis("Unflatten", self.axis, value.type)
        extent, known = value.shape[place], math.prod(n for n in self.shape if n != -1)
        if self.shape.count(-1) > 1 or (extent != known if -1 not in self.shape else extent % max(known, 1)):
            raise shape_error(f"Unflatten: axis {self.axis} of {value.type} cannot become {list(self.shape)}")
        whole = (extent // max(known, 1) if n == -1 else n for n in self.shape)
        return lnp.reshape(value, (*value.shape[:place], *whole, *value.shape[place + 1 :]))


class PReLU(Module):
    """`nn.prelu` with a learned slope, which starts at `init`: one number, or one for each channel of [N, C, ...]."""

    weight: Any

    def __init__(self, channels: int = 1, init: float = 0.25, *, dtype: Any = "float32") -> None:
        self.weight = lnp.full(channels, init, dtype)

    def __call__(self, x: ArrayLike) -> Value:
        return prelu(x, self.weight)


class Sequential(Module):
    """Layers, each called on what the one before returns: `Sequential([Linear(2, 8, key=k), nn.relu, ...])`.

    Or without brackets: `Sequential(layer, nn.relu, ...)`. Functions may stand among the layers. With `key`, layers
    whose call takes a `key`, such as Dropout, get one each.
    """

    layers: tuple[Any, ...]

    def __init__(self, *layers: Any) -> None:
        is_list = len(layers) == 1 and isinstance(layers[0], Iterable) and not isinstance(layers[0], Module)
        each = tuple(layers[0]) if is_list else layers
        for place, layer in enumerate(each):
            if not callable(layer):
                raise TypeError(f"Sequential: layers are modules or functions, got {layer!r} at {place}")
        self.layers = tuple(layer if isinstance(layer, Module) else Lambda(layer) for layer in each)

    def __call__(self, x: Any, *, key: ArrayLike | None = None) -> Any:
        random_layers = [layer for layer in self.layers if _takes_key(layer)]
        keys = [None] * len(random_layers) if key is None else list(random.split(key, max(len(random_layers), 1)))
        remaining = iter(keys)
        for layer in self.layers:
            x = layer(x, key=next(remaining)) if _takes_key(layer) else layer(x)
        return x

    def __getitem__(self, place: int | slice) -> Any:
        return Sequential(self.layers[place]) if isinstance(place, slice) else self.layers[place]

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.layers)


def _takes_key(layer: Any) -> bool:
    return "key" in inspect.signature(layer).parameters


class MLP(Module):
    """A multilayer perceptron: `depth` hidden layers of `width` with `activation`, and a linear layer at the end.

    Called on [..., in_size], it returns [..., out_size]. With depth 0 it is one linear layer. `final_activation` stands
    after the last.
    """

    layers: tuple[Linear, ...]
    activation: Callable[..., Any] = field(static=True)
    final_activation: Callable[..., Any] = field(static=True)

    def __init__(
        self,
        in_size: int,
        out_size: int,
        width: int,
        depth: int,
        activation: Callable[..., Any] = relu,
        final_activation: Callable[..., Any] = identity,
        use_bias: bool = True,
        use_final_bias: bool = True,
        *,
        key: ArrayLike,
        dtype: Any = "float32",
    ) -> None:
        if depth < 0:
            raise ValueError(f"MLP: depth is the number of hidden layers, 0 or more, got {depth}")
        sizes = [in_size, *(width for _ in range(depth)), out_size]
        biases = [use_bias] * depth + [use_final_bias]
        keys = random.split(key, depth + 1)
        self.layers = tuple(
            Linear(before, after, bias, key=keys[i], dtype=dtype)
            for i, (before, after, bias) in enumerate(zip(sizes[:-1], sizes[1:], biases, strict=True))
        )
        self.activation, self.final_activation = activation, final_activation

    def __call__(self, x: ArrayLike) -> Any:
        hidden = as_value(x)
        for layer in self.layers[:-1]:
            hidden = self.activation(layer(hidden))
        return self.final_activation(self.layers[-1](hidden))
