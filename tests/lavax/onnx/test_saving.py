"""Functions as files: onnx.checker accepts them; other runtimes, and lavax again, give the same numbers."""
from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import lax, nn
from tests.lavax.onnx.building import run_reference

onnx = pytest.importorskip("onnx", reason="the package that checks ONNX models")
pytestmark = pytest.mark.usefixtures("reference_backend")

RNG = np.random.default_rng(5)
X = RNG.normal(size=(3, 4)).astype(np.float32)
Y = RNG.uniform(0.3, 2, size=(3, 4)).astype(np.float32)
WHOLE = RNG.integers(-9, 9, (3, 4)).astype(np.int32)
J = RNG.integers(1, 5, (3, 4)).astype(np.int32)
IMAGE = RNG.normal(size=(2, 3, 7, 6)).astype(np.float32)
KERNEL = RNG.normal(size=(4, 3, 3, 2)).astype(np.float32)


def compare(function: Callable[..., Any], *arguments: Any, path: Path, tolerance: float = 2e-6) -> Any:
    """Writes a function, and runs the file in another runtime and in lavax."""
    lx.onnx.save(function, arguments, path)
    wanted = [np.asarray(leaf) for leaf in lx.tree.leaves(function(*map(lnp.asarray, arguments)))]
    again = lx.onnx.load(path)
    given = dict(zip(again.input_names, arguments, strict=True))
    results = [list(again(again.parameters, **given).values())]
    if importlib.util.find_spec("onnxruntime"):
        results.append(run_reference(path.read_bytes(), given))
    for found in results:
        for one, other in zip(found, wanted, strict=True):
            made = np.asarray(one)
            assert made.shape == other.shape and made.dtype == other.dtype
            largest = np.max(np.abs(other, dtype=np.float64), where=np.isfinite(other), initial=0)
            np.testing.assert_allclose(made, other, rtol=tolerance * 5, atol=tolerance * max(largest, 1e-3))
    return onnx.load(path)


UNARY = [
    "abs", "ceil", "cbrt", "cos", "cosh", "exp", "exp2", "expm1", "floor", "log1p", "negative", "rint", "sign", "sin",
    "sinh", "square", "tan", "tanh", "trunc", "arcsinh", "arctan", "isfinite", "isnan", "logical_not", "reciprocal",
]  # fmt: skip
OF_POSITIVE = ["log", "log2", "log10", "sqrt", "logaddexp", "hypot", "power"]
BINARY = [
    "add", "arctan2", "divide", "equal", "fmod", "greater", "greater_equal", "less", "less_equal", "maximum",
    "minimum", "mod", "multiply", "not_equal", "subtract", "logical_and", "logical_or", "logical_xor",
]  # fmt: skip
OF_INTEGERS = ["add", "bitwise_and", "bitwise_or", "bitwise_xor", "equal", "floor_divide", "left_shift", "less",
               "maximum", "minimum", "mod", "multiply", "right_shift", "subtract"]  # fmt: skip


