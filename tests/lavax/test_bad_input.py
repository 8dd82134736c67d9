"""Invalid arguments: the class of the error, the function that it names, and the reason that it gives."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import ArrayIndexError, ConcretizationError, DtypeError, ShapeError
from tests.lavax.numpy.arrays import BOOL, F32, I32, sample

pytestmark = pytest.mark.usefixtures("reference_backend")

X, I, T = sample((3, 4)), sample((3, 4), I32), sample((3, 4), BOOL)  # noqa: E741
V = sample((5,))

# Functions of an axis.
ALONG: dict[str, Callable[[int], Any]] = {
    name: (lambda axis, name=name: getattr(lnp, name)(X, axis=axis))
    for name in (
        "all", "any", "argmax", "argmin", "argsort", "average", "count_nonzero", "cumlogsumexp", "cummax", "cummin",
        "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "diff", "flip", "gradient", "max", "mean", "median",
        "min", "nanargmax", "nanmax", "nanmean", "nanmedian", "nanstd", "nansum", "nanvar", "prod", "ptp", "sort",
        "squeeze", "std", "sum", "trapezoid", "unique", "unstack", "unwrap", "var",
    )
}  # fmt: skip
ALONG |= {
    "apply_along_axis": lambda axis: lnp.apply_along_axis(lambda line: line, axis, X),
    "apply_over_axes": lambda axis: lnp.apply_over_axes(lnp.sum, X, axis),
    "append": lambda axis: lnp.append(X, X, axis),
    "argpartition": lambda axis: lnp.argpartition(X, 0, axis),
    "array_split": lambda axis: lnp.array_split(X, 2, axis),
    "compress": lambda axis: lnp.compress([True], X, axis),
    "concatenate": lambda axis: lnp.concatenate([X, X], axis),
    "cross": lambda axis: lnp.cross(X, X, axis=axis),
    "diagonal": lambda axis: lnp.diagonal(X, 0, axis, 1),
    "expand_dims": lambda axis: lnp.expand_dims(X, axis),
    "lexsort": lambda axis: lnp.lexsort([X], axis),
    "linspace": lambda axis: lnp.linspace(V, V, 3, axis=axis),
    "moveaxis": lambda axis: lnp.moveaxis(X, axis, 0),
    "partition": lambda axis: lnp.partition(X, 0, axis),
    "put_along_axis": lambda axis: lnp.put_along_axis(X, I * 0, 1, axis, False),
    "quantile": lambda axis: lnp.quantile(X, 0.5, axis),
    "repeat": lambda axis: lnp.repeat(X, 2, axis),
    "roll": lambda axis: lnp.roll(X, 1, axis),
    "rollaxis": lambda axis: lnp.rollaxis(X, axis),
    "rot90": lambda axis: lnp.rot90(X, 1, (0, axis)),
    "split": lambda axis: lnp.split(X, 1, axis),
    "stack": lambda axis: lnp.stack([X, X], axis),
    "swapaxes": lambda axis: lnp.swapaxes(X, 0, axis),
    "take": lambda axis: lnp.take(X, 0, axis),
    "take_along_axis": lambda axis: lnp.take_along_axis(X, I * 0, axis),
    "tensordot": lambda axis: lnp.tensordot(X, X, ((axis,), (0,))),
    "top_k": lambda axis: lnp.top_k(X, 1, axis),
    "trace": lambda axis: lnp.trace(X, 0, axis, 0),
    "transpose": lambda axis: lnp.transpose(X, (0, axis)),
    "vecdot": lambda axis: lnp.vecdot(X, X, axis=axis),
}


@pytest.mark.parametrize("axis", [7, -8])
@pytest.mark.parametrize("name", ALONG)
def test_an_axis_that_is_none(name: str, axis: int) -> None:
    with pytest.raises(ShapeError) as found:
        ALONG[name](axis)
    assert str(axis) in str(found.value)
    _says(found.value, name)


@pytest.mark.parametrize("name", ["sum", "max", "mean", "var", "all", "median", "flip"])
def test_an_axis_named_twice(name: str) -> None:
    with pytest.raises(ShapeError, match="twice") as found:
        getattr(lnp, name)(X, axis=(0, -2))
    _says(found.value, name)


# Shapes: name: (call, words of the message)
SHAPES: dict[str, tuple[Callable[[], Any], str]] = {
    **{
        name: (lambda name=name: getattr(lnp, name)(X, V), r"\(3, 4\).*\(5,\)|3,4.*5")
        for name in ("add", "atan2", "divide", "equal", "floor_divide", "hypot", "isclose", "logaddexp", "logical_and",
                     "maximum", "multiply", "power", "remainder", "subtract", "copysign", "heaviside", "fmod")
    },
    "arange": (lambda: lnp.arange(0, 3, 0), "step must not be 0"),
    "average": (lambda: lnp.average(X, 1, V), "weights"),
    "bincount": (lambda: lnp.bincount(I), "one axis"),
    "broadcast_arrays": (lambda: lnp.broadcast_arrays(X, V), "do not broadcast"),
    "broadcast_shapes": (lambda: lnp.broadcast_shapes((2, 3), (4,)), "3 and 4"),
    "broadcast_to": (lambda: lnp.broadcast_to(X, (3, 5)), r"\(3, 5\)"),
    "clip": (lambda: lnp.clip(X, V, 1), "do not broadcast"),
    "column_stack": (lambda: lnp.column_stack([X, V]), "f32"),
    "concatenate": (lambda: lnp.concatenate([X, X[:, :2]]), "f32"),
    "convolve": (lambda: lnp.convolve(X, V), "one axis|1-D|rank"),
    "cross": (lambda: lnp.cross(V, V), "3"),
    "diag": (lambda: lnp.diag(np.zeros((2, 2, 2), F32)), "f32"),
    "dot": (lambda: lnp.dot(X, V), "4 and 5|4.*5"),
    "einsum": (lambda: lnp.einsum("ij,jk", X, X), "j"),
    "flatnonzero": (lambda: lnp.flatnonzero(X[:0], size=-1), "size=-1"),
    "full": (lambda: lnp.full((2, -1), 0), "negative"),
    "inner": (lambda: lnp.inner(X, V), "4.*5"),
    "indices": (lambda: lnp.indices((2, -1)), r"\(2, -1\)"),
    "interp": (lambda: lnp.interp(X, V, V[:2]), "f32"),
    "linspace": (lambda: lnp.linspace(0, 1, -1), "-1"),
    "matmul": (lambda: lnp.matmul(X, V), "4.*5"),
    "matrix_transpose": (lambda: lnp.matrix_transpose(V), "f32"),
    "max": (lambda: lnp.max(X[:0]), "no elements|empty"),
    "min": (lambda: lnp.min(X[:0], axis=0), "no elements|empty"),
    "argmax": (lambda: lnp.argmax(X[:0]), "no elements|empty"),
    "moveaxis": (lambda: lnp.moveaxis(X, (0, 1), 0), "2|axes"),
    "pad": (lambda: lnp.pad(X, -1), "negative"),
    "partition": (lambda: lnp.partition(X, 9), "kth=9"),
    "polyval": (lambda: lnp.polyval(X, V), "one axis"),
    "repeat": (lambda: lnp.repeat(X, [1, 2], 1), "repetitions"),
    "reshape": (lambda: lnp.reshape(X, (5, -1)), r"12 elements does not become \(5, -1\)"),
    "roll": (lambda: lnp.roll(X, (1, 2, 3), (0, 1)), "3 shifts for 2 axes"),
    "searchsorted": (lambda: lnp.searchsorted(X, V), "one axis"),
    "split": (lambda: lnp.split(X, 5), "5"),
    "squeeze": (lambda: lnp.squeeze(X, 0), "3"),
    "stack": (lambda: lnp.stack([X, V]), "one shape"),
    "tensordot": (lambda: lnp.tensordot(X, V, 1), "4.*5"),
    "tile": (lambda: lnp.tile(X, -1), "-1"),
    "top_k": (lambda: lnp.top_k(X, 9), "k=9"),
    "transpose": (lambda: lnp.transpose(X, (0,)), "axes"),
    "diag_indices": (lambda: lnp.diag_indices(-1), r"\(-1,\)"),
    "triu_indices": (lambda: lnp.triu_indices(2, 0, -1), r"\(2, -1\)"),
    "tri": (lambda: lnp.tri(-1), r"\(-1, -1\)"),
    "resize": (lambda: lnp.resize(V, -1), r"\(-1,\)"),
    "tril": (lambda: lnp.tril(np.float32(1)), "two axes|matri|f32"),
    "vdot": (lambda: lnp.vdot(X, V), "12.*5"),
    "vecdot": (lambda: lnp.vecdot(X, V), "4.*5"),
    "vstack": (lambda: lnp.vstack([X, V]), "f32"),
    "where": (lambda: lnp.where(T, X, V), "do not broadcast"),
    "eye": (lambda: lnp.eye(-1), "-1"),
    "compress": (lambda: lnp.compress(np.ones(9, bool), X, 0), "bool"),
    "take_along_axis": (lambda: lnp.take_along_axis(X, np.zeros(2, I32), 0), "positions"),
    "select": (lambda: lnp.select([T], [X, X]), "1 conditions for 2 choices"),
    "histogram": (lambda: lnp.histogram(X, 0), "bins=0"),
    "histogramdd": (lambda: lnp.histogramdd(V), "two axes"),
    "unstack": (lambda: lnp.unstack(np.float32(1)), "axis"),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_that_do_not_fit(name: str) -> None:
    call, words = SHAPES[name]
    with pytest.raises(ShapeError, match=words) as found:
        call()
    _says(found.value, name)


DTYPES: dict[str, tuple[Callable[[], Any], str]] = {
    **{
        name: (lambda name=name: getattr(lnp, name)(X, X), "f32")
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift")
    },
    "bitwise_invert": (lambda: lnp.bitwise_invert(X), "f32"),
    "bitwise_count": (lambda: lnp.bitwise_count(X), "f32"),
    "subtract": (lambda: lnp.subtract(T, T), "bool"),
    "negative": (lambda: lnp.negative(T), "bool"),
    "arange": (lambda: lnp.arange(3, dtype="bool"), "bool"),
    "astype": (lambda: lnp.astype(X, "complex256"), "complex256"),
    "can_cast": (lambda: lnp.can_cast(None, "float32"), "None is not a dtype"),
    "zeros": (lambda: lnp.zeros(2, "datetime64"), "datetime64"),
    "bincount": (lambda: lnp.bincount(V), "f32"),
    "ldexp": (lambda: lnp.ldexp(X, X), "f32"),
    "power": (lambda: lnp.power(I, -1), "-1"),
    "result_type": (lambda: lnp.result_type(), "at least one"),
    "from_dlpack": (lambda: lnp.from_dlpack(3), "3 of type int has no __dlpack__"),
    "asarray": (lambda: lnp.asarray([[1, 2], [3]]), "different lengths"),
    "add": (lambda: lnp.add(X, "a"), "'a' of type str"),
    "sin": (lambda: lnp.sin("a"), "'a' of type str"),
    "less": (lambda: lnp.less("a", X), "'a' of type str"),
    **{
        name: (lambda name=name: getattr(lnp, name)(X, ddof="1"), "ddof must be a number, got '1' of type str")
        for name in ("nanstd", "nanvar", "std", "var")
    },
}


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes_that_do_not_fit(name: str) -> None:
    call, words = DTYPES[name]
    with pytest.raises(DtypeError, match=words) as found:
        call()
    _says(found.value, name)


@pytest.mark.parametrize(
    ("name", "call"),
    [("take", lambda: lnp.take(X, V)), ("take_along_axis", lambda: lnp.take_along_axis(X, X, 0))],
)
def test_positions_that_are_no_integers(name: str, call: Callable[[], Any]) -> None:
    """A wrong key, as one in brackets is, and a TypeError, as of NumPy's functions."""
    with pytest.raises(ArrayIndexError, match=r"must be integers, got (float32|f32)") as found:
        call()
    assert isinstance(found.value, TypeError)
    _says(found.value, name)


