"""The safetensors format: eight bytes with the length of a header, the header in JSON, and the numbers.

The header maps each name to a dtype, a shape, and the bytes of the tensor behind the header. "__metadata__" maps names
to text. Numbers are little-endian and in C order, and the tensors fill the file without gaps.

The package of that name is what tests compare with. It writes a file only from arrays that are all in host memory at
once; here arrays come from the device one by one, and a file that is read through never holds more than its largest
tensor in memory.
"""
from __future__ import annotations

import json
import mmap
import os
import weakref
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import ml_dtypes
import numpy as np

from lavax.io.atomic import replaced

_METADATA = "__metadata__"
_LARGEST_HEADER = 100_000_000  # the format's own limit
_ALIGNMENT = 8
_MOST_AXES, _LARGEST = 64, (1 << 63) - 1

# The format's name of a dtype -> NumPy's, or that of ml_dtypes.
_DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8",
    "BOOL": "bool", "C64": "complex64",
}  # fmt: skip
_NAMES = {numpy_name: name for name, numpy_name in _DTYPES.items()}


class TensorForm(NamedTuple):
    """What a header says of a tensor; `begin` and `end` are places in the file."""

    dtype: np.dtype
    shape: tuple[int, ...]
    begin: int
    end: int


class SafetensorsFile(Mapping[str, np.ndarray]):
    """The tensors of a file, memory-mapped: a read-only array each, whose numbers are read from the disk when used.

    Raises FileNotFoundError if there is no such file, and ValueError, with its name, if it is not whole.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with open(self.path, "rb") as file:
            self.metadata, self._forms = _header(file, self.path)
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def __getitem__(self, name: str) -> np.ndarray:
        dtype, shape, begin, _ = self._forms[name]
        array = np.frombuffer(self._map, dtype, prod(shape), begin) if prod(shape) else np.zeros(0, dtype)
        self._forget_with(array, begin)
        return array.reshape(shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self._forms)

    def __len__(self) -> int:
        return len(self._forms)

    def __contains__(self, name: object) -> bool:
        return name in self._forms

    def form(self, name: str) -> TensorForm:
        """The dtype and shape of a tensor; reads nothing."""
        return self._forms[name]

    def _forget_with(self, array: np.ndarray, begin: int) -> None:
        """Lets the pages of a tensor go with its array: a file that is read through takes no more than its largest."""
        if hasattr(mmap, "MADV_DONTNEED") and array.nbytes > mmap.PAGESIZE:
            start = begin // mmap.PAGESIZE * mmap.PAGESIZE
            length = begin + array.nbytes - start
            weakref.finalize(array, self._map.madvise, mmap.MADV_DONTNEED, start, length).atexit = False


def write_safetensors(
    path: str | os.PathLike[str], tensors: Mapping[str, Any], metadata: Mapping[str, str] | None = None
) -> None:
    """Writes a file, whole or not at all. Arrays on the device are fetched one by one.

    Raises ValueError, with the name, for a dtype that the format has not.
    """
    order = sorted(tensors, key=lambda name: (-_itemsize(name, tensors[name]), name))  # so that all are aligned
    header: dict[str, Any] = {_METADATA: dict(metadata)} if metadata else {}
    end = 0
    for name in order:
        begin, end = end, end + nbytes_of(tensors[name])
        entry = {"dtype": _NAMES[np.dtype(tensors[name].dtype).name], "shape": list(tensors[name].shape)}
        header[name] = {**entry, "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    with replaced(Path(path)) as temporary, open(temporary, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            _write_numbers(file, np.asarray(tensors[name]))


def nbytes_of(tensor: Any) -> int:
    """The bytes of an array in a file."""
    return int(prod(tensor.shape) * np.dtype(tensor.dtype).itemsize)


def _itemsize(name: str, tensor: Any) -> int:
    dtype: np.dtype = np.dtype(tensor.dtype)
    if dtype.name not in _NAMES:
        raise ValueError(f"safetensors files cannot hold {name}, which is {dtype}; they hold {', '.join(_NAMES)}")
    return dtype.itemsize


def _write_numbers(file: BinaryIO, array: np.ndarray) -> None:
    little = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
    file.write(little.reshape(-1).view(np.uint8).data)


def _header(file: BinaryIO, path: Path) -> tuple[dict[str, str], dict[str, TensorForm]]:
    """The metadata and the tensors of a file."""
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > min(size - 8, _LARGEST_HEADER):
        raise _broken(path, f"its {size} bytes do not hold the header that they announce")
    try:
        header = json.loads(file.read(length))
        metadata = {str(name): str(text) for name, text in header.pop(_METADATA, {}).items()}
        forms = {name: _form(entry, 8 + length) for name, entry in header.items()}
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise _broken(path, f"its header cannot be read ({type(error).__name__}: {error})") from None
    _check_places(path, forms, 8 + length, size)
    return metadata, forms


def _form(entry: Mapping[str, Any], start: int) -> TensorForm:
    begin, end = map(_whole, entry["data_offsets"])
    shape = tuple(map(_whole, entry["shape"]))
    if len(shape) > _MOST_AXES:
        raise ValueError(f"a shape of {len(shape)} axes")
    return TensorForm(_dtype(entry["dtype"]), shape, start + begin, start + end)


def _whole(number: Any) -> int:
    if type(number) is not int or not 0 <= number <= _LARGEST:
        raise ValueError(f"{number!r:.40} is no extent or offset")
    return number


def _dtype(name: str) -> np.dtype:
    if name not in _DTYPES:
        raise ValueError(f"the dtype {name}")
    if _DTYPES[name].startswith(("bfloat", "float8")):
        found: np.dtype = np.dtype(getattr(ml_dtypes, _DTYPES[name]))
        return found
    return np.dtype(_DTYPES[name]).newbyteorder("<")


def _check_places(path: Path, forms: Mapping[str, TensorForm], start: int, size: int) -> None:
    """Raises ValueError unless the tensors fill the file from `start` to its end."""
    end = start
    for name, form in sorted(forms.items(), key=lambda item: item[1][2:]):
        if form.begin != end or form.end - form.begin != prod(form.shape) * form.dtype.itemsize:
            raise _broken(path, f"its header gives {name} bytes that are not its own")
        end = form.end
    if end != size:
        cut = "it is cut short" if end > size else "there is more in it than its header says"
        raise _broken(path, f"{cut}: {size} bytes, not {end}")


def _broken(path: Path, why: str) -> ValueError:
    return ValueError(f"{path}: this is no whole safetensors file: {why}")
