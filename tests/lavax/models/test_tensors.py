"""Tensors under other names, and rows of one that files number."""
from __future__ import annotations

import numpy as np

from lavax.models.tensors import renamed, stacked, unstacked, with_prefix

FILE = {f"experts.{number}.weight": np.full(2, number) for number in range(12)} | {"norm": np.zeros(3)}


def test_numbered_tensors_are_joined_by_number_and_parted_again() -> None:
    made = stacked(FILE, ["experts.*.weight", "norm"])
    assert set(made) == {"experts.*.weight", "norm"} and len(made) == 2
    assert made["experts.*.weight"][:, 0].tolist() == list(range(12))
    again = unstacked("experts.*.weight", made["experts.*.weight"]) | unstacked("norm", made["norm"])
    assert again.keys() == FILE.keys()
    assert all(np.array_equal(again[name], array) for name, array in FILE.items())


def test_names_that_stand_for_nothing_are_missing() -> None:
    assert "heads.*.weight" not in stacked(FILE, ["heads.*.weight"])
    assert stacked(FILE, ["norm"]) is FILE


def test_prefixes_are_added_where_all_lack_them() -> None:
    made = with_prefix({"a.x": FILE["norm"], "head.y": FILE["norm"]}, "model.", besides=r"head\.")
    assert set(made) == {"model.a.x", "head.y"}
    whole = {"model.a": FILE["norm"], "b": FILE["norm"]}
    assert with_prefix(whole, "model.", besides=r"head\.") is whole


def test_tensors_are_read_when_they_are_asked_for() -> None:
    class Asked(dict[str, np.ndarray]):
        def __getitem__(self, name: str) -> np.ndarray:
            asked.append(name)
            return super().__getitem__(name)

    asked: list[str] = []
    made = stacked(renamed(Asked(FILE), lambda name: f"model.{name}"), ["model.experts.*.weight"])
    assert "model.norm" in made and not asked
    assert made["model.norm"].shape == (3,) and asked == ["norm"]
