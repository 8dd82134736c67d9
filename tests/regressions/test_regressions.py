"""Programs that went wrong once, as the fuzzer wrote them when it had made them small."""
from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.compare import differences
from tests.fuzz.corpus import entries, entry_of
from tests.fuzz.engines import DEVICES, INTERPRETERS
from tests.fuzz.noise import expected


@pytest.mark.parametrize("path", entries().values(), ids=entries())
def test_a_program_that_went_wrong_once(path: Path) -> None:
    """On all interpreters, on the device, and where it went wrong."""
    entry = entry_of(path.read_text(encoding="utf-8"))
    engines = [*INTERPRETERS, *dict.fromkeys(("device", *(each for each in DEVICES if each == entry.engine)))]
    assert differences(engines, entry.graph, entry.arrays, expected(entry.graph, entry.arrays)) == []
