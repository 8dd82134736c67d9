"""Statistics, calculus, grids, joining, padding and choices, each against NumPy's function of the same name."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import DtypeError, ShapeError
from tests.lavax.numpy.arrays import BOOL, F32, I32, check, sample

pytestmark = pytest.mark.usefixtures("reference_backend")

X, Y, V, W = sample((3, 5, 4)), sample((3, 4)), sample((12,)), sample((12,), seed=1)
N = X.copy()
N[0, :, 1], N[2, 3, :] = np.nan, np.nan
I = sample((3, 5), I32, 0, 4)  # noqa: E741
Case = tuple[Callable[[Any], Callable[..., Any]], tuple[np.ndarray, ...]]

# What is the same call of both namespaces: name: (namespace -> function of the arrays, the arrays).
CASES: dict[str, Case] = {
    "median": (lambda n: lambda x: n.median(x, axis=1), (X,)),
    "median of all": (lambda n: lambda x: n.median(x), (X,)),
    "median of axes": (lambda n: lambda x: n.median(x, axis=(0, 2), keepdims=True), (X,)),
    "quantile": (lambda n: lambda x, q: n.quantile(x, q, axis=1), (X, np.array([0, 0.3, 0.5, 1], F32))),
    "quantile of nan": (lambda n: lambda x: n.quantile(x, 0.3, axis=1), (N,)),
    **{
        f"quantile {method}": (lambda n, method=method: lambda x: n.quantile(x, 0.4, axis=1, method=method), (X,))
        for method in ("lower", "higher", "midpoint", "nearest")
    },
    "percentile": (lambda n: lambda x: n.percentile(x, 37.5, axis=2, keepdims=True), (X,)),
    "nanmedian": (lambda n: lambda x: n.nanmedian(x, axis=0), (N,)),
    "nanpercentile": (lambda n: lambda x: n.nanpercentile(x, 25, axis=(1, 2)), (N,)),
    "ptp": (lambda n: lambda x: n.ptp(x, axis=1), (X,)),
    "average": (lambda n: lambda x, w: n.average(x, 0, w), (V, np.abs(W))),
    "average along": (lambda n: lambda x, w: n.average(x, 1, w), (X, np.abs(V[:5]))),
    "average along axes": (lambda n: lambda x, w: n.average(x, (2, 0), w), (X, np.abs(X[:, 0].T))),
    "average and weights": (lambda n: lambda x, w: n.average(x, 1, w, returned=True), (X, np.abs(V[:5]))),
    "cov": (lambda n: lambda x: n.cov(x), (Y,)),
    "cov of columns": (lambda n: lambda x: n.cov(x, rowvar=False, bias=True), (Y,)),
    "cov of two": (lambda n: lambda x, y: n.cov(x, y), (V, W)),
    "cov weighted": (lambda n: lambda x, w: n.cov(x, aweights=w), (Y, np.abs(V[:4]))),
    "corrcoef": (lambda n: lambda x: n.corrcoef(x), (Y,)),
    "histogram": (lambda n: lambda x: n.histogram(x, 5, (-2, 2))[0], (X,)),
    "histogram of edges": (lambda n: lambda x, e: n.histogram(x, e)[0], (X, np.array([-1, 0, 0.5, 2], F32))),
    "histogram density": (lambda n: lambda x: n.histogram(x, 4, density=True)[0], (X,)),
    "histogram edges": (lambda n: lambda x: n.histogram_bin_edges(x, 4), (X,)),
    "histogram2d": (lambda n: lambda x, y: n.histogram2d(x, y, 3, density=True)[0], (V, W)),
    **{
        name: (lambda n, name=name: lambda x: getattr(n, name)(x, axis=1), (N,))
        for name in ("nansum", "nanprod", "nanmean")
    },
    "nanvar": (lambda n: lambda x: n.nanvar(x, axis=2, ddof=1), (N[1:, :3],)),
    "nanstd": (lambda n: lambda x: n.nanstd(x), (N,)),
    "nanmax": (lambda n: lambda x: n.nanmax(x, axis=0, keepdims=True), (N,)),
    "nanmin": (lambda n: lambda x: n.nanmin(x), (N,)),
    "nanargmax": (lambda n: lambda x: n.nanargmax(x, axis=0), (N,)),
    "nanargmin": (lambda n: lambda x: n.nanargmin(x), (N,)),
    "diff": (lambda n: lambda x: n.diff(x, 2, 1), (X,)),
    "diff of no times": (lambda n: lambda x: n.diff(x, 0, prepend=0), (X,)),
    "diff with ends": (lambda n: lambda x: n.diff(x, prepend=0, append=x[..., :2]), (X,)),
    "ediff1d": (lambda n: lambda x, b: n.ediff1d(x, to_begin=b), (Y, V[:2])),
    "trapezoid": (lambda n: lambda y: n.trapezoid(y, dx=0.5, axis=1), (X,)),
    "trapezoid at points": (lambda n: lambda y, x: n.trapezoid(y, x, axis=1), (X, V[:5])),
    "gradient": (lambda n: lambda x: n.gradient(x, 0.5, axis=1), (X,)),
    "gradient at points": (
        lambda n: lambda x, p: n.gradient(x, p, axis=1, edge_order=2),
        (X, np.array([0, 1, 3, 4, 6], F32)),
    ),
    "gradient of order two": (lambda n: lambda x: n.gradient(x, axis=1, edge_order=2), (X,)),
    "gradients": (lambda n: lambda x: list(n.gradient(x)), (X,)),
    "interp": (lambda n: lambda x, p, f: n.interp(x, p, f), (V, np.sort(W), V)),
    "interp with ends": (lambda n: lambda x, p, f: n.interp(x, p, f, left=-9, right=9), (V * 3, np.sort(W), V)),
    "interp period": (lambda n: lambda x, p, f: n.interp(x, p, f, period=2.5), (V, W, V)),
    "unwrap": (lambda n: lambda x: n.unwrap(x, axis=0), (V * 4,)),
    "unwrap period": (lambda n: lambda x: n.unwrap(x, period=3), (X,)),
    "polyval": (lambda n: lambda p, x: n.polyval(p, x), (V[:4], Y)),
    "kron": (lambda n: lambda x, y: n.kron(x, y), (Y, X[0])),
    "cross": (lambda n: lambda x, y: n.cross(x, y, axis=0), (Y, sample((3, 4), seed=2))),
    "vecdot": (lambda n: lambda x, y: n.vecdot(x, y), (X, V[:4])),
    "convolve": (lambda n: lambda x, y: n.convolve(x, y), (V, W[:5])),
    "convolve same": (lambda n: lambda x, y: n.convolve(x, y, "same"), (V[:4], W)),
    "convolve valid": (lambda n: lambda x, y: n.convolve(x, y, "valid"), (V, W[:5])),
    "correlate": (lambda n: lambda x, y: n.correlate(x, y), (V, W[:5])),
    "correlate full": (lambda n: lambda x, y: n.correlate(x, y, "full"), (V[:3], W)),
    "correlate same": (lambda n: lambda x, y: n.correlate(x, y, "same"), (V[:4], W)),
    "meshgrid": (lambda n: lambda x, y: list(n.meshgrid(x, y)), (V[:3], W[:4])),
    "meshgrid ij": (lambda n: lambda x, y: list(n.meshgrid(x, y, indexing="ij", sparse=True)), (V[:3], W[:4])),
    "tril": (lambda n: lambda x: n.tril(x, k=1), (X,)),
    "triu": (lambda n: lambda x: n.triu(x, k=-1), (X,)),
    "triu of truth": (lambda n: lambda x: n.triu(x), (X > 0,)),
    "diagonal": (lambda n: lambda x: n.diagonal(x, 1, 0, 2), (X,)),
    "diagonal below": (lambda n: lambda x: n.diagonal(x, -2), (X[0],)),
    "no diagonal": (lambda n: lambda x: n.diagonal(x, 9), (X[0],)),
    "diag": (lambda n: lambda x: n.diag(x, -2), (V,)),
    "diagflat": (lambda n: lambda x: n.diagflat(x, 1), (Y,)),
    "trace": (lambda n: lambda x: n.trace(x, 1, 2, 1), (X,)),
    "vander": (lambda n: lambda x: n.vander(x, 3), (V[:4],)),
    "rot90": (lambda n: lambda x: [n.rot90(x, k, (0, 2)) for k in range(-1, 4)], (X,)),
    "fliplr": (lambda n: lambda x: [n.fliplr(x), n.flipud(x)], (X,)),
    "rollaxis": (lambda n: lambda x: [n.rollaxis(x, 2), n.rollaxis(x, 0, 2), n.rollaxis(x, 0, 3)], (X,)),
    "stacks": (lambda n: lambda x, y: [n.column_stack([x, y]), n.dstack([x, y]), n.append(x, y)], (V, W)),
    "splits": (lambda n: lambda x: [*n.hsplit(x, 5), *n.vsplit(x, [1]), *n.dsplit(x, 2)], (X,)),
    "unstack": (lambda n: lambda x: list(n.unstack(x, axis=1)), (X,)),
    "block": (lambda n: lambda x, y: n.block([[x, y], [y, x]]), (Y, Y + 1)),
    "resize": (lambda n: lambda x: n.resize(x, (3, 7)), (V,)),
    "atleast_3d": (lambda n: lambda x, y: [n.atleast_3d(x), n.atleast_3d(y)], (V, Y)),
    "isclose": (lambda n: lambda x, y: n.isclose(x, y, 0.5, equal_nan=True), (N, X)),
    "allclose": (lambda n: lambda x: [n.allclose(x, x), n.allclose(x, x + 1)], (X,)),
    "array_equal": (lambda n: lambda x: [n.array_equal(x, x), n.array_equal(x, x, equal_nan=True)], (N,)),
    "array_equiv": (lambda n: lambda x: [n.array_equiv(x, x[:1]), n.array_equiv(x, x[:2, 0])], (X,)),
    "select": (lambda n: lambda x: n.select([x < -1, x < 1], [x, -x], 7), (X,)),
    "piecewise": (lambda n: lambda x: n.piecewise(x, [x < 0, x > 1], [lambda x: -x, 2, lambda x: x * x]), (X,)),
    "choose": (lambda n: lambda i, x, y: n.choose(i, [x, y]), (I % 2, X[:, :, 0], X[:, :, 1])),
    "roll": (lambda n: lambda x: n.roll(x, (1, -2), axis=(0, 2)), (X,)),
}
PADDED = ((1, 2), (0, 7), (3, 0))
for _mode in ("edge", "reflect", "symmetric", "wrap", "linear_ramp", "maximum", "minimum", "mean", "median"):
    CASES[f"pad {_mode}"] = (lambda n, mode=_mode: lambda x: n.pad(x, PADDED, mode=mode), (X,))
for _mode in ("reflect", "symmetric"):
    CASES[f"pad odd {_mode}"] = (
        lambda n, mode=_mode: lambda x: n.pad(x, PADDED, mode=mode, reflect_type="odd"),
        (X,),
    )
CASES["pad statistics"] = (lambda n: lambda x: n.pad(x, 2, mode="mean", stat_length=2), (X,))
CASES["pad ramp"] = (lambda n: lambda x: n.pad(x, 2, mode="linear_ramp", end_values=((1, 2), (3, 4))), (Y,))

RENAMED = {"vecdot": lambda x, y: (x * y).sum(-1), "unstack": lambda x, axis: np.moveaxis(x, axis, 0)}


class Theirs:
    """NumPy, with what it lacks in older releases."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name) if hasattr(np, name) else RENAMED[name]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_as_numpy_has_it(name: str) -> None:
    call, arrays = CASES[name]
    check(call(lnp), call(Theirs()), *arrays, rtol=2e-5, atol=2e-5)


