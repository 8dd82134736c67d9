"""What all examples share: options --quick and --seed."""
from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted(path.stem for path in (Path(__file__).resolve().parents[2] / "examples").glob("*.py"))


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_can_be_made_quick(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = importlib.import_module(f"examples.{name}")
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--help"])
    with pytest.raises(SystemExit, match="0"):
        example.main()
    shown = capsys.readouterr().out.split()
    assert {"--quick", "--seed"} <= set(shown)
    assert {f"--{option.replace('_', '-')}" for option in example.QUICK} <= set(shown), "QUICK sets no option"
