"""A function by its place, `file.py:function`, and arguments for it as text, `f32[64,3]`."""
from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from lavax.base.errors import LavaxError
from lavax.base.quick_dataclasses import dataclass
from lavax.command_line.errors import UsageError, UserCodeError
from lavax.ir.location import is_own
from lavax.ir.types import DTYPES
from lavax.tracer.tracing.abstract_evaluation import ShapeDtype

_DTYPES = {name: dtype.user_name for dtype in DTYPES.values() for name in (dtype.name, dtype.user_name)}
_SCALAR = re.compile(r"(\w)\[\s*\]")  # `f32[]`, which is no expression of Python
_PLACES = "file.py:function or package.module:function"
ARGUMENTS_HELP = (
    "an argument: a type such as 'f32[64,3]', a number, or dicts, lists and tuples of these; 'name=f32[3]' for a "
    "keyword"
)


@dataclass(frozen=True)
class Target:
    """A function and the module in which it was found."""

    function: Callable[..., Any]
    module: ModuleType


def function_at(place: str) -> Target:
    """The function that `file.py:name` or `package.module:name` names; the name may have dots.

    Runs the file, or imports the module. Raises UsageError if there is none, and UserCodeError if the file fails.
    """
    where, colon, name = place.rpartition(":")
    if not colon or not where or not name:
        raise UsageError(f"{place!r} names no function: write {_PLACES}")
    module = _module(where)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            known = [key for key, value in vars(found).items() if callable(value) and not key.startswith("_")]
            raise UsageError(f"{where} has no {part!r}; it has {', '.join(known) or 'no functions'}")
        found = getattr(found, part)
    if not callable(found):
        raise UsageError(f"{place} is {found!r:.80}, which is no function")
    return Target(found, module)


@contextmanager
def user_code(where: str) -> Iterator[None]:
    """A context that runs code of the user's: what it raises, but lavax's own errors, becomes a UserCodeError."""
    try:
        yield
    except (LavaxError, UsageError):
        raise
    except (Exception, SystemExit) as error:
        raise UserCodeError(f"{where} failed:\n{_traceback(error)}") from error


def _module(where: str) -> ModuleType:
    with user_code(where):
        if where.endswith(".py"):
            return _from_file(Path(where))
        sys.path.insert(0, str(Path.cwd()))
        try:
            return importlib.import_module(where)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{where}.".startswith(f"{error.name}."):
                raise
            raise UsageError(f"there is no module {where!r}: write {_PLACES}") from error


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    sys.path.insert(0, str(path.resolve().parent))
    name = path.stem if path.stem not in sys.modules else str(path.resolve())
    specification = importlib.util.spec_from_file_location(name, path.resolve())
    if specification is None or specification.loader is None:
        raise UsageError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module  # classes of the file look for their module there
    specification.loader.exec_module(module)
    return module


def _traceback(error: BaseException) -> str:
    """The traceback without the frames of lavax and of the import system."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not is_own(frame.filename) and "importlib" not in frame.filename]
    return "".join([*traceback.format_list(own), *traceback.format_exception_only(error)]).rstrip()


def arguments_of(
    target: Target, texts: Sequence[str], example: str | None = None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments: those in `texts`, or those of the `example` in the function's module.

    An example is a tuple or list of arguments, a dict of keyword arguments, or a function that returns one of these.
    Raises UsageError for anything else.
    """
    if example is None:
        return parsed_arguments(texts)
    if texts:
        raise UsageError("give the arguments on the command line or by --example, not both")
    if not hasattr(target.module, example):
        raise UsageError(f"the file has no {example!r}: define it there, as a tuple of arguments or a dict of keywords")
    found = getattr(target.module, example)
    if callable(found):
        with user_code(example):
            found = found()
    if isinstance(found, dict):
        return (), found
    if isinstance(found, (tuple, list)):
        return tuple(found), {}
    raise UsageError(f"{example} must be a tuple of arguments or a dict of keywords, got {found!r:.80}")


def parsed_arguments(texts: Sequence[str]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments from their texts. Raises UsageError for a text that is neither."""
    positional, keywords = [], {}
    for text in texts:
        name, equals, rest = text.partition("=")
        if equals and name.strip().isidentifier():
            keywords[name.strip()] = argument(rest)
        elif keywords:
            raise UsageError(f"{text!r} stands after a keyword argument; put it before them")
        else:
            positional.append(argument(text))
    return tuple(positional), keywords


def argument(text: str) -> Any:
    """A ShapeDtype for `f32[64,3]` or `float32[64,3]`, a literal of Python, or a container of such."""
    try:
        tree = ast.parse(_SCALAR.sub(r"\1[()]", text.strip()), mode="eval")
        return _value(tree.body)
    except (SyntaxError, ValueError) as error:
        reason = f": {error}" if isinstance(error, _ArgumentError) else ""
        raise UsageError(f"{text!r} is no argument{reason}; write a type such as f32[64,3], or a number") from error


class _ArgumentError(ValueError):
    """An expression that is no argument."""


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Subscript(value=ast.Name(id=name), slice=sizes):
            return _type(name, sizes)
        case ast.Dict(keys=keys, values=values) if None not in keys:
            return {ast.literal_eval(key): _value(value) for key, value in zip(keys, values, strict=True) if key}
        case ast.Tuple(elts=parts):
            return tuple(map(_value, parts))
        case ast.List(elts=parts):
            return list(map(_value, parts))
        case ast.Name(id=name) if name in _DTYPES:
            return ShapeDtype((), _DTYPES[name])
    return ast.literal_eval(node)


def _type(name: str, sizes: ast.expr) -> ShapeDtype:
    if name not in _DTYPES:
        raise _ArgumentError(f"there is no dtype {name!r}; there are {', '.join(DTYPES)}")
    found = ast.literal_eval(sizes)
    shape = found if isinstance(found, tuple) else (found,)
    if not all(isinstance(size, int) and size >= 0 for size in shape):
        raise _ArgumentError(f"sizes are numbers from 0 on, got {found!r}")
    return ShapeDtype(shape, _DTYPES[name])
