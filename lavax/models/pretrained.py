"""The base class of models that are loaded from published checkpoints, and saved in the same form."""
from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from lavax.models.family import family_of, kind_of
from lavax.models.tensors import unstacked
from lavax.nn.modules.module import Module, field
from lavax.tracer.pytrees import pytree

_DTYPE_SETTINGS = ("dtype", "torch_dtype")  # the name today, and the older one
_FLOATS = ("float32", "bfloat16", "float16", "float64")


class PretrainedModel(Module):
    """A model of a family; its `config` is a `Config` with the family's "model_type"."""

    config: Any = field(static=True)

    def to_pretrained(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What `io.save_pretrained` writes: the contents of config.json, and the weights by their published names."""
        data = self.config.to_json()
        family = family_of(kind_of(data))
        leaves, structure = pytree.flatten(self)
        made: dict[str, np.ndarray] = {}
        for path, leaf in zip(pytree.paths(structure), leaves, strict=True):
            if path.endswith(".integers"):
                raise ValueError(
                    f"{type(self).__name__}: the weights {path} are integers; `models.dequantize` makes them floats"
                )
            name, array = family.name_in_file(path), np.asarray(leaf)
            stored = np.asarray(np.swapaxes(array, -1, -2) if family.is_transposed(name) else array, order="C")
            made |= unstacked(name, stored)
        return data | _dtypes(data, made), family.published(made)


def _dtypes(data: dict[str, Any], tensors: dict[str, np.ndarray]) -> dict[str, str]:
    """What config.json says of the dtype, if it says anything: that of the weights, to which others convert them."""
    sizes: Counter[str] = Counter()
    for array in tensors.values():
        if array.dtype.name in _FLOATS:
            sizes[array.dtype.name] += array.size
    return {name: max(sizes, key=sizes.__getitem__) for name in _DTYPE_SETTINGS if name in data and sizes}
