"""Names of JAX's front door: what they do here."""
from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base import config
from lavax.passes.reports.table import lines_text
from lavax.test_util import check_grads, check_jvp, check_vjp
from lavax.tracer.values.array import Array as ArrayOnDevice

pytestmark = pytest.mark.usefixtures("reference_backend")


def test_make_jaxpr_prints_the_graph() -> None:
    offset = lnp.arange(3.0)
    jaxpr, shape = lx.make_jaxpr(lambda x, n: x**n + offset, static_argnums=1, return_shape=True)(np.ones(3, "f"), 2)
    assert str(jaxpr) == repr(jaxpr) == (
        "graph (x: f32[3], captured0: f32[3]) {\n  %0 = multiply(x, x) : f32[3]\n"
        "  %1 = add(%0, captured0) : f32[3]\n  return %1\n}"
    )
    assert [node.op for node in jaxpr.jaxpr.eqns] == ["multiply", "add"] and len(jaxpr.consts) == 1
    assert jaxpr.in_avals == [lx.ShapeDtypeStruct((3,), "float32")] == jaxpr.out_avals and shape == jaxpr.out_avals[0]
    with pytest.raises(ValueError, match="axis_name"):
        lx.make_jaxpr(lnp.sin, axis_env=[("i", 2)])  # type: ignore[arg-type]


def test_a_compiled_function_is_traced_and_lowered_in_steps() -> None:
    @lx.jit
    def product(x: Any) -> Any:
        return {"y": x @ x.T}

    traced = product.trace(lnp.ones((2, 3)))
    assert isinstance(traced, lx.stages.Traced) and isinstance(traced.lower(), lx.stages.Lowered)
    assert traced.fun_name.endswith("product") and "dot(x, %0)" in str(traced.jaxpr)
    assert traced.out_info == {"y": lx.ShapeDtypeStruct((2, 2), "float32")}
    assert traced.out_tree == lx.tree.structure({"y": 0})


def test_shapes() -> None:
    shape = lx.ShapeDtypeStruct((2, 3), lnp.float32, sharding=None)
    assert (shape.ndim, shape.size, shape.update(shape=(4,)).shape) == (2, 6, (4,))
    assert lx.typeof(1) == lx.ShapeDtypeStruct((), "int32") and lx.typeof(np.ones(2)).dtype == np.float32
    assert lx.eval_shape(lambda x: (x @ x.T).sum(0), shape) == lx.ShapeDtypeStruct((2,), "float32")


def test_shapes_may_stand_for_results() -> None:
    kind = lx.ShapeDtypeStruct((2, 3), "bfloat16")
    found = lx.eval_shape(lambda x: {"x": x + 1, "kind": kind, "count": 3}, np.ones(2, "f"))
    assert found["kind"] == kind and found["x"] == lx.ShapeDtypeStruct((2,), "float32") and found["count"].shape == ()
    assert lx.eval_shape(lambda: kind) == kind
    with pytest.raises(lx.DtypeError, match="results are arrays"):
        lx.jit(lambda: kind)()


def test_shapes_are_known_at_compile_time() -> None:
    def f(x: Any) -> Any:
        with lx.ensure_compile_time_eval():
            shape = lx.eval_shape(lambda y: x * y, 2.0)
            assert int(lnp.arange(3).sum()) == 3, "at once, still"
        return x * shape.size

    assert lx.jit(f)(np.ones(3, "f")).tolist() == [3, 3, 3]
    assert lx.grad(lambda x: lx.vmap(f)(x).sum())(np.ones((2, 3), "f")).tolist() == [[3, 3, 3]] * 2