# What has to be an integer: the call, and what the message calls it.
INTEGERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "arange": (lambda n: lnp.arange(str(n)), "start, stop and step"),
    "array": (lambda n: lnp.array(X, ndmin=n), "ndmin"),
    "array_split": (lambda n: lnp.array_split(X, n), "the number of parts"),
    "diag": (lambda n: lnp.diag(V, n), "k must be"),
    "diagonal": (lambda n: lnp.diagonal(X, n), "offset"),
    "diff": (lambda n: lnp.diff(X, n), "n must be"),
    "eye": (lambda n: lnp.eye(3, k=n), "k must be"),
    "histogram": (lambda n: lnp.histogram(X, n), "bins"),
    "geomspace": (lambda n: lnp.geomspace(1, 2, n), "num"),
    "linspace": (lambda n: lnp.linspace(0, 1, n), "num"),
    "nonzero": (lambda n: lnp.nonzero(X, size=n), "size"),
    "pad": (lambda n: lnp.pad(X, n), "pad_width"),
    "repeat": (lambda n: lnp.repeat(X, n), "repeats"),
    "reshape": (lambda n: lnp.reshape(X, (n, -1)), "an extent of the shape"),
    "roll": (lambda n: lnp.roll(X, n), "shift"),
    "rollaxis": (lambda n: lnp.rollaxis(X, 0, n), "start"),
    "round": (lambda n: lnp.round(X, n), "decimals"),
    "split": (lambda n: lnp.split(X, [1, n]), "a position"),
    "sum": (lambda n: lnp.sum(X, axis=n), "axis"),
    "tile": (lambda n: lnp.tile(X, n), "reps"),
    "top_k": (lambda n: lnp.top_k(X, n), "k must be"),
    "tril_indices": (lambda n: lnp.tril_indices(3, n), "k must be"),
    "tri": (lambda n: lnp.tri(n), "an extent of the shape"),
    "zeros": (lambda n: lnp.zeros(n), "an extent of the shape"),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_numbers_that_are_not_whole(name: str) -> None:
    call, words = INTEGERS[name]
    with pytest.raises(DtypeError, match=rf"{words}.*1\.5") as found:
        call(1.5)
    _says(found.value, name)


