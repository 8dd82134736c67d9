"""Damaged and hostile files: a clear error, nothing read outside the folder, nothing large allocated first."""
from __future__ import annotations

import os
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
from tests.lavax.onnx.building import graph, model, node

onnx = pytest.importorskip("onnx", reason="the package that reads ONNX models")
pytestmark = pytest.mark.usefixtures("reference_backend")
X, Y = {"x": ("f4", [2])}, {"y": ("f4", None)}


def _proto(data: bytes) -> Any:
    return onnx.load_model_from_string(data)


def _refused(data: Any, message: str) -> None:
    content = data if isinstance(data, (bytes, Path)) else data.SerializeToString()
    tracemalloc.start()
    start = time.monotonic()
    with pytest.raises(lx.ONNXError, match=message):
        loaded = lx.onnx.load(content)
        loaded(loaded.parameters, x=np.ones(2, np.float32))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 26 and time.monotonic() - start < 5


def test_what_is_no_model() -> None:
    whole = model([node("Relu", "x", "y")], X, Y, {"w": np.ones(100, np.float32)})
    _refused(b"", "holds no graph")
    _refused(b"\x89PNG not a model at all", "is no ONNX model")
    _refused(whole[: len(whole) // 2], "is no ONNX model, or not a whole one")
    _refused(b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull")


def test_every_truncation_and_flipped_byte_is_an_error_or_a_model() -> None:
    whole = model(
        [node("Conv", "x w", "c"), node("Relu", "c", "y")], {"x": ("f4", [1, 1, 4, 4])}, Y,
        {"w": np.ones((1, 1, 3, 3), np.float32)},
    )  # fmt: skip
    rng = np.random.default_rng(0)
    damaged = [whole[:end] for end in range(0, len(whole), 3)]
    for place in rng.integers(0, len(whole), 150):
        changed = bytearray(whole)
        changed[place] ^= 1 << int(rng.integers(8))
        damaged.append(bytes(changed))
    for content in damaged:
        try:
            loaded = lx.onnx.load(content)
            loaded(loaded.parameters, **dict.fromkeys(loaded.input_names, np.ones((1, 1, 4, 4), np.float32)))
        except lx.LavaxError:
            pass


def test_a_cycle_and_a_name_that_nothing_computes() -> None:
    _refused(model([node("Add", "x b", "a"), node("Relu", "a", "b"), node("Relu", "b", "y")], X, Y), "'b'|not output")
    _refused(model([node("Add", "x nothing", "y")], X, Y), "nothing")
    _refused(model([node("Relu", "x", "y"), node("Abs", "x", "y")], X, Y), "y")
    _refused(model([node("Relu", "x", "z")], X, Y), "y")


def test_a_function_that_calls_itself() -> None:
    helper = onnx.helper
    itself = helper.make_function(
        "acme", "F", ["x"], ["y"], [helper.make_node("F", ["x"], ["y"], domain="acme")],
        [helper.make_opsetid("acme", 1)],
    )  # fmt: skip
    inner = graph([helper.make_node("F", ["x"], ["y"], domain="acme")], X, Y)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("acme", 1)]
    _refused(helper.make_model(inner, functions=[itself], opset_imports=opsets, ir_version=10), "acme|F")


def test_functions_that_call_one_another_without_end() -> None:
    """Each calls the next one twice: 40 of them are 2^40 calls."""
    helper, opsets = onnx.helper, [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("acme", 1)]

    def call(number: int, source: str, result: str) -> Any:
        return helper.make_node(f"F{number}", [source], [result], domain="acme")

    functions = [
        helper.make_function("acme", f"F{k}", ["x"], ["y"], [call(k + 1, "x", "t"), call(k + 1, "t", "y")], opsets)
        for k in range(40)
    ]
    functions.append(helper.make_function("acme", "F40", ["x"], ["y"], [node("Relu", "x", "y")], opsets))
    inner = graph([call(0, "x", "y")], X, Y)
    whole = helper.make_model(inner, functions=functions, opset_imports=opsets, ir_version=10)
    with pytest.raises(lx.ONNXError, match="more than 16384 times"):
        lx.onnx.load(whole.SerializeToString())


def test_names_that_are_no_text() -> None:
    """Some implementations of protobuf give their bytes."""
    data = model([node("Elu", "x", "y", alpha=2.0)], X, Y)
    _refused(data.replace(b"alpha", b"al\xffha"), "no text in UTF-8|breaks a rule|is no ONNX model")
    _refused(data.replace(b"Elu", b"E\xffu"), "no text in UTF-8|breaks a rule|is no ONNX model")


def test_graphs_nested_deep() -> None:
    inside = graph([node("Identity", "x", "y0")], {}, {"y0": ("f4", None)})
    for depth in range(1, 28):
        other = graph([node("Identity", "x", "z")], {}, {"z": ("f4", None)})
        branch = node("If", "c", f"y{depth}", then_branch=inside, else_branch=other)
        inside = graph([branch], {}, {f"y{depth}": ("f4", None)})
    outer = model(
        [node("If", "c", "y", then_branch=inside, else_branch=inside)], {"x": ("f4", [2]), "c": ("?", [])}, Y
    )
    with pytest.raises(lx.ONNXError, match="more than 24 graphs deep"):
        lx.onnx.load(outer)


def test_shapes_that_the_file_does_not_fill() -> None:
    proto = _proto(model([node("Add", "x w", "y")], X, Y, {"w": np.ones(2, np.float32)}))
    proto.graph.initializer[0].dims[:] = [1 << 40]
    _refused(proto, "w")
    proto.graph.initializer[0].dims[:] = [-2]
    _refused(proto, "w")
    proto.graph.initializer[0].dims[:] = [2]
    proto.graph.initializer[0].data_type = 99
    _refused(proto, "w")


def test_a_sparse_tensor_that_would_fill_the_memory() -> None:
    helper = onnx.helper
    values = helper.make_tensor("w", onnx.TensorProto.FLOAT, [1], [1.0])
    places = helper.make_tensor("w_places", onnx.TensorProto.INT64, [1], [5])
    proto = _proto(model([node("Relu", "x", "y")], X, Y))
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [1 << 40]))
    _refused(proto, "w")


