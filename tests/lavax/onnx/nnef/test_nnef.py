"""NNEF models: text and tensor files, by the operators of ONNX."""
from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.onnx.nnef.operators import OPERATIONS

pytestmark = pytest.mark.usefixtures("reference_backend")
RNG = np.random.default_rng(6)
ITEMS = {"f": 0, "u": 1, "i": 4, "b": 5}


def write_tensor(path: Path, numbers: np.ndarray) -> None:
    header = np.zeros(32, "<u4")
    header[0] = int.from_bytes(b"\x4e\xef\x01\x00", "little")
    header[1:3] = numbers.nbytes, numbers.ndim
    header[3 : 3 + numbers.ndim] = numbers.shape
    header[11:13] = 8 * numbers.itemsize, ITEMS[numbers.dtype.kind]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(header.tobytes() + numbers.tobytes())


def write(
    folder: Path, lines: str, inputs: Mapping[str, tuple[int, ...]], weights: Mapping[str, Any], out: str
) -> None:  # fmt: skip
    given = "".join(f"    {name} = external<scalar>(shape = {list(shape)});\n" for name, shape in inputs.items())
    for name, numbers in weights.items():
        write_tensor(folder / "weights" / f"{name}.dat", numbers)
        given += f"    {name} = variable<scalar>(shape = {list(numbers.shape)}, label = 'weights/{name}');\n"
    text = f"version 1.0;\n# a comment\ngraph net( {', '.join(inputs)} ) -> ( {out} )\n{{\n{given}{lines}\n}}\n"
    (folder / "graph.nnef").write_text(text)


def numbers(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def run(
    folder: Path, lines: str, inputs: Mapping[str, np.ndarray], out: str, **weights: np.ndarray
) -> list[np.ndarray]:  # fmt: skip
    write(folder, lines, {name: value.shape for name, value in inputs.items()}, weights, out)
    model = lx.onnx.load_nnef(folder)
    return [np.asarray(value) for value in model(model.parameters, **inputs).values()]


def test_a_network_runs_and_trains(tmp_path: Path) -> None:
    lines = """
    c = conv(x, k, b, padding = [(1,1), (1,1)], border = 'constant', stride = [2, 2], dilation = [1, 1]);
    n = batch_normalization(c, m, v, o, s, epsilon = 0.001);
    r = leaky_relu(n, alpha = 0.1);
    p = max_pool(r, size = [1,1,2,2], border = 'ignore', padding = [(0,0),(0,0),(0,0),(0,0)], stride = [1,1,2,2]);
    f = reshape(p, shape = [0, -1]);
    l = linear(f, w, wb);
    y = softmax(l, axes = [1]);
    """
    weights = {
        "k": numbers(4, 3, 3, 3), "b": numbers(1, 4), "m": numbers(1, 4), "v": np.abs(numbers(1, 4)) + 1,
        "o": numbers(1, 4), "s": numbers(1, 4), "w": numbers(5, 16), "wb": numbers(1, 5),
    }  # fmt: skip
    write(tmp_path, lines, {"x": (2, 3, 8, 8)}, weights, "y")
    model = lx.onnx.load_nnef(tmp_path)
    assert (model.input_names, model.output_names) == (["x"], ["y"])
    assert {name: np.asarray(value).tolist() for name, value in model.parameters.items()} == {
        name: value.tolist() for name, value in weights.items()
    }

    def by_hand(p: Mapping[str, Any], x: Any) -> Any:
        as_channel = {name: lnp.reshape(p[name], (1, 4, 1, 1)) for name in "bmvos"}
        c = nn.conv(x, p["k"], 2, [(1, 1), (1, 1)]) + as_channel["b"]
        n = (c - as_channel["m"]) / lnp.sqrt(as_channel["v"] + 0.001) * as_channel["s"] + as_channel["o"]
        pooled = nn.max_pool(nn.leaky_relu(n, 0.1), window_shape=(2, 2), strides=2, axes=(2, 3))
        return nn.softmax(lnp.reshape(pooled, (2, 16)) @ p["w"].T + p["wb"])

    x = lnp.asarray(numbers(2, 3, 8, 8))
    parameters = model.parameters
    np.testing.assert_allclose(model(parameters, x=x)["y"], by_hand(parameters, x), rtol=1e-5)
    found, wanted = (
        lx.grad(lambda p: lnp.sum(f(p) ** 2))(parameters)  # noqa: B023
        for f in (lambda p: model(p, x=x)["y"], lambda p: by_hand(p, x))
    )
    for name in weights:
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-4, atol=1e-5)