def test_text_is_no_number() -> None:
    with pytest.raises(ShapeError, match=r"pad: constant_values must be a number, .* got 'a'"):
        lnp.pad(X, 1, constant_values="a")  # type: ignore[arg-type]
    with pytest.raises(DtypeError, match="dot_product_attention: scale must be a number, got '2' of type str"):
        lx.nn.dot_product_attention(*[sample((3, 1, 2))] * 3, scale="2")  # type: ignore[misc,arg-type]


def test_an_array_of_one_integer_is_a_shape() -> None:
    assert lnp.zeros(lnp.int32(3)).shape == lnp.zeros(np.array(3)).shape == (3,)
    with pytest.raises(ConcretizationError, match="static_argnames"):
        lx.compile(lambda n: lnp.zeros(n))(3)


@pytest.mark.parametrize("name", ["apply_along_axis", "fromfunction", "mask_indices", "vectorize"])
def test_what_is_no_function(name: str) -> None:
    calls: dict[str, Callable[[Any], Any]] = {
        "apply_along_axis": lambda f: lnp.apply_along_axis(f, 0, X),
        "fromfunction": lambda f: lnp.fromfunction(f, (2, 3)),
        "mask_indices": lambda f: lnp.mask_indices(3, f),
        "vectorize": lnp.vectorize,
    }
    with pytest.raises(TypeError, match=r"takes .*a function, got 5") as found:
        calls[name](5)
    _says(found.value, name)


