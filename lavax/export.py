"""Functions that another process can run, under the names of jax.export.

The module itself is a function, too: `lx.export(f, x)` is `lx.export.export(lx.jit(f))(x)`.
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from io import BytesIO
from types import ModuleType
from typing import Any, cast

from lavax.base.errors import ExportError
from lavax.tracer.compiled.compile import CompiledFunction
from lavax.tracer.compiled.export import Exported, exported_for, load_exported

__all__ = ["Exported", "deserialize", "export"]


def export(
    fun_jit: CompiledFunction, *, platforms: Sequence[str] | None = None, disabled_checks: Sequence[Any] = ()
) -> Callable[..., Exported]:
    """A function of arguments of `fun_jit`, or of their shapes and dtypes, that returns it as an Exported for these.

    What is exported runs on any device, so `platforms` and `disabled_checks` change nothing. Raises ExportError if
    `fun_jit` is not what `jit` gives.
    """
    if not isinstance(fun_jit, CompiledFunction):
        raise ExportError(f"export.export takes what jit gives, got {fun_jit!r}: write export.export(jit(f))(x)")

    def export_for(*args: Any, **kwargs: Any) -> Exported:
        return exported_for(fun_jit, *args, **kwargs)

    return export_for


def deserialize(blob: bytes | bytearray) -> Exported:
    """The function that `Exported.serialize` gave the bytes of. Runs no code from them.

    Raises ExportError if they are damaged, are not an exported function, or of another version of the format.
    """
    return load_exported(BytesIO(blob))


class ExportModule(ModuleType):
    """What this module is: a module that can be called."""

    export = staticmethod(export)
    deserialize = staticmethod(deserialize)

    def __call__(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Exported:
        """`function`, compiled or not, as an Exported for arguments of these kinds: see `exported_for`."""
        return exported_for(function, *args, **kwargs)


module = cast(ExportModule, sys.modules[__name__])
module.__class__ = ExportModule
