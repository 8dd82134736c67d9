"""LAPACK on the host, for what the device has no routine: the arrays go there and back in a call of the host."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from lavax.base.errors import DtypeError, ShapeError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.host_function import define_routine, routine_named
from lavax.ir.types import TensorType
from lavax.tracer.control_flow.recording import apply_control_flow
from lavax.tracer.values.value import Value

Shape = tuple[int, ...]


@dataclass(frozen=True)
class _Result:
    """A result for one matrix of each operand: complex where the operands are, unless it is `real`."""

    shape: Shape
    real: bool = False


def _eigenvalues(a: Shape) -> list[_Result]:
    return [_Result((a[0],)), _Result(a)]


def _hermitian(a: Shape) -> list[_Result]:
    return [_Result((a[0],), real=True), _Result(a)]


def _singular(a: Shape) -> list[_Result]:
    kept = min(a)
    return [_Result((a[0], kept)), _Result((kept,), real=True), _Result((kept, a[1]))]


def _all_singular(a: Shape) -> list[_Result]:
    return [_Result((a[0], a[0])), _Result((min(a),), real=True), _Result((a[1], a[1]))]


def _one(a: Shape) -> list[_Result]:
    return [_Result(a)]


def _two(a: Shape) -> list[_Result]:
    return [_Result(a), _Result(a)]


def _form(a: Shape) -> list[_Result]:
    return [_Result(a), _Result((max(a[0] - 1, 0),))]


def _tridiagonal(a: Shape) -> list[_Result]:
    beside = (max(a[0] - 1, 0),)
    return [_Result(a), _Result((a[0],), real=True), _Result(beside, real=True), _Result(beside)]


def _order(a: Shape) -> list[_Result]:
    return [_Result(a[1:], real=True)]


def _of_right_side(a: Shape, b: Shape, q: Shape) -> list[_Result]:
    return [_Result(q)]


def _of_two(t: Shape, z: Shape) -> list[_Result]:
    return [_Result(t), _Result(t)]


def _eig(matrix: np.ndarray) -> Sequence[np.ndarray]:
    """Real matrices by the routine for them, whose complex eigenvalues are conjugate pairs exactly."""
    return np.linalg.eig(_real_if_it_is(matrix))


def _svd(matrix: np.ndarray) -> Sequence[np.ndarray]:
    return np.linalg.svd(matrix, full_matrices=False)


def _schur(matrix: np.ndarray) -> Sequence[np.ndarray]:
    kind = "complex" if np.iscomplexobj(matrix) else "real"
    return scipy_linalg("schur").schur(matrix, output=kind)  # type: ignore[no-any-return]


def _rsf2csf(upper: np.ndarray, vectors: np.ndarray) -> Sequence[np.ndarray]:
    return scipy_linalg("rsf2csf").rsf2csf(  # type: ignore[no-any-return]
        _real_if_it_is(upper), _real_if_it_is(vectors)
    )


def _order_of_columns(matrix: np.ndarray) -> Sequence[np.ndarray]:
    return scipy_linalg("qr").qr(matrix, mode="r", pivoting=True)[1:]  # type: ignore[no-any-return]


def _lapack(real: str, of_complex: str, *settings: Any) -> Callable[[np.ndarray], Sequence[np.ndarray]]:
    """LAPACK's routines by their names for real and for complex matrices."""

    def run(matrix: np.ndarray) -> Sequence[np.ndarray]:
        name = of_complex if np.iscomplexobj(matrix) else real
        parts: Sequence[np.ndarray] = getattr(scipy_linalg(name).lapack, name)(matrix, *settings)
        return parts[:-1]  # without the status

    return run


def _of_scipy(name: str, **settings: Any) -> Callable[..., Sequence[np.ndarray]]:
    def run(*matrices: np.ndarray) -> Sequence[np.ndarray]:
        found = getattr(scipy_linalg(name), name)(*matrices, **settings)
        return found if isinstance(found, tuple) else [found]

    return run


@dataclass(frozen=True)
class _Routine:
    """The results by the shapes of one matrix of each operand, what computes them, and whether that needs SciPy."""

    results: Callable[..., list[_Result]]
    compute: Callable[..., Sequence[np.ndarray]]
    by_scipy: bool = True


