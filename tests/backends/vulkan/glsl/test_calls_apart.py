"""Blocks of their own for the calls of functions in long shaders."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import lax
from lavax.backends.vulkan.compile.shader_compiler import compile_glsl
from lavax.backends.vulkan.glsl.calls_apart import CALLS, LONG, with_calls_apart
from lavax.backends.vulkan.glsl.shader import suited
from lavax.backends.vulkan.plan.plan import Shader
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from tests.backends.vulkan.run.execution import backend_with, run

BLOCK = "if (true) {"


def _shader(*statements: str, filled: int = LONG) -> str:
    """A shader with a function, these statements, and others, so many lines in all."""
    others = "".join(f"    data[{n}] = {n}.0;\n" for n in range(filled))
    return (
        "#version 460\nlayout(local_size_x = 1) in;\nlayout(set = 0, binding = 0) buffer Data { float data[]; };\n"
        "float twice(float x) {\n    return x + x;\n}\n"
        f"void main() {{\n{others}" + "".join(f"    {statement}\n" for statement in statements) + "}\n"
    )


def test_short_shaders_are_left_as_they_are() -> None:
    source = _shader("float v0 = twice(1.0);", filled=LONG - 10)
    assert with_calls_apart(source) == source


def test_calls_are_in_blocks_and_nothing_else_is() -> None:
    changed = with_calls_apart(
        _shader("float v0 = data[0];", "precise float v1 = twice(v0);", "float v2 = 1.0 + twice(v1);", "data[1] = v2;")
    )
    assert changed.endswith("""
    float v0 = data[0];
    precise float v1;
    float v2;
    if (true) {
        v1 = twice(v0);
        v2 = 1.0 + twice(v1);
    }
    data[1] = v2;
}
""")
    compile_glsl(changed)


def test_a_block_has_few_calls_of_one_block() -> None:
    calls = [f"float v{n} = twice({n}.0);" for n in range(2 * CALLS + 1)]
    inner = ["if (data[0] > 0.0) {", "    float w0 = twice(1.0);", "    data[1] = w0;", "}"]
    inner_first = ["for (int k = 0; k < 2; k++) {", "    float u0 = twice(1.0);", "}", "float u1 = twice(2.0);"]
    changed = with_calls_apart(_shader(*calls, *inner, *inner_first))
    assert changed.count(BLOCK) == 3 + 1 + 2
    compile_glsl(changed)


def test_names_that_only_begin_like_a_function_are_no_calls() -> None:
    source = _shader("float twice_more = 1.0;", "float v0 = twice_more * (2.0);", "float v1 = not_twice(v0);")
    assert with_calls_apart(source) == source


def test_drivers_of_processors_alone_get_them() -> None:
    source = _shader("float v0 = twice(1.0);")
    assert BLOCK in suited(Shader(source), CPU_DRIVER).source
    assert BLOCK not in suited(Shader(source), GENERIC_GPU).source


@pytest.mark.usefixtures("on_a_cpu_driver")
def test_a_long_loop_with_calls_has_such_blocks_and_is_right() -> None:
    def loop(h: Any, w: Any, xs: Any) -> Any:
        return lax.scan(lambda h, x: (lnp.tanh(h @ w + x), None), h, xs)[0]

    shapes = [(16, 32), (32, 32), (20, 16, 32)]
    draw = np.random.default_rng(0)
    h, w, xs = (0.05 * draw.normal(size=shape).astype(np.float32) for shape in shapes)  # a turn grows no error
    graph = lx.trace(loop)(h, w, xs)
    assert any(BLOCK in dispatch.shader.source for dispatch in backend_with().lower(graph).plan.dispatches)
    expected = h.astype(np.float64)
    for x in xs:
        expected = np.tanh(expected @ w.astype(np.float64) + x)
    (found,) = run(graph, [h, w, xs])
    np.testing.assert_allclose(found, expected, rtol=0, atol=3e-6)
