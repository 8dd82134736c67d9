"""Random graphs give the same numbers as in another runtime; and the same once more when lavax has written them."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lavax as lx
from tests.lavax.onnx.building import run_reference
from tests.lavax.onnx.random_models import random_model

pytest.importorskip("onnx", reason="the package that reads ONNX models")
pytestmark = pytest.mark.usefixtures("reference_backend")


def compare(seed: int, path: Path | None = None) -> None:
    data, inputs = random_model(seed)
    loaded = lx.onnx.load(data)
    if path is not None:
        def function(x: lx.Array, y: lx.Array) -> dict[str, lx.Array]:
            return loaded(loaded.parameters, x=x, y=y)

        lx.onnx.save(function, tuple(inputs.values()), path)
        found = dict(zip(sorted(loaded.output_names), run_reference(path.read_bytes(), inputs), strict=True))
    else:
        found = loaded(loaded.parameters, **inputs)
    for name, wanted in zip(loaded.output_names, run_reference(data, inputs), strict=True):
        made = np.asarray(found[name])
        assert made.shape == wanted.shape, (seed, name)
        largest = np.max(np.abs(wanted), where=np.isfinite(wanted), initial=1e-3)
        np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=2e-5 * largest, err_msg=f"seed {seed}, {name}")


@pytest.mark.parametrize("part", range(4))
def test_random_graphs(part: int) -> None:
    for seed in range(part, 60, 4):
        compare(seed)


def test_random_graphs_that_are_written_again(tmp_path: Path) -> None:
    for seed in range(25):
        compare(seed, tmp_path / "again.onnx")


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_five_hundred_random_graphs(part: int, tmp_path: Path) -> None:
    for seed in range(1000 + part, 1500, 10):
        compare(seed)
        compare(seed, tmp_path / "again.onnx")
