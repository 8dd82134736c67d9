"""What ends a command early."""
from __future__ import annotations


class UsageError(Exception):
    """The words of the command line do not make sense; the message says which and what to write instead."""


class UserCodeError(Exception):
    """The user's own file failed; the message is its traceback."""
