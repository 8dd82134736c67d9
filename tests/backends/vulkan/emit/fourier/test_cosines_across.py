"""Cosine and sine transforms along another axis than the last one: which steps they take, their values, derivatives and
batches."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fft

import lavax as lx
import lavax.numpy as lnp
import lavax.scipy.fft as lsf
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile
from lavax.backends.vulkan.target import target_of
from lavax.base import config
from lavax.base.errors import ShapeError
from lavax.ir.types import TensorType, float32
from lavax.passes.build.builder import build
from lavax.passes.prepare.pipeline import prepare
from tests.backends.vulkan.run.execution import backend
from tests.sweeps import all_pairs

RANDOM = np.random.default_rng(14)
Function = Callable[[Any], Any]


def _operations(function: Function, *shape: int, profile: DeviceProfile = CPU_DRIVER) -> list[str]:
    graph = lx.compile(function).lower(lx.ShapeDtype(shape, "float32"))._parts.graph
    nodes = prepare(graph, target_of(profile, 1 << 34, 1 << 32)).nodes
    return [node.op.removeprefix("fourier_across_") for node in nodes if node.op.startswith(("fourier", "transpose"))]


def _kernels(function: Function, *shape: int) -> str:
    return lx.compile(function).lower(lx.ShapeDtype(shape, "float32")).as_text("kernels")


@pytest.mark.usefixtures("on_a_cpu_driver")
@pytest.mark.parametrize("name", ["dct", "dst"])
def test_nothing_is_transposed(name: str) -> None:
    def along(x: Any, kind: int, axis: int) -> Any:
        return getattr(lsf, name)(x, kind, axis=axis)

    # A step, two, three; pairs of an odd number.
    for length, between in ((24, 0), (50, 0), (96, 1), (150, 1), (4096, 2)):
        steps = ["from_reals", *["fourier_step"] * (between - 1), *["to_half"] * (between > 0)]
        assert _operations(lambda x: along(x, 2, 1), 2, length, 8) == steps
        steps = [*["from_half"] * (between > 0), *["fourier_step"] * (between - 1), "to_reals"]
        assert _operations(lambda x: along(x, 3, 1), 2, length, 8) == steps
        for kind in (2, 3):
            text = _kernels(lambda x, kind=kind: along(x, kind, 0), length, 8)
            assert "kind=map" not in text and "concatenate" not in text
    assert "transpose" in _operations(lambda x: along(x, 2, 0), 96, 3)  # an odd number of neighbours
    assert "from_reals" not in _operations(lambda x: along(x, 2, 0), 96, 8, profile=GENERIC_GPU)
    assert "from_reals" not in _operations(lambda x: along(x, 2, 0), 2 * 131, 8)  # a convolution


def test_images_are_transposed_for_their_channels_only() -> None:
    """Of two axes the last one's lines are along memory. Of type 2 they are not put back."""
    for inverse in (False, True):
        transform = lsf.idctn if inverse else lsf.dctn
        found = _operations(transform, 64, 96)
        assert "transpose" not in found and len(found) == 2
        found = _operations(lambda x, transform=transform: transform(x, axes=(0, 1)), 64, 96, 3)
        moved = 2 if inverse else 1
        assert found.count("transpose") == moved and len(found) == moved + 2
        found = _operations(lambda x, transform=transform: transform(x, axes=(0, 1)), 24, 48, 4)
        assert "transpose" not in found


@pytest.mark.parametrize("name", ["dctn", "dstn", "idctn", "idstn"])
@pytest.mark.parametrize("shape", [(64, 96), (6, 30, 8), (3, 512, 12)])
def test_orthogonal_transforms_have_no_kernels_beside(name: str, shape: tuple[int, ...]) -> None:
    """Factors of all numbers and of an end of each line are in tables, or the first step has them."""
    x = RANDOM.normal(size=shape).astype(np.float32)
    for axes in ((-1,), (-2, -1)):
        transform = lx.compile(lambda x, axes=axes: getattr(lsf, name)(x, axes=axes, norm="ortho"))
        text = transform.lower(x).as_text("kernels")
        if backend().profile.kind == "cpu":
            assert "pad" not in text and "kind=map" not in text, text
        expected = getattr(scipy.fft, name)(x.astype(np.float64), axes=axes, norm="ortho")
        np.testing.assert_allclose(np.asarray(transform(x)), expected, rtol=0, atol=3e-6 * np.abs(expected).max())


