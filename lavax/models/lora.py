"""Adapters of low rank: Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models" (2022).

    adapters = lora.init(model, rank=8, key=lx.random.key(0))
    loss = lambda adapters: loss_of(lora.apply(model, adapters), batch)  # its gradient is that of the adapters alone
    model = lora.merge(model, adapters)
"""
from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

import lavax.numpy as lnp
from lavax import random
from lavax.io.json_files import read_json
from lavax.io.tensor_files import read_tensors, write_tensors
from lavax.ir.types import float32
from lavax.models.family import Family, family_of, kind_of
from lavax.models.layers import matrix_layers, with_layers
from lavax.nn.modules.linear import Linear
from lavax.nn.modules.module import Module, field
from lavax.nn.modules.quantized import QuantizedLinear
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.tracing.placement import device_put
from lavax.tracer.values.value import Value

__all__ = ["Adapter", "Adapters", "AdaptedLinear", "apply", "init", "load", "merge", "save"]

ModelT = TypeVar("ModelT", bound=Module)

# The layers that are adapted unless others are named: those of attention, by the last words of their paths.
ATTENTION = ("query", "key", "value", "query_key_value", "out", "output")

_STEM = "adapter_model"
_IN_FILE = "base_model.model."  # what peft puts before the names of a model's tensors


class Adapter(Module):
    """A change of a matrix [out, in]: `up` [out, rank] times `down` [rank, in]."""

    down: Any
    up: Any


class Adapters(Module):
    """The adapters of a model by the paths of its layers, and the factor on all of them: alpha / rank."""

    layers: dict[str, Adapter]
    scale: float = field(static=True)


class AdaptedLinear(Module):
    """A linear layer, and its change: x·Wᵀ + bias + scale·(x·downᵀ)·upᵀ."""

    layer: Any
    adapter: Adapter
    scale: float = field(static=True)

    def __call__(self, x: ArrayLike) -> Value:
        whole: Value = self.layer(x)
        low = lnp.matmul(cast(as_value(x), float32), lnp.matrix_transpose(self.adapter.down))
        change = lnp.matmul(low, lnp.matrix_transpose(self.adapter.up)) * self.scale
        return whole + cast(change, whole.type.dtype)


def init(
    model: Module,
    rank: int = 8,
    *,
    key: ArrayLike,
    targets: str | Iterable[str] | None = None,
    alpha: float | None = None,
) -> Adapters:
    """Adapters of `rank` for the linear layers whose paths end in one of `targets`, such as "feed_forward.up".

    Paths are those of `lavax.tree.leaves_with_path`, without ".weight". Without `targets`, the layers of attention are
    adapted, or if the model has no attention, all linear layers. `up` is 0, so that the adapted model is at first the
    model itself; `down` is drawn from the uniform distribution of `Linear`. Adapters are float32, whatever the model
    is. They count `alpha` / `rank` times, once unless `alpha` is given. Raises ValueError if no layer matches.
    """
    if rank < 1:
        raise ValueError(f"lora.init: the rank must be at least 1, got {rank}")
    layers = dict(_linear_layers(model))
    chosen = _chosen(layers, ATTENTION) or list(layers) if targets is None else _chosen(layers, targets)
    if not chosen:
        raise ValueError(f"lora.init: no layer of {type(model).__name__} ends in {targets}; {_some(layers)}")
    keys = random.split(key, len(chosen))
    made = {}
    for number, path in enumerate(chosen):
        rows, columns = _size_of(layers[path])
        bound = columns**-0.5
        down = random.uniform(keys[number], (rank, columns), float32, -bound, bound)
        made[path] = Adapter(down, lnp.zeros((rows, rank), float32))
    return Adapters(made, 1.0 if alpha is None else alpha / rank)


def _chosen(layers: Iterable[str], targets: str | Iterable[str]) -> list[str]:
    """The paths that are or end in one of `targets`."""
    endings = (targets,) if isinstance(targets, str) else tuple(targets)
    return [path for path in layers if any(path == ending or path.endswith(f".{ending}") for ending in endings)]


def apply(model: ModelT, adapters: Adapters) -> ModelT:
    """The model with its adapters beside its layers: it computes with both, and learns the adapters alone."""
    made = {
        path: AdaptedLinear(layer, adapter, adapters.scale)
        for path, layer, adapter in _adapted(model, adapters, "lora.apply")
    }
    return with_layers(model, made)


def merge(model: ModelT, adapters: Adapters) -> ModelT:
    """The model with the changes added to its weights, in their dtype. Raises TypeError for quantised layers."""
    made = {}
    for path, layer, adapter in _adapted(model, adapters, "lora.merge"):
        if not isinstance(layer, Linear):
            raise TypeError(f"lora.merge: {path} is a {type(layer).__name__}; make its weights floats by `dequantize`")
        change = lnp.matmul(adapter.up, adapter.down) * adapters.scale
        whole = lnp.astype(layer.weight, "float32") + change
        made[path] = layer.replace(weight=lnp.astype(whole, layer.weight.dtype))
    return with_layers(model, made)


