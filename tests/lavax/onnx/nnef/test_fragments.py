"""Compositions that a file of NNEF defines, and quantised variables."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lavax as lx
from tests.lavax.onnx.nnef.test_nnef import ITEMS, numbers, write, write_tensor

pytestmark = pytest.mark.usefixtures("reference_backend")

OF_X = "fragment f( x: tensor<scalar> ) -> ( y: tensor<scalar> ) "
SCALED = """fragment scaled<? = scalar>( x: tensor<?>, factor: scalar = 2.0, axes: integer[] = [1] ) -> ( y: tensor<?> )
{
    t = mul(x, factor);
    y = sub(t, max_reduce(t, axes = axes));
}
fragment pair( x: tensor<scalar>, sizes: (integer,integer)[] = [] ) -> ( a: tensor<scalar>, b: tensor<scalar> )
{
    a = scaled(scaled(x), axes = [0]);
    b = x;
}
"""


def _load(folder: Path, fragments: str, lines: str, out: str = "y") -> lx.onnx.Model:
    write(folder, lines, {"x": (2, 3)}, {}, out)
    path = folder / "graph.nnef"
    path.write_text(path.read_text().replace("graph net", f"{fragments}graph net"))
    return lx.onnx.load_nnef(folder)


def _scaled(x: np.ndarray, factor: float = 2.0, axis: int = 1) -> np.ndarray:
    return x * factor - (x * factor).max(axis, keepdims=True)


def test_fragments_are_written_out(tmp_path: Path) -> None:
    x = numbers(2, 3)
    model = _load(tmp_path, SCALED, "(p, q) = pair(x); y = add(scaled(p, 3.0, axes = [1]), q); z = scaled(x);", "y, z")
    made = model({}, x=x)
    inner = _scaled(_scaled(x), axis=0)
    np.testing.assert_allclose(made["y"], _scaled(inner, 3.0) + x, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(made["z"], _scaled(x), rtol=1e-6)


OPERATORS = """fragment relu<?>( x: tensor<?> ) -> ( y: tensor<?> );
fragment leaky( x: tensor<scalar>, slope: scalar, steep: logical = false ) -> ( y: tensor<scalar> )
{
    factor = slope * 2.0 + 1.0 if steep else slope / 2.0 ^ 2;
    y = select(x < 0.0 || x != x, x * (-factor), relu(x) - -1.0 * x);
}
"""


def test_operators_between_values(tmp_path: Path) -> None:
    """They bind as usual; between numbers, they give numbers; a declared operation is the one that is known."""
    x = numbers(2, 3)
    model = _load(tmp_path, OPERATORS, "y = leaky(x, 0.5); z = -leaky(x, 0.5, true) + x * 2.0; w = x;", "y, z, w")
    made = model({}, x=x)
    np.testing.assert_allclose(made["y"], np.where(x < 0, -0.125 * x, 2 * x), rtol=1e-6)
    np.testing.assert_allclose(made["z"], 2 * x - np.where(x < 0, -2 * x, 2 * x), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(made["w"], x)


def test_operations_that_others_stand_for(tmp_path: Path) -> None:
    lines = """a = softabs(x, 0.5); (m, v) = moments(x, axes = [1]); n = l1_normalization(x, axes = [1], epsilon = 0.1);
    r = rms_pool(w, size = [1, 1, 2, 2], padding = [(0,0), (0,0), (0,0), (0,0)]);
    c = local_contrast_normalization(w, size = [1, 1, 3, 3], epsilon = 0.1); p = separable_conv(w, f, g);"""
    shapes = {"x": (2, 3), "w": (1, 2, 6, 6), "f": (2, 1, 3, 3), "g": (3, 2, 1, 1)}
    write(tmp_path, lines, shapes, {}, "a, m, v, n, r, c, p")
    given = {name: numbers(*shape) for name, shape in shapes.items()}
    x, w, f, g = given.values()
    made = lx.onnx.load_nnef(tmp_path)({}, **given)
    np.testing.assert_allclose(made["a"], np.sqrt(x * x + 0.5), rtol=1e-5)
    np.testing.assert_allclose(made["m"], x.mean(1, keepdims=True), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(made["v"], x.var(1, keepdims=True), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(made["n"], x / np.maximum(np.abs(x).sum(1, keepdims=True), 0.1), rtol=1e-5)
    pairs = np.lib.stride_tricks.sliding_window_view(w, (2, 2), (2, 3))
    np.testing.assert_allclose(made["r"], np.sqrt((pairs**2).mean((4, 5))), rtol=1e-5)
    around = [(0, 0), (0, 0), (1, 1), (1, 1)]
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(w, around), (3, 3), (2, 3))
    centred = w[..., 1:5, 1:5] - windows[..., 1:5, 1:5, :, :].mean((4, 5))  # away from the edge
    spread = np.sqrt((np.lib.stride_tricks.sliding_window_view(centred, (3, 3), (2, 3)) ** 2).mean((4, 5)))
    inner = np.asarray(made["c"])[..., 2:4, 2:4]
    np.testing.assert_allclose(inner, centred[..., 1:3, 1:3] / np.maximum(spread, 0.1), rtol=1e-4)
    planes = np.einsum("nchwij,cij->nchw", windows, f[:, 0])
    np.testing.assert_allclose(made["p"], np.einsum("nchw,oc->nohw", planes, g[:, :, 0, 0]), rtol=1e-4, atol=1e-5)


def test_inputs_have_the_types_in_angle_brackets(tmp_path: Path) -> None:
    write(tmp_path, "y = gather(x, at);", {"x": (5, 2)}, {}, "y")
    path = tmp_path / "graph.nnef"
    text = path.read_text().replace("graph net( x )", "graph net( x, at )").replace(
        "y = gather", "at = external<integer>(shape = [3]); y = gather"
    )  # fmt: skip
    path.write_text(text)
    x, at = numbers(5, 2), np.array([4, 0, 2], np.int32)
    np.testing.assert_allclose(lx.onnx.load_nnef(tmp_path)({}, x=x, at=at)["y"], x[at])


@pytest.mark.parametrize(
    ("fragments", "line", "message"),
    [
        (f"{OF_X};", "y = f(x);", "y, line 6.*nnef.f.*no such operator"),
        (OF_X + "{ y = f(x); }", "y = f(x);", "line 3: .*defined after"),
        ("", "y = x * (1 / 0);", "line 6: div of .1, 0. has no value"),
        ("", "y = concat([for i in [1, 2] yield x], axis = 0);", "made by `for` are not supported"),
        ("", "y = " + "-" * 99 + "x;", "deep"),
        (OF_X + "{ z = relu(x); }", "y = f(x);", "value to y in f"),
        (OF_X + "{ y = relu(w); }", "y = f(x);", "'w' has no value yet"),
        (OF_X + "{ x = relu(x); }", "y = f(1.0);", "'x' has a value"),
        (SCALED, "y = scaled(factor = 1.0);", "line 16: scaled needs the argument 'x'"),
        (SCALED, "y = scaled(x, 1.0, [1], 4);", "line 16: scaled takes 3 arguments"),
        (SCALED, "y = scaled(x, size = 1);", "line 16: scaled takes no argument 'size'"),
        (SCALED, "y = pair(x);", "line 16: pair gives 2 results, not 1"),
        (SCALED + SCALED, "y = scaled(x);", "two fragments 'scaled'"),
        ("fragment f( x: tensor<scalar", "y = f(x);", "ends too early|expected"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(fragments: str, line: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(lx.ONNXError, match=message):
        _load(tmp_path, fragments, line)


def test_fragments_that_double_each_other_are_refused(tmp_path: Path) -> None:
    head = "fragment f{}( x: tensor<scalar> ) -> ( y: tensor<scalar> ) {{ t = {}(x); y = {}(t); }}\n"
    names = ["relu", *(f"f{k}" for k in range(60))]
    fragments = "".join(head.format(k, names[k], names[k]) for k in range(60))
    with pytest.raises(lx.ONNXError, match="stand for more than 65536 statements"):
        _load(tmp_path, fragments, "y = f59(x);")


def test_arguments_that_are_read_twice_are_computed_once(tmp_path: Path) -> None:
    head = "fragment f{0}( x: tensor<scalar> ) -> ( y: tensor<scalar> ) {{ y = {1}(add(x, x)); }}\n"
    names = ["relu", *(f"f{k}" for k in range(40))]
    x = np.ones((2, 3), np.float32)
    model = _load(tmp_path, "".join(head.format(k, names[k]) for k in range(40)), "y = f39(x);")
    np.testing.assert_allclose(model({}, x=x)["y"], 2.0**40 * x)
    with pytest.raises(lx.ONNXError, match="more than 64 deep"):
        names = ["relu", *(f"f{k}" for k in range(3000))]
        _load(tmp_path, "".join(head.format(k, names[k]) for k in range(3000)), "y = f2999(x);")


def _quantised(folder: Path, entry: str) -> lx.onnx.Model:
    whole = np.array([0, 128, 255], np.uint8)
    write(folder, "y = mul(x, w);", {"x": (3,)}, {"w": whole}, "y")
    path = folder / "weights" / "w.dat"
    write_tensor(path, whole)
    content = bytearray(path.read_bytes())
    assert content[48] == ITEMS["u"]
    content[48] = 2
    path.write_bytes(bytes(content))
    (folder / "graph.quant").write_text(entry)
    return lx.onnx.load_nnef(folder)


def test_quantised_variables_become_numbers(tmp_path: Path) -> None:
    x = np.ones(3, np.float32)
    model = _quantised(tmp_path, '# how\n"w": linear_quantize(min = -1.0, max = 1.0, bits = 8);\n')
    np.testing.assert_allclose(model(model.parameters, x=x)["y"], [-1, -1 + 256 / 255, 1], rtol=1e-6)
    entry = '"w": zero_point_linear_quantize(zero_point = 128, scale = 0.5, bits = 8, signed = false);'
    model = _quantised(tmp_path, entry)
    np.testing.assert_allclose(model(model.parameters, x=x)["y"], [-64, 0, 63.5])


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("", "'w' has quantised integers, but nothing in graph.quant says"),
        ('"w": by_magic(bits = 8);', "'by_magic' is not known"),
        ('"w": linear_quantize(bits = 8);', "graph.quant, line 1: linear_quantize: .*min"),
        ('"w": 3;', "line 1: expected an algorithm for 'w'"),
    ],
)
def test_quantised_variables_without_their_numbers_are_refused(entry: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(lx.ONNXError, match=message):
        _quantised(tmp_path, entry)


def test_numbers_are_rounded_to_steps(tmp_path: Path) -> None:
    x = numbers(2, 3)
    lines = """
    y = linear_quantize(x, -1.0, 1.0, bits = 4);
    z = zero_point_linear_quantize(x, 0.0, 0.25, bits = 3, signed = true, symmetric = true);
    """
    made = _load(tmp_path, "", lines, "y, z")({}, x=x)
    step = 2 / 15
    np.testing.assert_allclose(made["y"], np.round((np.clip(x, -1, 1) + 1) / step) * step - 1, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(made["z"], np.clip(np.round(x / 0.25), -3, 3) * 0.25)
