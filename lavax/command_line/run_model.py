"""`lavax run model.onnx --input x.npy`: an ONNX model on arrays from files."""
from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lavax.command_line.errors import UsageError
from lavax.command_line.output import columns, say
from lavax.tracer.compiled.lowered import STAGES

if TYPE_CHECKING:
    from lavax.onnx.model import Model

_SHOWN_NUMBERS = 6


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the command."""
    parser.add_argument("model", type=Path, metavar="FILE.onnx", help="the model")
    parser.add_argument(
        "--input", action="append", default=[], metavar="[NAME=]FILE",
        help="an array for an input, .npy, or arrays by name, .npz; without a name it is for the first input left",
    )  # fmt: skip
    parser.add_argument("--random", action="store_true", help="draw the other inputs; extents without a number are 1")
    parser.add_argument("--output", type=Path, metavar="FILE.npz", help="write the outputs there")
    parser.add_argument("--profile", action="store_true", help="also the time of each kernel")
    parser.add_argument(
        "--dump", action="append", default=[], choices=STAGES, metavar="STAGE",
        help=f"also the program at a stage: {', '.join(STAGES)}",
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Runs the model once, and says what it gives."""
    from lavax.onnx.model import load  # late: other commands need no models

    if not options.model.is_file():
        raise UsageError(f"there is no file {options.model}")
    try:
        model = load(options.model)
    except ImportError as error:
        raise UsageError(str(error)) from None
    inputs = _inputs(model, options.input, options.random)
    for stage in options.dump:
        say(model.lower(model.parameters, **inputs).as_text(stage).rstrip())
    outputs = {name: np.asarray(value) for name, value in model(model.parameters, **inputs).items()}
    for line in columns([_row(name, value) for name, value in outputs.items()]):
        say(line)
    if options.profile:
        say()
        say(str(model.profile(model.parameters, **inputs)))
    if options.output is not None:
        _write(options.output, outputs)
    return 0


def _inputs(model: Model, texts: list[str], is_random: bool) -> dict[str, np.ndarray]:
    """The arrays for the model's inputs. Raises UsageError for files that hold none, and for inputs without a file."""
    found: dict[str, np.ndarray] = {}
    for text in texts:
        name, equals, place = text.rpartition("=")
        if equals and name not in model.input_names:
            raise UsageError(f"the model has no input {name!r}; it has {', '.join(model.input_names)}")
        held = _arrays(Path(place))
        if isinstance(held, Mapping):
            found.update(held)
            continue
        free = [own for own in model.input_names if own not in found]
        if not equals and not free:
            raise UsageError(f"{text}: all inputs of the model have an array already")
        found[name or free[0]] = held
    missing = [name for name in model.input_names if name not in found]
    if missing and not is_random:
        raise UsageError(f"there is no array for {', '.join(missing)}: give --input NAME=FILE.npy, or --random")
    generator = np.random.default_rng(0)
    return {**found, **{name: _drawn(model, name, generator) for name in missing}}


def _arrays(path: Path) -> np.ndarray | dict[str, np.ndarray]:
    try:
        held: Any = np.load(path, allow_pickle=False)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
    except (EOFError, ValueError) as error:
        raise UsageError(f"{path} is no file of NumPy arrays: {error}") from error
    if isinstance(held, np.ndarray):
        return held
    with held:
        return {name: held[name] for name in held.files}


def _drawn(model: Model, name: str, generator: np.random.Generator) -> np.ndarray:
    own = next(given for given in model.graph.inputs if given.name == name)
    dtype = own.dtype or np.dtype(np.float32)
    if own.shape is None or name in model.static_input_names:
        raise UsageError(f"the input {name!r} cannot be drawn: shapes depend on it, or it has no rank; give --input")
    shape = tuple(extent if isinstance(extent, int) else 1 for extent in own.shape)
    if dtype.kind in "iub":
        return generator.integers(0, 2, shape).astype(dtype)
    return generator.normal(size=shape).astype(dtype)


def _row(name: str, value: np.ndarray) -> tuple[str, ...]:
    numbers = " ".join(f"{number:.6g}" for number in value.reshape(-1)[:_SHOWN_NUMBERS].astype(np.float64))
    more = " …" if value.size > _SHOWN_NUMBERS else ""
    return name, f"{value.dtype.name}[{','.join(map(str, value.shape))}]", numbers + more


def _write(path: Path, outputs: Mapping[str, np.ndarray]) -> None:
    try:
        with path.open("wb") as file:
            np.savez(file, **outputs)  # type: ignore[arg-type]  # as in io/numpy_files.py
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