def test_other_factors_of_an_end_are_not_of_it() -> None:
    """Of another place, and of one line."""
    x = RANDOM.normal(size=(5, 32)).astype(np.float32)
    for at in ((..., 1), (..., 31), (2, 0)):
        found = lx.compile(lambda x, at=at: lsf.dct(x.at[at].multiply(3.0), 3))(x)
        factors = np.ones(x.shape)
        factors[at] = 3
        np.testing.assert_allclose(np.asarray(found), scipy.fft.dct(x * factors, 3), atol=1e-4)


def test_lines_that_stay_where_they_are_put() -> None:
    """What is read in the order of its lines is transposed once."""
    found = _operations(lambda x: lsf.dct(lnp.transpose(x)) + 1, 64, 8)
    assert found == ["from_reals", "transpose"]
    x = RANDOM.normal(size=(64, 8)).astype(np.float32)
    for kind in (2, 3):
        moved = lx.compile(lambda x, kind=kind: lnp.cumsum(lsf.dct(lnp.transpose(x), kind), 1))(x)
        expected = np.cumsum(scipy.fft.dct(x.T.astype(np.float64), kind), 1)
        np.testing.assert_allclose(np.asarray(moved), expected, atol=1e-4)


def test_a_result_with_two_readers() -> None:
    x = RANDOM.normal(size=(48, 8)).astype(np.float32)
    found = lx.compile(lambda x: (y := lsf.dct(x, 3, axis=0), lnp.sum(y, 0)))(x)
    expected = scipy.fft.dct(x.astype(np.float64), 3, axis=0)
    np.testing.assert_allclose(np.asarray(found[0]), expected, atol=1e-4)
    np.testing.assert_allclose(np.asarray(found[1]), expected.sum(0), atol=1e-3)


