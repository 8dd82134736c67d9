"""Settings of config.json that a model here has at one value alone."""
from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lavax.models.config import Config


def refuse_other_values(config: Config, fixed: Mapping[str, tuple[Any, ...]]) -> None:
    """Raises ValueError if the file of `config` gives a setting in `fixed` another value than is listed there."""
    for name, value in json.loads(config.others).items():
        if name in fixed and value not in fixed[name]:
            kind = type(config).__name__.removesuffix("Config")
            raise ValueError(f"config.json: {name} is {value!r}; lavax's {kind} has {fixed[name][0]!r} alone")