def test_graphs_of_make_jaxpr_run() -> None:
    offset = lnp.arange(3.0)
    jaxpr = lx.make_jaxpr(lambda x, tree: (x * tree["a"] + offset, lnp.sum(x)))(np.ones(3, "f"), {"a": 2})
    found = lx.core.eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, np.full(3, 2, "f"), 5)
    assert [part.tolist() for part in found] == [[10, 11, 12], 6]
    run = lx.core.jaxpr_as_fun(jaxpr)
    assert lx.jit(lx.grad(lambda x: run(x, 3)[0].sum()))(np.ones(3, "f")).tolist() == [3, 3, 3]
    assert lx.vmap(lambda x: run(x, 3)[1])(np.ones((2, 3), "f")).tolist() == [3, 3]
    with pytest.raises(TypeError, match="2 arguments and constants, where 3 are due"):
        run(np.ones(3, "f"))
    with pytest.raises(lx.ShapeError, match="eval_jaxpr: x"):
        run(np.ones(4, "f"), 1)


def test_arrays_and_devices() -> None:
    tree = {"a": lnp.ones(2), "b": "text"}
    back = lx.device_get(lx.block_until_ready(tree))
    assert type(back["a"]) is np.ndarray and back["b"] == "text"
    assert float(lx.grad(lambda x: lx.device_get({"x": x})["x"] ** 2)(3.0)) == 6
    assert lx.compile(lambda x: weakref.ref(x)() * 2)(2.0) == 4
    device = lx.default_device()
    assert lx.device_put(np.ones(2), device).shape == (2,)
    assert lx.device_count() == len(lx.local_devices()) == len(lx.devices())
    assert lx.default_backend() in ("cpu", "gpu")
    assert device in lx.devices(lx.default_backend())
    with pytest.raises(ValueError, match="backend must be one of cpu, gpu"):
        lx.devices("tpu")
    with pytest.raises(lx.DeviceError, match="no device of the kind 'gpu'"):
        lx.device_count("gpu")  # the reference interpreter is none
    with lx.default_device(device):
        pass
    with pytest.raises(ValueError, match="everything runs on one device"):
        lx.device_put(1.0, "another")


def test_scopes_are_shown() -> None:
    @partial(lx.named_call, name="block")
    def inner(x: Any) -> Any:
        with lx.named_scope("square"):
            return x * x

    @lx.jit
    def loss(x: Any) -> Any:
        return lx.scan(lambda carry, part: (carry + inner(part), None), 0.0, x)[0] + lnp.sum(inner(x))

    lowered = loss.lower(np.ones(3, "f"))
    text = lowered.as_text("ir")
    assert " : f32[]  # block/square" in text and "multiply(x, x) : f32[3]  # block/square" in text
    assert "#" not in str(lx.ir.parse(text)) and "  # block/square" in lowered.as_text("optimized")
    assert float(loss(np.ones(3, "f"))) == 6
    with pytest.raises(lx.ShapeError, match=r"test_jax_names.py:\d+ in wrong$"), lx.named_scope("wrong"):
        lnp.ones(2) + lnp.ones(3)
    assert lines_text(["a/b.py:1", "a/b.py:2 in block/square"]) == "b.py:1 block/square/b.py:2"
    with pytest.raises(TypeError, match="named_scope: the name"), lx.named_scope(3):  # type: ignore[arg-type]
        pass


def test_kernels_do_not_depend_on_scopes() -> None:
    def scaled(x: Any, scope: str) -> Any:
        with lx.named_scope(scope):
            return lx.cond(x[0] > 0, lambda x: 2 * x, lambda x: x, x)

    texts = {lx.jit(partial(scaled, scope=scope)).lower(np.ones(3, "f")).as_text("kernels") for scope in "ab"}
    assert len({text.replace("# a", "# b") for text in texts}) == 1


def test_disable_jit() -> None:
    seen: list[Any] = []
    f = lx.jit(lambda x: seen.append(isinstance(x, ArrayOnDevice)) or 2 * x, inline=True, keep_unused=True)  # type: ignore[func-returns-value]
    with lx.disable_jit():
        assert float(f(2.0)) == 4 and seen == [True]
        with lx.disable_jit(False):
            assert float(f(2.0)) == 4
    assert len(seen) == 2 and seen[1] is not lx.Array


