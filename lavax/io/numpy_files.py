"""NumPy's own files: one array (.npy), or several by their names (.npz), memory-mapped."""
from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from lavax.base.npy_header import read_npy_header
from lavax.io.atomic import replaced

ALONE = "value"  # the name of an array that is a file's only one, and has no path

_LOCAL_HEADER = 30  # bytes of a zip file before the name of a member; the last four have the lengths of what follows


class NpzFile(Mapping[str, np.ndarray]):
    """The arrays of an .npz file, each opened when it is asked for: memory-mapped, unless they are compressed.

    Raises FileNotFoundError, or ValueError if the file is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with open(path, "rb"):  # so that a missing file is an error of its own
            pass
        self._members: dict[str, zipfile.ZipInfo] = _by_numpy(path, self._infos)

    def __getitem__(self, name: str) -> np.ndarray:
        info = self._members[name]
        read = self._mapped if info.compress_type == zipfile.ZIP_STORED else self._unpacked
        found: np.ndarray = _by_numpy(self._path, lambda: read(info))
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def _infos(self) -> dict[str, zipfile.ZipInfo]:
        with zipfile.ZipFile(self._path) as archive:
            return {info.filename.removesuffix(".npy"): info for info in archive.infolist()}

    def _mapped(self, info: zipfile.ZipInfo) -> np.ndarray:
        with open(self._path, "rb") as file:
            file.seek(info.header_offset)
            header = file.read(_LOCAL_HEADER)
            lengths = int.from_bytes(header[26:28], "little"), int.from_bytes(header[28:30], "little")
            file.seek(sum(lengths), 1)
            return _mapped(file, info.file_size)

    def _unpacked(self, info: zipfile.ZipInfo) -> np.ndarray:
        with zipfile.ZipFile(self._path) as archive:
            with archive.open(info) as member:
                read_npy_header(member, info.file_size)
            with archive.open(info) as member:
                found: np.ndarray = np.lib.format.read_array(member, allow_pickle=False)
                return found


def _mapped(file: BinaryIO, nbytes: int) -> np.ndarray:
    """The array of so many bytes, with its header, at the file's place. Raises ValueError unless they are there."""
    if nbytes > os.fstat(file.fileno()).st_size - file.tell():
        raise ValueError("it is cut short")
    dtype, shape, fortran = read_npy_header(file, nbytes)
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.memmap(file, dtype, "r", file.tell(), shape, "F" if fortran else "C")


def read_npy(path: Path) -> Mapping[str, np.ndarray]:
    """The array of an .npy file, memory-mapped, under the name `ALONE`."""
    with open(path, "rb") as file:
        return {ALONE: _by_numpy(path, lambda: _mapped(file, os.fstat(file.fileno()).st_size))}


def write_npz(path: Path, arrays: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> None:
    """Writes arrays by their names; the format has no place for metadata."""
    held = {name: _plain(path, name, array) for name, array in arrays.items()}
    with replaced(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **held)  # type: ignore[arg-type]  # the stub thinks of `allow_pickle`, which is of NumPy 2


def write_npy(path: Path, arrays: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> None:
    """Writes a single array. Raises ValueError for another number of them."""
    if len(arrays) != 1:
        raise ValueError(f"{path}: an .npy file holds one array, got {len(arrays)}; use .npz or .safetensors")
    ((name, array),) = arrays.items()
    held = _plain(path, name, array)
    with replaced(path) as temporary, open(temporary, "wb") as file:
        np.save(file, held, allow_pickle=False)


def _plain(path: Path, name: str, array: Any) -> np.ndarray:
    found = np.asarray(array)
    if found.dtype.kind == "V":
        raise ValueError(f"{path}: NumPy's files cannot hold {name}, which is {found.dtype}; use .safetensors")
    return found


def _by_numpy(path: Path, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except FileNotFoundError:
        raise
    except Exception as error:  # NumPy raises errors of many classes for files that are not whole
        raise ValueError(f"{path}: this is no whole {path.suffix} file: {error}") from None
