"""Every operation under every composition of transformations, compiled and run on the device, against float64."""
from __future__ import annotations

import numpy as np
import pytest

from lavax.base.errors import DtypeError, ReverseModeError
from lavax.ir import OPERATIONS, interpret
from lavax.passes.differentiate.rules import NOT_DIFFERENTIABLE
from lavax.passes.simplify import remove_stop_gradient
from tests.backends.vulkan.run.execution import run
from tests.compositions import EVERY, PREPARED, REVERSE, UNDEFINED, Made, compositions_of, merged, samples_of, undefined

# The operation by itself is compiled in test_operations.py; both orders of vmap and jvp are tried in the long run.
USUAL = frozenset({"vmap", "jvp", *REVERSE})
FLOAT_STEPS = {"floor", "ceil", "round", "truncate", "sign", "stop_gradient"}
OF_WHOLE_ORDERS = {"expn", "polygamma"}
_UNIT = 2.0**-23
# Operations that have tests of their own: tests/lavax/test_callbacks_on_device.py, tests/lavax/numpy/complex,
# tests/lavax/numpy/fft, and tests/backends/vulkan/run/test_wavefront.py for loops that only scheduling puts together.
ELSEWHERE = {"host_call", "complex", "conjugate", "fft", "imag", "irfft", "real", "rfft", "unit_root", "wavefront"}
ON_DEVICE = sorted(OPERATIONS.keys() - ELSEWHERE)


def _moved(op: str, array: np.ndarray) -> np.ndarray:
    """Floats a little larger, but for orders, which have to be whole."""
    is_order = op in OF_WHOLE_ORDERS and bool((array == np.round(array)).all())
    return array if array.dtype.kind != "f" or is_order else array * (1 + _UNIT)


def check(op: str, parts: dict[str, Made]) -> None:
    """One program for all parts. How far off a result may be hangs on what roundings of the inputs do to it."""
    if not parts:
        return
    graph, arrays = merged(list(parts.values()))
    found = run(remove_stop_gradient(graph), arrays)
    expected, narrow = interpret(graph, *arrays), interpret(graph, *arrays, dtype=np.float32)
    moved = [_moved(op, array) for array in arrays]
    names = [f"{op}: {name}" for name, (part, _) in parts.items() for _ in part.outputs]
    for name, got, want, other, rounded in zip(names, found, expected, interpret(graph, *moved), narrow, strict=True):
        if got.dtype.kind != "f":
            np.testing.assert_array_equal(got, want, err_msg=name)
            continue
        sensitivity = max(np.abs(values - want).max(initial=0) for values in (other, rounded))
        bound = 8 * _UNIT * (1 + np.abs(want).max(initial=0)) + 8 * sensitivity
        assert bound < 1e-3 * (1 + np.abs(want).max(initial=0)), f"{name}: says little, its result hangs on roundings"
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=0, atol=bound, err_msg=name)


@pytest.mark.parametrize("op", ON_DEVICE)
def test_compositions_agree_with_float64(op: str) -> None:
    sample = samples_of(op)[0]
    check(op, {name: made for name, made in compositions_of(sample).items() if name in USUAL})


@pytest.mark.long
@pytest.mark.parametrize("op", ON_DEVICE)
def test_compositions_agree_with_float64_in_more_cases(op: str) -> None:
    for sample in samples_of(op)[:4]:
        check(op, compositions_of(sample))


def test_all_that_is_not_listed_as_undefined_is_there() -> None:
    assert EVERY.keys() == {"compile", "vmap of jvp", "jvp of vmap", *USUAL}
    assert {"grad", "jvp", "vmap", "vmap of grad", "grad of vmap", "jvp of grad", "hessian"} == USUAL
    for reason, (ops, names) in UNDEFINED.items():
        assert ops <= OPERATIONS.keys() and names <= EVERY.keys(), reason
    for op in ON_DEVICE:
        assert compositions_of(samples_of(op)[0]).keys() == EVERY.keys() - undefined(op).keys()


def test_what_is_listed_as_undefined_is_refused_or_zero() -> None:
    for op, names in (("while", REVERSE), *((op, {"vmap"}) for op in sorted(PREPARED - ELSEWHERE))):
        for name in names:
            assert name in undefined(op)
            with pytest.raises((DtypeError, KeyError, ReverseModeError)):
                EVERY[name](samples_of(op)[0])
    for op in NOT_DIFFERENTIABLE & FLOAT_STEPS:
        gradient, arrays = REVERSE["grad"](samples_of(op)[0])
        assert not any(array.any() for array in interpret(gradient, *arrays))
