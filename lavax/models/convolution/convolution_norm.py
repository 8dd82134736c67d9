"""Convolutions with batch norm, whose running statistics the model keeps in one place."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.nn.modules.batch_norm import BatchNorm, BatchNormState
from lavax.nn.modules.convolution import Conv2d
from lavax.nn.modules.module import Module
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.values.value import Value

Statistics = Mapping[str, BatchNormState]


class ConvolutionNorm(Module):
    """A convolution without a bias, and batch norm; `norm` is None once it is folded into the convolution."""

    convolution: Conv2d
    norm: BatchNorm | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        window: int,
        stride: int = 1,
        groups: int = 1,
        padding: Any = None,
        *,
        eps: float = 1e-5,
        momentum: float = 0.1,
        key: ArrayLike,
        dtype: Any,
    ) -> None:
        around = window // 2 if padding is None else padding
        self.convolution = Conv2d(
            in_channels, out_channels, window, stride, around, groups=groups, bias=False, key=key, dtype=dtype
        )
        self.norm = BatchNorm(out_channels, eps, momentum, dtype=dtype)

    def folded(self, state: BatchNormState) -> ConvolutionNorm:
        """The same function in inference as one convolution with a bias."""
        if self.norm is None:
            return self
        scale = self.norm.weight / lnp.sqrt(state.variance + self.norm.eps)
        convolution = self.convolution.replace(
            weight=self.convolution.weight * lnp.reshape(scale, (-1, 1, 1, 1)),
            bias=self.norm.bias - state.mean * scale,
        )
        return self.replace(convolution=convolution, norm=None)


class RunningStatistics:
    """The statistics of a model's batch norms in one call: read by path, and collected as they change."""

    def __init__(self, statistics: Statistics, training: bool) -> None:
        self._before, self._training = statistics, training
        self.after: dict[str, BatchNormState] = {}

    def __call__(self, path: str, layer: ConvolutionNorm, x: ArrayLike) -> Value:
        """The layer at `path` of the model, on `x`."""
        made = layer.convolution(x)
        if layer.norm is None:
            return made
        normal, self.after[path] = layer.norm(made, self._before[path], training=self._training)
        return normal


def convolutions_of(model: Any, path: str = "") -> Iterator[tuple[str, ConvolutionNorm]]:
    """The layers of a module or container, with their paths, in order."""
    if isinstance(model, ConvolutionNorm):
        yield path, model
    elif isinstance(model, Module):
        for name in model._field_names:
            yield from convolutions_of(getattr(model, name), f"{path}.{name}" if path else name)
    elif isinstance(model, tuple):
        for number, part in enumerate(model):
            yield from convolutions_of(part, f"{path}.{number}" if path else str(number))


def initial_statistics(*parts: tuple[str, Any]) -> dict[str, BatchNormState]:
    """The statistics of all layers in the named parts of a model, before any batch."""
    layers = (found for name, part in parts for found in convolutions_of(part, name))
    return {path: layer.norm.initial_state() for path, layer in layers if layer.norm is not None}


def fold_batch_norm(model: Any) -> Any:
    """A model for inference alone, whose batch norms are part of their convolutions.

    Outputs are the same but for rounding. It has no statistics left, and cannot be trained with those of batches.
    """
    statistics = model.statistics

    def folded(part: Any, path: str) -> Any:
        if isinstance(part, ConvolutionNorm):
            return part.folded(statistics[path]) if path in statistics else part
        if isinstance(part, Module):
            names = {name: f"{path}.{name}" if path else name for name in part._field_names}
            return part.replace(**{name: folded(getattr(part, name), inner) for name, inner in names.items()})
        if type(part) is tuple:
            return tuple(folded(inner, f"{path}.{number}") for number, inner in enumerate(part))
        return part

    return folded(model, "").replace(statistics={})


def with_batches_tracked(tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Tensors of a file, and the counters, all 0, without which transformers warns of missing weights.

    Raises ValueError for a model without batch norms, which no one could read.
    """
    norms = [name.removesuffix(".running_mean") for name in tensors if name.endswith(".running_mean")]
    if not norms:
        raise ValueError("io.save_pretrained: this model's batch norms are folded; save it before `fold_batch_norm`")
    return tensors | {f"{name}.num_batches_tracked": np.zeros((), np.int64) for name in norms}
