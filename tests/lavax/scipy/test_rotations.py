"""Rotations against SciPy."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.spatial.transform as reference

import lavax as lx
import lavax.numpy as lnp
from lavax.scipy.spatial.transform import Rotation, Slerp
from lavax.test_util import check_grads
from tests.closeness import close

pytestmark = pytest.mark.usefixtures("reference_backend")

QUATS = np.random.default_rng(0).normal(size=(5, 4)).astype("f")
VECTORS = np.random.default_rng(1).normal(size=(5, 3)).astype("f")
THEIRS = reference.Rotation.from_quat(QUATS)


def ours() -> Rotation:
    return Rotation.from_quat(QUATS)


def same(found: Any, wanted: Any) -> None:
    close(np.asarray(found.as_matrix()), wanted.as_matrix())


def test_forms() -> None:
    close(ours().as_matrix(), THEIRS.as_matrix())
    close(ours().as_quat(), THEIRS.as_quat())
    close(ours().as_quat(canonical=True, scalar_first=True), THEIRS.as_quat(canonical=True, scalar_first=True))
    close(ours().as_rotvec(degrees=True), THEIRS.as_rotvec(degrees=True), 2e-5)
    close(ours().as_mrp(), THEIRS.as_mrp())
    close(ours().magnitude(), THEIRS.magnitude())
    same(Rotation.from_matrix(THEIRS.as_matrix()), THEIRS)
    same(Rotation.from_rotvec(VECTORS), reference.Rotation.from_rotvec(VECTORS))
    same(Rotation.from_rotvec(1e-5 * VECTORS), reference.Rotation.from_rotvec(1e-5 * VECTORS))
    same(Rotation.from_mrp(VECTORS), reference.Rotation.from_mrp(VECTORS))


@pytest.mark.parametrize("seq", ["xyz", "zyx", "XYZ", "ZYX", "zxz", "XZX", "yxz"])
def test_angles(seq: str) -> None:
    close(ours().as_euler(seq), THEIRS.as_euler(seq), 2e-5)
    angles = 40 * VECTORS
    same(Rotation.from_euler(seq, angles, degrees=True), reference.Rotation.from_euler(seq, angles, degrees=True))
    same(Rotation.from_euler(seq[:1], 0.3), reference.Rotation.from_euler(seq[:1], 0.3))


def test_turning() -> None:
    close(ours().apply(VECTORS), THEIRS.apply(VECTORS))
    close(ours().apply(VECTORS[0], inverse=True), THEIRS.apply(VECTORS[0], inverse=True))
    close(ours()[1].apply(VECTORS), THEIRS[1].apply(VECTORS))
    same(ours() * ours()[1], THEIRS * THEIRS[1])
    same(ours().inv(), THEIRS.inv())
    same(ours().mean(), THEIRS.mean())
    same(Rotation.concatenate([ours(), ours()[1]]), reference.Rotation.concatenate([THEIRS, THEIRS[1]]))
    assert len(ours()) == 5 and ours()[0].single and not ours().single and len(Rotation.identity(3)) == 3
    close(Rotation.random(lx.random.key(0), 4).magnitude().shape, (4,))
    compiled = lx.jit(lambda r, v: r.apply(v))(ours(), VECTORS)
    close(compiled, THEIRS.apply(VECTORS))


def test_even_turns() -> None:
    times = np.array([0.0, 1.0, 2.5, 3.0, 4.0], "f")
    places = np.array([0.0, 0.3, 1.0, 2.9, 4.0], "f")
    same(Slerp.init(times, ours())(places), reference.Slerp(times, THEIRS)(places))
    same(Slerp(times, ours())(np.float32(2.7)), reference.Slerp(times, THEIRS)(2.7))
    with pytest.raises(lx.ShapeError, match="Slerp"):
        Slerp(times[:3], ours())


def test_gradients() -> None:
    with lx.enable_x64():
        vectors = VECTORS.astype(float)
        check_grads(lambda v: Rotation.from_rotvec(v).apply(lnp.sin(v)), (vectors,), 2)
        check_grads(lambda v: Rotation.from_rotvec(v).as_euler("zyx"), (vectors,), 1)
        check_grads(lambda m: Rotation.from_matrix(m).as_rotvec(), (THEIRS.as_matrix(),), 1)
        at_rest = lx.grad(lambda v: lnp.sum(Rotation.from_rotvec(v).as_rotvec()))(np.zeros(3))
        close(at_rest, np.ones(3))


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="seq is up to three"):
        Rotation.from_euler("xxz", VECTORS)
    with pytest.raises(lx.ShapeError, match="from_quat takes"):
        Rotation.from_quat(VECTORS)
    with pytest.raises(TypeError, match="single Rotation"):
        len(ours()[0])