def test_shapes_are_aligned_at_the_first_axis(tmp_path: Path) -> None:
    x, b = numbers(2, 3, 4), numbers(1, 3)
    (y, z) = run(tmp_path, "y = add(x, b); z = select(gt(x, 0.0), mul(x, 2.0), clamp(x, -1.0, 0.0));", {"x": x}, "y, z",
                 b=b)  # fmt: skip
    np.testing.assert_allclose(y, x + b[:, :, None])
    np.testing.assert_allclose(z, np.where(x > 0, 2 * x, np.clip(x, -1, 0)), rtol=1e-6)


def test_padding_that_the_file_leaves_out_keeps_the_extent(tmp_path: Path) -> None:
    x, k = numbers(1, 2, 5, 7), numbers(3, 2, 3, 3)
    lines = """
    a = conv(x, k, 0.0, stride = [2, 2]);
    b = avg_pool(x, size = [1,1,3,3], border = 'ignore', stride = [1,1,2,2]);
    c = box(x, size = [1,1,2,2], padding = [(0,0),(0,0),(0,0),(0,0)]);
    d = deconv(x, w, 0.5, padding = [(0,0),(0,0)], stride = [2, 2]);
    """
    w = numbers(2, 3, 2, 2)
    a, b, c, d = run(tmp_path, lines, {"x": x}, "a, b, c, d", k=k, w=w)
    np.testing.assert_allclose(a, nn.conv(x, k, 2, "SAME"), rtol=1e-4, atol=1e-5)
    wanted = nn.avg_pool(x, window_shape=(3, 3), strides=2, padding="SAME", count_include_pad=False, axes=(2, 3))
    np.testing.assert_allclose(b, wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(c, nn.sum_pool(x, window_shape=(2, 2), axes=(2, 3)), rtol=1e-5, atol=1e-6)
    enlarged = np.zeros((1, 3, 10, 14), np.float32) + 0.5
    for i, j in np.ndindex(2, 2):
        enlarged[:, :, i::2, j::2] += np.einsum("bchw,co->bohw", x, w[:, :, i, j])
    np.testing.assert_allclose(d, enlarged, rtol=1e-4, atol=1e-5)


def test_movements_and_reductions(tmp_path: Path) -> None:
    x = numbers(2, 6, 4)
    lines = """
    [a, b] = split(x, axis = 1, ratios = [1, 2]);
    c = concat([b, a], axis = 1);
    d = transpose(x, axes = [1, 0]);
    e = slice(x, axes = [1, 2], begin = [1, -3], end = [0, -1]);
    f = sum_reduce(x, axes = [1, 2]);
    g = mean_reduce(x, axes = [1]);
    h = squeeze(f, axes = [1, 2]);
    i = unsqueeze(h, axes = [0]);
    j = pad(x, padding = [(0,0), (1,0), (0,2)], border = 'constant', value = 3.0);
    k = tile(x, repeats = [1, 2, 1]);
    l = matmul(x, x, transposeB = true);
    m = stack([h, h], axis = 1);
    n = l2_normalization(x, axes = [1], epsilon = 0.001);
    """
    found = run(tmp_path, lines, {"x": x}, "c, d, e, g, i, j, k, l, m, n")
    total = x.sum((1, 2))
    wanted = [
        np.concatenate([x[:, 2:], x[:, :2]], 1), x.transpose(1, 0, 2), x[:, 1:, -3:-1], x.mean(1, keepdims=True),
        total[None], np.pad(x, ((0, 0), (1, 0), (0, 2)), constant_values=3), np.tile(x, (1, 2, 1)),
        x @ x.transpose(0, 2, 1), np.stack([total, total], 1), x / np.sqrt((x * x).sum(1, keepdims=True)),
    ]  # fmt: skip
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_upsampling(tmp_path: Path) -> None:
    x = numbers(1, 2, 3, 3)
    lines = """
    a = nearest_upsample(x, factor = [2, 2]);
    b = multilinear_upsample(x, factor = [2, 2], method = 'aligned', border = 'replicate');
    """
    a, b = run(tmp_path, lines, {"x": x}, "a, b")
    np.testing.assert_allclose(a, x.repeat(2, 2).repeat(2, 3))
    corners = (slice(None), slice(None), slice(None, None, 5), slice(None, None, 5))
    np.testing.assert_allclose(b[corners], x[:, :, ::2, ::2], rtol=1e-6)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("y = x @ x;", "line 6: .* is not in NNEF's syntax"),
        ("y = relu(z);", "'z' has no value yet"),
        ("y = relu(x); y = relu(x);", "'y' has a value already"),
        ("y = conv(x);", "conv needs the argument 'filter'"),
        ("y = relu(x, 1, 2, 3);", "relu takes 1 arguments"),
        ("y = variable(shape = [2], label = '../secret');", "outside the model's folder"),
        ("y = variable(shape = [2], label = 'missing');", "is not in the model's folder"),
        ("y = variable(shape = [2], label = 'short');", "shorter than the header"),
        ("y = variable(shape = [3], label = 'two');", r"has the shape \(3,\), its file \(2,\)"),
        ("y = constant(shape = [1000000, 1000000], value = [1.0]);", "has 1 numbers"),
        ("y = relu(" * 40, "deep|too early"),
        ("z = relu(x);", "nothing gives a value to y"),
        ("y = relu(x, foo = 1);", "the attribute foo is not supported"),
    ],
)
def test_what_is_wrong_is_named(line: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    write_tensor(tmp_path / "secret.dat", numbers(2))
    write_tensor(tmp_path / "model" / "two.dat", numbers(2))
    (tmp_path / "model" / "short.dat").write_bytes(b"\x4e\xef\x01")
    write(tmp_path / "model", line, {"x": (2,)}, {}, "y")
    with pytest.raises(lx.ONNXError, match=message):
        lx.onnx.load_nnef(tmp_path / "model")


def test_all_missing_operations_are_named(tmp_path: Path) -> None:
    write(tmp_path, "a = argmax_pool(x, size = [1]);\n b = desample(a);\n y = relu(b);", {"x": (2,)}, {}, "y")
    with pytest.raises(lx.ONNXError, match=r"for 2 reasons:\n.*nnef\.argmax_pool.*\n.*nnef\.desample"):
        lx.onnx.load_nnef(tmp_path)


def test_damaged_tensor_files(tmp_path: Path) -> None:
    write(tmp_path, "y = mul(x, w);", {"x": (2,)}, {"w": numbers(2)}, "y")
    path = tmp_path / "weights" / "w.dat"
    whole = path.read_bytes()
    for place in range(0, 128, 4):
        for value in (0, 1, 0xFFFFFFFF):
            path.write_bytes(whole[:place] + value.to_bytes(4, "little") + whole[place + 4 :])
            try:
                lx.onnx.load_nnef(tmp_path)
            except lx.ONNXError as error:
                assert "onnx.load_nnef" in str(error)
    path.write_bytes(whole[:-1])
    with pytest.raises(lx.ONNXError, match="has 7 bytes of numbers"):
        lx.onnx.load_nnef(tmp_path)


def test_the_page_names_all_operations() -> None:
    text = (Path(__file__).parents[4] / "docs" / "onnx.md").read_text(encoding="utf-8")
    listed = text.split("## NNEF")[1]
    assert [name for name in OPERATIONS if f"`{name}`" not in listed] == []
