"""The assertions of lavax.testing."""
from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.counters import snapshot
from lavax.testing import assert_grads, assert_ir, assert_kernels, fresh_caches, using_device
from lavax.testing.difference import difference

X = lx.ShapeDtype((3,), "float32")


def scaled(x: Any, factor: Any = 1.0) -> Any:
    return lnp.tanh(x * 2.0) * factor


def test_the_text_of_a_function() -> None:
    assert_ir(
        scaled,
        (X,),
        """
        graph (x: f32[3]) {
          %0 = constant() value=2.0 : f32[3]
          %1 = multiply(x, %0) : f32[3]
          %2 = tanh(%1) : f32[3]
          return %2
        }
        """,
    )


@pytest.mark.parametrize("stage", ["ir", "optimized", "kernels"])
def test_stages_and_keywords(stage: str) -> None:
    text = lx.compile(scaled).lower(X, factor=X).as_text(stage)
    assert_ir(lx.compile(scaled), [X], text, kwargs={"factor": X}, stage=stage)
    indented = "\n".join(f"    {line}" for line in text.splitlines())
    assert_ir(scaled, (X,), f"\n\n{indented}\n    ", kwargs={"factor": X}, stage=stage)


def test_the_difference_is_shown() -> None:
    with pytest.raises(AssertionError) as error:
        assert_ir(
            scaled,
            (X,),
            """
            graph (x: f32[3]) {
              %0 = tanh(x) : f32[3]
              return %0
            }
            """,
        )
    lines = str(error.value).splitlines()
    assert lines[0] == "assert_ir: scaled at the stage 'optimized' is not what the test says (-), but (+)"
    assert lines[2:9] == [
        "  graph (x: f32[3]) {",
        "-   %0 = tanh(x) : f32[3]",
        "+   %0 = constant() value=2.0 : f32[3]",
        "+   %1 = multiply(x, %0) : f32[3]",
        "+   %2 = tanh(%1) : f32[3]",
        "    return %2",
        "  }",
    ]
    assert "--lavax-update" in lines[-1]


def test_numbers_of_values_count_only_where_they_alone_differ() -> None:
    assert difference("%0 = a\n%1 = b(%0)", "%0 = c\n%1 = a\n%2 = b(%1)") == "+ %0 = c\n  %1 = a\n  %2 = b(%1)"
    assert difference("%2 = f(%0, %1)", "%2 = f(%1, %0)") == "- %2 = f(%0, %1)\n+ %2 = f(%1, %0)"


def test_a_text_that_is_not_there_yet() -> None:
    with pytest.raises(AssertionError, match="there is no text for scaled yet"):
        assert_ir(scaled, (X,))


def test_arguments_that_are_no_arguments() -> None:
    for call in (lambda: assert_ir(scaled, X, ""), lambda: assert_kernels(scaled, X, at_most=1)):  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="args must be a tuple or list of arguments"):
            call()
    with pytest.raises(lx.ShapeError) as error:
        assert_ir(lambda x: x + lnp.ones(5), (X,), "")
    assert any("assert_ir traced" in note for note in error.value.__notes__)


def test_the_number_of_kernels() -> None:
    rows = lx.ShapeDtype((64, 32), "float32")
    assert_kernels(scaled, (X,), at_most=1)
    with pytest.raises(AssertionError, match="runs as 2 kernels, more than 1: k0") as error:
        assert_kernels(lambda x: x @ x.T @ x, [rows], at_most=1)
    assert "kernel k0 kind=contract" in str(error.value) and "writes" in str(error.value)


@pytest.mark.usefixtures("reference_backend")
def test_derivatives() -> None:
    x = np.array([0.3, -0.7], "f")
    assert_grads(lambda x: lnp.sum(lnp.sin(x) * x), (x,), 2)

    @lx.custom_vjp
    def wrong(x: Any) -> Any:
        return lnp.sum(x * x)

    wrong.defvjp(lambda x: (wrong(x), x), lambda x, c: (3 * x * c,))
    with pytest.raises(AssertionError, match=r"assert_grads: derivatives of .*wrong up to order 1 differ"):
        assert_grads(wrong, (x,), modes="rev")
    with pytest.raises(ValueError, match="1 or more, got 0"):
        assert_grads(lnp.sum, (x,), 0)
    with pytest.raises(lx.DtypeError):
        assert_grads(lnp.sum, (np.arange(3),))


def test_fresh_caches(tmp_path: Any) -> None:
    """What was compiled before is compiled again, once, and its cache is in the folder."""
    function, x = lx.compile(lambda x: lnp.tanh(x) * 1.5), np.ones(3, "f")
    before = np.asarray(function(x))
    for part in ("a", "b"):
        with fresh_caches(tmp_path / part) as folder:
            counts = [compiled(function, x, before) for _ in range(2)]
        assert counts == [(1, 1), (0, 0)]
        assert any((folder / "spirv").iterdir())
    assert np.array_equal(np.asarray(function(x)), before)


def compiled(function: Any, x: np.ndarray, wanted: np.ndarray) -> tuple[int, int]:
    """How many shaders and pipelines a call makes."""
    before = snapshot()
    assert np.array_equal(np.asarray(function(x)), wanted)
    after = snapshot()
    return after["glsl_compiles"] - before["glsl_compiles"], after["pipelines"] - before["pipelines"]


def test_another_device() -> None:
    x = lx.device_put(np.ones(3, "f"))
    for device in lx.devices():
        with using_device(device.index) as chosen:
            assert chosen == device == lx.default_device()
            assert float(lnp.sum(lx.device_put(np.ones(4, "f")))) == 4
    assert float(lnp.sum(x)) == 3
    with pytest.raises(lx.DeviceError, match="names no device"), using_device(99):
        pass
    assert float(lnp.sum(x)) == 3


def test_pytest_is_not_imported_with_lavax() -> None:
    program = "import sys, lavax, lavax.testing; assert 'pytest' not in sys.modules and '_pytest' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
