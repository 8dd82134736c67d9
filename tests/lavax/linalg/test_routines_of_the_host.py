"""What LAPACK on the host computes: as parts of files, texts and batches, and for operands that it does not take."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import DtypeError, ShapeError
from lavax.ir import verify
from lavax.ir.host_function import routine_named
from lavax.ir.types import TensorType, complex64, float32, int32
from lavax.lax import linalg as factors
from lavax.scipy import linalg as functions

pytestmark = pytest.mark.usefixtures("reference_backend")

_K = np.arange(18).reshape(2, 3, 3)
A = (np.cos(_K**2 + 1) + 1j * np.sin(2 * _K + _K**2)).astype(np.complex64)

# name -> the leaves of its results for complex matrices [2, 3, 3].
COMPUTED: dict[str, Callable[[Any], Any]] = {
    "eigh": lnp.linalg.eigh,
    "eig": lnp.linalg.eig,
    "svd": lambda a: lnp.linalg.svd(a, full_matrices=False),
    "svd_full": lambda a: lnp.linalg.svd(a[..., :2]),
    "gehrd": factors.hessenberg,
    "sytrd_lower": factors.tridiagonal,
    "sytrd_upper": lambda a: factors.tridiagonal(a, lower=False),
    "sqrtm": functions.sqrtm,
    "schur": functions.schur,
    "rsf2csf": lambda a: functions.rsf2csf(*functions.schur(a.real)),
    "hessenberg": functions.hessenberg,
    "hessenberg_with_q": lambda a: functions.hessenberg(a, calc_q=True),
    "solve_sylvester": lambda a: functions.solve_sylvester(a, a + 1, a),
    "qr_order": lambda a: functions.qr(a, pivoting=True),
}


def leaves_of(name: str) -> Callable[[Any], tuple[Any, ...]]:
    return lambda a: tuple(lx.tree.leaves(COMPUTED[name](a)))


@pytest.mark.parametrize("name", COMPUTED)
def test_files_and_texts_hold_them(name: str) -> None:
    function = leaves_of(name)
    exported = lx.export(function, A)
    loaded = lx.export.deserialize(exported.serialize())
    assert f'function="{name}"' in loaded.as_text()
    graph = lx.ir.parse(exported.as_text())
    verify(graph)
    assert str(graph) == exported.as_text()
    wanted, inside = function(lnp.asarray(A)), lx.compile(lambda a: loaded(a))(A)
    for found in (loaded(A), inside):
        for one, other in zip(found, wanted, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize("name", COMPUTED)
def test_a_batch_is_one_call(name: str) -> None:
    function = leaves_of(name)
    mapped = lx.compile(lx.vmap(function))
    calls = mapped.lower(A).as_text("ir").count(f'function="{name}"')
    assert calls == lx.compile(function).lower(A).as_text("ir").count(f'function="{name}"')
    for number, matrix in enumerate(A):
        for one, other in zip(mapped(A), function(lnp.asarray(matrix)), strict=True):
            np.testing.assert_array_equal(np.asarray(one)[number], np.asarray(other))


def test_operands_of_several_batches() -> None:
    """Each operand has the axes of both maps, so they fit together."""

    def solved(a: Any, b: Any) -> Any:
        return functions.solve_sylvester(a, b, A[0])

    found = lx.vmap(lambda a: lx.vmap(lambda b: solved(a, b))(A + 1))(A)
    for i in range(2):
        for j in range(2):
            np.testing.assert_array_equal(np.asarray(found)[i, j], np.asarray(solved(A[i], A[j] + 1)))


def test_a_loaded_function_has_derivatives() -> None:
    def lowest(a: Any) -> Any:
        return lnp.linalg.eigh(a)[0][..., 0].sum()

    loaded = lx.export.deserialize(lx.export(lowest, A).serialize())
    np.testing.assert_array_equal(np.asarray(lx.grad(loaded)(A)), np.asarray(lx.grad(lowest)(A)))


def test_equal_calls_are_one() -> None:
    text = lx.compile(lambda a: (lnp.linalg.eigh(a)[0], lnp.linalg.eigh(a)[1])).lower(A).as_text("optimized")
    assert text.count("host_call(") == 1


def test_functions_of_the_user_stay_where_they_are() -> None:
    def doubled(a: Any) -> Any:
        return lx.pure_callback(lambda x: 2 * x, lx.ShapeDtype(A.shape, A.dtype), lnp.linalg.eigh(a)[1])

    with pytest.raises(lx.SideEffectError, match="cannot be written to a file"):
        lx.export(doubled, A)


@pytest.mark.parametrize(
    ("operands", "mistake", "words"),
    [
        ([TensorType((3,), float32)] * 3, ShapeError, "takes matrices"),
        ([TensorType((2, 3, 3), float32)] * 2 + [TensorType((3, 3), float32)], ShapeError, "of one batch"),
        ([TensorType((3, 3), int32)] * 3, DtypeError, "takes floats or complex numbers"),
        ([TensorType((3, 3), complex64)] * 2 + [TensorType((3, 3), float32)], DtypeError, "of one dtype"),
    ],
)
def test_operands_that_they_do_not_take(operands: list[TensorType], mistake: type[Exception], words: str) -> None:
    routine = routine_named("solve_sylvester")
    assert routine is not None and routine.results is not None
    with pytest.raises(mistake, match=words):
        routine.results(operands)
