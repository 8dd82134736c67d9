"""A progress bar on the terminal."""
from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


class ProgressBar:
    """A bar on the terminal, by tqdm: steps done, and the last values."""

    def __init__(self, total: int | None) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            raise ImportError(
                "a progress bar needs tqdm: pip install 'lavax[models]', or train.fit(..., progress=False)"
            ) from None
        self._make, self._total = tqdm, total
        self._bar: Any = None

    def begin(self, step: int) -> None:
        """Shows the bar."""
        self._bar = self._make(total=self._total, initial=step, unit="step", dynamic_ncols=True)

    def advance(self) -> None:
        """Counts one more step."""
        self._bar.update()

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Shows values behind the bar."""
        self._bar.set_postfix({name: short(value) for name, value in values.items()}, refresh=False)

    def close(self) -> None:
        """Leaves the bar as it is."""
        if self._bar is not None:
            self._bar.close()


def short(value: float) -> str:
    """A number for a terminal: four digits, and a letter for thousands."""
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if math.isfinite(value) and abs(value) >= factor:
            return f"{value / factor:.3g}{letter}"
    return f"{value:.4g}"
