"""Settings in JSON, as folders of models have them: a damaged file is one error, which names it."""
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

_MOST_BYTES = 1 << 28  # the longest, vocabularies, have some ten million


def read_json(path: Path, kind: type = dict) -> Any:
    """The contents of a file, which must be an object, or with `kind` a list.

    Raises FileNotFoundError if there is no such file, and ValueError, with its name, if it holds anything else.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > _MOST_BYTES:
            raise ValueError(f"{path}: settings of more than {_MOST_BYTES >> 20} MiB are not read")
        text = file.read(size)
    return parsed_json(path, text, kind)


def parsed_json(source: Any, text: str | bytes, kind: type = dict) -> Any:
    """The same of a text from `source`, which errors name. Lists nested by the thousand are an error, too."""
    try:
        found = json.loads(text.decode("utf-8") if isinstance(text, bytes) else text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{source}: this is no JSON that can be read: {error}") from None
    if not isinstance(found, kind):
        raise ValueError(f"{source}: JSON with a {kind.__name__} was expected, got a {type(found).__name__}")
    return found