def test_config(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "_process_keeps_64_bits", [])
    assert not lx.config.jax_enable_x64 and not lx.config.x64_enabled
    assert (lx.config.jax_numpy_dtype_promotion, lx.config.jax_numpy_rank_promotion) == ("standard", "allow")
    lx.config.update("jax_enable_x64", True)
    assert lx.config.jax_enable_x64 and lx.config.x64_enabled
    assert lnp.asarray(np.ones(2)).dtype == np.float64
    with lx.enable_x64(False):
        assert lnp.asarray(np.ones(2)).dtype == np.float32
    lx.config.update("jax_platform_name", "cpu")
    assert lx.config.jax_platform_name == "cpu" and lx.config.read("jax_debug_nans") is False
    lx.config.update("jax_default_prng_impl", "threefry2x32")
    lx.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    for name, value in (("jax_default_prng_impl", "rbg"), ("jax_threefry_partitionable", False)):
        with pytest.raises(ValueError, match=f"{name} is .* here"):
            lx.config.update(name, value)
    lx.config.update("jax_debug_key_reuse", True)
    try:
        key = lx.random.key(0)
        lx.random.normal(key)
        with pytest.raises(lx.KeyReuseError):
            lx.random.normal(key)
    finally:
        lx.config.update("jax_debug_key_reuse", False)
    with pytest.raises(AttributeError, match="has no setting 'jax_unknown'"):
        lx.config.update("jax_unknown", 1)
    lx.config.update("jax_debug_nans", True)
    try:
        with pytest.raises(lx.NaNError):
            lnp.log(lnp.asarray(-1.0))
    finally:
        lx.config.update("jax_debug_nans", False)
    lx.config.update("jax_disable_jit", True)
    try:
        assert lx.config.jax_disable_jit and float(lx.jit(lambda x: x + 1 if x > 0 else x)(1.0)) == 2
    finally:
        lx.config.update("jax_disable_jit", False)


def test_precision_by_the_names_of_jax() -> None:
    def precision() -> str:
        text = lx.jit(lnp.matmul).lower(np.ones((2, 2), "f"), np.ones((2, 2), "f")).as_text("ir")
        return text.partition("precision=")[2].partition(" ")[0]

    with lx.default_matmul_precision("bfloat16"):
        assert precision() == '"bf16"'
        with lx.default_matmul_precision("highest"):
            assert precision() == ""
    lx.config.update("jax_default_matmul_precision", "F16_F16_F32")
    try:
        assert precision() == '"f16"'
    finally:
        lx.config.update("jax_default_matmul_precision", None)
    with pytest.raises(ValueError, match="unknown precision"), lx.default_matmul_precision("low"):
        pass


def test_checkpoint_takes_what_jax_takes() -> None:
    @partial(lx.checkpoint, policy=lx.checkpoint_policies.dots_with_no_batch_dims_saveable, static_argnums=(1,))
    def power(x: Any, n: int) -> Any:
        return lnp.sin(x) ** n if n > 2 else x

    gradient = float(lx.grad(lambda x: 2 * power(x, 3))(1.0))
    np.testing.assert_allclose(gradient, 6 * np.sin(1) ** 2 * np.cos(1), rtol=1e-6)
    policies = lx.checkpoint_policies
    assert policies.save_from_both_policies(policies.nothing_saveable, policies.checkpoint_dots).values == "dots"
    assert policies.save_anything_except_these_names().values == "everything"


def test_custom_gradient() -> None:
    @lx.custom_gradient
    def clipped(x: Any, y: Any) -> Any:
        product = x * lnp.sin(y)
        return product, lambda g: (lnp.clip(g, -1, 1) * lnp.sin(y), g * product)

    gradients = lx.grad(lambda x, y: 5 * clipped(x, y), argnums=(0, 1))(2.0, 0.5)
    np.testing.assert_allclose([float(g) for g in gradients], [np.sin(0.5), 5 * 2 * np.sin(0.5)], rtol=1e-6)
    single = lx.custom_gradient(lambda x: (x**2, lambda g: 7 * g))
    assert float(lx.jit(lx.grad(single))(3.0)) == 7