@pytest.mark.parametrize("name", ["concatenate", "hstack", "lexsort", "stack"])
def test_what_is_no_sequence_of_arrays(name: str) -> None:
    with pytest.raises(DtypeError, match="takes a sequence of arrays, got 5") as found:
        getattr(lnp, name)(5)
    _says(found.value, name)


INDICES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "an int": (lambda x: x[3], "index 3 is outside axis 0"),
    "a negative int": (lambda x: x[:, -5], "index -5 is outside axis 1"),
    "an array": (lambda x: x[[0, 9]], "index 9 is outside axis 0"),
    "too many": (lambda x: x[0, 0, 0], "too many indices: 3"),
    "two ellipses": (lambda x: x[..., ...], "one Ellipsis"),
    "a float": (lambda x: x[1.0], "got 1.0"),
    "a mask": (lambda x: x[np.ones((2, 4), bool)], "mask"),
    "an update": (lambda x: x.at[7].set(0), "index 7 is outside axis 0"),
    "take": (lambda x: lnp.take(x, 9, 1), "index 9 is outside axis 1"),
    "delete": (lambda x: lnp.delete(x, 9, 0), "delete: 9 names an entry outside axis 0"),
    "take of several": (lambda x: lnp.take(x, [0, -7], 0), "index -7 is outside axis 0"),
    "take_along_axis": (lambda x: lnp.take_along_axis(x, [[8]], 1), "index 8 is outside axis 1"),
    "put_along_axis": (lambda x: lnp.put_along_axis(x, [[8]], 0, 1, False), "index 8 is outside axis 1"),
}


