"""Pytrees of arrays as files: safetensors, or NumPy's .npz and .npy."""
from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lavax.io.host_arrays import device_array
from lavax.io.json_files import parsed_json
from lavax.io.numpy_files import ALONE, NpzFile, read_npy, write_npy, write_npz
from lavax.io.safetensors import SafetensorsFile, write_safetensors
from lavax.io.structure import structure_text
from lavax.tracer.pytrees import pytree
from lavax.tracer.tracing.abstract_evaluation import ShapeDtype
from lavax.tracer.values.array import Array

__all__ = ["load", "save"]

# Leaves of Python, and the dtypes that files have for them.
_OF_PYTHON: dict[type, Any] = {bool: np.bool_, int: np.int64, float: np.float64}
_STRUCTURE = "lavax.structure"  # the name of the structure in a file's metadata


def save(path: str | os.PathLike[str], tree: Any) -> None:
    """Writes the arrays of a pytree, by the paths of its leaves, to a .safetensors, .npz or .npy file.

    Leaves are arrays and Python's numbers (as 64-bit ones); all keep their bits. An .npy file holds a single array. The
    file takes its name when it is whole: a process that is killed leaves the old one. Arrays of the device are fetched
    one by one for .safetensors. Raises ValueError for another suffix, TypeError with the path for any other leaf.
    """
    target = Path(path)
    _format(target)[0](target, named_arrays(tree), structure_of(tree))


def load(path: str | os.PathLike[str], like: Any = None, *, check_structure: bool = True) -> Any:
    """What is in a file: with `like`, a pytree of that structure; without it, a mapping of arrays by their names.

    A leaf has the kind of that of `like`: an array on the device (also for a `ShapeDtype`), an array of NumPy, or a
    Python number. Without `like` arrays are NumPy's, in the mapped file if the format allows, and read when used.

    Raises FileNotFoundError, and ValueError for a damaged file or for one whose paths, shapes or dtypes differ from
    those of `like`, with the first that does. A .safetensors file also knows classes and their static fields. They are
    compared, because a model with other settings would compute something else from the same weights, unless
    `check_structure` is False.
    """
    source = Path(path)
    found = _format(source)[1](source)
    if like is None:
        return found[ALONE] if set(found) == {ALONE} else found
    return fitted(source, found, like, check_structure)


def named_arrays(tree: Any) -> dict[str, Any]:
    """The leaves of a tree by their paths, as arrays of NumPy or of the device. Raises the errors of `save`."""
    leaves, structure = pytree.flatten(tree)
    names = _names(structure)
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ValueError(f"save: two leaves have the path {twice[0]}: rename a key that has a dot in it")
    return {name: _array(leaf, name) for name, leaf in zip(names, leaves, strict=True)}


def structure_of(tree: Any) -> dict[str, str]:
    """What the metadata of a file says of the classes and settings of `tree`."""
    return {_STRUCTURE: json.dumps(structure_text(pytree.structure(tree)))}


def fitted(source: Path, found: Mapping[str, np.ndarray], like: Any, check_structure: bool = True) -> Any:
    """The arrays `found` in a file as a pytree like `like`; raises the errors of `load`."""
    leaves, structure = pytree.flatten(like)
    names = _names(structure)
    for name, leaf in zip(names, leaves, strict=True):
        _require_fit(source, name, found, leaf if isinstance(leaf, ShapeDtype) else _array(leaf, name))
    extra = sorted(set(found) - set(names))
    if extra:
        raise ValueError(f"{source}: {extra[0]} is in the file, but not in `like`")
    if check_structure:
        _require_structure(source, found, structure)
    return pytree.unflatten(structure, [_leaf(found[name], x) for name, x in zip(names, leaves, strict=True)])


def _names(structure: pytree.TreeDef) -> list[str]:
    return [path or ALONE for path in pytree.paths(structure)]


def _array(leaf: Any, name: str) -> Any:
    if isinstance(leaf, (Array, np.ndarray, np.generic)):
        return leaf
    dtype = _OF_PYTHON.get(type(leaf))
    if dtype is None:
        raise TypeError(f"{name} is a {type(leaf).__name__}: files hold arrays and numbers")
    return np.asarray(leaf, dtype)


def _require_fit(source: Path, name: str, found: Mapping[str, np.ndarray], wanted: Any) -> None:
    if name not in found:
        raise ValueError(f"{source}: {name} is not in the file, which has {len(found)} arrays of other names")
    held, shape, dtype = found[name], tuple(wanted.shape), np.dtype(wanted.dtype)
    if held.shape != shape:
        raise ValueError(f"{source}: {name} has the shape {list(held.shape)}, `like` has {list(shape)}")
    if held.dtype.newbyteorder("=") != dtype.newbyteorder("="):
        raise ValueError(f"{source}: {name} is {held.dtype}, `like` has {dtype}")


def _require_structure(source: Path, found: Mapping[str, np.ndarray], structure: pytree.TreeDef) -> None:
    if not isinstance(found, SafetensorsFile) or _STRUCTURE not in found.metadata:
        return
    held, wanted = parsed_json(source, found.metadata[_STRUCTURE]), structure_text(structure)
    for place in [*wanted, *held]:
        here, there = held.get(place, "nothing"), wanted.get(place, "nothing")
        if here != there:
            raise ValueError(f"{source}: at {place or 'the top'} the file has {here}, `like` has {there}")


def _leaf(numbers: np.ndarray, like: Any) -> Any:
    """The numbers as the kind of leaf that `like` is."""
    if isinstance(like, Array):
        return device_array(numbers, like.type.dtype, like.weak)
    if isinstance(like, ShapeDtype):
        return device_array(numbers, like.dtype)
    if type(like) in _OF_PYTHON:
        return numbers.item()
    return np.array(numbers)[()] if isinstance(like, np.generic) else np.array(numbers)


_Write = Callable[[Path, Mapping[str, Any], Mapping[str, str]], None]
_Read = Callable[[Path], Mapping[str, np.ndarray]]
_FORMATS: dict[str, tuple[_Write, _Read]] = {
    ".safetensors": (write_safetensors, SafetensorsFile),
    ".npz": (write_npz, NpzFile),
    ".npy": (write_npy, read_npy),
}


def _format(path: Path) -> tuple[_Write, _Read]:
    found = _FORMATS.get(path.suffix)
    if found is None:
        raise ValueError(f"{path}: the suffix must be one of {', '.join(_FORMATS)}")
    return found