# By the names that graphs, their texts and files hold.
_ROUTINES: dict[str, _Routine] = {
    "eig": _Routine(_eigenvalues, _eig, by_scipy=False),
    "eigh": _Routine(_hermitian, np.linalg.eigh, by_scipy=False),
    "svd": _Routine(_singular, _svd, by_scipy=False),
    "svd_full": _Routine(_all_singular, np.linalg.svd, by_scipy=False),
    "gehrd": _Routine(_form, _lapack("dgehrd", "zgehrd")),
    "sytrd_lower": _Routine(_tridiagonal, _lapack("dsytrd", "zhetrd", 1)),
    "sytrd_upper": _Routine(_tridiagonal, _lapack("dsytrd", "zhetrd", 0)),
    "sqrtm": _Routine(_one, _of_scipy("sqrtm")),
    "schur": _Routine(_two, _schur),
    "rsf2csf": _Routine(_of_two, _rsf2csf),
    "hessenberg": _Routine(_one, _of_scipy("hessenberg")),
    "hessenberg_with_q": _Routine(_two, _of_scipy("hessenberg", calc_q=True)),
    "solve_sylvester": _Routine(_of_right_side, _of_scipy("solve_sylvester")),
    "qr_order": _Routine(_order, _order_of_columns),
}


def _results(name: str, operands: Sequence[TensorType]) -> list[TensorType]:
    """The types of a routine's results. Raises ShapeError or DtypeError for operands that it does not take."""
    given = ", ".join(map(str, operands))
    if any(len(operand.shape) < 2 for operand in operands) or len({operand.shape[:-2] for operand in operands}) != 1:
        raise ShapeError(f"{name} takes matrices [..., m, n] of one batch, got {given}")
    dtype = operands[0].dtype
    if not (dtype.is_float or dtype.is_complex) or any(operand.dtype != dtype for operand in operands):
        raise DtypeError(f"{name} takes floats or complex numbers of one dtype, got {given}")
    results = _ROUTINES[name].results(*(operand.shape[-2:] for operand in operands))
    batch = operands[0].shape[:-2]
    return [TensorType((*batch, *each.shape), dtype.part if each.real else dtype) for each in results]


def _run(name: str, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results on each matrix of a batch. What is complex for real operands, or of a routine that failed, is NaN."""
    routine, held, batch = _ROUTINES[name], arrays[0].dtype, arrays[0].shape[:-2]
    precise, part = np.result_type(held, np.float64), np.zeros(0, held).real.dtype
    found = [
        np.full((*batch, *each.shape), np.nan, part if each.real else held)
        for each in routine.results(*(array.shape[-2:] for array in arrays))
    ]
    for index in np.ndindex(*batch):
        parts = _attempt(routine.compute, [np.asarray(array[index], precise) for array in arrays])
        for whole, each in zip(found, parts or (), strict=parts is not None):
            whole[index] = each if np.iscomplexobj(whole) else _real(each)
    return found


def _attempt(routine: Callable[..., Sequence[np.ndarray]], arrays: list[np.ndarray]) -> Sequence[np.ndarray] | None:
    if not all(np.isfinite(array).all() for array in arrays):
        return None
    try:
        return routine(*arrays)
    except np.linalg.LinAlgError:
        return None


def _real(part: np.ndarray) -> Any:
    """The array, or NaN where it is not real."""
    array = np.asarray(part)
    if array.dtype.kind != "c":
        return array
    return np.where(array.imag == 0, array.real, np.nan)


def _real_if_it_is(matrix: np.ndarray) -> np.ndarray:
    """The real parts of a complex matrix without imaginary ones."""
    return matrix if matrix.imag.any() else matrix.real


for _name in _ROUTINES:
    define_routine(_name, partial(_run, _name), partial(_results, _name))


def on_host(name: str, *operands: Value) -> tuple[Value, ...]:
    """The results of a routine on each matrix of a batch, computed in float64; matrices are the last two axes.

    All operands have the same batch and dtype. What is complex for real operands becomes NaN, unless the routine has
    complex results for them; a routine that fails gives NaN, too. Raises ImportError if SciPy is needed and missing.
    """
    if _ROUTINES[name].by_scipy:
        scipy_linalg(name)
    types = _results(name, [operand.type for operand in operands])
    function = routine_named(name)
    return tuple(apply_control_flow("host_call", operands, types, [False] * len(types), function=function))


def scipy_linalg(function: str) -> Any:
    """SciPy's module of linear algebra, for `function`. Raises ImportError, which says what to install."""
    try:
        return importlib.import_module("scipy.linalg")
    except ImportError:
        raise ImportError(f"{function} runs on the host by SciPy, which is not installed: pip install scipy") from None
