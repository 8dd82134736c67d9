"""A loaded model is a function: of parameters and named inputs, under every transformation."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from tests.lavax.onnx.building import graph, model, node, run_reference

onnx = pytest.importorskip("onnx", reason="the package that reads ONNX models")
pytestmark = pytest.mark.usefixtures("reference_backend")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def _classifier(rng: np.random.Generator) -> bytes:
    return model(
        [node("Gemm", "x w b", "h", transB=1), node("Tanh", "h", "t"), node("Softmax", "t", "y", axis=-1)],
        {"x": ("f4", ["n", 3])},
        {"y": ("f4", ["n", 4]), "h": ("f4", ["n", 4])},
        {"w": rng.normal(size=(4, 3)).astype("f"), "b": rng.normal(size=4).astype("f")},
    )


def test_a_model_names_its_inputs_outputs_and_parameters(rng: np.random.Generator) -> None:
    loaded = lx.onnx.load(_classifier(rng))
    assert (loaded.input_names, loaded.output_names) == (["x"], ["y", "h"])
    assert {name: value.shape for name, value in loaded.parameters.items()} == {"w": (4, 3), "b": (4,)}


def test_a_model_is_loaded_from_a_path(rng: np.random.Generator, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(_classifier(rng))
    x = np.ones((2, 3), np.float32)
    made = [lx.onnx.load(place) for place in (tmp_path / "m.onnx", str(tmp_path / "m.onnx"))]
    one, two = (each(each.parameters, x=x)["y"] for each in made)
    assert np.array_equal(np.asarray(one), np.asarray(two))


def test_transformations_of_a_model(rng: np.random.Generator) -> None:
    data = _classifier(rng)
    loaded, x = lx.onnx.load(data), rng.normal(size=(5, 3)).astype("f")
    parameters = loaded.parameters
    y = np.asarray(loaded(parameters, x=x)["y"])
    np.testing.assert_allclose(y, run_reference(data, {"x": x})[0], rtol=1e-5)

    def loss(p: dict[str, lx.Array], x: lx.Array) -> lx.Array:
        return lnp.sum(loaded(p, x=x)["y"] ** 2 * lnp.arange(1.0, 5.0))

    def by_hand(p: dict[str, lx.Array], x: lx.Array) -> lx.Array:
        return lnp.sum(lx.nn.softmax(lnp.tanh(x @ p["w"].T + p["b"])) ** 2 * lnp.arange(1.0, 5.0))

    found, wanted = (lx.grad(f, argnums=(0, 1))(parameters, lnp.asarray(x)) for f in (loss, by_hand))
    for one, other in zip(lx.tree.leaves(found), lx.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-4, atol=1e-6)
    alone = lx.vmap(lambda row: loaded(parameters, x=row[None])["y"][0])(lnp.asarray(x))
    np.testing.assert_allclose(np.asarray(alone), y, rtol=1e-5)
    _, tangent = lx.jvp(lambda x: loss(parameters, x), (lnp.asarray(x),), (lnp.ones_like(x),))
    np.testing.assert_allclose(float(tangent), float(lnp.sum(found[1])), rtol=1e-4)
    text = lx.compile(loss).lower(parameters, x).as_text("optimized")
    assert text.count("dot(") == 1  # one graph, without a border around the model


def test_each_shape_has_a_program_of_its_own(rng: np.random.Generator) -> None:
    loaded = lx.onnx.load(_classifier(rng))
    for rows in (1, 2, 7):
        assert loaded(loaded.parameters, x=np.ones((rows, 3), np.float32))["y"].shape == (rows, 4)


def test_arithmetic_of_shapes_is_folded() -> None:
    """A reshape to what Shape, Gather, Mul and Concat computed leaves no operations on integers."""
    data = model(
        [
            node("Shape", "x", "s"), node("Gather", "s zero", "n"), node("Gather", "s one", "m"),
            node("Mul", "n m", "k"), node("Unsqueeze", "k axes", "k1"), node("Concat", "k1 rest", "t", axis=0),
            node("Reshape", "x t", "r"), node("Relu", "r", "y"),
        ],
        {"x": ("f4", ["a", "b", "c"])}, {"y": ("f4", None)},
        {"zero": np.array(0), "one": np.array(1), "axes": np.array([0]), "rest": np.array([-1])},
    )  # fmt: skip
    loaded = lx.onnx.load(data)
    assert not loaded.static_input_names and not loaded.parameters
    lowered = lx.compile(lambda x: loaded({}, x=x)["y"]).lower(lx.ShapeDtype((2, 3, 4), "float32"))
    text = lowered.as_text("ir")
    assert "i32" not in text and "f32[6,4]" in text


def test_an_input_that_shapes_depend_on_is_known_beforehand() -> None:
    data = model(
        [node("Reshape", "x shape", "y")], {"x": ("f4", ["n"]), "shape": ("i8", ["r"])}, {"y": ("f4", None)}
    )
    loaded = lx.onnx.load(data)
    assert loaded.static_input_names == {"shape"}
    x = np.arange(6, dtype=np.float32)
    for shape in ((2, 3), (3, 2), (6, 1, 1)):
        assert loaded({}, x=x, shape=np.array(shape))["y"].shape == shape
    with pytest.raises(lx.ONNXError, match="the input 'shape' is traced, but shapes depend on its numbers"):
        lx.compile(lambda shape: loaded({}, x=x, shape=shape)["y"])(np.array([2, 3]))


def test_a_dropped_initializer_may_be_given_as_an_input() -> None:
    """An initializer that is an input, too, is its default."""
    data = model([node("Add", "x b", "y")], {"x": ("f4", [2]), "b": ("f4", [2])}, {"y": ("f4", [2])},
                 {"b": np.ones(2, np.float32)})  # fmt: skip
    loaded = lx.onnx.load(data)
    x = np.zeros(2, np.float32)
    assert loaded.input_names == ["x"]
    assert np.asarray(loaded(loaded.parameters, x=x)["y"]).tolist() == [1, 1]
    assert np.asarray(loaded(loaded.parameters, x=x, b=np.full(2, 3, np.float32))["y"]).tolist() == [3, 3]


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ({}, lx.ONNXError, "there is no value for 'x'"),
        ({"x": np.ones((2, 3)), "z": 1}, lx.ONNXError, "there is no input 'z'"),
        ({"x": np.ones((2, 5), np.float32)}, lx.ShapeError, r"the input 'x' has the shape \('n', 3\), got \(2, 5\)"),
        ({"x": np.ones(3, np.float32)}, lx.ShapeError, r"the input 'x' has the shape \('n', 3\), got \(3,\)"),
        ({"x": np.ones((2, 3), np.int32)}, lx.DtypeError, "the input 'x' takes float32, got int32"),
        ({"x": np.ones((2, 3), bool)}, lx.DtypeError, "the input 'x' takes float32, got bool"),
        ({"x": None}, lx.ONNXError, "the input 'x' needs a value, got None"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(
    rng: np.random.Generator, inputs: dict[str, np.ndarray], error: type[Exception], message: str
) -> None:
    loaded = lx.onnx.load(_classifier(rng))
    with pytest.raises(error, match=message):
        loaded(loaded.parameters, **inputs)


def test_a_named_extent_is_one_number() -> None:
    data = model([node("Add", "a b", "y")], {"a": ("f4", ["n"]), "b": ("f4", ["n"])}, {"y": ("f4", ["n"])})
    loaded = lx.onnx.load(data)
    with pytest.raises(lx.ShapeError, match=r"'n' is 3 in the input 'a', but 1 in 'b'"):
        loaded({}, a=np.ones(3, np.float32), b=np.ones(1, np.float32))


def test_parameters_must_be_the_models(rng: np.random.Generator) -> None:
    loaded = lx.onnx.load(_classifier(rng))
    with pytest.raises(lx.ONNXError, match=r"the same 2 names; missing, unknown or of a wrong type: b, extra"):
        loaded({"w": loaded.parameters["w"], "extra": 1}, x=np.ones((1, 3), np.float32))


def test_parameters_have_the_models_shapes(rng: np.random.Generator) -> None:
    loaded = lx.onnx.load(_classifier(rng))
    with pytest.raises(lx.ShapeError, match=r"the parameter 'w' has the shape \(4, 3\), got \(4, 5\)"):
        loaded({**loaded.parameters, "w": np.ones((4, 5), np.float32)}, x=np.ones((1, 3), np.float32))


def test_what_has_no_dtype_gets_the_inputs(rng: np.random.Generator) -> None:
    loaded = lx.onnx.load(_classifier(rng))
    one, other = (loaded(loaded.parameters, x=x)["y"] for x in ([[1, 2, 3]], np.array([[1, 2, 3]], np.float32)))
    assert np.array_equal(np.asarray(one), np.asarray(other))


def test_all_that_is_missing_is_named_before_anything_runs() -> None:
    data = model(
        [
            node("NoSuchThing", "x", "a", name="first"), node("Relu", "a", "b", name="good"),
            node("NonZero", "b", "c", name="places"), node("Shape", "c", "s", name="its shape"),
            node("ConstantOfShape", "s", "d", name="second"), node("Other", "d", "e", domain="com.acme"),
            node("Softmax", "e", "y", name="third", axes=3),
        ],
        {"x": ("f4", [2])}, {"y": ("f4", None)}, com_acme=4,
    )  # fmt: skip
    with pytest.raises(lx.ONNXError) as raised:
        lx.onnx.load(data)
    text = str(raised.value)
    assert text.splitlines() == [
        "onnx.load: the model cannot be run, for 3 reasons:",
        "  node 'first' (NoSuchThing, opset 21): there is no such operator here",
        "  node 'Other_6' (com.acme.Other, opset 4): there is no such operator here",
        "  node 'third' (Softmax, opset 21): the attribute axes is not supported",
    ]


def test_an_error_while_a_model_runs_names_the_node() -> None:
    data = model([node("MatMul", "x w", "y", name="product7")], {"x": ("f4", None)}, {"y": ("f4", None)},
                 {"w": np.ones((3, 2), np.float32)})  # fmt: skip
    loaded = lx.onnx.load(data)
    with pytest.raises(lx.ONNXError, match=r"node 'product7' \(MatMul, opset 21\): ShapeError"):
        loaded(loaded.parameters, x=np.ones((2, 4), np.float32))


def test_functions_of_the_file_are_used_before_the_table() -> None:
    helper = onnx.helper
    double = helper.make_function(
        "acme", "Scaled", ["x"], ["y"],
        [helper.make_node("Constant", [], ["c"]), helper.make_node("Mul", ["x", "c"], ["y"])],
        [helper.make_opsetid("", 21)], attributes=["by"],
    )  # fmt: skip
    double.node[0].attribute.append(onnx.AttributeProto(name="value_float", ref_attr_name="by", type=1))
    inner = graph(
        [helper.make_node("Scaled", ["x"], ["h"], domain="acme", by=3.0),
         helper.make_node("Scaled", ["h"], ["y"], domain="acme", by=0.5)],
        {"x": ("f4", [2])}, {"y": ("f4", [2])},
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("acme", 1)]
    proto = helper.make_model(inner, functions=[double], opset_imports=opsets, ir_version=10)
    loaded = lx.onnx.load(proto.SerializeToString())
    assert np.asarray(loaded({}, x=np.array([1, 2], np.float32))["y"]).tolist() == [1.5, 3]


def test_64_bits_become_32_unless_they_are_enabled() -> None:
    data = model([node("Add", "x one", "y")], {"x": ("i8", [2])}, {"y": ("i8", [2])}, {"one": np.array(1)})
    loaded = lx.onnx.load(data)
    assert loaded({}, x=np.array([1, 2]))["y"].dtype == "int32"
    with lx.enable_x64():
        big = np.array([2**40, -1])
        again = lx.onnx.load(data)
        assert np.asarray(again({}, x=big)["y"]).tolist() == [2**40 + 1, 0]


def test_the_largest_integer_means_to_the_end() -> None:
    """Exporters write slices without an end with the largest number of 64 bits."""
    data = model(
        [node("Slice", "x start end axes", "y")], {"x": ("f4", [5])}, {"y": ("f4", None)},
        {"start": np.array([1]), "end": np.array([np.iinfo(np.int64).max]), "axes": np.array([0])},
    )  # fmt: skip
    loaded = lx.onnx.load(data)
    assert np.asarray(loaded({}, x=np.arange(5, dtype=np.float32))["y"]).tolist() == [1, 2, 3, 4]


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'lavax\[onnx\]'"):
        lx.onnx.load(b"anything")


def test_single_numbers_belong_to_the_model_unless_they_are_asked_for() -> None:
    data = model([node("Mul", "x t", "y")], {"x": ("f4", [2])}, {"y": ("f4", [2])}, {"t": np.array(3, np.float32)})
    x = np.array([1, 2], np.float32)
    fixed, free = lx.onnx.load(data), lx.onnx.load(data, scalars=True)
    assert (list(fixed.parameters), list(free.parameters)) == ([], ["t"])
    assert np.asarray(fixed({}, x=x)["y"]).tolist() == [3, 6]
    gradient = lx.grad(lambda p: lnp.sum(free(p, x=x)["y"]))(free.parameters)
    assert float(gradient["t"]) == 3


@pytest.mark.parametrize(
    ("mode", "wanted"), [("nearest", [0, 0, 0, 6, 6, 6]), ("linear", [0, 2, 4, 6, 6, 6])]
)
def test_enlarging_in_old_opsets_begins_at_the_first_element(mode: str, wanted: list[float]) -> None:
    data = model(
        [node("Upsample", "x scales", "y", mode=mode)], {"x": ("f4", [1, 1, 1, 2])}, {"y": ("f4", [1, 1, 1, 6])},
        {"scales": np.array([1, 1, 1, 3], np.float32)}, opset=9,
    )  # fmt: skip
    loaded = lx.onnx.load(data)
    made = loaded(loaded.parameters, x=np.array([[[[0, 6]]]], np.float32))["y"]
    assert np.asarray(made).reshape(-1).tolist() == wanted
