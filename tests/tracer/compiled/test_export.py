"""Functions written to files: the loaded function, its differences, and damaged files."""
from __future__ import annotations

import json
import tracemalloc
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import DtypeError, ExportError, ShapeError, SideEffectError, TreeMismatchError

X = np.array([1.0, -2.0, 3.0], "f")
W = np.arange(9, dtype="f").reshape(3, 3)


class Pair(NamedTuple):
    second: Any
    first: Any


@lx.tree.register_dataclass
@dataclass(frozen=True)
class Layer:
    weight: Any
    bias: Any


def there_and_back(tmp_path: Path, function: Any, *args: Any, **kwargs: Any) -> lx.Exported:
    path = tmp_path / "function.lavax"
    made = lx.export(function, *args, **kwargs)
    made.save(path)
    loaded = lx.load_exported(path)
    assert loaded.as_text() == made.as_text()
    assert (loaded.function, loaded.weak, loaded.arguments) == (made.function, made.weak, made.arguments)
    return loaded


def same(found: Any, expected: Any) -> None:
    assert lx.tree.structure(found) == lx.tree.structure(expected)
    for one, other in zip(lx.tree.leaves(found), lx.tree.leaves(expected), strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_array_equal(one, other)


def test_what_comes_back_is_the_same(tmp_path: Path) -> None:
    @lx.compile
    def f(tree: Any, n: Any, *, scale: Any) -> Any:
        a, b = tree["x"]
        flags = lnp.asarray(np.array([True, False, True]))
        return {"y": W @ a * scale, 2: [b + n, None], 1: (lnp.where(flags, a, -a), 1.5)}

    args = ({"x": (X, 2.0)}, np.int32(3))
    loaded = there_and_back(tmp_path, f, *args, scale=0.5)
    same(loaded(*args, scale=0.5), f(*args, scale=0.5))
    assert len(loaded.constants) == 2
    assert {node.name for node in loaded.graph.inputs} > {"tree.x.0", "n", "scale"}


def test_classes_become_dicts(tmp_path: Path) -> None:
    def f(layer: Layer, pair: Pair) -> Any:
        return Layer(pair.first @ layer.weight, layer.bias + 1), pair

    layer, pair = Layer(W, X), Pair(second=2 * X, first=X)
    loaded = there_and_back(tmp_path, f, layer, pair)
    expected = ({"weight": X @ W, "bias": X + 1}, {"first": X, "second": 2 * X})
    same(loaded(layer, pair), expected)
    same(loaded({"weight": W, "bias": X}, {"first": X, "second": 2 * X}), expected)


def test_static_arguments_are_part_of_it(tmp_path: Path) -> None:
    f = lx.compile(lambda x, mode: x + 1 if mode == "up" else x - 1, static_argnames="mode")
    same(there_and_back(tmp_path, f, X, "down")(X), X - 1)


def test_branches_loops_and_rules(tmp_path: Path) -> None:
    @lx.custom_vjp
    def doubled(x: Any) -> Any:
        return x * 2

    doubled.defvjp(lambda x: (doubled(x), None), lambda _, g: (g * 3,))

    def loss(x: Any) -> Any:
        y = lx.cond(x[0] > 0, doubled, lnp.sin, x)
        y = lx.checkpoint(lnp.tanh)(y)
        last, sums = lx.scan(lambda c, e: (c * e + y, lnp.sum(c)), y, X)
        last = lx.while_loop(lambda v: lnp.sum(v) < 10, lambda v: v + 1, last)
        return lnp.sum(last) + lnp.sum(sums) + lnp.inf * 0 if x.shape == (0,) else lnp.sum(last) + lnp.sum(sums)

    same(there_and_back(tmp_path, loss, X)(X), lx.compile(loss)(X))
    gradient = lx.grad(lambda x: lnp.sum(lx.scan(lambda c, e: (doubled(c) * e, None), x, X)[0]))
    same(there_and_back(tmp_path, gradient, X)(X), lx.compile(gradient)(X))


def test_it_is_transformed_as_part_of_other_functions(tmp_path: Path) -> None:
    loaded = there_and_back(tmp_path, lambda x: lnp.sum(lnp.sin(W @ x)), X)
    expected = W.T @ np.cos(W @ X)
    np.testing.assert_allclose(lx.grad(loaded)(X), expected, rtol=1e-5, atol=1e-5)
    batched = lx.compile(lx.vmap(lx.grad(loaded)))(np.stack([X, X]))
    np.testing.assert_allclose(batched, np.stack([expected, expected]), rtol=1e-5, atol=1e-5)
    with pytest.raises(ShapeError, match=r"f32\[3\], got f32\[2\]"):
        lx.compile(loaded)(X[:2])


def test_derivatives_are_those_of_the_function(tmp_path: Path) -> None:
    @lx.custom_vjp
    def clipped(x: Any) -> Any:
        return x * x

    @lx.custom_jvp
    def slowed(x: Any) -> Any:
        return lnp.exp(x)

    clipped.defvjp(lambda x: (clipped(x), x), lambda x, g: (lnp.clip(g * 2 * x, -1, 1),))
    slowed.defjvp(lambda primals, tangents: (slowed(*primals), 0.5 * slowed(*primals) * tangents[0]))

    def loss(x: Any) -> Any:
        y = lx.cond(x[0] > 0, clipped, slowed, x)
        z = lx.scan(lambda c, e: (lnp.sin(c) * slowed(e), c), x, x)[0] * lx.stop_gradient(x)
        return lnp.sum(y) + lnp.sum(lx.checkpoint(lambda v: clipped(v) + lnp.cos(v))(z))

    loaded = there_and_back(tmp_path, loss, X)
    for x in (X, -X):
        same(loaded(x), lx.compile(loss)(x))
        for derivative in (lx.grad, lx.hessian):
            found, expected = derivative(loaded)(x), derivative(loss)(x)
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    mapped = [lx.vmap(lx.grad(f))(np.stack([X, -X])) for f in (loaded, loss)]
    np.testing.assert_allclose(*mapped, rtol=1e-5, atol=1e-6)


def test_how_deep_rules_that_call_themselves_are_written(tmp_path: Path) -> None:
    @lx.custom_jvp
    def f(x: Any) -> Any:
        return lnp.exp(x)

    f.defjvp(lambda primals, tangents: (f(*primals), 2 * f(*primals) * tangents[0]))
    loaded = there_and_back(tmp_path, f, 0.0)
    once, twice = lx.grad, lambda g: lx.grad(lx.grad(g))
    assert [float(d(loaded)(0.0)) for d in (once, twice, lambda g: lx.grad(twice(g)))] == [2, 4, 4]
    assert float(lx.grad(twice(f))(0.0)) == 8


def test_rules_of_a_mapped_function(tmp_path: Path) -> None:
    @lx.custom_vjp
    def scaled(x: Any, w: Any) -> Any:
        return x * w

    scaled.defvjp(lambda x, w: (scaled(x, w), (x, w)), lambda kept, g: (3 * g * kept[1], 5 * g * kept[0]))

    def f(xs: Any, w: Any) -> Any:
        return lnp.sum(lx.vmap(scaled, in_axes=(0, None))(xs, w) ** 2)

    loaded = there_and_back(tmp_path, f, W, X)
    for derivative in (lambda g: lx.grad(g, argnums=(0, 1)), lambda g: lx.hessian(g, argnums=1)):
        for found, expected in zip(*(lx.tree.leaves(derivative(g)(W, X)) for g in (loaded, f)), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_rules_that_cannot_be_written(tmp_path: Path) -> None:
    """A rule that calls the function itself and meets values from outside: the call is its operations in the file."""
    outside = lnp.asarray(2 * X)

    @lx.custom_vjp
    def f(x: Any) -> Any:
        return x * x

    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * x * outside,))
    loaded = there_and_back(tmp_path, lambda x: lnp.sum(f(x)), X)
    np.testing.assert_allclose(lx.grad(loaded)(X), 2 * X * X)