def test_made_of_numbers() -> None:
    for function in (
        lambda n: n.logspace(0, 2, 5),
        lambda n: n.geomspace(1, 1000, 4),
        lambda n: n.geomspace(-8, -1, 4, endpoint=False),
        lambda n: n.tri(3, 4, -1),
        lambda n: n.indices((2, 3)),
    ):
        np.testing.assert_allclose(np.asarray(function(lnp)), function(np), rtol=2e-6)
    for ours, theirs in zip(lnp.tril_indices(4, -1), np.tril_indices(4, -1), strict=True):
        np.testing.assert_array_equal(np.asarray(ours), theirs)
    for ours, theirs in zip(lnp.triu_indices(3, 0, 5), np.triu_indices(3, 0, 5), strict=True):
        np.testing.assert_array_equal(np.asarray(ours), theirs)
    np.testing.assert_array_equal(np.asarray(lnp.diag_indices(3)), np.diag_indices(3))
    np.testing.assert_array_equal(np.asarray(lnp.bincount(np.array([1, 1, 3]))), [0, 2, 0, 1])
    found = lx.compile(lambda x: lnp.bincount(x, length=3))(I[0])
    np.testing.assert_array_equal(np.asarray(found), np.bincount(I[0], minlength=3)[:3])
    weights = sample((15,))
    found = lnp.bincount(I.ravel(), weights, 9)
    np.testing.assert_allclose(np.asarray(found), np.bincount(I.ravel(), weights, 9), rtol=1e-5, atol=1e-6)


