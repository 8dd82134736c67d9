"""Folders of named tensors in the safetensors format: one file, or shards with an index."""
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from lavax.io.atomic import replaced
from lavax.io.safetensors import SafetensorsFile, write_safetensors

MAX_SHARD_BYTES = 5 * 10**9


class Shards(Mapping[str, np.ndarray]):
    """The tensors of several files. A file is opened when its first tensor is asked for."""

    def __init__(self, folder: Path, file_of: Mapping[str, str]) -> None:
        self._folder, self._file_of = folder, dict(file_of)
        self._open: dict[str, SafetensorsFile] = {}

    def __getitem__(self, name: str) -> np.ndarray:
        file = self._file_of[name]
        if file not in self._open:
            if not (self._folder / file).is_file():
                raise FileNotFoundError(f"{self._folder}: the index names {file}, which is not there")
            self._open[file] = SafetensorsFile(self._folder / file)
        if name not in self._open[file]:
            raise ValueError(f"{self._folder / file}: the index says that it holds {name}, but it does not")
        return self._open[file][name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._file_of)

    def __len__(self) -> int:
        return len(self._file_of)


def read_tensors(folder: Path, stem: str = "model") -> Mapping[str, np.ndarray]:
    """The tensors of `stem`.safetensors in `folder`, or of the shards that its index names; memory-mapped.

    Raises FileNotFoundError if there is neither, ValueError if a file is damaged.
    """
    single, index = folder / f"{stem}.safetensors", folder / f"{stem}.safetensors.index.json"
    if index.is_file():
        try:
            return Shards(folder, json.loads(index.read_text(encoding="utf-8"))["weight_map"])
        except (ValueError, KeyError) as error:
            raise ValueError(f"{index}: this is no index of shards: {error}") from None
    if single.is_file():
        return SafetensorsFile(single)
    others = sorted(path.name for pattern in ("*.bin", "*.pt", "*.pth", "*.ckpt") for path in folder.glob(pattern))
    hint = f" There is {others[0]}; save it as safetensors, which runs no code when it is read" if others else ""
    raise FileNotFoundError(f"{folder}: there is neither {single.name} nor {index.name}.{hint}")


def write_tensors(
    folder: Path, tensors: Mapping[str, np.ndarray], stem: str = "model", max_shard_bytes: int = MAX_SHARD_BYTES
) -> None:
    """Writes `stem`.safetensors in `folder`; or shards of at most so many bytes, but one tensor at least, with an
    index. The files of an earlier save that are no part of this one are removed."""
    shards = _shards(tensors, max_shard_bytes)
    count = len(shards)
    files = [f"{stem}-{number:05}-of-{count:05}.safetensors" for number in range(1, count + 1)]
    files = files if count > 1 else [f"{stem}.safetensors"]
    for file, names in zip(files, shards, strict=True):
        write_safetensors(folder / file, {name: tensors[name] for name in names}, {"format": "pt"})
    index = folder / f"{stem}.safetensors.index.json"
    if count > 1:
        file_of = {name: file for file, names in zip(files, shards, strict=True) for name in names}
        total = sum(array.nbytes for array in tensors.values())
        with replaced(index) as temporary:
            text = json.dumps({"metadata": {"total_size": total}, "weight_map": file_of}, indent=2)
            temporary.write_text(text + "\n", encoding="utf-8")
    else:
        index.unlink(missing_ok=True)
    for path in {*folder.glob(f"{stem}-*-of-*.safetensors"), folder / f"{stem}.safetensors"}:
        if path.name not in files:
            path.unlink(missing_ok=True)


def _shards(tensors: Mapping[str, np.ndarray], most: int) -> list[list[str]]:
    shards: list[list[str]] = [[]]
    size = 0
    for name, array in tensors.items():
        if shards[-1] and size + array.nbytes > most:
            shards.append([])
            size = 0
        shards[-1].append(name)
        size += array.nbytes
    return shards
