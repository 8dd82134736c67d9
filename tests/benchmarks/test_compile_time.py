"""The benchmark of compile times measures every stage."""
from __future__ import annotations

import gc

import pytest

from benchmarks import compile_time


def test_every_stage_is_timed() -> None:
    seconds = compile_time.stages_of(3)
    assert len(seconds) == len(compile_time.STAGES) and min(seconds) > 0
    assert gc.isenabled()


def test_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_time, "LAYERS", (1, 2, 4))
    monkeypatch.setattr(compile_time, "stages_of", lambda n: [n * 1.0, n * 2.0, n * 1.0, n**2.5])
    figures = {figure.name: figure for figure in compile_time.measure()}
    assert figures["fuse and schedule, 4 layers"].value == "4000 ms"
    assert figures["trace, a layer of 4 over one of 2"].is_met
    assert not figures["emit GLSL, a layer of 4 over one of 2"].is_met
