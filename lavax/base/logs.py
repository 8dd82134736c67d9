"""The loggers of lavax, which are those of the standard library, under "lavax".

They are quiet: nothing is written unless the program sets up logging, or `config.logs_compiles` asks for it. Then
"lavax.trace" and "lavax.compile" write to standard error, if no other handler listens.
"""
from __future__ import annotations

import logging
import sys

from lavax.base import config

_ROOT = logging.getLogger("lavax")
_ROOT.addHandler(logging.NullHandler())


class _WhenAsked(logging.Handler):
    """Writes to standard error if the setting is on and nobody else listens."""

    def emit(self, record: logging.LogRecord) -> None:
        if config.logs_compiles() and not _is_heard(record.name):
            sys.stderr.write(f"{self.format(record)}\n")


def _is_heard(name: str) -> bool:
    """Whether the program has given this logger, or one above it, a handler."""
    logger: logging.Logger | None = logging.getLogger(name)
    while logger is not None:
        if any(not isinstance(handler, (logging.NullHandler, _WhenAsked)) for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False


class WorkLog:
    """A logger of traces or compiles: at the level INFO, or at WARNING, which passes by default, if they are asked for.
    """

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)
        handler = _WhenAsked()
        handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        self._logger.addHandler(handler)

    @property
    def is_heard(self) -> bool:
        """Whether it pays to make a message."""
        return config.logs_compiles() or self._logger.isEnabledFor(logging.INFO)

    def say(self, message: str, *values: object) -> None:
        """Logs a message; `values` are put into it as by the standard library."""
        self._logger.log(logging.WARNING if config.logs_compiles() else logging.INFO, message, *values)


TRACES, COMPILES = WorkLog("lavax.trace"), WorkLog("lavax.compile")
