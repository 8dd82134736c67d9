"""Distributions against SciPy, and their gradients against differences in float64 and against JAX."""
from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
import scipy.stats as reference

import lavax as lx
from lavax.scipy import stats
from lavax.test_util import check_grads
from tests.closeness import close

pytestmark = pytest.mark.usefixtures("reference_backend")

Y = np.array([-2.5, -0.7, 0.0, 0.3, 0.9, 1.0, 2.5, 6.0], "f")
Q = np.array([0.0, 0.01, 0.3, 0.5, 0.97, 1.0, 1.2], "f")
K = np.array([-1, 0, 1, 2, 3.5, 5, 9], "f")
FUNCTIONS = ("pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf")

# name -> shape parameters; the continuous ones are tried with a location and a scale, too.
CONTINUOUS: dict[str, tuple[float, ...]] = {
    "beta": (2.5, 1.7), "cauchy": (), "chi2": (3.3,), "expon": (), "gamma": (2.2,), "gennorm": (1.4,), "gumbel_l": (),
    "gumbel_r": (), "laplace": (), "logistic": (), "norm": (), "pareto": (2.6,), "t": (4.5,), "truncnorm": (-0.8, 1.9),
    "uniform": (), "vonmises": (1.3,), "wrapcauchy": (0.4,),
}  # fmt: skip
DISCRETE: dict[str, tuple[float, ...]] = {
    "bernoulli": (0.3,), "betabinom": (7, 1.5, 2.5), "binom": (7, 0.4), "geom": (0.3,), "nbinom": (3.5, 0.4),
    "poisson": (2.3,),
}  # fmt: skip


@pytest.mark.parametrize("name", {**CONTINUOUS, **DISCRETE})
def test_against_scipy(name: str) -> None:
    shape = {**CONTINUOUS, **DISCRETE}[name]
    ours, theirs = getattr(stats, name), getattr(reference, name)
    places = K if name in DISCRETE else Y
    checked = 0
    for function in FUNCTIONS:
        if not hasattr(ours, function):
            continue
        checked += 1
        where = Q if function in ("ppf", "isf") else places
        if name in ("wrapcauchy", "vonmises"):
            where = np.array([0.1, 1.0, 3.0], "f")
        with np.errstate(all="ignore"):
            cases = [(), (0.5,)] if name in DISCRETE else [(), (0.25, 1.7)]
            for further in cases[:1] if function in ("ppf", "isf") and name in DISCRETE else cases:
                moved = where + 0.5 if further == (0.5,) else where
                wanted = getattr(theirs, function)(moved.astype(float), *shape, *further)
                found = np.asarray(getattr(ours, function)(moved, *shape, *further))
                skipped = [(q in (0, 1)) for q in Q] if function in ("ppf", "isf") else np.zeros(len(where), bool)
                close(np.where(skipped, 0, found), np.where(skipped, 0, wanted), 2e-5)
    assert checked >= 2


def test_tails_keep_their_digits() -> None:
    close(stats.norm.logcdf(-30.0), reference.norm.logcdf(-30.0), 1e-6)
    close(float(stats.norm.logsf(9.0)), reference.norm.logsf(9.0), 1e-6)
    close(float(stats.truncnorm.logpdf(8.5, 8.0, 9.0)), reference.truncnorm.logpdf(8.5, 8.0, 9.0), 1e-5)
    close(float(stats.logistic.logcdf(-50.0)), -50, 1e-6)
    close(float(stats.gumbel_r.sf(20.0)) * 1e9, reference.gumbel_r.sf(20.0) * 1e9, 1e-5)
    means = np.array([0.0, 0.5, 5.0, 19.0, 25.0, 300.0])
    close(stats.poisson.entropy(means), reference.poisson.entropy(means))


@pytest.mark.parametrize("name", CONTINUOUS)
def test_gradients(name: str) -> None:
    distribution, shape = getattr(stats, name), CONTINUOUS[name]
    places = np.array([1.4, 1.7]) if name in ("pareto", "truncnorm") else np.array([0.4, 0.7])

    def f(x: Any, loc: Any, scale: Any, *parameters: Any) -> Any:
        return distribution.logpdf(x, *parameters, loc, scale)

    with lx.enable_x64():
        check_grads(f, (places, 0.1, np.float64(1.2), *map(np.float64, shape)), 1)
        if name in ("beta", "gamma", "norm", "truncnorm", "logistic"):
            check_grads(lambda x: distribution.logcdf(x, *shape), (places,), 1)


def test_gradients_outside_the_support_are_zero() -> None:
    for name in ("gamma", "beta", "expon", "uniform", "pareto", "truncnorm", "chi2", "wrapcauchy"):
        gradient = lx.grad(lambda x, name=name: getattr(stats, name).pdf(x, *CONTINUOUS[name]))(-3.0)
        assert float(gradient) == 0, name


