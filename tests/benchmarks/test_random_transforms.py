"""Random transforms: what is drawn is the same for one seed, and both libraries take it."""
from __future__ import annotations

from math import prod

import scipy.fft

import lavax as lx
import lavax.numpy as lnp
import lavax.scipy.fft
from benchmarks.ordinary.random_transforms import _FUNCTIONS, RandomTransform, random_transforms
from lavax.base import config


def test_a_seed_gives_the_same_transforms_which_are_different() -> None:
    first, second, other = ([one.name for one in random_transforms(seed, 40)] for seed in (3, 3, 4))
    assert first == second and first != other and len({*first}) == 40


def test_transforms_are_of_many_numbers_of_every_function() -> None:
    drawn = [*random_transforms(5, 300)]
    assert {one.function for one in drawn} == {*_FUNCTIONS}
    for one in drawn:
        function = one.of(lnp.fft, lavax.scipy.fft)
        with config.enable_x64():
            found = lx.eval_shape(function, lx.ShapeDtype(one.shape, one.dtype))
        numbers = max(prod(one.shape), prod(found.shape))
        assert 1 << 16 < numbers < 1 << 22, one.name


def test_both_libraries_give_the_same() -> None:
    for one in (
        RandomTransform("dctn2", "float32", (4, 6, 5), (1, 2), None),
        RandomTransform("irfft2", "complex64", (6, 5, 2), (0, 1), 8),
        RandomTransform("ihfft", "float32", (8, 3), (0,), 12),
    ):
        x = one.operand()
        expected = one.of(scipy.fft, scipy.fft)(x)
        assert abs(one.of(lnp.fft, lavax.scipy.fft)(x) - expected).max() < 1e-4
