"""Gradients of lavax.numpy's differentiable functions in the middle of a graph, against central differences.

The loss is c · Σ w ⊙ f(2 (x / 2)): its derivatives along random directions are differences of the graph in float64.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lavax as lx
import lavax.numpy as lnp
from lavax.ir import interpret
from tests.lavax.numpy.arrays import F32, traced
from tests.lavax.properties.cases import Arguments, Case, listed
from tests.lavax.properties.table import CASES
from tests.lavax.properties.test_properties import FEW, MANY

pytestmark = pytest.mark.usefixtures("reference_backend")

# Functions that are differentiable almost everywhere, and where random arguments have a margin to the places where
# they are not.
DIFFERENTIABLE = (
    "abs", "acos", "acosh", "add", "append", "apply_along_axis", "apply_along_axis to matrices", "apply_over_axes",
    "array", "array_split", "asarray", "asin", "asinh", "astype", "atan", "atan2", "atanh", "atleast_1d", "atleast_2d",
    "atleast_3d", "average", "block", "broadcast_arrays", "broadcast_to", "c_[arrays]", "cbrt", "choose", "clip",
    "column_stack", "concatenate", "conj", "convolve", "copy", "copysign", "corrcoef", "correlate", "cos", "cosh",
    "cov", "cross", "cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum",
    "degrees", "delete at computed positions", "diag", "diagflat", "diagonal", "diff", "divide", "divmod", "dot",
    "dsplit", "dstack", "ediff1d", "einsum", "exp", "exp2", "expand_dims", "expm1", "fabs", "fill_diagonal", "flip",
    "fliplr", "flipud", "float_power", "floor", "floor_divide", "fmax", "fmin", "fmod", "frexp", "full of rows",
    "geomspace", "gradient", "heaviside", "histogram_bin_edges", "hsplit", "hstack", "hypot", "i0", "inner",
    "insert at computed positions", "interp", "kron", "ldexp", "linspace", "log", "log10", "log1p", "log2", "logaddexp",
    "logaddexp2", "logspace", "matmul", "matrix_transpose", "matvec", "max", "max where, from", "maximum", "mean",
    "mean where", "median", "meshgrid", "min", "min where, from", "minimum", "modf", "moveaxis", "multiply",
    "nan_to_num", "nancumprod", "nancumsum", "nanmax", "nanmax where, from", "nanmean", "nanmean where", "nanmedian",
    "nanmin", "nanmin where, from", "nanpercentile", "nanprod", "nanprod where, from", "nanquantile", "nanstd",
    "nanstd where", "nansum", "nansum where, from", "nanvar", "nanvar where", "negative", "outer", "pad", "partition",
    "percentile", "piecewise", "place", "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul",
    "polysub", "polyval", "power", "prod", "prod where, from", "ptp", "put", "put_along_axis", "quantile", "r_[arrays]",
    "radians", "ravel", "real", "reciprocal", "remainder", "repeat", "reshape", "resize", "roll", "rollaxis", "rot90",
    "round", "rsqrt", "select", "sign", "sin", "sinc", "sinh", "sort", "split", "sqrt", "square", "squeeze", "stack",
    "std", "std where", "subtract", "sum", "sum where, from", "swapaxes", "take", "take outside", "take_along_axis",
    "tan", "tanh", "tensordot", "tile", "top_k", "trace", "transpose", "trapezoid", "tril", "triu", "unstack", "unwrap",
    "vander", "var", "var where", "vdot", "vecdot", "vecmat", "vectorize", "vsplit", "vstack", "where",
    "x.at[positions].add", "x.at[positions].get", "x.at[slices]", "x[positions]", "x[slices]",
)  # fmt: skip
# Functions with a slope of no bound where the numbers are all the same.
NEEDS_SPREAD = ("std", "std where", "nanstd", "nanstd where")
# Functions that leave NaN out, whose slope there is 0.
PASS_OVER_NAN = tuple(name for name in DIFFERENTIABLE if name.startswith("nan"))
# Functions whose slope is 0 wherever they have one; differences would only find how many jumps lie between the ends.
PIECEWISE_CONSTANT = ("floor", "floor_divide", "round", "sign")
# How far the differences reach. Below it the error is of the second order, h² times a third derivative.
STEP = 1e-5


def loss_of(case: Case, drawn: Arguments) -> Callable[..., Any]:
    """c · Σ w ⊙ f(2 (x / 2)) over all floating results; the weights w are computed, so that none is captured."""

    def loss(*arrays: Any) -> Any:
        given = [2 * (array * 0.5) if array.dtype == F32 else array for array in arrays]
        total = lnp.asarray(0.0)
        for place, result in enumerate(listed(case.call(lnp)(*given, **drawn.options))):
            if result.type.dtype.is_float:
                places = lnp.arange(float(result.size)).reshape(result.shape)
                total = total + ((1 + 0.5 * lnp.sin((place + 1.5) * places)) * result).sum()
        return -1.5 * total

    return loss


def check(name: str, drawn: Arguments) -> None:
    case = CASES[name]
    floats = tuple(place for place, array in enumerate(drawn.arrays) if array.dtype == F32 and array.size)
    passes_over = np.isinf if name in PASS_OVER_NAN else lambda array: ~np.isfinite(array)
    if not floats or any(passes_over(drawn.arrays[place]).any() for place in floats):
        return
    loss = loss_of(case, drawn)
    try:
        graph = traced(lambda *arrays: [loss(*arrays), *lx.grad(loss, argnums=floats)(*arrays)], *drawn.arrays)
    except (ValueError, TypeError, lx.LavaxError):
        with pytest.raises((ValueError, TypeError, lx.LavaxError)):
            case.call(lnp)(*drawn.arrays, **drawn.options)  # it is the function that refuses, not its gradient
        return
    results = case.expected(drawn)
    if not all(np.isfinite(result).all() for result in results if result.dtype.kind == "f"):
        return
    if name in NEEDS_SPREAD and not all((result > 0).all() for result in results):
        return
    exact = [array.astype(np.float64) if place in floats else array for place, array in enumerate(drawn.arrays)]
    slopes = interpret(graph, *exact)[1:]
    for place, slope in zip(floats, slopes, strict=True):
        if name in PIECEWISE_CONSTANT:
            assert not slope.any(), f"argument {place}: slopes {slope} of a function that is constant between jumps"
            continue
        direction = np.random.default_rng(place).choice([-1.0, 0.5, 1.0], exact[place].shape)
        ends, bends = [], []
        for sign in (1, -1, 2, -2):
            moved = list(exact)
            moved[place] = exact[place] + sign * STEP * direction
            end, *there = interpret(graph, *moved)
            ends.append(float(end))
            bends.append(float((there[floats.index(place)] * direction).sum()))
        found = float((slope * direction).sum())
        near, far = (ends[0] - ends[1]) / (2 * STEP), (ends[2] - ends[3]) / (4 * STEP)
        # The differences are off by what they disagree by (a jump), and by how far the slope turns between the ends
        # (a kink, which a random argument is near now and then); the rest is rounding of the loss.
        allowed = 4 * abs(near - far) + abs(bends[0] - bends[1])
        allowed += 1e-6 * (np.abs(slope * direction).sum() + abs(near)) + 1e-9 * (1 + max(map(abs, ends)))
        assert abs(found - near) <= allowed, f"argument {place}: {found} along a direction, differences {near}"


@pytest.mark.parametrize("name", DIFFERENTIABLE)
@settings(FEW, max_examples=8)
@given(data=st.data())
def test_slopes_along_directions(name: str, data: st.DataObject) -> None:
    check(name, data.draw(CASES[name].arguments))


@pytest.mark.long
@pytest.mark.parametrize("name", DIFFERENTIABLE)
@MANY
@given(data=st.data())
def test_slopes_along_directions_on_many_arguments(name: str, data: st.DataObject) -> None:
    check(name, data.draw(CASES[name].arguments))
