"""Which arrays a kernel in a workgroup's loop sees through descriptors, and which lie in memory that turns write."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import lavax.numpy as lnp
from lavax.backends.vulkan.emit.program import _Emission
from lavax.backends.vulkan.glsl.descriptor_arrays import read_by_descriptor_in_loop
from lavax.passes.kernels.commands import View, steps_of
from lavax.passes.kernels.kernel import Kernel
from tests.passes.lowering import f32, program_of_function

RANGE = 1 << 27


def _kernel(kind: str) -> Kernel:
    functions = {
        "map": lnp.tanh,
        "row": lambda x: lnp.sum(x, -1),
        "contract": lambda x: x @ x,
        "routine": lambda x: lnp.argsort(x, axis=-1),
    }
    (step, *_) = steps_of(program_of_function(functions[kind], f32(40, 40)).steps)
    (kernel,) = [each for each in step.kernels if each.kind == kind]
    return kernel


@pytest.mark.parametrize("kind", ["map", "row", "contract", "routine"])
def test_kernels_of_elements_rows_products_and_routines_read_texels(kind: str) -> None:
    kernel = _kernel(kind)
    assert read_by_descriptor_in_loop(kernel, RANGE, {0}, ()) == (0,)
    assert read_by_descriptor_in_loop(kernel, RANGE, (), (0,)) == (0,)
    assert read_by_descriptor_in_loop(kernel, RANGE, (), ()) == ()
    # No range of that length holds it wherever it is.
    assert read_by_descriptor_in_loop(kernel, 6400, {0}, ()) == ()


def test_other_kernels_go_by_address() -> None:
    kernel = _kernel("map")
    for kind in ("scan", "attention"):
        assert read_by_descriptor_in_loop(replace(kernel, kind=kind), RANGE, {0}, (0,)) == ()


def test_parts_of_memory_and_results_in_it_lie_within_it() -> None:
    """A view is where its buffer is, a result that takes an input's memory where that is."""
    program = program_of_function(lambda x: lnp.sum(lnp.tanh(lnp.cumsum(x, 1)) @ np.ones((40, 3), "f"), 0), f32(40, 40))
    held = next(iter(program.offsets))
    views = {"part": View(held, "counter", 4), "part of part": View("part", "counter", 4), "of x": View("x", "n", 4)}
    program = replace(program, views={**program.views, **views}, donors={"taken": "x"})
    emission = object.__new__(_Emission)
    emission.program = program
    for name in (held, "part", "part of part"):
        assert emission._is_within(name, {held}) and not emission._is_within(name, {"x"})
        assert not emission._is_within(name, ())
    for name in ("x", "of x", "taken"):
        assert emission._is_within(name, {"x"}) and not emission._is_within(name, {held, "y"})
