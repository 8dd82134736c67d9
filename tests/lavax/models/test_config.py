"""Configurations: what Python and a config.json give is the same, hashable, and written back as it was."""
from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

import pytest

from lavax.models.config import Config, Settings
from lavax.models.convolution.resnet import ResNetConfig


@dataclass(frozen=True)
class Sample(Config):
    width: int
    sizes: tuple[int, ...] = (1, 2)
    scaling: Settings | None = None


GIVEN: dict[str, Any] = {"width": 4, "sizes": [3, 5], "scaling": {"type": "yarn", "factors": [1.0, 2.0]}}


def test_lists_and_dictionaries_given_in_python_are_those_of_a_file() -> None:
    made, read = Sample(**GIVEN), Sample.from_json(json.loads(json.dumps(GIVEN)))
    assert made == read and hash(made) == hash(read)
    assert made.sizes == (3, 5)
    assert made.scaling == Settings({"type": "yarn", "factors": (1.0, 2.0)})
    assert made.to_json() == GIVEN


def test_a_replaced_setting_is_converted_too() -> None:
    changed: Any = {"sizes": [7], "scaling": {}}
    assert dataclasses.replace(Sample(4), **changed) == Sample(4, (7,), Settings({}))


def test_labels_are_found_by_number() -> None:
    labels = {0: "cat", 1: "dog", 2: "owl"}
    config = ResNetConfig(id2label=labels)
    assert config.classes == 3
    assert config.id2label is not None and config.id2label[2] == config.id2label["2"] == "owl"
    data = json.loads(json.dumps(config.to_json()))
    assert ResNetConfig.from_json(data).to_json() == data
    assert config.to_json()["label2id"] == {"cat": 0, "dog": 1, "owl": 2}
    assert config.label(2) == "owl" and ResNetConfig(num_labels=3).label(2) == "LABEL_2"
    with pytest.raises(KeyError):
        config.id2label[3]


def test_what_no_model_reads_is_kept() -> None:
    config = Sample.from_json({"width": 4, "torch_dtype": "float16", "nested": {"a": [1]}, "scaling": None})
    assert config.to_json() == {
        "width": 4, "sizes": [1, 2], "torch_dtype": "float16", "nested": {"a": [1]}, "scaling": None
    }  # fmt: skip


def test_a_missing_setting_is_named() -> None:
    with pytest.raises(ValueError, match=r"config\.json: Sample needs width"):
        Sample.from_json({"sizes": [1]})
