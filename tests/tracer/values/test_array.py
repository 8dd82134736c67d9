from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax.base.errors import DtypeError
from lavax.tracer import bind, constant, lift, with_weak
from tests.numpy_backend import NumpyBackend


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        (np.float64, np.float32),
        (np.float16, np.float16),
        (np.int64, np.int32),
        (np.int8, np.int8),
        (np.uint8, np.uint8),
        (np.bool_, np.bool_),
    ],
)
def test_numpy_dtypes_are_kept_but_for_those_of_64_bits(given: type, dtype: type) -> None:
    data = np.array([[0, 1], [1, 0]], given)
    array = lift(data)
    assert array.dtype == dtype
    assert np.asarray(array).dtype == dtype
    assert np.array_equal(np.asarray(array), data.astype(dtype))


@pytest.mark.parametrize("given", [np.ones(2, np.clongdouble), np.array(["a"]), "text", object(), [1.0, [2.0]], {1.0}])
def test_what_is_no_array_is_refused(given: object) -> None:
    with pytest.raises(DtypeError):
        lift(given)


@pytest.mark.parametrize("given", [2**31, np.array([2**40]), np.uint64(2**32), np.array([-(2**31) - 1])])
def test_integers_out_of_range_do_not_wrap(given: object) -> None:
    with pytest.raises(DtypeError, match="range"):
        lift(given)


def test_other_orders_of_bytes_are_read() -> None:
    array = lift(np.array([1.5, -2.0], ">f4"))
    assert array.dtype == np.float32
    assert array.tolist() == lx.compile(lambda x: x)(np.array([1.5, -2.0], ">f8")).tolist() == [1.5, -2.0]


def test_masked_elements_have_no_number() -> None:
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    for use in (lift, lx.compile(lambda x: x + 1)):
        with pytest.raises(DtypeError, match=r"masked.*filled"):
            use(masked)
    assert lift(masked.filled(0)).tolist() == [1, 0]
    assert lift(np.ma.array([1.0, 2.0])).tolist() == [1, 2]


def test_shape_and_dtype() -> None:
    array = lift(np.zeros((2, 3, 0)))
    assert (array.shape, array.ndim, array.size, len(array), array.dtype) == ((2, 3, 0), 3, 0, 2, np.dtype("f4"))


def test_rank_zero_arrays_keep_their_rank() -> None:
    assert lift(np.array(2.5)).shape == ()
    assert float(lift(np.array(2.5))) == 2.5


def test_changing_the_numpy_array_afterwards_changes_nothing() -> None:
    data = np.ones(3, np.float32)
    array = lift(data)
    data[:] = 5
    assert np.asarray(array).tolist() == [1, 1, 1]


def test_a_read_gives_memory_of_its_own() -> None:
    array = bind("negate", lift(np.ones(3)))
    np.asarray(array)[:] = 7
    assert array.tolist() == [-1, -1, -1]


def test_conversions_to_python() -> None:
    array = lift([[1, 2], [3, 4]])
    assert array.tolist() == [[1, 2], [3, 4]]
    assert array.item(1, 0) == 3
    number = lift(3)
    assert (int(number), float(number), bool(number), [10, 20, 30, 40][number]) == (3, 3.0, True, 40)
    assert type(number.item()) is int
    assert f"{lift(2.5):.3f}" == "2.500"


def test_refused_conversions() -> None:
    array = lift([1.0, 2.0])
    with pytest.raises(ValueError, match="any"):
        bool(array)
    with pytest.raises(TypeError, match="one element"):
        float(array)
    with pytest.raises(TypeError, match="integer scalar"):
        [1, 2][lift(1.0)]  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        len(lift(1.0))
    with pytest.raises(TypeError, match="iterated"):
        list(lift(1.0))
    with pytest.raises(TypeError):
        hash(array)
    with pytest.raises(ValueError, match="copy"):
        array.__array__(copy=False)


def test_numpy_operators_leave_the_work_to_values() -> None:
    result = np.ones(3, np.float32) + lift(np.ones(3))
    assert isinstance(result, lx.Array)
    assert isinstance(np.float32(2) * lift(np.ones(3)), lx.Array)


def test_iteration_and_unpacking() -> None:
    first, second = lift([[1.0, 2.0], [3.0, 4.0]])
    assert (first.tolist(), second.tolist()) == ([1, 2], [3, 4])


def test_arrays_are_no_buffers() -> None:
    """NumPy would ask for one first, and drop what is raised meanwhile: Ctrl-C, or an error of the device."""
    array = lift([1.0, 2.0])
    with pytest.raises(TypeError, match="bytes-like"):
        memoryview(array)  # type: ignore[arg-type]
    assert memoryview(np.asarray(array)).tolist() == [1.0, 2.0]


def test_repr() -> None:
    assert repr(lift([1.0, 2.0])) == "Array([1., 2.], dtype=float32)"
    assert repr(lift(True)) == "Array(True, dtype=bool)"
    assert repr(lift(np.ones((0, 3)))) == "Array([], shape=(0, 3), dtype=float32)"


def test_str_is_that_of_the_numbers() -> None:
    assert f"{lift([[1.0, 2.5]])} {lift(0.5)} {lift(True)}" == "[[1.  2.5]] 0.5 True"
    given = lift(np.ones(2))
    lx.compile(lambda x: x + 1, donate_argnums=0)(given)
    assert str(given) == "Array(f32[2], donated)"


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda array: pickle.loads(pickle.dumps(array))])
@pytest.mark.parametrize("data", [np.arange(4.0), np.array([True, False]), np.uint32(7)])
def test_copies_have_memory_of_their_own(copied: object, data: np.ndarray) -> None:
    array = lift(data)
    twin = copied(array)  # type: ignore[operator]
    assert twin.type == array.type
    assert np.array_equal(np.asarray(twin), data)
    assert twin.buffer is not array.buffer


def test_a_weak_scalar_stays_weak_through_pickle() -> None:
    assert pickle.loads(pickle.dumps(lift(1.0))).weak
    assert not pickle.loads(pickle.dumps(lift(np.float32(1)))).weak


def test_nothing_goes_to_the_device_before_it_is_used(backend: NumpyBackend) -> None:
    array = lift(np.ones(3))
    full = constant(2.0, array.type)
    assert np.asarray(full).tolist() == [2, 2, 2]
    assert backend.uploads == 0
    assert np.asarray(bind("add", array, full)).tolist() == [3, 3, 3]
    assert backend.uploads == 2  # the array, and one scalar for the constant
    assert lx.device_put(np.zeros(2)).block_until_ready().tolist() == [0, 0]
    assert backend.uploads == 3


def test_a_constant_can_be_an_argument() -> None:
    full = constant(3, lift([1, 2]).type)
    assert lx.compile(lambda x: bind("negate", x))(full).tolist() == [-3, -3]


def test_with_weak_is_a_view() -> None:
    strong = bind("add", lift(1.0), lift(1.0))
    weak = with_weak(strong, True)
    assert weak.weak and not strong.weak
    assert float(weak) == 2.0
    assert float(bind("add", weak, weak)) == 4.0


def test_traced_values_are_arrays() -> None:
    seen: list[bool] = []

    def f(x: Any) -> Any:
        seen.append(isinstance(x, lx.Array) and x.block_until_ready() is x)
        return x

    lx.compile(f)(1.0), lx.grad(f)(1.0), lx.vmap(f)(np.ones(2)), lx.jvp(f, (1.0,), (1.0,))
    assert seen == [True] * 4
    assert not any(isinstance(other, lx.Array) for other in (np.ones(2), 1.0, [lift(1.0)]))
