"""The Gaussian process: its likelihood, fit and posterior are those of scikit-learn in float64."""
from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from examples import gaussian_process
from tests.closeness import close


def regressor(covariance: gaussian_process.Covariance, **options: Any) -> GaussianProcessRegressor:
    amplitude, length, noise = (
        np.exp(float(x)) for x in (covariance.log_amplitude, covariance.log_length, covariance.log_noise)
    )
    return GaussianProcessRegressor(ConstantKernel(amplitude**2) * RBF(length) + WhiteKernel(noise**2), **options)


def test_the_fit_is_that_of_scikit_learn() -> None:
    x, y = gaussian_process.samples(40, seed=0)
    fitted, likelihoods = gaussian_process.fit(gaussian_process.initial_covariance(), x, y, steps=300)
    theirs = regressor(gaussian_process.initial_covariance()).fit(x[:, None].astype("d"), y.astype("d"))
    found = [2 * float(fitted.log_amplitude), float(fitted.log_length), 2 * float(fitted.log_noise)]
    np.testing.assert_allclose(found, theirs.kernel_.theta, atol=5e-3)
    assert float(likelihoods[-1]) == pytest.approx(theirs.log_marginal_likelihood_value_, abs=5e-3)


def test_the_posterior_is_that_of_scikit_learn() -> None:
    x, y = gaussian_process.samples(40, seed=1)
    covariance = gaussian_process.Covariance(np.float32(0.3), np.float32(0), np.float32(-2))
    at = np.linspace(-5, 5, 30, dtype=np.float32)
    mean, deviation = gaussian_process.posterior(covariance, x, y, at)
    theirs = regressor(covariance, optimizer=None).fit(x[:, None].astype("d"), y.astype("d"))
    right, with_noise = theirs.predict(at[:, None].astype("d"), return_std=True)
    close(mean, right, 1e-3)
    close(deviation, np.sqrt(with_noise**2 - np.exp(-4)), 1e-3)


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["gaussian_process.py", "--quick", "--seed", "1", "--out", str(tmp_path / "made")])
    gaussian_process.main()
    printed = capsys.readouterr().out
    noise, inside = (float(re.search(f"{text} ([0-9.]+)", printed)[1]) for text in ("noise", "95 % holds"))
    assert 0.06 < noise < 0.14, "0.1 in truth; three standard deviations of an estimate from 40 samples"
    assert inside > 80
    assert (tmp_path / "made" / "gaussian_process.png").read_bytes().startswith(b"\x89PNG")
