"""Functions of SciPy that take arrays of any library, each as a function of a conversion."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.cluster.vq
import scipy.constants
import scipy.differentiate
import scipy.integrate
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.spatial.transform
import scipy.special
import scipy.stats

Convert = Callable[[np.ndarray], Any]
Case = Callable[[Convert], Any]

_draw = np.random.default_rng(1)
X = _draw.normal(size=(20, 4)).astype("f")
Y = (X + _draw.normal(size=(20, 4))).astype("f")
POSITIVE = np.abs(X) + np.float32(0.1)
SHARES = _draw.uniform(0.05, 0.95, (20, 4)).astype("f")
SERIES = np.ascontiguousarray(X[:, 0])
TAPS = np.array([0.25, 0.75, 1, 0.75, 0.25], "f")
FEEDBACK = np.array([1, 0.2], "f")
SECTIONS = np.array([[1, 0.1, 0, 1, 0.2, 0.1]], "f")


def _of(function: Any, *arguments: Any, **options: Any) -> Case:
    """The function of these arguments, of which the arrays are converted."""

    def case(a: Convert) -> Any:
        given = [a(value) if isinstance(value, np.ndarray) else value for value in arguments]
        named = {name: a(value) if isinstance(value, np.ndarray) else value for name, value in options.items()}
        return function(*given, **named)

    return case


def _all(module: Any, names: str, *arguments: Any, label: str = "", **options: Any) -> dict[str, Case]:
    """The functions of these names that this version of SciPy has."""
    prefix = module.__name__.removeprefix("scipy.")
    found = {name: getattr(module, name) for name in names.split() if hasattr(module, name)}
    return {f"{prefix}.{name}{label}": _of(function, *arguments, **options) for name, function in found.items()}


def _test(names: str, *arguments: Any, **options: Any) -> dict[str, Case]:
    """Statistical tests: the statistic and its probability."""

    def case(test: Case) -> Case:
        return lambda a: (lambda found: (found.statistic, found.pvalue))(test(a))

    return {name: case(test) for name, test in _all(scipy.stats, names, *arguments, **options).items()}


def _described(a: Convert) -> Any:
    found = scipy.stats.describe(a(X))
    return found.minmax, found.mean, found.variance, found.skewness, found.kurtosis


def _correlated(a: Convert) -> Any:
    found = scipy.stats.pearsonr(a(X), a(Y), axis=0)
    return found.statistic, found.pvalue, tuple(found.confidence_interval())


def _directions(a: Convert) -> Any:
    found = scipy.stats.directional_stats(a(X))
    return found.mean_direction, found.mean_resultant_length


def _turned(a: Convert) -> Any:
    turn = scipy.spatial.transform.Rotation.from_rotvec(a(X[:, :3]))
    return turn.as_quat(), turn.as_matrix(), turn.apply(a(Y[:, :3])), turn.inv().as_rotvec()


special, stats, signal = scipy.special, scipy.stats, scipy.signal

CASES: dict[str, Case] = {
    **_all(special, "logsumexp", X),
    **_all(special, "logsumexp", X, label=", rows", axis=1, keepdims=True),
    **_all(special, "logsumexp", X, label=", weights", axis=0, b=POSITIVE),
    **_all(special, "logsumexp", X, label=", signs", axis=0, b=Y, return_sign=True),
    **_all(special, "softmax log_softmax", X, axis=1),
    **_all(special, "entr expit logit erf erfc gammaln i0 i0e i1 i1e log_ndtr ndtr ndtri digamma sinc", SHARES),
    **_all(special, "rel_entr xlogy betaln gammainc gammaincc chdtr chdtrc", POSITIVE, SHARES),
    **_all(special, "betainc", POSITIVE, POSITIVE + 1, SHARES),
    **_all(stats, "zscore skew kurtosis variation sem tmean tvar tstd tsem tmin tmax gstd", POSITIVE),
    **_all(stats, "gmean hmean iqr circmean circvar circstd entropy lmoment", POSITIVE),
    **_all(stats, "zscore skew kurtosis", X, label=", rows", axis=1),
    **_all(stats, "skew kurtosis", X, label=", unbiased", bias=False),
    **{f"stats.moment, {order}": _of(stats.moment, X, order) for order in (1, 2, 3, 4)},
    **{f"stats.kstat, {order}": _of(stats.kstat, SERIES, order) for order in (1, 2, 3, 4)},
    "stats.zscore, ddof": _of(stats.zscore, X, ddof=1),
    "stats.zmap": _of(stats.zmap, X, Y),
    "stats.gzscore": _of(stats.gzscore, POSITIVE),
    "stats.pmean": _of(stats.pmean, POSITIVE, 2),
    "stats.entropy, relative": _of(stats.entropy, POSITIVE, SHARES),
    "stats.describe": _described,
    "stats.pearsonr": _correlated,
    "stats.directional_stats": _directions,
    "stats.boxcox_llf": _of(stats.boxcox_llf, 0.5, POSITIVE),
    "stats.trim_mean": _of(stats.trim_mean, X, 0.1),
    "stats.rankdata": _of(stats.rankdata, X),
    "stats.false_discovery_control": _of(stats.false_discovery_control, SHARES),
    **_test("skewtest kurtosistest normaltest", X),
    **_test("jarque_bera", X, axis=0),
    **_test("ttest_ind ttest_rel bartlett", X, Y),
    **_test("mannwhitneyu wilcoxon", X, Y, method="asymptotic"),
    **_test("ttest_1samp", X, 0.5),
    **_test("chisquare power_divergence", POSITIVE),
    **_test("combine_pvalues", SHARES[:, 0]),
    **_all(signal, "convolve correlate", SERIES, TAPS, method="direct"),
    **_all(signal, "lfilter filtfilt", TAPS, FEEDBACK, SERIES),
    **_all(signal, "sosfilt sosfiltfilt", SECTIONS, SERIES),
    **_all(signal, "lfilter_zi", TAPS, FEEDBACK),
    **_all(signal, "detrend", X),
    **_all(signal, "savgol_filter", SERIES, 5, 2),
    **_all(signal, "medfilt", SERIES, 3),
    **_all(signal, "wiener", SERIES),
    **_all(signal, "resample_poly", SERIES, 2, 3),
    **_all(signal, "upfirdn", TAPS, SERIES, 2),
    **_all(signal, "convolve2d correlate2d", X, TAPS[None]),
    **_all(scipy.integrate, "trapezoid cumulative_trapezoid cumulative_simpson", X),
    **_all(scipy.cluster.vq, "whiten", X),
    **_all(scipy.cluster.vq, "vq", X, X[:3]),
    **_all(scipy.optimize, "rosen rosen_der rosen_hess", SERIES),
    **_all(scipy.ndimage, "gaussian_filter", X, 1.0),
    **_all(scipy.ndimage, "sobel", X),
    **_all(scipy.constants, "convert_temperature", SERIES, "C", "K"),
    "spatial.transform.Rotation": _turned,
    "differentiate.derivative": lambda a: scipy.differentiate.derivative(lambda x: x**3, a(POSITIVE[0])).df,
}
