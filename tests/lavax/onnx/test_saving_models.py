"""Networks are saved with their parameters as named initializers, and run elsewhere to the same numbers."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.onnx.writing import save as saving
from tests.lavax.onnx.building import run_reference

onnx = pytest.importorskip("onnx", reason="the package that checks ONNX models")
pytestmark = pytest.mark.usefixtures("reference_backend")

RNG = np.random.default_rng(12)


def _numbers(*shape: int) -> np.ndarray:
    return (RNG.normal(size=shape) / np.sqrt(shape[-1])).astype(np.float32)


def _compare(function: Callable[..., Any], parameters: Any, arguments: tuple[Any, ...], path: Path) -> Any:
    lx.onnx.save(function, arguments, path, parameters=parameters)
    wanted = [np.asarray(leaf) for leaf in lx.tree.leaves(function(parameters, *arguments))]
    again = lx.onnx.load(path)
    given = dict(zip(again.input_names, map(np.asarray, lx.tree.leaves(arguments)), strict=True))
    for found in (list(again(again.parameters, **given).values()), run_reference(str(path), given)):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(one), other, rtol=2e-5, atol=2e-5)
    return again


def test_layers(tmp_path: Path) -> None:
    parameters = [{"weight": _numbers(6, 8), "bias": _numbers(8)}, {"weight": _numbers(8, 3), "bias": _numbers(3)}]

    def classify(parameters: Any, x: Any) -> Any:
        hidden = nn.gelu(x @ parameters[0]["weight"] + parameters[0]["bias"])
        return nn.softmax(hidden @ parameters[1]["weight"] + parameters[1]["bias"])

    again = _compare(classify, parameters, (_numbers(5, 6),), tmp_path / "f.onnx")
    assert sorted(again.parameters) == [f"parameters.{k}.{name}" for k in (0, 1) for name in ("bias", "weight")]
    assert list(again.input_names) == ["x"]


def test_a_convolutional_network(tmp_path: Path) -> None:
    parameters = {"kernel": _numbers(4, 3, 3, 3), "scale": _numbers(4), "head": _numbers(4, 5)}

    def classify(parameters: Any, pixels: Any) -> Any:
        hidden = nn.conv(pixels, parameters["kernel"], 1, "SAME") * parameters["scale"][:, None, None]
        pooled = nn.max_pool(nn.relu(hidden), window_shape=(2, 2), strides=2, axes=(2, 3))
        return lnp.mean(pooled, (2, 3)) @ parameters["head"]

    _compare(classify, parameters, (_numbers(2, 3, 8, 8),), tmp_path / "f.onnx")


def test_a_step_of_decoding_with_a_cache(tmp_path: Path) -> None:
    width, heads, length = 16, 2, 6
    parameters = {name: _numbers(width, width) for name in ("query", "key", "value", "out")}
    cache = {"keys": _numbers(1, length, heads, 8), "values": _numbers(1, length, heads, 8)}

    def step(parameters: Any, cache: Any, x: Any, position: Any) -> Any:
        normal = x / lnp.sqrt(lnp.mean(x * x, -1, keepdims=True) + 1e-6)
        query, key, value = ((normal @ parameters[n]).reshape(1, 1, heads, 8) for n in ("query", "key", "value"))
        keys = lx.lax.dynamic_update_slice_in_dim(cache["keys"], key, position, 1)
        values = lx.lax.dynamic_update_slice_in_dim(cache["values"], value, position, 1)
        seen = (lnp.arange(length) <= position)[None, None, None, :]
        read = nn.dot_product_attention(query, keys, values, mask=seen).reshape(1, 1, width)
        return x + read @ parameters["out"], {"keys": keys, "values": values}

    _compare(step, parameters, (cache, _numbers(1, 1, width), np.array(3, np.int32)), tmp_path / "f.onnx")


def test_large_tensors_lie_beside_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saving, "_LARGEST_FILE", 1000)
    path = tmp_path / "f.onnx"
    _compare(lambda weight, x: x @ weight, _numbers(32, 32), (_numbers(2, 32),), path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["f.onnx", "f.onnx.data"]
    assert path.stat().st_size < 1000 <= (tmp_path / "f.onnx.data").stat().st_size
