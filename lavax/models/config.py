"""Configurations of models, as their config.json has them."""
from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Any, Self

from lavax.base.quick_dataclasses import dataclass
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.values.value import Value


class Settings(Mapping[str, Any]):
    """An object within a config.json, which never changes. As in JSON, names are text: 0 stands for "0"."""

    def __init__(self, entries: Mapping[Any, Any]) -> None:
        self._entries = {str(name): _hashable(value) for name, value in entries.items()}

    def __getitem__(self, name: Any) -> Any:
        return self._entries[str(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Settings) and self._entries == other._entries

    def __hash__(self) -> int:
        return hash(frozenset(self._entries.items()))

    def __repr__(self) -> str:
        return f"Settings({self._entries})"


@dataclass(frozen=True)
class Config:
    """Settings of a model, by the names of its config.json. Subclasses add the fields that the model reads.

    `others` keeps the rest of the file as JSON text, so that a model is saved with everything it was loaded with.
    Configurations are hashable: lists are tuples here, and objects are `Settings`, whether a file or Python gave them.
    """

    others: str = dataclasses.field(default="{}", kw_only=True, repr=False)

    def __post_init__(self) -> None:
        for entry in dataclasses.fields(self):
            object.__setattr__(self, entry.name, _hashable(getattr(self, entry.name)))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The configuration that config.json holds, as `json.load` gives it.

        Raises ValueError if a setting without a default is missing.
        """
        own = {entry.name: entry for entry in dataclasses.fields(cls) if entry.name != "others"}
        given = {name: value for name, value in data.items() if name in own and value is not None}
        needed = [name for name, entry in own.items() if name not in given and _required(entry)]
        if needed:
            raise ValueError(f"config.json: {cls.__name__} needs {', '.join(needed)}")
        return cls(**given, others=json.dumps({name: value for name, value in data.items() if name not in given}))

    def to_json(self) -> dict[str, Any]:
        """What config.json holds for it: the settings, and everything else that it was loaded with."""
        own = {entry.name: getattr(self, entry.name) for entry in dataclasses.fields(self) if entry.name != "others"}
        return {**json.loads(self.others), **{name: _plain(value) for name, value in own.items() if value is not None}}


def _required(entry: dataclasses.Field[Any]) -> bool:
    return entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING


def _hashable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return Settings(value)
    return tuple(map(_hashable, value)) if isinstance(value, (list, tuple)) else value


def _plain(value: Any) -> Any:
    if isinstance(value, Settings):
        return {name: _plain(entry) for name, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, tuple) else value


@dataclass(frozen=True)
class ClassifierConfig(Config):
    """What all classifiers have: labels, with names or without."""

    num_labels: int | None = None
    id2label: Mapping[Any, str] | None = None  # held as Settings

    @property
    def classes(self) -> int:
        """The number of labels: of those in `id2label`, else `num_labels`, else 2, which files leave out."""
        if self.id2label is not None:
            return len(self.id2label)
        return 2 if self.num_labels is None else self.num_labels

    def label(self, number: int) -> str:
        """The name of label `number`; without names, "LABEL_3" or the like, as transformers says."""
        return f"LABEL_{number}" if self.id2label is None else str(self.id2label[number])

    def to_json(self) -> dict[str, Any]:
        """What config.json holds for it, where the names of labels also stand the other way round."""
        data = super().to_json()
        if self.id2label is None:
            return data
        return data | {"label2id": {name: int(number) for number, name in self.id2label.items()}}


@dataclass(frozen=True)
class ImageClassifierConfig(ClassifierConfig):
    """What all classifiers of images have: labels, and channels of the images."""

    num_channels: int = 3

    def images_of(self, model: str, images: ArrayLike, least: tuple[int, int] = (1, 1)) -> Value:
        """`images`, if they are [N, channels, H, W] with `least` pixels at least.

        Raises ShapeError, which begins with the name of the `model`.
        """
        given, (height, width) = as_value(images), least
        if given.ndim != 4 or given.shape[1] != self.num_channels:
            raise shape_error(f"{model}: images are [N, {self.num_channels}, H, W], got {given.type}")
        if given.shape[2] < height or given.shape[3] < width:
            raise shape_error(f"{model}: images have at least {height} x {width} pixels, got {given.type}")
        return given
