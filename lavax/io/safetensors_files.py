"""Files in the safetensors format, by the package of that name."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lavax.io.atomic import replaced


class TensorFile(Mapping[str, np.ndarray]):
    """The tensors of a file by their names, each read when it is asked for; the file is memory-mapped.

    Raises FileNotFoundError, or ValueError if the file is damaged.
    """

    def __init__(self, path: Path) -> None:
        open_file = _package().safe_open
        try:
            self._file = open_file(path, framework="numpy")
        except OSError:
            raise
        except Exception as error:  # the package's own class, which derives from Exception alone
            raise ValueError(f"{path}: this is no whole safetensors file: {error}") from None
        self._names = frozenset(self._file.keys())

    @property
    def metadata(self) -> dict[str, str]:
        """The text entries of the file's header."""
        return dict(self._file.metadata() or {})

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor, without reading it."""
        return tuple(self._file.get_slice(name).get_shape())

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._names:
            raise KeyError(name)
        found: np.ndarray = self._file.get_tensor(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._names))

    def __len__(self) -> int:
        return len(self._names)


def write_file(path: Path, tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None) -> None:
    """Writes a file, which appears under its name when it is whole."""
    save_file = _package().numpy.save_file
    arrays = {name: np.require(array, requirements=["C"]) for name, array in tensors.items()}
    with replaced(path) as temporary:
        save_file(arrays, temporary, metadata=dict(metadata or {}))


def _package() -> Any:
    try:
        import safetensors.numpy
    except ImportError:
        raise ImportError("safetensors files need the package safetensors: pip install 'lavax[models]'") from None
    return safetensors
