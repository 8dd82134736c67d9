"""Weights that a name and a shape determine, so that models of any library can be given the same ones."""
from __future__ import annotations

import math
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from lavax import random
from lavax.models.family import Family
from lavax.models.load import from_tensors
from lavax.tracer.pytrees import pytree
from lavax.tracer.tracing.abstract_evaluation import eval_shape


def seeded(name: str, shape: Iterable[int]) -> np.ndarray:
    """Float32 numbers for the tensor `name` of a published file: about 1 for scales, 0.5 or more for variances, else
    of a variance that keeps the size of activations."""
    extents = tuple(shape)
    draw = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(extents).astype(np.float32)
    if name.endswith("running_var"):
        return 0.5 + np.abs(0.1 * draw)
    if len(extents) < 2:
        return 0.1 * draw + (1 if name.endswith("weight") else 0)
    inputs = extents[-1:] if "experts" in name else extents[1:]  # matrices that stand one above the other
    return draw / math.sqrt(math.prod(inputs))


def seeded_model(family: Family, config: Any) -> Any:
    """A model of lavax with seeded weights."""
    leaves, structure = pytree.flatten(eval_shape(lambda: family.build(config, key=random.key(0), dtype="float32")))
    names = map(family.name_in_file, pytree.paths(structure))
    tensors = {name: seeded(name, _in_file(family, name, leaf.shape)) for name, leaf in zip(names, leaves, strict=True)}
    return from_tensors(family, config, tensors)


def _in_file(family: Family, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1], shape[-2]) if family.is_transposed(name) else shape


def seed_torch(model: Any) -> Any:
    """A module of torch, with seeded weights under the names of its state; of shared ones, the first name counts."""
    import torch

    seen = set()
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if tensor.data_ptr() not in seen:
                tensor.copy_(torch.from_numpy(np.array(seeded(name, tensor.shape))))
            seen.add(tensor.data_ptr())
    return model.eval()


def gradients_by_name(family: Family, gradients: Any) -> dict[str, np.ndarray]:
    """Gradients of a model of lavax as a published file would hold them: by name, transposed where weights are."""
    leaves, structure = pytree.flatten(gradients)
    names = map(family.name_in_file, pytree.paths(structure))
    arrays = ((name, np.asarray(leaf)) for name, leaf in zip(names, leaves, strict=True))
    return family.published(
        {name: np.swapaxes(array, -1, -2) if family.is_transposed(name) else array for name, array in arrays}
    )


def assert_close(got: Any, wanted: Any, relative: float, of: str = "") -> None:
    """Whether no element differs by more than `relative` times the largest of `wanted`."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.shape == wanted.shape, (of, got.shape, wanted.shape)
    difference, size = np.abs(got - wanted).max(), np.abs(wanted).max()
    assert difference <= relative * size, f"{of}: {difference} of {size}"


def assert_gradients_close(got: dict[str, np.ndarray], oracle: Any, relative: float = 1e-3) -> None:
    """Whether all gradients are those that a backward pass left in the parameters of a module of torch.

    Some are 0 but for rounding, such as those of the biases of keys; rounding is relative to the largest of all.
    """
    wanted = {name: each.grad.numpy() for name, each in oracle.named_parameters() if each.grad is not None}
    assert got.keys() == wanted.keys()
    rounding = 1e-6 * max(np.abs(array).max() for array in wanted.values())
    for name, array in wanted.items():
        assert_close(got[name], array, max(relative, rounding / max(np.abs(array).max(), 1e-30)), name)
