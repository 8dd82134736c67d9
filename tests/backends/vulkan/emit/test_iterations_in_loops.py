"""How many iterations a kernel in a workgroup's loop is taken to make."""

from __future__ import annotations

from dataclasses import replace

import lavax.numpy as lnp
from lavax.backends.vulkan.emit.dispatches import EMITTERS
from lavax.backends.vulkan.emit.loop.iterations import ITERATIONS_OF_MAP
from lavax.backends.vulkan.emit.loop.workgroup import iterations_of_kernel
from lavax.backends.vulkan.plan.profile import CPU_DRIVER
from lavax.passes.kernels.commands import steps_of
from lavax.passes.target.kernel_limits import MAX_LOOP_ITERATIONS
from tests.passes.lowering import f32, program_of_function


def test_steps_of_transforms_without_loops_make_few() -> None:
    """Steps that go through lines one after the other do not say how many these are."""
    steps = steps_of(program_of_function(lambda x: lnp.abs(lnp.fft.fft(x)), f32(64)).steps)
    (kernel,) = [kernel for step in steps for kernel in step.kernels if kernel.kind == "routine"]
    launch = EMITTERS["routine"](kernel, CPU_DRIVER, False)
    assert iterations_of_kernel(launch, kernel) == ITERATIONS_OF_MAP
    assert launch.text is not None
    in_turn = replace(launch.text, main=["for (int line = 0; line < 70000; ++line) {", *launch.text.main, "}"])
    assert iterations_of_kernel(replace(launch, text=in_turn), kernel) == MAX_LOOP_ITERATIONS
