"""Folders in Hugging Face's layout: shards, tokenizers, and errors that say what to do."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lavax import io
from lavax.io.tensor_files import bytes_of, read_tensors, write_tensors

pytestmark = pytest.mark.usefixtures("reference_backend")

TENSORS = {f"layer.{n}.weight": np.full((10, 10), n, np.float32) for n in range(5)}  # 400 bytes each


class Model:
    """The least that is saved."""

    def __init__(self, tensors: dict[str, np.ndarray] = TENSORS) -> None:
        self.tensors = tensors

    def to_pretrained(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"model_type": "some"}, self.tensors


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


SHARDS = [f"model-{n:05}-of-00003.safetensors" for n in (1, 2, 3)]


def test_shards_are_written_and_read(tmp_path: Path) -> None:
    io.save_pretrained(Model(), tmp_path, max_shard_size="1KB")
    assert names(tmp_path) == ["config.json", *SHARDS, "model.safetensors.index.json"]
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == 2000
    assert [index["weight_map"][name] for name in TENSORS] == [SHARDS[n // 2] for n in range(5)]
    found = read_tensors(tmp_path)
    assert list(found) == list(TENSORS) and "layer.9.weight" not in found
    for name, tensor in TENSORS.items():
        assert np.array_equal(found[name], tensor)


def test_what_an_earlier_save_left_is_removed(tmp_path: Path) -> None:
    for size, count in (("1KB", 3), ("5GB", 1), (400, 5), (1, 5), (800, 3)):
        io.save_pretrained(Model(), tmp_path, max_shard_size=size)
        weights = [name for name in names(tmp_path) if name.endswith(".safetensors")]
        assert len(weights) == count and all(np.array_equal(read_tensors(tmp_path)[n], x) for n, x in TENSORS.items())
        assert ("model.safetensors.index.json" in names(tmp_path)) == (count > 1)


def test_shards_are_opened_when_they_are_asked_for(tmp_path: Path) -> None:
    write_tensors(tmp_path, TENSORS, max_shard_size=800)
    (tmp_path / SHARDS[2]).write_bytes((tmp_path / SHARDS[2]).read_bytes()[:-1])
    found = read_tensors(tmp_path)
    assert found["layer.0.weight"][0, 0] == 0
    with pytest.raises(ValueError, match=rf"{SHARDS[2]}: this is no whole safetensors file: it is cut short"):
        found["layer.4.weight"]


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none: there is neither model\.safetensors nor .* no such folder"):
        read_tensors(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="The folder has no weights"):
        read_tensors(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match=r"pytorch_model\.bin is a pickle.* convert it .*save_pretrained"):
        read_tensors(tmp_path)
    write_tensors(tmp_path, TENSORS, "model.fp16")
    with pytest.raises(FileNotFoundError, match=r"The folder has model\.fp16\.safetensors"):
        read_tensors(tmp_path)


def test_an_index_that_is_wrong_is_named(tmp_path: Path) -> None:
    write_tensors(tmp_path, TENSORS, max_shard_size=800)
    index = tmp_path / "model.safetensors.index.json"
    right = json.loads(index.read_text())["weight_map"]

    def with_map(file_of: Any) -> None:
        index.write_text(json.dumps({"weight_map": file_of}))

    with_map({**right, "extra": SHARDS[0]})
    with pytest.raises(ValueError, match=rf"{SHARDS[0]}: the index says that it holds extra, but it does not"):
        read_tensors(tmp_path)["extra"]
    with_map({**right, "extra": "model-00004-of-00003.safetensors"})
    with pytest.raises(FileNotFoundError, match=r"the index names model-00004-of-00003\.safetensors, which is not"):
        read_tensors(tmp_path)
    with_map({"extra": "../elsewhere.safetensors"})
    with pytest.raises(ValueError, match=r"the index names '\.\./elsewhere\.safetensors', which is not in the folder"):
        read_tensors(tmp_path)
    for text in ("{", "[]", '{"weight_map": 3}', "{}"):
        index.write_text(text)
        with pytest.raises(ValueError, match=r"index\.json: this is no index of shards"):
            read_tensors(tmp_path)


def test_tokenizers_are_copied_or_written(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="an extra")
    source = tmp_path / "source"
    source.mkdir()
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 1}, unk_token="a"))
    made.save(str(source / "tokenizer.json"))
    for name in ("tokenizer_config.json", "README.md"):
        (source / name).write_text("{}")
    io.save_pretrained(Model(), tmp_path / "copied", tokenizer=source)
    assert names(tmp_path / "copied") == [
        "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
    ]  # fmt: skip
    io.save_pretrained(Model(), tmp_path / "copied", tokenizer=tmp_path / "copied")  # onto itself
    io.save_pretrained(Model(), tmp_path / "written", tokenizer=made)
    for folder in ("copied", "written"):
        read = tokenizers.Tokenizer.from_file(str(tmp_path / folder / "tokenizer.json"))
        assert read.get_vocab() == {"a": 0, "b": 1}
    with pytest.raises(TypeError, match=r"tokenizer must be a folder, or a tokenizer .* got a int"):
        io.save_pretrained(Model(), tmp_path / "c", tokenizer=3)
    with pytest.raises(FileNotFoundError, match="has no files of a tokenizer"):
        io.save_pretrained(Model(), tmp_path / "c", tokenizer=tmp_path / "c")


def test_sizes_of_shards() -> None:
    sizes: list[int | str] = [7, "5GB", "500mb", "2 GiB", "1.5KB", "10B"]
    assert [bytes_of(size) for size in sizes] == [7, 5 * 10**9, 5 * 10**8, 2 << 30, 1500, 10]
    for wrong in (0, "5", "GB", "5TB", "0MB"):
        with pytest.raises(ValueError, match="max_shard_size must be"):
            bytes_of(wrong)