@pytest.mark.parametrize("name", INDICES)
def test_positions_outside(name: str) -> None:
    call, words = INDICES[name]
    with pytest.raises(IndexError, match=words) as found:
        call(lnp.asarray(X))
    assert isinstance(found.value, ArrayIndexError)
    _located(found.value)


VALUES: dict[str, Callable[[], Any]] = {
    "convolve": lambda: lnp.convolve(V, V, "some"),
    "isdtype": lambda: lnp.isdtype("float32", "some"),
    "meshgrid": lambda: lnp.meshgrid(V, V, indexing="some"),
    "pad": lambda: lnp.pad(X, 1, "some"),
    "quantile": lambda: lnp.quantile(X, 0.5, method="some"),  # type: ignore[arg-type]
    "searchsorted": lambda: lnp.searchsorted(V, V, side="some"),
    "zeros": lambda: lnp.zeros(2, device="some"),
    "ones_like": lambda: lnp.ones_like(X, device="some"),
    "full": lambda: lnp.full(2, 1, device="some"),
    "arange": lambda: lnp.arange(3, device="some"),
    "linspace": lambda: lnp.linspace(0, 1, device="some"),
    "eye": lambda: lnp.eye(3, device="some"),
    "asarray": lambda: lnp.asarray(X, device="some"),
    "astype": lambda: lnp.astype(X, "int32", device="some"),
    "from_dlpack": lambda: lnp.from_dlpack(X, device="some"),
    "to_device": lambda: lnp.asarray(X).to_device("some"),
    "take": lambda: lnp.take(X, 0, mode="some"),  # type: ignore[arg-type]
    "take_along_axis": lambda: lnp.take_along_axis(X, [[0]], 0, mode="some"),  # type: ignore[arg-type]
    "reshape": lambda: lnp.reshape(X, -1, "some"),  # type: ignore[arg-type]
    "ravel": lambda: lnp.ravel(X, "some"),  # type: ignore[arg-type]
    "get": lambda: lnp.asarray(X).at[0].get(mode="some"),  # type: ignore[arg-type]
    "set": lambda: lnp.asarray(X).at[0].set(1, mode="some"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", VALUES)
def test_words_that_are_none_of_those_known(name: str) -> None:
    with pytest.raises(ValueError, match="some") as found:
        VALUES[name]()
    assert name in str(found.value)


def test_one_device_and_copies() -> None:
    x = lnp.asarray(X)
    for made in (lnp.zeros(2, device=x.device), lnp.full_like(X, 2, device=x.device), x.to_device(x.device)):
        assert made.device == x.device
    assert lnp.asarray(x) is x and lnp.asarray(x, copy=False) is x
    other = lnp.asarray(x, copy=True)
    assert other is not x
    assert lnp.reshape(x, (3, 4), copy=False) is x
    for copy in (None, True):
        assert lnp.reshape(x, (3, 4), copy=copy) is not x
    with pytest.raises(ValueError, match=r"reshape: .*copy"):
        lnp.reshape(x, (4, 3), copy=False)
    np.testing.assert_array_equal(np.asarray(other), X)
    for source in (X, [1.0], 2):
        with pytest.raises(ValueError, match=r"asarray: .*copy"):
            lnp.asarray(source, copy=False)
    with pytest.raises(ValueError, match="copy"):
        lnp.asarray(x, "int32", copy=False)
    assert lnp.astype(x, "float32", copy=False) is x and lnp.astype(x, "float32") is not x


def test_a_fill_value_needs_its_mode() -> None:
    with pytest.raises(ValueError, match="fill_value"):
        lnp.asarray(X).at[0].get(fill_value=3)


def _says(error: Exception, name: str) -> None:
    assert name in str(error), f"{name} is not named: {error}"
    _located(error)


def _located(error: Exception) -> None:
    assert "test_bad_input.py:" in str(error), error