def test_elementwise_functions(tmp_path: Path) -> None:
    compare(lambda x: [getattr(lnp, name)(x) for name in UNARY], X, path=tmp_path / "f.onnx")
    activations = ("relu", "gelu", "silu", "softplus", "sigmoid", "softmax")
    compare(lambda x: [getattr(nn, name)(x) for name in activations], X, path=tmp_path / "f.onnx")
    compare(lambda x, y: [getattr(lnp, name)(x, y) for name in BINARY], X, Y, path=tmp_path / "f.onnx")
    compare(
        lambda x, y: [getattr(lnp, n)(x, y) if n in OF_POSITIVE[4:] else getattr(lnp, n)(x) for n in OF_POSITIVE],
        Y, Y.T.reshape(3, 4).copy(), path=tmp_path / "f.onnx",
    )  # fmt: skip
    compare(
        lambda x: [
            lax.erf(x), lax.erfc(x), lax.rsqrt(abs(x)), lnp.arccos(x / 4), lnp.arcsin(x / 4), lnp.arctanh(x / 4),
            lnp.arccosh(1 + abs(x)), lnp.where(x > 0, x, 1), lnp.clip(x, -1, 0.5),
        ],
        X, path=tmp_path / "f.onnx",
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8", "uint32"])
def test_integers_wrap_and_round_as_here(dtype: str, tmp_path: Path) -> None:
    x, y = (np.abs(WHOLE) if dtype[0] == "u" else WHOLE).astype(dtype), J.astype(dtype)
    compare(lambda x, y: [getattr(lnp, name)(x, y) for name in OF_INTEGERS], x, y, path=tmp_path / "f.onnx")
    compare(lambda x: [lnp.sum(x, 1), lnp.max(x), x.astype("float32"), x > 3, lnp.invert(x)], x,
            path=tmp_path / "f.onnx")  # fmt: skip


def test_logarithms_and_powers_near_one_and_far_away(tmp_path: Path) -> None:
    x = np.array([0, 1e-10, -1e-8, 1e-4, 0.5, -0.5, 30, 80, np.inf], np.float32)
    compare(lambda x: [lnp.log1p(x), lnp.expm1(x)], x, path=tmp_path / "f.onnx")


def test_movements(tmp_path: Path) -> None:
    compare(
        lambda x: {
            "reshaped": x.reshape(2, 6), "turned": x.T, "cut": x[1:, ::2], "backwards": x[::-1, ::-1],
            "padded": lnp.pad(x, ((1, 2), (0, 3)), constant_values=7.0), "joined": lnp.concatenate([x, x * 2], 1),
            "spread": lax.pad(x, 5.0, [(1, 0, 2), (0, 1, 1)]), "rows": lnp.broadcast_to(x[:, None], (3, 5, 4)) * 1,
            "counted": lnp.arange(4.0) + lnp.zeros_like(x), "rolled": lnp.roll(x, 1, 0), "constant": lnp.ones((2, 2)),
            "same": x, "triangle": lnp.tril(x),
        },
        X, path=tmp_path / "f.onnx",
    )  # fmt: skip


def test_products_and_convolutions(tmp_path: Path) -> None:
    a, b = RNG.normal(size=(2, 3, 4)).astype("f"), RNG.normal(size=(2, 4, 5)).astype("f")
    compare(
        lambda a, b: [a @ b, lnp.einsum("bij,bjk->kbi", a, b), lnp.tensordot(a, b, ([0, 2], [0, 1])), a[0] @ b[0],
                      a[0, 0] @ b[0], lnp.einsum("bij,bij->", a, a)],
        a, b, path=tmp_path / "f.onnx",
    )  # fmt: skip
    compare(
        lambda x, w: [
            nn.conv(x, w, 2, "SAME"), nn.conv(x, w, 1, "VALID", rhs_dilation=2), nn.conv(x[:, :, 0], w[:, :, 0]),
            nn.conv(x, w, 1, [(-1, 2), (0, -1)]), nn.conv_transpose(x, w, 2, "SAME"),
            nn.conv(x, w[:3, :1], 1, "SAME", feature_group_count=3),
        ],
        IMAGE, KERNEL, path=tmp_path / "f.onnx",
    )  # fmt: skip


def test_pools_are_pools(tmp_path: Path) -> None:
    moves = dict(window_shape=(3, 2), strides=(2, 1), axes=(2, 3))
    proto = compare(
        lambda x: [nn.max_pool(x, padding="SAME", **moves), nn.avg_pool(x, **moves), nn.sum_pool(x, **moves),
                   nn.max_pool(x, window_shape=(2, 2), strides=1, window_dilation=2, axes=(2, 3))],
        IMAGE, path=tmp_path / "f.onnx",
    )  # fmt: skip
    operators = [node.op_type for node in proto.graph.node]
    assert operators.count("MaxPool") == 2 and operators.count("AveragePool") == 1 and "Gather" not in operators


def test_windows_that_are_no_pools(tmp_path: Path) -> None:
    def pooled(x: Any) -> Any:
        return lnp.sum(nn.max_pool(x, window_shape=(2, 2), strides=2, axes=(2, 3)) ** 2)

    compare(lx.grad(pooled), IMAGE, path=tmp_path / "f.onnx")


def test_reductions_sorting_and_sums_along_an_axis(tmp_path: Path) -> None:
    compare(
        lambda x: [
            lnp.sum(x), lnp.mean(x, 0), lnp.max(x, 1, keepdims=True), lnp.min(x), lnp.prod(x, 1), lnp.argmax(x, 1),
            lnp.argmin(x, 0), lnp.sort(x, 1), lnp.argsort(x, 0), lnp.cumsum(x, 1), lnp.cumprod(x, 0),
            lax.cummax(x, 1), lax.cummin(x, 1, reverse=True), lnp.all(x > 0, 1), lnp.any(x > 2), lnp.var(x),
            lnp.searchsorted(lnp.sort(x.reshape(-1)), x.reshape(-1)),
        ],
        X, path=tmp_path / "f.onnx",
    )  # fmt: skip


def test_reading_and_writing_at_indices(tmp_path: Path) -> None:
    at = np.array([2, 0, 2], np.int32)
    compare(
        lambda x, at: [
            x[at], x[:, at], x[at, at], lnp.take(x, at, axis=1), lnp.take_along_axis(x, lnp.abs(at)[:, None], 1),
            x.at[at].set(1.0), x.at[at, at].add(2.0), x.at[:, at].multiply(3.0), x.at[at].max(0.0),
            x.at[at + 2].set(9.0, mode="drop"), x.at[0, at].min(-1.0),
        ],
        X, at, path=tmp_path / "f.onnx",
    )  # fmt: skip


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal: bool, tmp_path: Path) -> None:
    q, k = RNG.normal(size=(2, 2, 5, 4, 8)).astype("f")
    mask = RNG.uniform(size=(2, 1, 5, 5)) > 0.3
    compare(lambda q, k: nn.dot_product_attention(q, k, k, is_causal=causal), q, k, path=tmp_path / "f.onnx")
    compare(lambda q, k, m: nn.dot_product_attention(q, k, k, mask=m, is_causal=causal), q, k, mask,
            path=tmp_path / "f.onnx")  # fmt: skip