def test_repeat_each_so_often() -> None:
    times = np.array([2, 0, 1, 3, 0])
    np.testing.assert_array_equal(np.asarray(lnp.repeat(X, times, axis=1)), np.repeat(X, times, axis=1))
    np.testing.assert_array_equal(np.asarray(lnp.repeat(V, 3 + np.arange(12))), np.repeat(V, 3 + np.arange(12)))
    padded = lx.compile(lambda x, times: lnp.repeat(x, times, axis=1, total_repeat_length=8))(X, times)
    np.testing.assert_array_equal(np.asarray(padded)[:, :6], np.repeat(X, times, axis=1))


def test_put_along_axis() -> None:
    places = np.argmax(X, axis=1, keepdims=True)
    expected = X.copy()
    np.put_along_axis(expected, places, 9, axis=1)
    np.testing.assert_array_equal(np.asarray(lnp.put_along_axis(X, places, 9.0, 1, False)), expected)


def test_no_numbers_left_gives_nan_or_minus_one() -> None:
    nothing = np.full((2, 3), np.nan, F32)
    for function in (lnp.nanmean, lnp.nanmax, lnp.nanmin, lnp.nanmedian, lnp.nanvar):
        assert np.isnan(np.asarray(function(nothing, 1))).all()
    assert np.asarray(lnp.nanargmax(nothing, 1)).tolist() == [-1, -1]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: lnp.quantile(V, 0.5, method="middle"), ValueError, "method"),
        (lambda: lnp.diff(V, -1), ShapeError, "n=-1"),
        (lambda: lnp.gradient(V[:1]), ShapeError, "needs at least 2"),
        (lambda: lnp.interp(V, V, W[:3]), ShapeError, "coordinates of points"),
        (lambda: lnp.cross(Y, Y), ShapeError, "2 or 3 components"),
        (lambda: lnp.convolve(X, V), ShapeError, "one axis"),
        (lambda: lnp.convolve(V, V, "most"), ValueError, "mode"),
        (lambda: lnp.pad(V, 1, mode="mirror"), ValueError, "modes are"),
        (lambda: lnp.pad(np.zeros((0,), F32), 1, mode="edge"), ShapeError, "no element"),
        (lambda: lnp.bincount(V), DtypeError, "integers"),
        (lambda: lnp.bincount(I), ShapeError, "one axis"),
        (lambda: lnp.diagonal(V), ShapeError, "two axes"),
        (lambda: lnp.block([[Y], Y]), ShapeError, "nested equally"),
        (lambda: lnp.dsplit(Y, 2), ShapeError, "3 axes"),
        (lambda: lnp.repeat(V, [1, 2]), ShapeError, "numbers of repetitions"),
        (lambda: lnp.select([], []), ShapeError, "0 conditions"),
        (lambda: lnp.average(X, 0, V), ShapeError, "weights"),
        (lambda: lnp.meshgrid(V, indexing="yx"), ValueError, "indexing"),
        (lambda: lnp.put_along_axis(X, V.astype(I32), 0, 1, False), ShapeError, "no positions"),
    ],
)
def test_bad_input(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


# Functions of one array whose gradients are checked by central differences in float64.
SMOOTH: dict[str, tuple[Callable[..., Any], np.ndarray]] = {
    "quantile": (lambda x: lnp.quantile(x, 0.3, axis=0), Y),
    "interp": (lambda f: lnp.interp(V, np.sort(W), f), V),
    "interp at": (lambda x: lnp.interp(x, np.sort(W), V), W[:5] + 0.01),
    "trapezoid": (lambda x: lnp.trapezoid(x, axis=0), Y),
    "cov": (lnp.cov, Y),
    "convolve": (lambda x: lnp.convolve(x, W[:4]), V),
    "kron": (lambda x: lnp.kron(x, Y), Y),
    "pad reflect": (lambda x: lnp.pad(x, 2, mode="reflect"), Y),
    "nanmean": (lambda x: lnp.nanmean(x, 0), Y),
    "diagonal": (lambda x: lnp.diagonal(x, 1), Y),
    "gradient": (lambda x: lnp.gradient(x, axis=0), Y),
    "repeat": (lambda x: lnp.repeat(x, np.array([2, 0, 1]), 0), Y),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients(name: str) -> None:
    function, x = SMOOTH[name]
    weight = sample(np.asarray(function(x)).shape, seed=5)

    def loss(x: Any) -> Any:
        return 3 * lnp.sum(weight * function(x))

    found = np.asarray(lx.grad(loss)(x))
    direction = sample(x.shape, seed=6)
    step = np.float32(1e-2)
    expected = (float(loss(x + step * direction)) - float(loss(x - step * direction))) / (2 * float(step))
    np.testing.assert_allclose((found * direction).sum(), expected, rtol=2e-2, atol=2e-2)


def test_inspection() -> None:
    assert lnp.asarray(X).__array_namespace__() is lnp
    with pytest.raises(ValueError, match=r"2024\.12"):
        lnp.asarray(X).__array_namespace__(api_version="2030.01")
    info = lnp.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] is True
    assert "complex64" in info.dtypes() and info.dtypes(kind="bool") == {"bool": np.dtype(bool)}
    assert set(info.default_dtypes()) == {"real floating", "complex floating", "integral", "indexing"}
    assert lnp.isdtype(lnp.float32, "real floating") and not lnp.isdtype(lnp.int32, ("bool", "real floating"))
    assert lnp.can_cast(lnp.int16, lnp.float32) and not lnp.can_cast(lnp.float32, lnp.int32)
    assert lnp.result_type(lnp.int32, 1.5) == np.float32 and lnp.result_type(np.uint32(1), 2) == np.uint32
    assert lnp.promote_types(BOOL, I32) == np.int32
    with pytest.raises(ValueError, match="kind"):
        lnp.isdtype(lnp.int32, "whole")


def test_arrays_are_exchanged() -> None:
    np.testing.assert_array_equal(np.from_dlpack(lnp.asarray(X)), X)
    assert np.from_dlpack(lnp.asarray(1.5)).shape == ()
    np.testing.assert_array_equal(np.asarray(lnp.from_dlpack(X)), X)
    with pytest.raises(BufferError, match="copy"):
        lnp.from_dlpack(X, copy=False)
