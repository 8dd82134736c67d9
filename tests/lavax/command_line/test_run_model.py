"""`lavax run`: a model on arrays from files."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lavax.command_line.main import main
from tests.lavax.onnx.building import model, node

pytest.importorskip("onnx", reason="the package that reads ONNX models")
pytestmark = pytest.mark.usefixtures("reference_backend")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    data = model(
        [node("MatMul", "x w", "h"), node("Add", "h b", "y")],
        {"x": ("f4", ["n", 3]), "b": ("f4", [2])}, {"y": ("f4", ["n", 2])}, {"w": np.ones((3, 2), np.float32)},
    )  # fmt: skip
    (tmp_path / "m.onnx").write_bytes(data)
    np.save(tmp_path / "x.npy", np.arange(6, dtype=np.float32).reshape(2, 3))
    np.save(tmp_path / "b.npy", np.array([10, 20], np.float32))
    np.savez(tmp_path / "both.npz", x=np.ones((1, 3), np.float32), b=np.zeros(2, np.float32))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("inputs", [["x.npy", "b.npy"], ["b=b.npy", "x.npy"], ["b=b.npy", "x=x.npy"]])
def test_a_model_runs_on_files(folder: Path, inputs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    words = [word for name in inputs for word in ("--input", name)]
    assert main(["run", "m.onnx", *words, "--output", "y.npz"]) == 0
    assert capsys.readouterr().out == "y  float32[2,2]  13 23 22 32\n"
    with np.load(folder / "y.npz") as held:
        assert held["y"].tolist() == [[13, 23], [22, 32]]


def test_arrays_of_one_file_go_by_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "m.onnx", "--input", "both.npz"]) == 0
    assert capsys.readouterr().out == "y  float32[1,2]  3 3\n"


def test_stages_are_dumped(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "m.onnx", "--random", "--dump", "ir", "--dump", "optimized"]) == 0
    out = capsys.readouterr().out
    assert out.count("dot(") == 2 and "# MatMul_1" in out  # a comment names the node
    assert out.rstrip().splitlines()[-1].startswith("y  float32[1,2]")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["missing.onnx"], "there is no file missing.onnx"),
        (["m.onnx"], "there is no array for x, b: give --input NAME=FILE.npy, or --random"),
        (["m.onnx", "--input", "z=x.npy"], "the model has no input 'z'; it has x, b"),
        (["m.onnx", "--input", "nothing.npy"], "nothing.npy cannot be read"),
        (["m.onnx", "--input", "m.onnx"], "m.onnx is no file of NumPy arrays"),
        (["m.onnx", *["--input", "x.npy"] * 3], "all inputs of the model have an array already"),
    ],
)
def test_words_that_make_no_sense(
    folder: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_file_that_is_no_model_and_shapes_that_do_not_fit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "x.npy"]) == 1
    assert "lavax run: ONNXError: onnx.load:" in capsys.readouterr().err
    assert main(["run", "m.onnx", "--input", "x=b.npy", "--input", "b=b.npy"]) == 1
    assert "ShapeError: onnx: the input 'x' has the shape ('n', 3), got (2,)" in capsys.readouterr().err