def test_other_arguments_are_refused(tmp_path: Path) -> None:
    loaded = there_and_back(tmp_path, lambda x, scale=1.0: x * scale, lx.ShapeDtype((3,), np.dtype("f")))
    with pytest.raises(ShapeError, match=r"exported for x: f32\[3\], got f32\[4\]"):
        loaded(np.ones(4, "f"))
    with pytest.raises(DtypeError, match=r"exported for x: f32\[3\], got i32\[3\]"):
        loaded(np.ones(3, "i"))
    with pytest.raises(TreeMismatchError, match="exported for the arguments"):
        loaded(X, scale=2.0)


def test_what_cannot_be_exported(tmp_path: Path) -> None:
    def printing(x: Any) -> Any:
        lx.debug.print("{}", x)
        return x

    with pytest.raises(SideEffectError, match="cannot be written"):
        lx.export(printing, X)
    with pytest.raises(ExportError, match=r"1\.5 of a dict"):
        lx.export(lambda x: {1.5: x}, X).save(tmp_path / "x")


def test_equal_functions_give_equal_files(tmp_path: Path) -> None:
    files = [tmp_path / name for name in "ab"]
    for file in files:
        lx.export(lambda x: W @ x, X).save(file)
    assert files[0].read_bytes() == files[1].read_bytes()


