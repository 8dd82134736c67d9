"""The benchmark of ONNX models: its models are what they are called, and every runtime that is there has a line."""
from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
from benchmarks import onnx_models
from tests.lavax.onnx.building import run_reference

pytest.importorskip("onnx", reason="builds ONNX models")

@pytest.mark.parametrize(
    "build", [lambda: onnx_models.resnet_50(33), lambda: onnx_models.encoder(1, 16, 2, 5)], ids=["resnet", "encoder"]
)
def test_models_give_the_same_numbers_elsewhere(build: Callable[[], tuple[bytes, Any]]) -> None:
    data, inputs = build()
    model = lx.onnx.load(data)
    (wanted,) = run_reference(data, inputs)
    (made,) = model(model.parameters, **inputs).values()
    np.testing.assert_allclose(made, wanted, rtol=1e-3, atol=1e-4 * np.abs(wanted).max())


def test_resnet_50_has_its_parameters() -> None:
    model = lx.onnx.load(onnx_models.resnet_50()[0])
    sizes = [np.size(value) for value in model.parameters.values()]
    statistics = 2 * 26_560  # means and variances, which no optimizer trains
    assert sum(sizes) - statistics == 25_557_032


def test_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_models, "MODELS", {"small": lambda: onnx_models.encoder(1, 16, 2, 5)})
    monkeypatch.setattr(onnx_models, "_ROUNDS", 2)
    names = [figure.name for figure in onnx_models.measure()]
    assert names[0] == "small: lavax"
    assert len(names) >= 1 + bool(importlib.util.find_spec("onnxruntime"))