def test_derivatives_are_compared_with_differences() -> None:
    x, w = np.linspace(0.3, 1.5, 4, dtype="f"), {"a": np.ones((4, 2), "f")}

    def f(x: Any, w: Any) -> Any:
        return {"y": lnp.sin(x) @ w["a"], "z": x**3}

    check_grads(f, (x, w), order=2)
    check_grads(lnp.tanh, (0.5,), order=3, modes="fwd")

    @lx.custom_jvp
    def wrong(x: Any) -> Any:
        return lnp.sin(x)

    wrong.defjvp(lambda primals, tangents: (wrong(*primals), 1.1 * lnp.cos(primals[0]) * tangents[0]))
    for mode in ("fwd", "rev"):
        with pytest.raises(AssertionError, match=mode):
            check_grads(wrong, (x,), 1, modes=mode)
    check_jvp(lnp.sin, partial(lx.jvp, lnp.sin), (x,))
    with pytest.raises(AssertionError, match="value of the VJP"):
        check_vjp(lnp.sin, partial(lx.vjp, lnp.cos), (x,))
    with pytest.raises(lx.DtypeError, match="int"):
        check_grads(f, (np.arange(3),), 1)
    with pytest.raises(ValueError, match="modes are"):
        check_grads(f, (x, w), 1, modes="both")


def test_dtypes() -> None:
    assert lx.dtypes.canonicalize_dtype("float64") == np.float32 and lx.dtypes.itemsize_bits(lnp.bfloat16) == 16
    assert lx.dtypes.canonicalize_dtype(None) == np.float32
    assert lx.dtypes.scalar_type_of(np.ones(2, "i")) is int and lx.dtypes.scalar_type_of(True) is bool
    for kind in (lx.dtypes.extended, lx.dtypes.prng_key):
        assert not lnp.issubdtype(lnp.float32, kind) and lnp.issubdtype(lx.random.key(0).dtype, kind)


def test_types_for_annotations() -> None:
    assert all(isinstance(x, lx.typing.ArrayLike) for x in (lnp.ones(2), np.ones(2), np.float32(1), 1, 2.5, 1j, True))
    assert not isinstance("x", lx.typing.ArrayLike) and not isinstance(None, lx.typing.ArrayLike)
    assert isinstance(None, lx.typing.ArrayLike | None)


def test_errors_by_the_names_of_jax() -> None:
    with pytest.raises(lx.errors.TracerBoolConversionError):
        lx.jit(lambda x: x if x > 0 else -x)(1.0)
    with pytest.raises(lx.errors.TracerArrayConversionError):
        lx.jit(lambda x: np.sin(np.asarray(x)))(1.0)


def test_debug_print_takes_ordered(capsys: pytest.CaptureFixture[str]) -> None:
    lx.jit(lambda x: lx.debug.print("x = {x}, {}", 3, x=x, ordered=True) or x)(2.0)  # type: ignore[func-returns-value]
    assert capsys.readouterr().out == "x = 2.0, 3\n"


def test_names_of_one_process_and_one_device() -> None:
    assert (lx.process_count(), lx.process_index(), lx.local_device_count()) == (1, 0, lx.device_count())
    lx.effects_barrier()
    with pytest.raises(lx.NaNError), lx.debug_nans(True):
        lnp.log(lnp.asarray(-1.0))
    assert np.isnan(float(lnp.log(lnp.asarray(-1.0))))
    assert isinstance(lx.jit(lnp.sin), lx.stages.Wrapped) and isinstance(lx.jit(lnp.sin).lower(1.0), lx.stages.Lowered)
    assert lx.dlpack.is_supported_dtype("float32") and not lx.dlpack.is_supported_dtype("complex256")
    assert lx.custom_derivatives.custom_vjp is lx.custom_vjp and lx.experimental.ode.odeint.__name__ == "odeint"
    with pytest.raises(AttributeError, match="no attribute 'pallas'"):
        _ = lx.experimental.pallas
    with lx.experimental.disable_x64():
        assert lnp.asarray(np.ones(1)).dtype == np.float32