@pytest.mark.parametrize("extent", [1 << 40, 1 << 62])
def test_constants_of_huge_shapes(extent: int) -> None:
    data = model(
        [node("ConstantOfShape", "s", "c"), node("ReduceSum", "c", "r", keepdims=0), node("Add", "x r", "y")], X, Y,
        {"s": np.array([extent, 2])},
    )  # fmt: skip
    tracemalloc.start()
    with pytest.raises(lx.LavaxError):
        loaded = lx.onnx.load(data)
        lx.compile(lambda x: loaded({}, x=x)["y"]).lower(np.ones(2, np.float32)).as_text("optimized")
        raise lx.ONNXError("it is only traced")
    assert tracemalloc.get_traced_memory()[1] < 1 << 26
    tracemalloc.stop()


def _with_external(folder: Path, location: str, **facts: int) -> Path:
    proto = _proto(model([node("Add", "x w", "y")], X, Y, {"w": np.array([3, 4], np.float32)}))
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": location, **facts}.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, str(value)
    path = folder / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def test_external_data_are_mapped(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "w.bin").write_bytes(b"\0" * 8 + np.array([3, 4], np.float32).tobytes())
    loaded = lx.onnx.load(_with_external(tmp_path, "data/w.bin", offset=8, length=8))
    assert isinstance(loaded.graph.initializers["w"].base, np.memmap | np.ndarray)
    assert np.asarray(loaded(loaded.parameters, x=np.ones(2, np.float32))["y"]).tolist() == [4, 5]


