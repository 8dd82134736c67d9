"""Loops, branches and transformations with complex numbers against what JAX gives, recorded and beside it."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import lax
from tests.lavax.numpy.complex.complex_programs import PROGRAMS, RECORDED, W, Z, fingerprint


@pytest.mark.usefixtures("reference_backend")
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_what_jax_gives(name: str) -> None:
    found = lx.compile(PROGRAMS[name](lnp, lax, lx))(Z, W)
    np.testing.assert_allclose(fingerprint(found), RECORDED[name], rtol=2e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["gradients of scan", "while_loop, batched", "loops in loops", "cumulative"])
def test_programs_on_the_device(name: str) -> None:
    for function in (PROGRAMS[name](lnp, lax, lx), lx.compile(PROGRAMS[name](lnp, lax, lx))):
        np.testing.assert_allclose(fingerprint(function(Z, W)), RECORDED[name], rtol=2e-4, atol=1e-4)


def test_jax_still_gives_what_is_recorded() -> None:
    jax = pytest.importorskip("jax", reason="jax is the oracle of programs")
    for name, program in PROGRAMS.items():
        found = fingerprint(program(jax.numpy, jax.lax, jax)(Z, W))
        np.testing.assert_allclose(found, RECORDED[name], rtol=2e-4, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("name", ["gradients of scan", "gradients of sorted numbers", "cond, batched"])
def test_exported_programs(name: str, tmp_path: Path) -> None:
    lx.export(lx.compile(PROGRAMS[name](lnp, lax, lx)), Z, W).save(tmp_path / "program")
    loaded = lx.load_exported(tmp_path / "program")
    np.testing.assert_allclose(fingerprint(loaded(Z, W)), RECORDED[name], rtol=2e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["scan", "while_loop, batched", "gradients of transforms", "gradients of powers"])
def test_dumps_are_complex_until_the_pass(name: str) -> None:
    lowered = lx.compile(PROGRAMS[name](lnp, lax, lx)).lower(Z, W)
    assert "c64" in lowered.as_text("ir") and "c64" in lowered.as_text("optimized")
    for stage in ("prepare:complex", "fusion", "kernels"):
        assert "c64" not in lowered.as_text(stage)
