"""Pytrees of arrays as files: safetensors, or NumPy's .npz and .npy."""
from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lavax.io.atomic import replaced
from lavax.io.host import on_host
from lavax.io.safetensors_files import TensorFile, write_file
from lavax.tracer.pytrees import pytree
from lavax.tracer.tracing.placement import device_put

__all__ = ["load", "save"]

_ALONE = "value"  # the name of a tree that is one array


def save(path: str | os.PathLike[str], tree: Any) -> None:
    """Writes the arrays of a pytree, by the paths of its leaves, to a .safetensors, .npz or .npy file.

    An .npy file holds a single array. The file takes its name when it is whole: a process that is killed leaves the old
    one. Settings of classes are not written; `load` takes them from its example. Raises ValueError for another suffix.
    """
    target = Path(path)
    leaves, structure = pytree.flatten(tree)
    _writer(target)(target, dict(zip(names_of(structure), map(on_host, leaves), strict=True)))


def load(path: str | os.PathLike[str], like: Any = None) -> Any:
    """The arrays of a file: with `like`, a pytree of that structure, of device arrays; else a dict by their names.

    `like` may hold `ShapeDtype` in place of arrays. Without it arrays are NumPy's, memory-mapped where the format
    allows. Raises FileNotFoundError, and ValueError for a damaged file or for one whose paths, shapes or dtypes differ
    from those of `like`, with the first that does.
    """
    source = Path(path)
    found = _reader(source)(source)
    if like is None:
        return dict(found) if len(found) != 1 or _ALONE not in found else found[_ALONE]
    return fitted(source, found, like)


def fitted(source: Path, found: Mapping[str, np.ndarray], like: Any) -> Any:
    """The arrays `found` in a file as a pytree of device arrays like `like`; raises the errors of `load`."""
    leaves, structure = pytree.flatten(like)
    names = names_of(structure)
    _require_same_names(source, names, found)
    return pytree.unflatten(structure, [_fitting(source, n, found[n], x) for n, x in zip(names, leaves, strict=True)])


def names_of(structure: pytree.TreeDef) -> list[str]:
    """The names of a tree's leaves in files: their paths."""
    return [path or _ALONE for path in pytree.paths(structure)]


def _require_same_names(source: Path, names: list[str], found: Mapping[str, np.ndarray]) -> None:
    for name in names:
        if name not in found:
            raise ValueError(f"{source}: {name} is not in the file, which has {len(found)} arrays of other names")
    extra = sorted(set(found) - set(names))
    if extra:
        raise ValueError(f"{source}: {extra[0]} is in the file, but not in `like`")


def _fitting(source: Path, name: str, array: np.ndarray, wanted: Any) -> Any:
    shape, dtype = tuple(np.shape(wanted)), np.dtype(getattr(wanted, "dtype", None) or np.asarray(wanted).dtype)
    if array.shape != shape:
        raise ValueError(f"{source}: {name} has the shape {list(array.shape)}, `like` has {list(shape)}")
    if array.dtype != dtype:
        raise ValueError(f"{source}: {name} is {array.dtype}, `like` has {dtype}")
    return device_put(array)


def _write_npz(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    _refuse_other_dtypes(path, arrays)
    with replaced(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, allow_pickle=False, **dict(arrays))


def _write_npy(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    if len(arrays) != 1:
        raise ValueError(f"{path}: an .npy file holds one array, got {len(arrays)}; use .npz or .safetensors")
    _refuse_other_dtypes(path, arrays)
    with replaced(path) as temporary, open(temporary, "wb") as file:
        np.save(file, next(iter(arrays.values())), allow_pickle=False)


def _refuse_other_dtypes(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    for name, array in arrays.items():
        if array.dtype.kind == "V":
            raise ValueError(f"{path}: NumPy's files cannot hold {name}, which is {array.dtype}; use .safetensors")


def _read_npz(path: Path) -> Mapping[str, np.ndarray]:
    with open(path, "rb") as file:
        return _read_by_numpy(path, lambda: dict(np.load(file, allow_pickle=False)))


def _read_npy(path: Path) -> Mapping[str, np.ndarray]:
    return _read_by_numpy(path, lambda: {_ALONE: np.load(path, mmap_mode="r", allow_pickle=False)})


def _read_by_numpy(path: Path, read: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    try:
        return read()
    except FileNotFoundError:
        raise
    except Exception as error:  # NumPy raises errors of many classes for files that are not whole
        raise ValueError(f"{path}: this is no whole {path.suffix} file: {error}") from None


_Write = Callable[[Path, Mapping[str, np.ndarray]], None]
_Read = Callable[[Path], Mapping[str, np.ndarray]]
_FORMATS: dict[str, tuple[_Write, _Read]] = {
    ".safetensors": (write_file, TensorFile),
    ".npz": (_write_npz, _read_npz),
    ".npy": (_write_npy, _read_npy),
}


def _writer(path: Path) -> _Write:
    return _format(path)[0]


def _reader(path: Path) -> _Read:
    return _format(path)[1]


def _format(path: Path) -> tuple[_Write, _Read]:
    found = _FORMATS.get(path.suffix)
    if found is None:
        raise ValueError(f"{path}: the suffix must be one of {', '.join(_FORMATS)}")
    return found
