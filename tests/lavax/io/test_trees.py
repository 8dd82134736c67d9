"""Pytrees as files: bit for bit, whole or not there, and refused by name if they do not fit."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.io.atomic import replaced

pytestmark = pytest.mark.usefixtures("reference_backend")


def tree() -> dict[str, Any]:
    return {
        "model": lx.nn.Linear(3, 2, key=lx.random.key(1)),
        "step": lnp.int32(7),
        "halves": (lnp.asarray([1.5, -2, float("inf")], "bfloat16"), lnp.asarray([0.5], "float16")),
        "mask": np.array([True, False]),
        "empty": np.zeros((0, 3), "f"),
        "bytes": np.arange(5, dtype=np.uint8),
    }


@pytest.mark.parametrize("name", ["a.safetensors", "a.npz"])
def test_a_tree_comes_back_bit_for_bit(name: str, tmp_path: Path) -> None:
    given = tree()
    if name.endswith("npz"):
        del given["halves"]
    lx.io.save(tmp_path / name, given)
    found = lx.io.load(tmp_path / name, like=given)
    assert lx.tree.structure(found) is lx.tree.structure(given)
    for one, other in zip(lx.tree.leaves(given), lx.tree.leaves(found), strict=True):
        assert type(other) is type(one) and other.dtype == one.dtype and other.shape == one.shape
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_shapes_are_enough_to_load(tmp_path: Path) -> None:
    lx.io.save(tmp_path / "a.safetensors", tree())
    shapes = lx.eval_shape(tree)
    found = lx.io.load(tmp_path / "a.safetensors", like=shapes)
    np.testing.assert_array_equal(found["model"].weight, tree()["model"].weight)


def test_arrays_by_their_names(tmp_path: Path) -> None:
    lx.io.save(tmp_path / "a.safetensors", {"w": [np.ones(2, "f"), np.zeros(3, "f")]})
    assert {name: array.shape for name, array in lx.io.load(tmp_path / "a.safetensors").items()} == {
        "w.0": (2,),
        "w.1": (3,),
    }
    lx.io.save(tmp_path / "a.npy", np.arange(6).reshape(2, 3))
    mapped = lx.io.load(tmp_path / "a.npy")
    np.testing.assert_array_equal(mapped, [[0, 1, 2], [3, 4, 5]])
    assert isinstance(mapped, np.memmap)


MISFITS: dict[str, tuple[Any, str]] = {
    "another name": ({"a": np.zeros(2, "f"), "c": np.zeros(3, "f")}, r"x\.safetensors: c is not in the file"),
    "one more in the file": ({"a": np.zeros(2, "f")}, r"x\.safetensors: b is in the file, but not in `like`"),
    "another shape": (
        {"a": np.zeros(2, "f"), "b": np.zeros((3, 1), "f")},
        r"b has the shape \[3\], `like` has \[3, 1\]",
    ),
    "another dtype": ({"a": np.zeros(2, "f"), "b": np.zeros(3, "i4")}, r"b is float32, `like` has int32"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_a_file_that_does_not_fit_is_refused_by_name(name: str, tmp_path: Path) -> None:
    like, message = MISFITS[name]
    lx.io.save(tmp_path / "x.safetensors", {"a": np.zeros(2, "f"), "b": np.zeros(3, "f")})
    with pytest.raises(ValueError, match=message):
        lx.io.load(tmp_path / "x.safetensors", like=like)


@pytest.mark.parametrize("suffix", ["safetensors", "npz", "npy"])
def test_a_damaged_file_is_refused_by_name(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"bad.{suffix}"
    lx.io.save(path, np.arange(100.0))
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"\xff" * 64, b""):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=rf"bad\.{suffix}: this is no whole"):
            lx.io.load(path, like=np.arange(100.0))
    with pytest.raises(FileNotFoundError, match="none"):
        lx.io.load(tmp_path / f"none.{suffix}")


def test_other_suffixes_and_dtypes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"the suffix must be one of \.safetensors, \.npz, \.npy"):
        lx.io.save(tmp_path / "a.pickle", {})
    with pytest.raises(ValueError, match=r"NumPy's files cannot hold halves\.0, which is bfloat16"):
        lx.io.save(tmp_path / "a.npz", tree())
    with pytest.raises(ValueError, match=r"an \.npy file holds one array, got 2"):
        lx.io.save(tmp_path / "a.npy", [np.ones(1), np.ones(1)])


def test_an_error_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="half way"), replaced(path) as temporary:
        temporary.write_text("ne")
        raise RuntimeError("half way")
    assert path.read_text() == "old" and [entry.name for entry in tmp_path.iterdir()] == ["kept"]


def test_members_of_an_npz_file_are_mapped(tmp_path: Path) -> None:
    by_column = np.asfortranarray(np.arange(6).reshape(3, 2))
    arrays = {"w": np.arange(6.0).reshape(2, 3), "f": by_column, "e": np.zeros((0, 2))}
    lx.io.save(tmp_path / "a.npz", arrays)
    np.savez_compressed(tmp_path / "small.npz", **arrays)
    for file in ("a.npz", "small.npz"):
        found = lx.io.load(tmp_path / file)
        for name, numbers in arrays.items():
            np.testing.assert_array_equal(found[name], numbers)
            assert found[name].dtype == numbers.dtype
        assert isinstance(found["w"], np.memmap) == (file == "a.npz")
    with pytest.raises(ValueError, match=r"a\.npz: w has the shape \[2, 3\]"):
        lx.io.load(tmp_path / "a.npz", like={**arrays, "w": np.zeros(6)})


def test_a_file_has_the_rights_that_other_new_files_have(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    lx.io.save(tmp_path / "a.safetensors", {"x": np.zeros(1)})
    assert (tmp_path / "a.safetensors").stat().st_mode == (tmp_path / "plain").stat().st_mode
