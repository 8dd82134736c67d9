"""Randomness of loaders: the same numbers from the same seed, on every machine and in every version."""
from __future__ import annotations

import numpy as np


def shuffled(count: int, seed: int, epoch: int) -> np.ndarray:
    """The numbers below `count` in the random order of an epoch.

    By sorting the raw words of a generator, which NumPy keeps as they are from version to version; it does not promise
    that of `permutation`.
    """
    return np.argsort(_bits(seed, epoch).random_raw(count), kind="stable")


def generator(seed: int, epoch: int, batch: int) -> np.random.Generator:
    """Random numbers for the transformation of one batch."""
    return np.random.Generator(_bits(seed, epoch, batch))


def _bits(*words: int) -> np.random.Philox:
    return np.random.Philox(np.random.SeedSequence(words))
