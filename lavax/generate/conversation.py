"""Conversations as text, by the chat templates that models are published with."""
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

Message = Mapping[str, Any]  # "role" and "content"


def written(template: str, messages: Sequence[Message], variables: Mapping[str, Any]) -> str:
    """The text of a conversation by a template in the language of jinja2, as transformers renders it.

    Templates may call `raise_exception(message)`, which raises ValueError, and `strftime_now(format)`; `tojson` leaves
    all characters as they are; loops have `break` and `continue`. What stands between `generation` and `endgeneration`,
    the model's own words, is text like any other. Raises ImportError without the package jinja2.
    """
    try:
        from jinja2 import nodes
        from jinja2.ext import Extension
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError as error:
        raise ImportError("Tokenizer.chat needs the jinja2 package: pip install 'lavax[models]'") from error

    class Generation(Extension):
        """The tags around what the model says."""

        tags = {"generation"}  # noqa: RUF012 - a class attribute of jinja2's

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body, lineno=line)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"]
    )
    environment.globals |= {"raise_exception": _refuse, "strftime_now": _now}
    environment.filters["tojson"] = _json
    return environment.from_string(template).render(messages=list(messages), **variables)


def _refuse(message: str) -> None:
    """What templates call for conversations that their models do not know."""
    raise ValueError(f"Tokenizer.chat: {message}")


def _now(form: str) -> str:
    return datetime.now().strftime(form)


def _json(value: Any, ensure_ascii: bool = False, **settings: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, **settings)