def test_a_value_may_be_asked_whether_it_is_traced() -> None:
    seen: list[bool] = []
    lx.jit(lambda x: seen.append(isinstance(x, lx.core.Tracer)) or x)(1.0)
    lx.grad(lambda x: seen.append(isinstance(x, lx.core.Tracer)) or x)(1.0)
    seen.append(isinstance(lnp.ones(2), lx.core.Tracer))
    assert seen == [True, True, False]


def test_operations_run_at_once_while_a_function_is_traced() -> None:
    outside = lnp.arange(3.0) + 1.0

    def f(x: lx.Array) -> lx.Array:
        with lx.ensure_compile_time_eval():
            table = lnp.sin(outside) * 2.0
            seen.append(isinstance(table, lx.core.Tracer))
        return x * table

    seen: list[bool] = []
    wanted = 2.0 * np.sin([1.0, 2.0, 3.0])
    np.testing.assert_allclose(lx.jit(f)(2.0), 2.0 * wanted, rtol=1e-6)
    np.testing.assert_allclose(lx.grad(lambda x: 3.0 * lnp.sum(f(x)))(2.0), 3.0 * np.sum(wanted), rtol=1e-6)
    assert seen == [False, False]
    with pytest.raises(lx.TracerLeakError, match="in ensure_compile_time_eval"):
        lx.jit(lambda x: _within(lambda: lx.jit(lnp.sin)(x)))(outside)
    assert isinstance(outside + 1.0, lx.Array), "an error leaves the context"


@pytest.mark.parametrize("twice", [False, True])
def test_operations_on_traced_values_are_recorded_among_those_that_run_at_once(twice: bool) -> None:
    """As libraries check arguments, of which some are known."""

    def f(x: lx.Array) -> lx.Array:
        inner = lambda: lnp.tril(lnp.outer(x, lnp.arange(3.0)))[1:] + x.at[0].set(lnp.sum(x))  # noqa: E731
        y = _within(lambda: _within(inner) if twice else inner())
        assert isinstance(y, lx.core.Tracer)
        return lnp.sum(y * lnp.arange(3.0)) * 2 + x[0]

    def expected(x: np.ndarray) -> Any:
        rows = np.tril(np.outer(x, np.arange(3.0)))[1:] + np.array([x.sum(), *x[1:]])
        return (rows * np.arange(3.0)).sum() * 2 + x[0]

    x = np.array([1.0, -2.0, 3.0])
    slopes = [(expected(x + step) - expected(x - step)) / 2 for step in np.eye(3)]
    np.testing.assert_allclose(lx.jit(f)(x.astype("f")), expected(x), rtol=1e-6)
    np.testing.assert_allclose(lx.grad(f)(x.astype("f")), slopes, rtol=1e-6)
    np.testing.assert_allclose(lx.vmap(lx.grad(f))(np.stack([x, -x]).astype("f")), [slopes, slopes], rtol=1e-6)


def _within(function: Callable[[], Any]) -> Any:
    with lx.core.ensure_compile_time_eval():
        return function()


def test_jit_takes_the_device_that_everything_runs_on() -> None:
    device = lx.default_device()
    settings = {"static_argnums": None, "static_argnames": None, "donate_argnums": None, "donate_argnames": None}
    f = lx.jit(lambda x: x + 1.0, device=device, backend=lx.default_backend(), **settings)
    assert float(f(1.0)) == 2.0
    with pytest.raises(ValueError, match="compile: everything runs on one device"):
        lx.jit(lambda x: x, device="another")
    with pytest.raises(ValueError, match="backend='tpu'"):
        lx.jit(backend="tpu")(lambda x: x)
    f = lx.jit(lambda x, y: (x + y, y), in_shardings=(None, {"a": None}), out_shardings=None)
    assert float(f(1.0, 2.0)[0]) == 3.0
    for name in ("in_shardings", "out_shardings"):
        with pytest.raises(ValueError, match=f"compile: {name} must be None"):
            lx.jit(lambda x: x, **{name: (device,)})