def test_branches_and_loops(tmp_path: Path) -> None:
    w = lnp.asarray(X.T @ X / 10)

    def f(x: Any, n: Any) -> Any:
        chosen = lax.cond(n > 1, lambda x: x * 2, lambda x: x - 1, x)
        switched = lax.switch(n, [lambda x: x, lambda x: x + 1, lambda x: x @ w], x)
        total, rows = lax.scan(lambda c, row: (lnp.tanh(c + row @ w), c * 2), lnp.zeros(4), x)
        back, _ = lax.scan(lambda c, row: (c * 0.5 + row, None), lnp.zeros(4), x, reverse=True)
        steps = lax.while_loop(lambda v: v[0] < n, lambda v: (v[0] + 1, v[1] @ w), (0, x))
        counted = lax.fori_loop(0, 3, lambda i, v: v + i, x)
        return chosen, switched, total, rows, back, steps, counted

    for n in (0, 2):
        compare(f, X, np.array(n, np.int32), path=tmp_path / "f.onnx", tolerance=1e-5)


def test_large_integers_without_sign_keep_their_order(tmp_path: Path) -> None:
    x = np.array([[3, 2**32 - 1, 2**31], [2**31 - 1, 0, 7]], np.uint32)
    compare(
        lambda x: [lnp.sort(x, 1), lnp.argsort(x, 1), lnp.argmax(x, 1), x < x[::-1], lnp.maximum(x, x[::-1])], x,
        path=tmp_path / "f.onnx",
    )  # fmt: skip


def test_names_of_inputs_outputs_and_weights(tmp_path: Path) -> None:
    w = lnp.asarray(X)

    def f(params: Any, pixels: Any) -> Any:
        return {"logits": pixels @ w.T * params["scale"], "parts": [pixels + params["shift"][0]]}

    path = tmp_path / "f.onnx"
    example = ({"scale": np.float32(2), "shift": [np.float32(1)]}, lx.ShapeDtype((2, 4), "float32"))
    lx.onnx.save(f, example, path)
    proto = onnx.load(path)
    assert [given.name for given in proto.graph.input] == ["params.scale", "params.shift.0", "pixels"]
    assert [given.name for given in proto.graph.output] == ["logits", "parts.0"]
    assert proto.opset_import[0].version == 21 and proto.producer_name == "lavax"
    assert list(lx.onnx.load(path).parameters) == ["weight"]


def test_all_operations_without_a_form_are_named(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        return lx.scipy.special.i0(x[0, 0]), lnp.linalg.eigvalsh(x @ x.T)

    with pytest.raises(lx.ONNXError, match=r"(?s)nothing was written\n(?=.*bessel_i0.*: write)(?=.*eigh.*: comp)"):
        lx.onnx.save(f, (X,), tmp_path / "f.onnx")
    assert not list(tmp_path.iterdir())


def test_gradients_are_saved(tmp_path: Path) -> None:
    w = lnp.asarray(KERNEL)

    def loss(x: Any) -> Any:
        hidden = nn.relu(nn.conv(x, w, 1, "SAME"))
        return lnp.sum(nn.max_pool(hidden, window_shape=(2, 2), axes=(2, 3)) ** 2)

    compare(lx.grad(loss), IMAGE, path=tmp_path / "f.onnx", tolerance=1e-5)
