"""Elements that are components of one vector, some of them twice, are one texel on CPU drivers."""
from __future__ import annotations

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.plan.profile import CPU_DRIVER
from lavax.backends.vulkan.target import target_of
from lavax.base import config
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule

rng = np.random.default_rng(21)


def _transformed_product(x: lx.Array, y: lx.Array) -> lx.Array:
    return lnp.fft.ifft(x * lnp.conj(y), norm="forward")


def _complex(*shape: int) -> np.ndarray:
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


def test_factors_are_read_whole() -> None:
    target = target_of(CPU_DRIVER, 1 << 34, 1 << 32)
    graph = lx.trace(_transformed_product)(*(_complex(*shape).astype("F") for shape in ((80, 64), (64,))))
    program = schedule(prepare(graph, target), target=target)
    (dispatch,) = emit_program(program, CPU_DRIVER).dispatches
    source = dispatch.shader.source
    assert "texelFetch(vectors0" in source and "texelFetch(vectors1" in source and "texelFetch(elements" not in source


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("length", [64, 45, 96])
def test_the_device_gives_numpys_numbers(length: int, wide: bool) -> None:
    x, y = (z if wide else z.astype("F") for z in (_complex(80, length), _complex(length)))
    with config.enable_x64(wide):
        found = np.asarray(lx.compile(_transformed_product)(x, y))
    expected = np.fft.ifft(x.astype("D") * y.astype("D").conj(), norm="forward")
    assert np.linalg.norm(found - expected) <= 2.0 ** (-50 if wide else -21) * np.linalg.norm(expected)
