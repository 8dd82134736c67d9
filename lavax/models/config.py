"""Configurations of models, as their config.json has them."""
from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Config:
    """Settings of a model, by the names of its config.json. Subclasses add the fields that the model reads.

    `others` keeps the rest of the file as JSON text, so that a model is saved with everything it was loaded with.
    Configurations are hashable: lists of the file are tuples here, and nested objects JSON text in `others`.
    """

    others: str = dataclasses.field(default="{}", kw_only=True)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The configuration that config.json holds, as `json.load` gives it.

        Raises ValueError if a setting without a default is missing.
        """
        own = {entry.name: entry for entry in dataclasses.fields(cls) if entry.name != "others"}
        given = {name: _hashable(value) for name, value in data.items() if name in own and value is not None}
        needed = [name for name, entry in own.items() if name not in given and _required(entry)]
        if needed:
            raise ValueError(f"config.json: {cls.__name__} needs {', '.join(needed)}")
        return cls(**given, others=json.dumps({name: value for name, value in data.items() if name not in given}))

    def to_json(self) -> dict[str, Any]:
        """What config.json holds for it: the settings, and everything else that it was loaded with."""
        own = {entry.name: getattr(self, entry.name) for entry in dataclasses.fields(self) if entry.name != "others"}
        return {**json.loads(self.others), **{name: value for name, value in own.items() if value is not None}}


def _required(entry: dataclasses.Field[Any]) -> bool:
    return entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value
