"""GGUF files: written by the package of the format, and read as it reads them."""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lavax import io

gguf = pytest.importorskip("gguf", reason="the format's package is an extra")

DRAW = np.random.default_rng(0)
NUMBERS = DRAW.standard_normal((3, 512)).astype("f")
# Bytes a block of 256 elements, and where in it the float16 scales are.
K_QUANTS = {"Q4_K": (144, (0, 2)), "Q6_K": (210, (208,))}


def blocks(form: str) -> np.ndarray:
    """Rows of two random blocks each, whose scales are finite: the package cannot quantise to these forms."""
    size, scales = K_QUANTS[form]
    found = DRAW.integers(0, 256, (3, 2, size), np.uint8)
    for place in scales:
        found[:, :, place : place + 2] = DRAW.standard_normal((3, 2, 1)).astype(np.float16).view(np.uint8)
    return found.reshape(3, -1)


def stored(form: str) -> np.ndarray:
    kind = gguf.GGMLQuantizationType[form]
    found: np.ndarray = blocks(form) if form in K_QUANTS else gguf.quants.quantize(NUMBERS, kind)
    return found


def write(path: Path, tensors: dict[str, tuple[str, np.ndarray]]) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("small")
    writer.add_uint32("llama.block_count", 2)
    writer.add_float32("llama.rope.freq_base", 10000.0)
    writer.add_bool("tokenizer.ggml.add_bos_token", True)
    writer.add_array("tokenizer.ggml.tokens", ["<s>", "été", "日本"])
    writer.add_array("tokenizer.ggml.scores", [0.5, -1.0])
    for name, (form, data) in tensors.items():
        writer.add_tensor(name, data, raw_dtype=gguf.GGMLQuantizationType[form])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.parametrize("form", ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_K", "Q6_K", "Q5_1"])
def test_each_form_is_read_as_the_package_reads_it(form: str, tmp_path: Path) -> None:
    data = stored(form)
    write(tmp_path / "a.gguf", {"x": (form, data)})
    found = io.load_gguf(tmp_path / "a.gguf")
    assert found.quantization == {"x": form} and found.shape("x") == (3, 512)
    assert found["x"].dtype == np.float32 and found["x"].shape == (3, 512)
    np.testing.assert_array_equal(found["x"], gguf.quants.dequantize(data, gguf.GGMLQuantizationType[form]))
    if form not in K_QUANTS:  # a block's largest number is 4.5 at most: half a step of its 4, 5 or 8 bits
        steps = {"F32": 0, "F16": 2**-10, "BF16": 2**-7, "Q8_0": 4.5 / 254, "Q4_0": 4.5 / 8, "Q5_1": 9 / 62}
        np.testing.assert_allclose(found["x"], NUMBERS, rtol=0, atol=steps[form])


def test_a_block_of_eight_bits_by_hand(tmp_path: Path) -> None:
    """A block of Q8_0 is a float16 scale and 32 signed bytes: the numbers are their products."""
    block = np.concatenate([np.array([0.25], np.float16).view(np.uint8), np.arange(-16, 16, dtype=np.int8).view("u1")])
    write(tmp_path / "a.gguf", {"x": ("Q8_0", block.reshape(1, -1))})
    np.testing.assert_array_equal(io.load_gguf(tmp_path / "a.gguf")["x"], [np.arange(-16, 16) / 4])


def test_metadata_and_names(tmp_path: Path) -> None:
    integers = np.arange(6, dtype=np.int32).reshape(2, 3)
    write(tmp_path / "a.gguf", {"b": ("F32", NUMBERS), "a": ("I32", integers)})
    found = io.load_gguf(str(tmp_path / "a.gguf"))
    assert list(found) == ["b", "a"] and len(found) == 2 and "c" not in found
    wanted: dict[str, Any] = {
        "general.architecture": "llama",
        "general.name": "small",
        "llama.block_count": 2,
        "llama.rope.freq_base": 10000.0,
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.tokens": ["<s>", "été", "日本"],
        "tokenizer.ggml.scores": [0.5, -1.0],
    }
    assert {name: found.metadata[name] for name in wanted} == wanted
    assert found["a"].dtype == np.int32 and found["a"].tolist() == integers.tolist()
    with pytest.raises(KeyError):
        found["c"]


@pytest.mark.parametrize("damage", ["cut", "other", "empty", "header"])
def test_a_damaged_file_is_refused_by_name(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    write(path, {"x": ("F32", NUMBERS)})
    whole = path.read_bytes()
    path.write_bytes({"cut": whole[:-100], "other": b"no" + whole, "empty": b"", "header": whole[:40]}[damage])
    with pytest.raises(ValueError, match=r"bad\.gguf: this is no (whole )?GGUF file"):
        io.load_gguf(path)
    with pytest.raises(FileNotFoundError):
        io.load_gguf(tmp_path / "none.gguf")


def test_without_the_package_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.gguf", {"x": ("F32", NUMBERS)})
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(ImportError, match=r"pip install 'lavax\[models\]'"):
        io.load_gguf(tmp_path / "a.gguf")
