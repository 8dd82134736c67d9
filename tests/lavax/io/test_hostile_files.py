"""Files of models whose headers announce what is not there: refused before memory is taken for it."""
from __future__ import annotations

import json
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax.models
from lavax.io.gguf import load_gguf
from lavax.io.numpy_files import NpzFile, read_npy
from lavax.io.safetensors import SafetensorsFile
from lavax.io.tensor_files import read_tensors
from lavax.models.vision.preprocessing import Preprocessing

HUGE = ("(1000000, 1000000)", "(9223372036854775807, 2)", "(4294967296, 4294967296, 4)", "(-1, -4)", f"({'1,' * 99})")


@pytest.fixture(autouse=True)
def little_memory() -> Any:
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 << 20  # with modules that a test imports first


def npy(shape: str, dtype: str = "<f4", numbers: bytes = bytes(64)) -> bytes:
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + numbers


@pytest.mark.parametrize("shape", HUGE)
@pytest.mark.parametrize("method", [None, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_headers_of_numpy(shape: str, method: int | None, tmp_path: Path) -> None:
    path = tmp_path / ("a.npy" if method is None else "a.npz")
    if method is None:
        path.write_bytes(npy(shape))
    else:
        with zipfile.ZipFile(path, "w", method) as archive:
            archive.writestr("a.npy", npy(shape))
    with pytest.raises(ValueError, match=r"this is no whole \.np[yz] file: .*(announces|no array has)"):
        read_npy(path) if method is None else NpzFile(path)["a"]


@pytest.mark.parametrize("content", [npy("(8,)"), npy("(32,)"), npy("(16,)", "|O"), npy("(99,)", "|V0"), npy("(")])
def test_an_array_has_the_bytes_that_it_announces(content: bytes, tmp_path: Path) -> None:
    """Those behind it belong to another member."""
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a.npy", content)
        archive.writestr("b.npy", npy("(16,)"))
    file = NpzFile(tmp_path / "a.npz")
    assert file["b"].shape == (16,)
    with pytest.raises(ValueError, match="this is no whole"):
        file["a"]


def safetensors(header: Any, numbers: bytes = bytes(16)) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + numbers


def entry(**changes: Any) -> dict[str, Any]:
    return {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]} | changes


SAFETENSORS: dict[str, bytes] = {
    "more elements than bytes": safetensors({"a": entry(shape=[1000000, 1000000])}),
    "elements whose product wraps": safetensors({"a": entry(shape=[1 << 32, 1 << 32, 4])}),
    "an extent of many digits": safetensors({"a": entry(shape=[10**4000])}),
    "many extents": safetensors({"a": entry(shape=[10**18] * 20_000)}),
    "many extents of 1": safetensors({"a": entry(shape=[1] * 100 + [4])}),
    "a shape of floats": safetensors({"a": entry(shape=[4.0])}),
    "a shape of texts": safetensors({"a": entry(shape=["4"])}),
    "negative extents": safetensors({"a": entry(shape=[-2, -2])}),
    "infinite offsets": safetensors(b'{"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 1e999]}}'),
    "offsets beyond the end": safetensors({"a": entry(data_offsets=[1 << 40, (1 << 40) + 16])}),
    "a deep header": safetensors(b'{"a": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"),
    "a header of another kind": safetensors([1, 2]),
    "a dtype of another kind": safetensors({"a": entry(dtype=["F32"])}),
    "a longer header than the file": (1 << 62).to_bytes(8, "little") + bytes(16),
}


@pytest.mark.parametrize("name", SAFETENSORS)
def test_headers_of_safetensors(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(SAFETENSORS[name])
    with pytest.raises(ValueError, match=r"a\.safetensors: this is no whole safetensors file"):
        SafetensorsFile(path)


def text(words: bytes, length: int | None = None) -> bytes:
    return struct.pack("<Q", len(words) if length is None else length) + words


def gguf(fields: list[bytes], tensors: list[bytes], counts: tuple[int, int] | None = None) -> bytes:
    found = (len(tensors), len(fields)) if counts is None else counts
    return b"GGUF" + struct.pack("<IQQ", 3, *found) + b"".join(fields) + b"".join(tensors) + bytes(256)


def array(kind: int, length: int, items: bytes = b"") -> bytes:
    return text(b"key") + struct.pack("<IIQ", 9, kind, length) + items


def tensor(shape: list[int], axes: int | None = None, kind: int = 0, offset: int = 0) -> bytes:
    numbers = struct.pack(f"<{len(shape)}Q", *shape)
    return text(b"w") + struct.pack("<I", len(shape) if axes is None else axes) + numbers + struct.pack(
        "<IQ", kind, offset
    )


GGUF: dict[str, Callable[[], bytes]] = {
    "many fields": lambda: gguf([], [], (0, 1 << 60)),
    "many tensors": lambda: gguf([], [], (1 << 60, 0)),
    "a long name": lambda: gguf([text(b"key", 1 << 60)], []),
    "a long text": lambda: gguf([text(b"key") + struct.pack("<I", 8) + text(b"word", 1 << 62)], []),
    "a long array": lambda: gguf([array(0, 1 << 60)], []),
    "a long array of texts": lambda: gguf([array(8, 1 << 60)], []),
    "arrays in arrays": lambda: gguf([array(9, 1, struct.pack("<IQ", 9, 1) * 5000)], []),
    "a type that is none": lambda: gguf([text(b"key") + struct.pack("<I", 99)], []),
    "many axes": lambda: gguf([], [tensor([1], axes=1 << 30)]),
    "more elements than bytes": lambda: gguf([], [tensor([1000000, 1000000])]),
    "elements whose product wraps": lambda: gguf([], [tensor([1 << 32, 1 << 32])]),
    "elements whose product wraps to few": lambda: gguf([], [tensor([(1 << 63) + 1, 2])]),
    "an offset beyond the end": lambda: gguf([], [tensor([4], offset=1 << 62)]),
    "an offset that wraps": lambda: gguf([], [tensor([4], offset=(1 << 64) - 32)]),
    "nothing": lambda: b"",
    "the magic alone": lambda: b"GGUF",
}


@pytest.mark.parametrize("name", GGUF)
def test_headers_of_gguf(name: str, tmp_path: Path) -> None:
    pytest.importorskip("gguf", reason="the package that reads GGUF files")
    path = tmp_path / "a.gguf"
    path.write_bytes(GGUF[name]())
    with pytest.raises(ValueError, match=r"a\.gguf: this is no"):
        load_gguf(path)


def test_what_these_headers_are_changed_from_is_read(tmp_path: Path) -> None:
    pytest.importorskip("gguf", reason="the package that reads GGUF files")
    (tmp_path / "a.npy").write_bytes(npy("(4, 4)"))
    (value,) = read_npy(tmp_path / "a.npy").values()
    assert value.shape == (4, 4)
    (tmp_path / "a.safetensors").write_bytes(safetensors({"a": entry()}))
    np.testing.assert_array_equal(SafetensorsFile(tmp_path / "a.safetensors")["a"], np.zeros(4))
    nested = array(9, 1, struct.pack("<IQ", 9, 1) * 2 + struct.pack("<IQ", 4, 1) + bytes(4))
    (tmp_path / "a.gguf").write_bytes(gguf([array(4, 2, bytes(8)), nested.replace(b"key", b"yek")], [tensor([4, 2])]))
    file = load_gguf(tmp_path / "a.gguf")
    assert file.metadata["key"] == [0, 0] and file["w"].shape == (2, 4)


JSON: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"{",
    "deep": b"[" * 100_000,
    "no text": b"\xff\xfe\x00",
    "a list": b"[1, 2]",
    "a number of many digits": b'{"a": ' + b"9" * 5000 + b"}",
}


@pytest.mark.parametrize("name", JSON)
def test_settings_that_are_no_json_name_their_file(name: str, tmp_path: Path) -> None:
    for file, read in (
        ("config.json", lambda: lavax.models.load(tmp_path)),
        ("model.safetensors.index.json", lambda: read_tensors(tmp_path)),
        ("preprocessor_config.json", lambda: Preprocessing.load(tmp_path)),
    ):
        (tmp_path / file).write_bytes(JSON[name])
        with pytest.raises(ValueError, match=file.replace(".", r"\.")):
            read()
