"""GGUF, the format of the ggml library: metadata, and tensors that may be quantised in blocks."""
from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lavax.io.gguf_layout import check_layout


class GGUFFile(Mapping[str, np.ndarray]):
    """The tensors of a file by their names, in C order, each dequantised to float32 when it is asked for.

    Tensors of integers and of 64 bits keep their dtype. `metadata` has Python's numbers, texts and lists.
    `quantization` names the form in which each tensor is stored, such as "Q4_K".
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            check_layout(self.path)
        except ValueError as error:
            raise ValueError(f"{self.path}: this is no whole GGUF file: {error}") from None
        package = _package()
        try:
            reader = package.GGUFReader(self.path)
            self.metadata: dict[str, Any] = {name: _value(field) for name, field in reader.fields.items()}
        except Exception as error:  # the package lets all kinds of errors through for files that are not whole
            raise ValueError(f"{self.path}: this is no whole GGUF file: {error}") from None
        self._dequantize = package.quants.dequantize
        self._tensors = {tensor.name: tensor for tensor in reader.tensors}
        self.quantization = {name: tensor.tensor_type.name for name, tensor in self._tensors.items()}

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor, without reading it."""
        return tuple(int(extent) for extent in reversed(self._tensors[name].shape))

    def __getitem__(self, name: str) -> np.ndarray:
        tensor = self._tensors[name]
        stored: np.ndarray = tensor.data
        if stored.dtype.kind == "i":
            return stored
        if stored.dtype.kind == "f":
            return np.asarray(stored, np.promote_types(stored.dtype, np.float32))
        try:
            found: np.ndarray = self._dequantize(stored, tensor.tensor_type)
        except NotImplementedError:
            form = self.quantization[name]
            raise ValueError(f"{self.path}: {name} is stored as {form}, which the gguf package cannot read") from None
        return found.reshape(self.shape(name))

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


def load_gguf(path: str | os.PathLike[str]) -> GGUFFile:
    """The metadata and the tensors of a GGUF file. The file is mapped; a tensor is read when it is asked for.

        file = io.load_gguf("model-q4_k_m.gguf")
        file.metadata["general.architecture"], file["token_embd.weight"].shape

    Whatever the gguf package can dequantise is read: F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q6_K and more. Raises
    FileNotFoundError, ValueError with the file's name if it is damaged, and ImportError without the gguf package.
    """
    return GGUFFile(path)


def _package() -> Any:
    try:
        import gguf
        import gguf.quants
    except ImportError:
        raise ImportError("GGUF files need the gguf package: pip install 'lavax[models]'") from None
    return gguf


def _value(field: Any) -> Any:
    """A field of the metadata as Python's: `parts` has its pieces, `data` says which of them are the value."""
    kinds = [kind.name for kind in field.types]
    if not kinds:
        return None
    is_text = kinds[-1] == "STRING"
    values = [bytes(field.parts[k]).decode("utf-8") if is_text else field.parts[k].tolist() for k in field.data]
    if kinds[0] == "ARRAY":
        return values if is_text else [number for part in values for number in part]
    return values[0] if is_text else values[0][0]