def test_vectors() -> None:
    generator = np.random.default_rng(0)
    x, mean = generator.normal(size=(5, 3)).astype("f"), generator.normal(size=3).astype("f")
    root = generator.normal(size=(3, 3)).astype("f")
    cov = root @ root.T + np.eye(3, dtype="f")
    close(stats.multivariate_normal.logpdf(x, mean, cov), reference.multivariate_normal.logpdf(x, mean, cov), 1e-4)
    close(stats.multivariate_normal.pdf(x, mean, 2.0), reference.multivariate_normal.pdf(x, mean, 2.0))
    close(stats.multivariate_normal.logpdf(x[:, 0], 0.5, 2.0), reference.norm.logpdf(x[:, 0], 0.5, np.sqrt(2)))
    centred = reference.multivariate_normal.logpdf(x, np.zeros(3), cov)
    close(stats.multivariate_normal.logpdf(x, 0.0, cov), centred, 1e-4)
    batched = stats.multivariate_normal.logpdf(x[:, None], mean, np.stack([cov, 2 * cov]))
    close(np.asarray(batched)[:, 1], reference.multivariate_normal.logpdf(x, mean, 2 * cov), 1e-4)
    with lx.enable_x64():
        arguments = (mean.astype(float), cov.astype(float))
        check_grads(lambda m, c: stats.multivariate_normal.logpdf(x, m, c @ c.T), arguments, 1)
    with pytest.raises(lx.ShapeError, match="multivariate_normal"):
        stats.multivariate_normal.logpdf(x, mean, cov[:2])
    p, alpha = np.array([0.2, 0.5, 0.3], "f"), np.array([1.5, 2.5, 0.7], "f")
    close(stats.dirichlet.logpdf(p, alpha), reference.dirichlet.logpdf(p.astype(float) / p.sum(dtype=float), alpha))
    close(stats.dirichlet.pdf(p[:2], alpha), reference.dirichlet.pdf(p.astype(float)[:2], alpha))
    assert float(stats.dirichlet.logpdf(np.array([0.5, 0.6, 0.3], "f"), alpha)) == -np.inf
    chances = p.astype(float) / p.sum(dtype=float)
    close(stats.multinomial.logpmf([2, 1, 3], 6, p), reference.multinomial.logpmf([2, 1, 3], 6, chances))
    assert float(stats.multinomial.pmf([2, 1, 3], 7, p)) == 0


def test_samples() -> None:
    x = np.array([[3, 1, 2, 1], [1, 1, 5, 2], [3, 7, 5, 0]])
    for axis in (0, 1, None):
        found, wanted = stats.mode(x, axis, keepdims=True), reference.mode(x, axis, keepdims=True)
        assert np.array_equal(found.mode, wanted.mode) and np.array_equal(found.count, wanted.count)
        close(stats.sem(x.astype("f"), axis), reference.sem(x.astype("f"), axis))
        for method in ("average", "min", "max", "dense", "ordinal"):
            assert np.array_equal(stats.rankdata(x, method, axis=axis), reference.rankdata(x, method, axis=axis))
    assert np.asarray(stats.mode(x, 1).mode).tolist() == [1, 1, 0]
    assert np.isnan(np.asarray(stats.rankdata(np.array([1.0, np.nan])))).all()
    dirty = np.array([1.0, np.nan, 2.0, 4.0], "f")
    close(stats.sem(dirty, nan_policy="omit"), reference.sem(dirty, nan_policy="omit"))
    with pytest.raises(ValueError, match="nan_policy"):
        stats.mode(x, nan_policy="raise")


def test_estimates_of_densities() -> None:
    generator = np.random.default_rng(1)
    for data, weights, method in (
        (generator.normal(size=9), None, None),
        (generator.normal(size=(2, 9)), generator.uniform(0.2, 1, 9), "silverman"),
        (generator.normal(size=(2, 9)), None, 0.5),
    ):
        ours, theirs = (made(data, method, weights) for made in (stats.gaussian_kde, reference.gaussian_kde))
        points = generator.normal(size=(theirs.d, 4))
        close(lx.jit(lambda kde, p: kde(p))(ours, points.astype("f")), theirs(points), 1e-4)
        close(ours.logpdf(points.astype("f")), theirs.logpdf(points), 1e-4)
        mean, cov = np.zeros(theirs.d), np.eye(theirs.d)
        close(ours.integrate_gaussian(mean, cov), theirs.integrate_gaussian(mean, cov), 1e-4)
        close(ours.integrate_kde(ours), theirs.integrate_kde(theirs), 1e-4)
        assert ours.resample(lx.random.key(0), (3,)).shape == (theirs.d, 3)
    line = generator.normal(size=9)
    close(stats.gaussian_kde(line).integrate_box_1d(-1, 1), reference.gaussian_kde(line).integrate_box_1d(-1, 1), 1e-4)
    with pytest.raises(ValueError, match="bw_method"):
        stats.gaussian_kde(line, "best")


def test_arguments_are_named() -> None:
    close(stats.norm.pdf(x=1.0, scale=2.0), reference.norm.pdf(1.0, scale=2.0))
    close(stats.gamma.logpdf(1.0, a=2.0, loc=0.5), reference.gamma.logpdf(1.0, 2.0, loc=0.5))
    for wrong in (lambda: stats.norm.pdf(), lambda: stats.norm.pdf(1, 2, 3, 4), lambda: stats.norm.pdf(1, x=2)):
        with pytest.raises(TypeError, match=r"norm.pdf takes \(x, loc, scale\)"):
            wrong()
    with pytest.raises(AttributeError, match="norm has no 'pmf'"):
        stats.norm.pmf(1)


def test_gradients_agree_with_jax() -> None:
    jax = pytest.importorskip("jax", reason="compares with JAX")

    def loss(module: Any, x: Any) -> Any:
        s = module.scipy.stats
        product = s.norm.logcdf(x, 0.2, 1.5) * s.gamma.logpdf(x, 2.0)
        return 3 * (product + s.t.logpdf(x, 3.0) * s.beta.cdf(x, 2.0, 3.0)).sum()

    x = np.array([0.2, 0.5, 0.8], "f")
    close(lx.grad(lambda x: loss(lx, x))(x), jax.grad(lambda x: loss(jax, x))(x))


def test_distributions_are_imported_as_modules() -> None:
    import lavax.scipy.stats.norm as norm
    from lavax.scipy.stats.multivariate_normal import logpdf

    assert norm is stats.norm and logpdf == stats.multivariate_normal.logpdf
    assert importlib.import_module("lavax.scipy.stats.poisson") is stats.poisson
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("lavax.scipy.stats.rankdata")
