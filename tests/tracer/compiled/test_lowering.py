from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import DtypeError, ShapeError, TreeMismatchError
from lavax.tracer import bind
from lavax.tracer.values.backend import register
from tests.numpy_backend import NumpyBackend


def test_the_text_of_a_trace() -> None:
    def f(params: Any, x: Any) -> Any:
        return bind("tanh", bind("dot", x, params["w"], contract=((1,), (0,)), batch=((), ())))

    assert str(lx.trace(f)({"w": np.ones((3, 2))}, np.ones((4, 3)))) == (
        "graph (params.w: f32[3,2], x: f32[4,3]) {\n"
        "  %0 = dot(x, params.w) contract=[1]x[0] : f32[4,2]\n"
        "  %1 = tanh(%0) : f32[4,2]\n"
        "  return %1\n"
        "}"
    )


def test_what_a_lowered_function_gives() -> None:
    lowered = lx.jit(lambda x: {"a": x @ x.T, "b": (x > 0, 3)}).lower(lx.ShapeDtypeStruct((2, 3), np.float16))
    assert lowered.out_tree is lx.tree.structure({"a": 0, "b": (0, 0)})
    expected = [((2, 2), "float16"), ((2, 3), "bool"), ((), "int32")]
    assert [(each.shape, str(each.dtype)) for each in lx.tree.leaves(lowered.out_info)] == expected


def test_what_a_lowered_function_takes() -> None:
    f = lx.jit(lambda key, x, n, *, y: (lx.random.normal(key, x.shape) * n, y), static_argnums=2)
    given = (lx.random.key(0), np.ones(3, "f"), 7)
    lowered = f.lower(*given, y={"a": 1})
    key, x, y = lx.ShapeDtype((), lx.random.key_dtype()), lx.ShapeDtype((3,), "float32"), lx.ShapeDtype((), "int32")
    for stage in (lowered, lowered.compile()):
        assert stage.in_avals == ((key, x), {"y": {"a": y}})
        assert stage.in_tree.num_leaves == 3
        assert stage.out_tree is lx.tree.structure((0, {"a": 0}))
        assert stage.out_info == (x, {"a": y})
    assert f.eval_shape(*given, y={"a": 1}) == lowered.out_info


def test_input_names_follow_the_signature_and_parse() -> None:
    def f(params: Any, *xs: Any, scale: Any, **rest: Any) -> Any:
        return lnp.sin(scale)

    tree = {"w 1": 1.0, "w_1": (2.0, [3.0]), "è": 1.0, 3: 1.0}
    graph = lx.trace(f)(tree, 1.0, (2.0,), scale=3.0, captured0=1.0)
    names = [node.name for node in graph.inputs]
    assert names == [
        "params.3", "params.w_1", "params.w_1.0", "params.w_1.1.0", "params.è",
        "xs.0", "xs.1.0", "captured0", "scale",
    ]  # fmt: skip
    assert str(lx.ir.parse(str(graph))) == str(graph)


def test_colliding_names_are_told_apart() -> None:
    outside = lx.device_put(np.ones(()))
    graph = lx.trace(lambda captured0, x: captured0 + x["a b"] + x["a_b"] + outside)(1.0, {"a b": 1.0, "a_b": 2.0})
    assert [node.name for node in graph.inputs] == ["captured0", "x.a_b", "x.a_b_1", "captured0_"]
    lx.ir.verify(graph)


def test_arguments_may_be_abstract() -> None:
    described = SimpleNamespace(shape=(5, 2), dtype="float64")
    assert str(lx.trace(lnp.sin)(described)).splitlines()[0].endswith("f32[5,2]) {")
    result = lx.eval_shape(lambda x: {"a": lnp.sum(x, axis=0), "b": lnp.argmax(x)}, described)
    assert result == {"a": lx.ShapeDtype((2,), np.dtype("f4")), "b": lx.ShapeDtype((), np.dtype("i4"))}
    assert result["a"] == lx.ShapeDtype([2], "float32") and hash(result["a"]) == hash(lx.ShapeDtype([2], "float32"))
    assert len(result["a"]) == 2
    assert "f32[5,2]" in lx.compile(lnp.sin).lower(described).as_text("ir")


def test_stages() -> None:
    lowered = lx.compile(lambda x: (x + 0.0) * 1 + lnp.exp(x)).lower(np.ones(3))
    assert lowered.as_text("ir").count("\n") > lowered.as_text("optimized").count("\n")
    for stage in ("kernels", "glsl", "spirv"):
        assert lowered.as_text(stage).startswith(stage)
    with pytest.raises(ValueError, match="kernels"):
        lowered.as_text("assembly")


def test_lowering_touches_no_device() -> None:
    class NoDevice(NumpyBackend):
        def upload(self, array: np.ndarray) -> Any:
            raise AssertionError("there is no device")

    register(NoDevice)
    table = lnp.asarray(np.arange(3.0)) if hasattr(lnp, "asarray") else lx.tree.leaves(np.arange(3.0))[0]
    text = lx.compile(lambda x: x * table + np.ones(3, "f")).lower(np.ones(3)).as_text("kernels")
    assert "captured0" in text


def test_compiled_runs_and_checks_its_arguments(counted: Any) -> None:
    compiled = lx.compile(lambda x, n, y=1.0: x * n + y, static_argnums=1).lower(np.ones(3), 2, y=2.0).compile()
    assert compiled(np.ones(3), y=5.0).tolist() == [7, 7, 7]
    assert counted("traces") == 1
    with pytest.raises(ShapeError, match=r"x: f32\[3\], got f32\[4\]"):
        compiled(np.ones(4), y=5.0)
    with pytest.raises(DtypeError, match=r"x: f32\[3\], got i32\[3\]"):
        compiled(np.ones(3, int), y=5.0)
    with pytest.raises(TreeMismatchError):
        compiled(np.ones(3))
    assert "multiply" in compiled.as_text("ir")


def test_a_graph_of_two_thousand_layers() -> None:
    def deep(x: Any) -> Any:
        for _ in range(2000):
            x = bind("tanh", bind("multiply", x, x))
        return x

    assert len(lx.trace(deep)(1.0).nodes) == 4000
    gradient = lx.compile(lx.grad(deep))(0.5)
    assert float(gradient) == 0
    assert float(lx.grad(lambda x: deep(x) if x > 0 else x)(0.5)) == 0


def test_reading_the_last_of_many_layers_outside_compile() -> None:
    def deep(x: Any) -> Any:
        for _ in range(2000):
            x = bind("negate", x)
        assert float(x) == 0.5
        return x

    assert float(lx.grad(deep)(0.5)) == 1