def test_drawing_and_making_arrays_takes_a_sharding() -> None:
    """As flax passes it to functions that draw: everything is on one device."""
    key, x = lx.random.key(0), lnp.arange(6.0)
    drawn = [
        (lx.random.normal, (3,)), (lx.random.uniform, (3,)), (lx.random.bits, (3,)), (lx.random.permutation, 4),
        (lx.random.bernoulli, 0.5, (3,)), (lx.random.randint, (3,), 0, 9), (lx.random.gamma, 2.0, (3,)),
        (lx.random.truncated_normal, -1.0, 1.0, (3,)), (lx.random.categorical, lnp.zeros(4)),
        (lx.random.dirichlet, lnp.ones(3)), (lx.random.poisson, 3.0, (3,)), (lx.random.orthogonal, 3),
    ]  # fmt: skip
    others = {"binomial", "choice", "clone", "double_sided_maxwell", "fold_in", "multinomial", "split", "weibull_min"}
    for name in set(lx.random.__all__) - others:
        parameters = inspect.signature(getattr(lx.random, name)).parameters
        assert "out_sharding" in parameters or "key" in name.lower(), name
    for function, *arguments in drawn:
        np.testing.assert_array_equal(function(key, *arguments, out_sharding=None), function(key, *arguments))
    made = [
        (lnp.zeros, 3), (lnp.full, (2,), 4.0), (lnp.ones_like, x), (lnp.arange, 3), (lnp.asarray, x), (lnp.array, x),
        (lnp.reshape, x, (2, 3)), (lnp.ravel, x), (lnp.repeat, x, 2), (lnp.broadcast_to, x, (2, 6)), (lnp.dot, x, x),
        (lnp.matmul, x, x), (lnp.tensordot, x, x, 1), (lnp.einsum, "i,i", x, x), (lnp.percentile, x, 50.0),
        (lnp.bincount, lnp.arange(4)),
    ]  # fmt: skip
    for function, *arguments in made:
        np.testing.assert_array_equal(function(*arguments, out_sharding=None), function(*arguments))


def test_the_dtype_of_a_dtype_is_itself() -> None:
    x = lnp.ones(2, lnp.bfloat16)
    for given in (x, x.dtype, lnp.bfloat16):
        assert lx.lax.dtype(given) == x.dtype
    assert lx.lax.dtype(np.int16) == lx.lax.dtype(np.dtype("int16")) == np.dtype("int16")
    assert lx.lax.dtype(float) == lx.lax.dtype(1.0) == np.dtype("float32")
    with pytest.raises(lx.DtypeError):
        lx.lax.dtype(str)


def test_device_put_hands_memory_on_or_copies_it() -> None:
    x, y = lnp.arange(3.0) + 1.0, lnp.arange(3.0) + 1.0
    held = x.buffer
    (moved,) = lx.device_put([x], lx.default_device(), donate=True)
    assert x.is_donated and moved.buffer is held and moved.tolist() == [1, 2, 3]
    assert lx.device_put(y) is y
    copied = lx.device_put(y, may_alias=False, src=lx.default_device())
    lx.jit(lambda y: y * 0.0, donate_argnums=0)(y)
    assert copied.tolist() == [1, 2, 3]
    assert lx.device_put(np.ones(2, "f"), donate=True).tolist() == [1, 1]
    with pytest.raises(ValueError, match="may_alias=False forbids"):
        lx.device_put(copied, donate=True, may_alias=False)


def test_names_of_checkpoints() -> None:
    policy = lx.ad_checkpoint.checkpoint_policies.save_only_these_names("kept")
    f = lx.ad_checkpoint.checkpoint(lambda x: lx.ad_checkpoint.checkpoint_name(lnp.sin(x), "kept") ** 2, policy=policy)
    np.testing.assert_allclose(lx.grad(f)(0.7), np.sin(1.4), rtol=1e-6)