def test_external_data_of_a_constant(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(np.array([3, 4], np.float32).tobytes())
    proto = _proto(_with_external(tmp_path, "w.bin").read_bytes())
    made = onnx.helper.make_node("Constant", [], ["w"], value=proto.graph.initializer[0])
    proto.graph.node.insert(0, made)
    del proto.graph.initializer[:]
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    loaded = lx.onnx.load(tmp_path / "m.onnx")
    assert np.asarray(loaded({}, x=np.ones(2, np.float32))["y"]).tolist() == [4, 5]
    proto.graph.node[0].attribute[0].t.external_data[0].value = "../w.bin"
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    _refused(tmp_path / "m.onnx", "outside the model's folder")


def test_external_data_stay_in_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(b"\0" * 8)
    os.symlink(tmp_path / "secret.bin", folder / "link.bin")
    os.symlink(folder / "loop.bin", folder / "loop.bin")
    os.mkfifo(folder / "pipe.bin")
    for location in ("../secret.bin", str(tmp_path / "secret.bin"), "link.bin", "a/../../secret.bin", "", "\0"):
        _refused(_with_external(folder, location), "outside the model's folder|no valid location")
    for location in ("missing.bin", "pipe.bin", "loop.bin", "."):
        _refused(_with_external(folder, location), "not beside the model|no valid location|outside")


def test_external_data_are_as_long_as_they_say(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(b"\0" * 8)
    _refused(_with_external(tmp_path, "w.bin", offset=4), "lies at bytes 4 to 12 of w.bin, which has 8")
    _refused(_with_external(tmp_path, "w.bin", offset=-4), "w.bin")
    _refused(_with_external(tmp_path, "w.bin", length=1 << 50), "needs 8 bytes")
    content = _with_external(tmp_path, "w.bin").read_bytes()
    _refused(content, "was given as bytes")


def test_numbers_that_are_no_sizes() -> None:
    _refused(model([node("MaxPool", "x", "y", kernel_shape=[0])], {"x": ("f4", None)}, Y), "node 'MaxPool_1'")
    _refused(model([node("Concat", "x x", "y", axis=7)], X, Y), "node 'Concat_1'")
    _refused(model([node("Transpose", "x", "y", perm=[0, 5])], X, Y), "node 'Transpose_1'")
    _refused(model([node("Slice", "x a b c d", "y")], X, Y, {k: np.array([0]) for k in "abcd"}), "a step is 0")


def test_loops_that_would_never_end() -> None:
    body = graph(
        [node("Identity", "c", "c1"), node("Identity", "v", "v1"), node("SequenceInsert", "s v", "s1")],
        {"i": ("i8", []), "c": ("?", []), "v": ("f4", [2])}, {"c1": ("?", []), "v1": ("f4", [2])},
    )  # fmt: skip
    del body.node[2]
    data = model([node("Loop", "m c v", "y", body=body)], {"x": ("f4", [2])}, Y,
                 {"m": np.array(1 << 62), "c": np.array(True), "v": np.ones(2, np.float32)})  # fmt: skip
    loaded = lx.onnx.load(data)
    text = lx.compile(lambda x: loaded(loaded.parameters, x=x)["y"]).lower(np.ones(2, np.float32)).as_text("ir")
    assert len(text) < 4000


def test_known_numbers_that_grow() -> None:
    """Forty nodes of a file can double an array forty times."""
    nodes = [node("Concat", f"v{k} v{k}", f"v{k + 1}", axis=0) for k in range(40)]
    asked = [node("Reshape", "x v40", "y")]
    _refused(model([*nodes, *asked], X, Y, {"v0": np.ones(4, np.int64)}), r"more than 1048576 numbers would have to be")
    outer = [node("Add", "a b", "c"), node("ReduceMax", "c", "m", keepdims=0), node("Expand", "x m", "y")]
    sides = {"a": np.ones((1 << 12, 1), np.int64), "b": np.ones((1, 1 << 12), np.int64)}
    _refused(model(outer, X, Y, sides), "more than 1048576 numbers would have to be known")


@pytest.mark.parametrize("operator", ["Pad", "Tile", "Expand"])
def test_huge_shapes_of_known_numbers_allocate_nothing(operator: str) -> None:
    nodes = [
        node(operator, "v sizes", "p"), node("ReduceSum", "p", "r", keepdims=0), node("Cast", "r", "f", to=1),
        node("Add", "x f", "y"),
    ]  # fmt: skip
    sizes = np.array([1 << 15] * (4 if operator == "Pad" else 2)) // (2 if operator == "Pad" else 1)
    loaded = lx.onnx.load(model(nodes, X, Y, {"v": np.ones((1, 1), np.int64), "sizes": sizes}))
    tracemalloc.start()
    text = lx.compile(lambda x: loaded({}, x=x)["y"]).lower(np.ones(2, np.float32)).as_text("ir")
    assert tracemalloc.get_traced_memory()[1] < 1 << 26 and "3276" in text
    tracemalloc.stop()
