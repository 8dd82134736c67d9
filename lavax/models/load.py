"""Models from the folders that are published: config.json, weights in safetensors."""
from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lavax import random
from lavax.io.gguf import load_gguf
from lavax.io.host_arrays import device_array
from lavax.io.json_files import read_json
from lavax.io.pretrained import weights_stem
from lavax.io.tensor_files import read_tensors
from lavax.models.family import Family, family_of, kind_of
from lavax.models.gguf import config_data, published_tensors
from lavax.models.quantization import Rounding, rounded_paths, with_matrices
from lavax.models.tensors import Tensors, stacked
from lavax.tracer.pytrees import pytree
from lavax.tracer.tracing.abstract_evaluation import eval_shape


def load(
    folder: str | os.PathLike[str],
    *,
    dtype: Any = "float32",
    variant: str | None = None,
    quantize: str | None = None,
    group: int = 64,
    symmetric: bool = True,
) -> Any:
    """The model of a folder in Hugging Face's layout: config.json and model.safetensors, or its shards; or of a .gguf
    file, whose weights are dequantised.

    Weights are converted to `dtype` on the way to the device. A `variant` such as "fp16" reads model.fp16.safetensors
    instead, which some folders hold beside the other. With `quantize`, "int8" or "int4", matrices are rounded to
    integers on the way, of which each `group` shares a scale, and unless `symmetric` a zero; see `models.quantize`.
    Raises FileNotFoundError if a file is missing, and ValueError, with the names, if the model and the file have
    different tensors or shapes.
    """
    path = Path(folder)
    family, config, tensors = _weights_of(path, variant)
    rounding = None if quantize is None else Rounding(quantize, group, symmetric)
    return from_tensors(family, config, tensors, dtype=dtype, source=str(path), rounding=rounding)


def _weights_of(path: Path, variant: str | None) -> tuple[Family, Any, Tensors]:
    """The family, the configuration and the tensors of a folder, or of a .gguf file."""
    if path.suffix == ".gguf":
        file = load_gguf(path)
        data = config_data(file)
        family = family_of(kind_of(data))
        return family, family.config.from_json(data), published_tensors(file, data)
    if not (path / "config.json").is_file():
        why = "the folder has no config.json" if path.is_dir() else "there is no such folder; lavax downloads nothing"
        raise FileNotFoundError(f"models.load: {path}: {why}")
    data = read_json(path / "config.json")
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


def from_tensors(
    family: Family,
    config: Any,
    tensors: Tensors,
    *,
    dtype: Any = "float32",
    source: str = "",
    rounding: Rounding | None = None,
) -> Any:
    """A model of `family` with the weights of a published file, or with their `rounding`."""
    found = family.prepared(tensors, config)
    fitting = family.adapted(config, found)
    form = eval_shape(lambda: family.build(fitting, key=random.key(0), dtype=dtype))
    leaves, structure = pytree.flatten(form)
    paths = pytree.paths(structure)
    names = [family.name_in_file(path) for path in paths]
    found = stacked(found, names)
    missing = [name for name in names if name not in found]
    extra = [name for name in sorted(set(found) - set(names)) if not re.search(family.optional, name)]
    if missing or extra:
        raise ValueError(f"{source}: {_listed('missing', missing)}{_listed('not of this model', extra)}")
    chosen = rounded_paths(form) if rounding is not None else frozenset()
    made, matrices = [], {}
    for path, name, leaf in zip(paths, names, leaves, strict=True):
        array = found[name]
        array = np.swapaxes(array, -1, -2) if family.is_transposed(name) else array
        if array.shape != leaf.shape:
            raise ValueError(f"{source}: {name} has the shape {array.shape}, the model {leaf.shape}")
        if rounding is not None and path in chosen:
            matrices[path] = rounding.of(array)
            made.append(leaf)
        else:
            made.append(device_array(array, leaf.dtype))
    model = pytree.unflatten(structure, made)
    return with_matrices(model, matrices) if matrices else model


def _listed(what: str, names: list[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return f"{what}: {', '.join(names[:8])}{more}. "