def save(folder: str | os.PathLike[str], model: Module, adapters: Adapters) -> None:
    """Writes adapter_model.safetensors and adapter_config.json as the peft library reads them."""
    family, path = _family_of(model), Path(folder)
    tensors = {}
    for layer, adapter in adapters.layers.items():
        name = _published(family, layer)
        tensors[f"{_IN_FILE}{name}.lora_A.weight"] = np.asarray(adapter.down)
        tensors[f"{_IN_FILE}{name}.lora_B.weight"] = np.asarray(adapter.up)
    ranks = {int(adapter.down.shape[0]) for adapter in adapters.layers.values()}
    rank = max(ranks)
    settings = {
        "peft_type": "LORA",
        "task_type": family.adapter_task,
        "r": rank,
        "lora_alpha": adapters.scale * rank,
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": any(family.is_transposed(f"{_published(family, layer)}.weight") for layer in adapters.layers),
        "inference_mode": True,
        "base_model_name_or_path": None,
        "target_modules": sorted(_published(family, layer) for layer in adapters.layers),
    }
    path.mkdir(parents=True, exist_ok=True)
    write_tensors(path, tensors, _STEM)
    (path / "adapter_config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def load(folder: str | os.PathLike[str], model: Module) -> Adapters:
    """The adapters for `model` that peft, or `save`, wrote into `folder`.

    Raises ValueError for layers that the model has not, and for what is not a plain LoRA.
    """
    path, family = Path(folder), _family_of(model)
    settings = read_json(path / "adapter_config.json")
    unknown = [name for name in ("use_dora", "rank_pattern", "alpha_pattern") if settings.get(name)]
    if settings.get("peft_type") != "LORA" or unknown or settings.get("bias", "none") != "none":
        found = ", ".join([str(settings.get("peft_type")), *unknown])
        raise ValueError(f"{path}: lora.load reads plain LoRA without biases, not {found}")
    tensors = read_tensors(path, _STEM)
    ours = {_published(family, layer): (layer, module) for layer, module in _linear_layers(model)}
    made = {}
    for name in tensors:
        if not name.endswith(".lora_A.weight"):
            continue
        published = name.removeprefix(_IN_FILE).removesuffix(".lora_A.weight")
        if published not in ours:
            raise ValueError(f"{path}: {type(model).__name__} has no layer {published}")
        layer, module = ours[published]
        down, up = tensors[name], tensors[name.replace(".lora_A.", ".lora_B.")]
        if (up.shape[0], down.shape[1]) != _size_of(module):
            changed = [up.shape[0], down.shape[1]]
            raise ValueError(f"{path}: {name} changes a matrix {changed}, the layer has {list(_size_of(module))}")
        made[layer] = Adapter(*(device_put(np.asarray(array).astype(np.float32)) for array in (down, up)))
    rank = settings["r"]
    scale = settings["lora_alpha"] / (rank**0.5 if settings.get("use_rslora") else rank)
    return Adapters(made, float(scale))


def _linear_layers(model: Module) -> Iterator[tuple[str, Linear | QuantizedLinear]]:
    """The linear layers of a model, and their paths."""
    for path, layer in matrix_layers(model):
        if isinstance(layer, (Linear, QuantizedLinear)):
            yield path, layer


def _adapted(model: Module, adapters: Adapters, name: str) -> Iterator[tuple[str, Linear | QuantizedLinear, Adapter]]:
    """The adapters with their layers. Raises ValueError for one that has none in the model."""
    layers = dict(_linear_layers(model))
    missing = sorted(adapters.layers.keys() - layers.keys())
    if missing:
        raise ValueError(f"{name}: {type(model).__name__} has no linear layer {', '.join(missing)}")
    return ((path, layers[path], adapter) for path, adapter in adapters.layers.items())


def _size_of(layer: Linear | QuantizedLinear) -> tuple[int, int]:
    """Rows and columns of a layer's matrix."""
    rows, columns = layer.weight.shape if isinstance(layer, Linear) else layer.matrix.shape
    return int(rows), int(columns)


def _family_of(model: Any) -> Family:
    return family_of(kind_of(model.config.to_json()))


def _published(family: Family, layer: str) -> str:
    """The name of a layer in published files."""
    return re.sub(r"\.weight$", "", family.name_in_file(f"{layer}.weight"))


def _some(layers: Iterable[str]) -> str:
    return "its linear layers are " + ", ".join(list(layers)[:8])
