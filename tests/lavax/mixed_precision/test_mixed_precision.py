"""Policies and loss scales: what is cast, what comes out in float32, and how scales move."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import mixed_precision as mp
from lavax import nn

pytestmark = pytest.mark.usefixtures("reference_backend")
PARAMS = {"w": np.array([[0.5, -1.25], [2, 0.75]], "f"), "b": np.array([0.1, -0.3], "f")}
INPUTS = np.array([[1, 2], [-3, 0.5], [0.25, 4]], "f")


def loss(params: Any, inputs: Any) -> Any:
    return lnp.mean((inputs @ params["w"] + params["b"]) ** 2)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("params=float32,compute=bfloat16,output=float32", ("float32", "bfloat16", "float32")),
        ("p=f32, c=f16", ("float32", "float16", "float32")),
        ("bfloat16", ("bfloat16",) * 3),
        ("compute=half", ("float32", "float16", "float32")),
    ],
)
def test_a_policy_from_text(text: str, names: tuple[str, ...]) -> None:
    policy = mp.Policy.parse(text)
    assert (policy.params, policy.compute, policy.output) == tuple(getattr(lnp, name) for name in names)


@pytest.mark.parametrize("text", ["", "int8", "params=float32,params=float16", "weights=float32", "compute"])
def test_a_text_that_is_no_policy(text: str) -> None:
    with pytest.raises(ValueError, match=r"Policy\.parse: "):
        mp.Policy.parse(text)


def test_only_float_arrays_are_cast() -> None:
    policy = mp.Policy.parse("params=float32,compute=bfloat16,output=float16")
    tree = {"x": np.ones(2, "f"), "n": np.arange(2), "flag": np.array(True), "name": "y", "number": 3.0}
    found = policy.cast_to_compute(tree)
    assert found["x"].dtype == lnp.bfloat16
    assert all(found[key] is tree[key] for key in ("n", "flag", "name", "number"))
    assert policy.cast_to_output(found)["x"].dtype == lnp.float16
    assert policy.cast_to_param(found)["x"].dtype == lnp.float32


def test_running_statistics_keep_their_dtype() -> None:
    layer = nn.BatchNorm(2)
    before = nn.BatchNormState(np.array([1000.25, 0], "f"), np.array([1e6, 1], "f"))  # 1e6 is more than float16 holds
    policy = mp.Policy.parse("params=float32,compute=float16,output=float32")
    given, state, x = policy.cast_to_compute((layer, {"norm": before}, INPUTS[:, ::-1]))
    assert (given.weight.dtype, x.dtype) == (lnp.float16, lnp.float16)
    made, after = given(x, state["norm"], training=True)
    assert made.dtype == lnp.float16 and after.mean.dtype == after.variance.dtype == lnp.float32
    wanted = layer(INPUTS[:, ::-1], before, training=True)[1]
    for ours, exact in zip(after, wanted, strict=True):
        assert np.allclose(np.asarray(ours), np.asarray(exact), rtol=1e-6)


def test_a_wrapped_function_computes_in_the_policys_dtype() -> None:
    seen = []
    policy = mp.Policy.parse("params=float32,compute=float16,output=float32")
    found = policy.wrap(lambda x: seen.append(x.dtype) or x + 1)(np.float32([1, 2]))  # type: ignore[func-returns-value]
    assert seen == [lnp.float16] and found.dtype == lnp.float32


@pytest.mark.parametrize("kept", ["float32", "bfloat16"])
def test_gradients_are_float32_and_those_of_the_rounded_loss(kept: str) -> None:
    policy = mp.Policy.parse(f"params={kept},compute=bfloat16,output=float32")
    params = policy.cast_to_param(PARAMS)
    value, gradient = mp.value_and_grad(loss, policy)(params, INPUTS)
    exact_value, exact = lx.value_and_grad(loss)(PARAMS, INPUTS)
    assert value.dtype == lnp.float32 and float(value) == pytest.approx(float(exact_value), rel=0.03)
    for one, other in zip(lx.tree.leaves(gradient), lx.tree.leaves(exact), strict=True):
        assert one.dtype == lnp.float32
        # bfloat16 has 8 bits: a handful of roundings of 2⁻⁹ each.
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), atol=0.03 * np.abs(np.asarray(other)).max())


def test_a_scale_leaves_value_and_gradients_as_they_were() -> None:
    policy = mp.Policy.parse("float32")
    expected_value, expected = lx.value_and_grad(loss)(PARAMS, INPUTS)
    for scale in (mp.NoLossScale(), mp.StaticLossScale(2.0**10), mp.DynamicLossScale.create(2.0**10)):
        value, gradient = mp.value_and_grad(loss, policy, scale)(PARAMS, INPUTS)
        assert float(value) == float(expected_value)
        for one, other in zip(lx.tree.leaves(gradient), lx.tree.leaves(expected), strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))  # by a power of two: without rounding


def test_what_the_loss_returns_besides_comes_along() -> None:
    policy = mp.Policy.parse("params=float32,compute=float16,output=float32")

    def with_aux(params: Any, inputs: Any) -> tuple[Any, Any]:
        return loss(params, inputs), {"largest": lnp.max(params["w"])}

    (value, aux), _ = mp.value_and_grad(with_aux, policy, has_aux=True)(PARAMS, INPUTS)
    assert value.dtype == lnp.float32 and aux["largest"].dtype == lnp.float32 and float(aux["largest"]) == 2


def test_a_dynamic_scale_grows_and_shrinks() -> None:
    scale = mp.DynamicLossScale.create(4.0, period=2, min_loss_scale=2.0)
    path = []
    for finite in (True, True, True, False, True, True, False, False, False):
        scale = scale.adjust(lnp.asarray(finite))
        path.append((float(scale.loss_scale), int(scale.counter)))
    assert path == [(4, 1), (8, 0), (8, 1), (4, 0), (4, 1), (8, 0), (4, 0), (2, 0), (2, 0)]
    assert all(kept.adjust(lnp.asarray(False)) == kept for kept in (mp.NoLossScale(), mp.StaticLossScale(2.0)))
    top = mp.DynamicLossScale.create(2.0**127, period=1).adjust(lnp.asarray(True))
    assert float(top.loss_scale) == 2.0**127


@pytest.mark.parametrize("arguments", [{"factor": 1.0}, {"period": 0}, {"loss_scale": 0.5}, {"min_loss_scale": 0.0}])
def test_a_scale_that_could_not_work(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"DynamicLossScale\.create: "):
        mp.DynamicLossScale.create(**arguments)
