"""Four neighbours of a concatenation are read at once where its parts begin at multiples of four."""
from __future__ import annotations

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.plan.profile import GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule

rng = np.random.default_rng(4)


def _summed(*parts: np.ndarray) -> object:
    return lnp.sum(lnp.concatenate([lnp.sin(part) for part in parts], axis=-1) ** 2, axis=-1)


def _parts(*lengths: int) -> list[np.ndarray]:
    return [rng.normal(size=(40, length)).astype("f") for length in lengths]


@pytest.mark.parametrize(("lengths", "at_once"), [((32, 32), True), ((8, 4, 52), True), ((30, 34), False)])
def test_loads_of_four(lengths: tuple[int, ...], at_once: bool) -> None:
    target = target_of(GENERIC_GPU, 1 << 34, 1 << 32)
    program = schedule(prepare(lx.trace(_summed)(*_parts(*lengths)), target), target=target)
    (dispatch,) = emit_program(program, GENERIC_GPU).dispatches
    assert ("vec4(F32(" not in dispatch.shader.source) == at_once


@pytest.mark.parametrize("lengths", [(32, 32), (8, 4, 52), (30, 34), (4, 1, 3, 8)])
def test_the_device_gives_numpys_numbers(lengths: tuple[int, ...]) -> None:
    parts = _parts(*lengths)
    expected = (np.sin(np.concatenate(parts, axis=-1, dtype=np.float64)) ** 2).sum(-1)
    np.testing.assert_allclose(lx.compile(_summed)(*parts), expected, rtol=1e-5)
    moved = lx.compile(lambda *parts: lnp.concatenate(parts, axis=-1) * 2)(*parts)
    np.testing.assert_array_equal(moved, 2 * np.concatenate(parts, axis=-1))
