"""Models from the folders that are published: config.json, weights in safetensors."""
from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lavax import random
from lavax.io.gguf import load_gguf
from lavax.io.host_arrays import device_array
from lavax.io.pretrained import weights_stem
from lavax.io.tensor_files import read_tensors
from lavax.models.family import Family, family_of, kind_of
from lavax.models.gguf import config_data, published_tensors
from lavax.models.quantization import quantize as quantized
from lavax.models.tensors import Tensors, stacked
from lavax.tracer.pytrees import pytree
from lavax.tracer.tracing.abstract_evaluation import eval_shape
from lavax.tracer.tracing.placement import device_put


def load(
    folder: str | os.PathLike[str],
    *,
    dtype: Any = "float32",
    variant: str | None = None,
    quantize: str | None = None,
    group: int = 64,
) -> Any:
    """The model of a folder in Hugging Face's layout: config.json and model.safetensors, or its shards; or of a .gguf
    file, whose weights are dequantised.

    Weights are converted to `dtype` on the way to the device. A `variant` such as "fp16" reads model.fp16.safetensors
    instead, which some folders hold beside the other. With `quantize`, "int8" or "int4", the matrices of linear layers
    and embeddings are rounded to integers, of which each `group` shares a scale, before they go to the device; see
    `models.quantize`. Raises FileNotFoundError if a file is missing, and ValueError, with the names, if the model and
    the file have different tensors or shapes.
    """
    path = Path(folder)
    family, config, tensors = _weights_of(path, variant)
    if quantize is None:
        return from_tensors(family, config, tensors, dtype=dtype, source=str(path))
    held = from_tensors(family, config, tensors, dtype=dtype, source=str(path), place=_on_the_host)
    leaves, structure = pytree.flatten(quantized(held, quantize, group))
    return pytree.unflatten(structure, [device_put(leaf) for leaf in leaves])


def _weights_of(path: Path, variant: str | None) -> tuple[Family, Any, Tensors]:
    """The family, the configuration and the tensors of a folder, or of a .gguf file."""
    if path.suffix == ".gguf":
        file = load_gguf(path)
        data = config_data(file)
        family = family_of(kind_of(data))
        return family, family.config.from_json(data), published_tensors(file, data)
    data = json.loads((path / "config.json").read_text(encoding="utf-8"))
    family = family_of(kind_of(data))
    _check_floats(path, data)
    stem = weights_stem(data) if variant is None else f"{weights_stem(data)}.{variant}"
    return family, family.config.from_json(data), read_tensors(path, stem)


def _check_floats(path: Path, data: Mapping[str, Any]) -> None:
    """Raises ValueError for weights that another library has rounded to integers or to floats of 8 bits."""
    rounding = data.get("quantization_config")
    if rounding:
        kind = rounding.get("quant_method", "an unknown method") if isinstance(rounding, Mapping) else rounding
        raise ValueError(
            f"{path}: config.json says that the weights are quantised ({kind}), which lavax does not read; load the "
            'original weights, by models.load(folder, quantize="int4") if they are to be small'
        )


def _on_the_host(array: np.ndarray, dtype: Any) -> np.ndarray:
    return array.astype(dtype, copy=False)


def from_tensors(
    family: Family,
    config: Any,
    tensors: Tensors,
    *,
    dtype: Any = "float32",
    source: str = "",
    place: Callable[[np.ndarray, Any], Any] = device_array,
) -> Any:
    """A model of `family` with the weights of a published file; `place` gets each with its dtype, and keeps it."""
    found = family.prepared(tensors, config)
    fitting = family.adapted(config, found)
    form = eval_shape(lambda: family.build(fitting, key=random.key(0), dtype=dtype))
    leaves, structure = pytree.flatten(form)
    names = [family.name_in_file(path) for path in pytree.paths(structure)]
    found = stacked(found, names)
    missing = [name for name in names if name not in found]
    extra = [name for name in sorted(set(found) - set(names)) if not re.search(family.optional, name)]
    if missing or extra:
        raise ValueError(f"{source}: {_listed('missing', missing)}{_listed('not of this model', extra)}")
    made = []
    for name, leaf in zip(names, leaves, strict=True):
        array = found[name]
        array = np.swapaxes(array, -1, -2) if family.is_transposed(name) else array
        if array.shape != leaf.shape:
            raise ValueError(f"{source}: {name} has the shape {array.shape}, the model {leaf.shape}")
        made.append(place(array, leaf.dtype))
    return pytree.unflatten(structure, made)


def _listed(what: str, names: list[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return f"{what}: {', '.join(names[:8])}{more}. "