def rewritten(path: Path, changes: dict[str, Any]) -> None:
    """The archive with other members; None leaves one out."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members |= changes
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            if data is not None:
                archive.writestr(name, data)


def described(path: Path, **changes: Any) -> bytes:
    with zipfile.ZipFile(path) as archive:
        return json.dumps(json.loads(archive.read("function.json")) | changes).encode()


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "function.lavax"
    lx.export(lambda x: W @ x, X).save(path)
    good = path.read_bytes()
    damages: list[Any] = [
        lambda: path.write_bytes(b"something else"),
        lambda: path.write_bytes(b""),
        lambda: path.write_bytes(good[: len(good) // 2]),
        lambda: path.write_bytes(bytes(255 - byte if 100 < k < 160 else byte for k, byte in enumerate(good))),
        lambda: rewritten(path, {"graph.txt": None}),
        lambda: rewritten(path, {"graph.txt": b"graph (x: f32[3]) {\n  %0 = dance(x) : f32[3]\n  return %0\n}"}),
        lambda: rewritten(path, {"graph.txt": b"graph (x: f32[3]) {\n  return x\n}"}),
        lambda: rewritten(path, {"graph.txt": b"graph (x: f32[3], x: f32[3,3]) {\n  return x\n}"}),
        lambda: rewritten(path, {"function.json": b"{"}),
        lambda: rewritten(path, {"function.json": b"[]"}),
        lambda: rewritten(path, {"function.json": described(path, format="other")}),
        lambda: rewritten(path, {"function.json": described(path, version=2)}),
        lambda: rewritten(path, {"function.json": described(path, arguments={"set": ["*"]})}),
        lambda: rewritten(path, {"function.json": described(path, result={"list": ["*", "*"]})}),
        lambda: rewritten(path, {"function.json": described(path, constants=0)}),
        lambda: rewritten(path, {"constants/0.npy": None}),
        lambda: rewritten(path, {"constants/0.npy": b"\x93NUMPY"}),
    ]
    for damage in damages:
        path.write_bytes(good)
        damage()
        with pytest.raises(ExportError, match=r"function\.lavax is damaged, or not"):
            lx.load_exported(path)
    np.save(path.with_suffix(".npy"), np.ones((3, 3), "i"))
    path.write_bytes(good)
    rewritten(path, {"constants/0.npy": path.with_suffix(".npy").read_bytes()})
    with pytest.raises(ExportError, match=r"constant 0 is i32\[3,3\], its graph takes f32\[3,3\]"):
        lx.load_exported(path)
    np.save(path.with_suffix(".npy"), np.array([{}]), allow_pickle=True)
    rewritten(path, {"constants/0.npy": path.with_suffix(".npy").read_bytes()})
    with pytest.raises(ExportError, match=r"[Oo]bject arrays"):
        lx.load_exported(path)
    with pytest.raises(FileNotFoundError):
        lx.load_exported(tmp_path / "nothing")


def test_graphs_nested_too_deep_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "function.lavax"
    lx.export(lambda x: W @ x, X).save(path)
    text = "graph (x: f32[3], w: f32[3,3]) {\n  return x\n}"
    for _ in range(300):
        text = (
            f'graph (x: f32[3], w: f32[3,3]) {{\n  %0 = checkpoint(x, w) keep="dots" body={text} : (f32[3])\n'
            "  %1 = item(%0) index=0 : f32[3]\n  return %1\n}"
        )
    rewritten(path, {"graph.txt": text.encode()})
    with pytest.raises(ExportError, match="graphs are nested more than 64 deep"):
        lx.load_exported(path)
    deep = described(path)[:-1] + b', "result": ' + b'{"list": [' * 100_000 + b'"*"' + b"]}" * 100_000 + b"}"
    lx.export(lambda x: W @ x, X).save(path)
    rewritten(path, {"function.json": deep})
    with pytest.raises(ExportError, match=r"recursion|Stack overflow"):  # the latter from Python 3.14 on
        lx.load_exported(path)


@pytest.mark.parametrize("name", ["graph.txt", "function.json", "constants/0.npy", "something else"])
def test_an_archive_that_would_take_all_memory_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "function.lavax"
    lx.export(lambda x: W @ x, X).save(path)
    with zipfile.ZipFile(path) as archive:
        members = {member: archive.read(member) for member in archive.namelist()} | {name: b" " * (200 << 20)}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    del members
    tracemalloc.start()
    try:
        with pytest.raises(ExportError, match=r"bytes would become 209"):
            lx.load_exported(path)
        assert tracemalloc.get_traced_memory()[1] < 50 << 20
    finally:
        tracemalloc.stop()


def test_a_constant_that_announces_more_than_it_has_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "function.lavax"
    lx.export(lambda x: W @ x, X).save(path)
    good = path.read_bytes()
    for shape in ("(3, 4)", "(1000000, 1000000)", "(9223372036854775807, 3)", "(3, -3)", f"({'1,' * 70})"):
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode()
        data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(36)
        path.write_bytes(good)
        rewritten(path, {"constants/0.npy": data})
        with pytest.raises(ExportError, match=r"announces \d+ bytes of numbers, and there are 36|no array has the"):
            lx.load_exported(path)


def test_large_constants_of_one_number_are_read_back(tmp_path: Path) -> None:
    """They would compress to a thousandth, as no file that is read may."""
    path = tmp_path / "function.lavax"
    zeros = np.zeros((5, 1 << 22), "f")
    lx.export(lambda x: x + lnp.asarray(zeros), lx.ShapeDtype((5, 1 << 22), "float32")).save(path)
    (constant,) = lx.load_exported(path).constants
    assert constant.shape == zeros.shape
    assert path.stat().st_size > zeros.nbytes


@pytest.mark.parametrize("line", ['%0 = axis_index() name="i" : i32[]', "%0 = sort_runs(x) run=2 : i32[3]"])
def test_operations_of_lowering_are_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "function.lavax"
    lx.export(lambda x: W @ x, X).save(path)
    rewritten(path, {"graph.txt": f"graph (x: f32[3], w: f32[3,3]) {{\n  {line}\n  return x\n}}".encode()})
    with pytest.raises(ExportError, match="which no exported function has"):
        lx.load_exported(path)
