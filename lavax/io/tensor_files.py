"""Folders of named tensors in the safetensors format: one file, or shards with an index."""
from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lavax.io.atomic import replaced
from lavax.io.json_files import read_json
from lavax.io.safetensors import SafetensorsFile, nbytes_of, write_safetensors

MAX_SHARD_SIZE = "5GB"
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "KI": 1 << 10, "MI": 1 << 20, "GI": 1 << 30}
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")


class Shards(Mapping[str, np.ndarray]):
    """The tensors of several files. A file is opened when its first tensor is asked for.

    Raises FileNotFoundError if a file is missing, and ValueError for a name that is no file of the folder.
    """

    def __init__(self, folder: Path, file_of: Mapping[str, str]) -> None:
        self._folder, self._file_of = folder, dict(file_of)
        self._open: dict[str, SafetensorsFile] = {}
        for file in sorted(set(self._file_of.values())):
            if Path(file).name != file:
                raise ValueError(f"{folder}: the index names {file!r}, which is not in the folder")
            if not (folder / file).is_file():
                raise FileNotFoundError(f"{folder}: the index names {file}, which is not there")

    def __getitem__(self, name: str) -> np.ndarray:
        file = self._file_of[name]
        if file not in self._open:
            self._open[file] = SafetensorsFile(self._folder / file)
        if name not in self._open[file]:
            raise ValueError(f"{self._folder / file}: the index says that it holds {name}, but it does not")
        return self._open[file][name]

    def __contains__(self, name: object) -> bool:
        return name in self._file_of

    def __iter__(self) -> Iterator[str]:
        return iter(self._file_of)

    def __len__(self) -> int:
        return len(self._file_of)


def read_tensors(folder: Path, stem: str = "model") -> Mapping[str, np.ndarray]:
    """The tensors of `stem`.safetensors in `folder`, or of the shards that its index names; memory-mapped.

    Raises FileNotFoundError if there is neither, or if a shard is missing; ValueError if a file is damaged.
    """
    single, index = folder / f"{stem}.safetensors", folder / f"{stem}.safetensors.index.json"
    if single.is_file():
        return SafetensorsFile(single)
    if not index.is_file():
        raise FileNotFoundError(f"{folder}: there is neither {single.name} nor {index.name}. {_hint(folder)}")
    try:
        file_of = read_json(index)["weight_map"].items()
        return Shards(folder, {str(name): str(file) for name, file in file_of})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{index}: this is no index of shards: {error}") from None


def _hint(folder: Path) -> str:
    """What to do if there are no weights under the expected name."""
    if not folder.is_dir():
        return "There is no such folder"
    others = sorted(path.name for path in folder.glob("*.safetensors"))
    if others:
        return f"The folder has {', '.join(others[:4])}"
    pickled = sorted(path.name for pattern in _PICKLES for path in folder.glob(pattern))
    if pickled:
        return (
            f"{pickled[0]} is a pickle, which could run any code when it is read; convert it where you trust it: "
            "load it with PyTorch's transformers and call model.save_pretrained(folder), which writes safetensors"
        )
    return "The folder has no weights"


def write_tensors(
    folder: Path, tensors: Mapping[str, Any], stem: str = "model", max_shard_size: int | str = MAX_SHARD_SIZE
) -> None:
    """Writes `stem`.safetensors in `folder`; or shards of at most so many bytes, but one tensor at least, with an
    index. The files of an earlier save that are no part of this one are removed."""
    shards = _shards(tensors, bytes_of(max_shard_size))
    count = len(shards)
    files = [f"{stem}-{number:05}-of-{count:05}.safetensors" for number in range(1, count + 1)]
    files = files if count > 1 else [f"{stem}.safetensors"]
    for file, names in zip(files, shards, strict=True):
        write_safetensors(folder / file, {name: tensors[name] for name in names}, {"format": "pt"})
    index = folder / f"{stem}.safetensors.index.json"
    if count > 1:
        file_of = {name: file for file, names in zip(files, shards, strict=True) for name in names}
        total = sum(nbytes_of(array) for array in tensors.values())
        with replaced(index) as temporary:
            text = json.dumps({"metadata": {"total_size": total}, "weight_map": file_of}, indent=2)
            temporary.write_text(text + "\n", encoding="utf-8")
    else:
        index.unlink(missing_ok=True)
    for path in {*folder.glob(f"{stem}-*-of-*.safetensors"), folder / f"{stem}.safetensors"}:
        if path.name not in files:
            path.unlink(missing_ok=True)


def bytes_of(size: int | str) -> int:
    """A number of bytes, or text such as "500MB" (decimal) or "2GiB" (binary). Raises ValueError for anything else."""
    if isinstance(size, int):
        if size < 1:
            raise ValueError(f"max_shard_size must be at least 1, got {size}")
        return size
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMG]?I?)B\s*", size.upper())
    if found is None or found[2] not in _UNITS or not float(found[1]):
        raise ValueError(f'max_shard_size must be a number of bytes or text such as "5GB", got {size!r}')
    return int(float(found[1]) * _UNITS[found[2]])


def _shards(tensors: Mapping[str, Any], most: int) -> list[list[str]]:
    shards: list[list[str]] = [[]]
    size = 0
    for name, array in tensors.items():
        nbytes = nbytes_of(array)
        if shards[-1] and size + nbytes > most:
            shards.append([])
            size = 0
        shards[-1].append(name)
        size += nbytes
    return shards