# One step: pairs of an odd number, powers of two; two, with columns of an even and an odd number; three. Neighbours:
# two lines, two of six, four.
@all_pairs(
    length=[4, 6, 8, 30, 48, 60, 64, 74, 96, 150, 250, 500, 512, 1000, 4096, 5000],
    behind=[2, 6, 8],
    kind=[2, 3],
    name=["dct", "dst"],
    wide=[False, True],
)
def test_values(length: int, behind: int, kind: int, name: str, wide: bool) -> None:
    """Every number by itself: the ends of a line have places of their own."""
    shape = (max(-(-(1 << 14) // (length * behind)), 2), length, behind)
    x = RANDOM.normal(size=shape).astype(np.float64 if wide else np.float32)
    expected = getattr(scipy.fft, name)(x.astype(np.float64), kind, axis=1)
    with config.enable_x64(wide):
        transform = lx.compile(lambda x: getattr(lsf, name)(x, kind, axis=1))
        if backend().profile.kind == "cpu":
            assert "fourier_across" in transform.lower(x).as_text("kernels")
        found = np.asarray(transform(x))
    limit = 2.0 ** (-53 if wide else -24) * max(np.log2(length), 2)
    assert np.linalg.norm(found - expected) <= limit * np.linalg.norm(expected)
    np.testing.assert_allclose(found, expected, rtol=0, atol=(6e-15 if wide else 3e-6) * np.abs(expected).max())


@pytest.mark.parametrize("kind", [2, 3])
def test_many_numbers(kind: int) -> None:
    """More of them than inverses of spectra are in wide steps of, and rows that are read before they are written."""
    x = RANDOM.normal(size=(1024, 600)).astype(np.float32)
    for name in ("dct", "dst"):
        found = np.asarray(lx.compile(lambda x, name=name: getattr(lsf, name)(x, kind, axis=0))(x))
        expected = getattr(scipy.fft, name)(x.astype(np.float64), kind, axis=0)
        np.testing.assert_allclose(found, expected, rtol=0, atol=3e-6 * np.abs(expected).max())


@pytest.mark.parametrize("kind", [2, 3])
@pytest.mark.parametrize("length", [16, 512])
def test_numbers_of_one_line_do_not_show_in_another(length: int, kind: int) -> None:
    x = RANDOM.normal(size=(length, 4)).astype(np.float32) * np.array([1e-10, 1e10, 1, 1], np.float32)
    x[length // 3, 2] = np.nan
    found = np.asarray(lsf.dct(x, kind, axis=0))
    for line in (0, 1, 3):
        expected = scipy.fft.dct(x[:, line].astype(np.float64), kind)
        assert np.linalg.norm(found[:, line] - expected) <= 1e-6 * np.linalg.norm(expected)
    assert np.isnan(found[:, 2]).any()


@pytest.mark.parametrize(("length", "kind"), [(30, 2), (30, 3), (48, 2), (48, 3), (96, 2), (96, 3)])
@pytest.mark.parametrize("name", ["dct", "dst"])
def test_gradients_and_batches_in_the_middle(name: str, length: int, kind: int) -> None:
    """Of 3·Σ v·F(2x)²: the transform is linear, and its matrix SciPy's."""
    x, v = (RANDOM.normal(size=(5, length, 4)).astype(np.float32) for _ in range(2))
    matrix = getattr(scipy.fft, name)(np.eye(length), kind).T

    def loss(x: lx.Array, v: lx.Array) -> lx.Array:
        return 3 * lnp.sum(getattr(lsf, name)(2 * x, kind, axis=0) ** 2 * v)

    found = np.asarray(lx.compile(lx.vmap(lx.grad(loss)))(x, v))
    expected = 24 * matrix.T @ ((matrix @ x.astype(np.float64)) * v)
    np.testing.assert_allclose(found, expected, rtol=0, atol=3e-6 * np.abs(expected).max())


def test_steps_read_through_what_is_computed_before() -> None:
    x = RANDOM.normal(size=(96, 20)).astype(np.float32)

    def filtered(x: Any) -> Any:
        return lsf.idct(lsf.dct(lnp.sin(x) + 1, axis=0, norm="ortho") * 2, axis=0, norm="ortho")

    np.testing.assert_allclose(np.asarray(lx.compile(filtered)(x)), 2 * (np.sin(x) + 1), atol=4e-6)


_FROM, _TO, _TO_HALF, _FROM_HALF = (
    f"fourier_across_{step}" for step in ("from_reals", "to_reals", "to_half", "from_half")
)


@pytest.mark.parametrize(
    ("op", "shapes", "attrs", "message"),
    [
        (_FROM, [(1, 4, 1, 2)], {"folded": 3}, "folded is -1, 0, 1 or 2, not 3"),
        (_FROM, [(1, 4, 2, 2), (5,), (5,)], {"cosines": 1}, "no whole lines"),
        (_FROM, [(1, 4, 1, 2), (3,), (4,)], {"cosines": 1}, "the tables"),
        (_FROM, [(1, 4, 1, 2), (3,), (3,)], {"cosines": 2}, "cosines is -1, 0 or 1, not 2"),
        (_TO_HALF, [(1, 2, 1, 3, 2, 2), (4,), (4,)], {"columns": 4, "cosines": 1}, "the tables"),
        (_FROM_HALF, [(1, 4, 2)], {"length": 8, "columns": 4, "rest": 1, "cosines": 1}, "no \\[lines,8,behind\\]"),
        (_TO, [(1, 4, 2)], {"columns": 6, "cosines": 1}, "no \\[lines,6,behind\\]"),
        (_TO, [(1, 1, 3, 2, 2)], {"columns": 4, "folded": -2}, "folded is -1, 0, 1 or 2, not -2"),
    ],
)
def test_what_is_no_step(op: str, shapes: list[tuple[int, ...]], attrs: dict[str, Any], message: str) -> None:
    operands = [build("constant", type=TensorType(shape, float32), value=0.0) for shape in shapes]
    with pytest.raises(ShapeError, match=message):
        build(op, *operands, type=operands[0].type, **attrs)
