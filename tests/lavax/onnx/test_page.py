"""The code and the command lines of docs/onnx.md run."""
from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax.command_line.main import main
from tests.lavax.onnx.building import model as built
from tests.lavax.onnx.building import node
from tests.pages import blocks_of

pytest.importorskip("onnx", reason="the package that reads ONNX models")
pytestmark = pytest.mark.usefixtures("reference_backend")


def _classifier() -> bytes:
    rng = np.random.default_rng(1)
    return built(
        [
            node("Conv", "pixels kernel", "c", auto_pad="SAME_UPPER"), node("Relu", "c", "r"),
            node("GlobalAveragePool", "r", "p"), node("Flatten", "p", "f"), node("Gemm", "f weight bias", "logits"),
        ],
        {"pixels": ("f4", ["n", 3, 8, 8])}, {"logits": ("f4", ["n", 3])},
        {
            "kernel": rng.normal(size=(5, 3, 3, 3)).astype("f"), "weight": rng.normal(size=(5, 3)).astype("f"),
            "bias": np.zeros(3, np.float32),
        },
    )  # fmt: skip


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "classifier.onnx").write_bytes(_classifier())
    np.save(tmp_path / "pixels.npy", np.ones((4, 3, 8, 8), np.float32))
    names: dict[str, Any] = {}
    blocks = blocks_of("docs/onnx.md")
    for block in blocks:
        if block.language == "python":
            exec(compile(block.body, block.place, "exec", dont_inherit=True), names)
    assert "['pixels'] ['logits'] ['bias', 'kernel', 'weight']" in capsys.readouterr().out
    model, labels = names["model"], names["labels"]
    before = model(model.parameters, pixels=names["pixels"])["logits"]
    assert float(names["value"]) < float(lx.nn.cross_entropy(before, labels, axis=-1))
    assert (tmp_path / "tuned.onnx").is_file()
    (commands,) = [block.body for block in blocks if block.language == "sh"]
    first, second = (shlex.split(line)[1:] for line in commands.splitlines())
    assert main(first) == 0 and (tmp_path / "logits.npz").is_file()
    second.remove("--profile")  # needs a device
    assert main(second) == 0
