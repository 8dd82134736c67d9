"""The file of an exported function: a zip archive of text, JSON and .npy. Reading it runs no code from it."""
from __future__ import annotations

import io
import json
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lavax.base.errors import ExportError, LavaxError
from lavax.ir import Graph, TensorType, parse, verify
from lavax.tracer.pytrees.plain_trees import from_data, to_data
from lavax.tracer.pytrees.pytree import TreeDef
from lavax.tracer.tracing.convert import array_of
from lavax.tracer.values.array import Array

_FORMAT, _VERSION = "lavax exported function", 1
_DESCRIPTION, _GRAPH = "function.json", "graph.txt"
# Raised by the libraries that read a damaged archive, description, graph or array.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    EOFError,
    NotImplementedError,
    LavaxError,
)


@dataclass(frozen=True, eq=False)
class Contents:
    """The contents of the file; see Exported."""

    function: str
    graph: Graph
    constants: tuple[Array, ...]
    arguments: TreeDef
    result: TreeDef
    weak: tuple[bool, ...]


def _constant_name(position: int) -> str:
    return f"constants/{position}.npy"


def write(path: Path, contents: Contents) -> None:
    """Writes the file; equal contents give equal bytes. Raises ExportError for structures that JSON cannot hold."""
    description = {
        "format": _FORMAT,
        "version": _VERSION,
        "function": contents.function,
        "arguments": to_data(contents.arguments),
        "result": to_data(contents.result),
        "weak": list(contents.weak),
        "constants": len(contents.constants),
    }
    members = {_DESCRIPTION: json.dumps(description, indent=1).encode(), _GRAPH: f"{contents.graph}\n".encode()}
    for position, array in enumerate(contents.constants):
        members[_constant_name(position)] = _array_bytes(np.asarray(array))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


def _array_bytes(numbers: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, numbers, allow_pickle=False)
    return buffer.getvalue()


def read(path: Path) -> Contents:
    """Reads a file that `write` wrote. Raises ExportError, with the path and the reason, for anything else."""
    try:
        with zipfile.ZipFile(path) as archive:
            description = json.loads(archive.read(_DESCRIPTION))
            _check_format(description)
            graph = parse(archive.read(_GRAPH).decode())
            verify(graph)
            constants = [_read_array(archive, position) for position in range(description["constants"])]
        contents = _checked(description, graph, constants)
    except _DAMAGE as error:
        raise ExportError(
            f"{path} is damaged, or not a function that Exported.save wrote: {str(error) or type(error).__name__}"
        ) from error
    return contents


def _check_format(description: Any) -> None:
    if description["format"] != _FORMAT:
        raise ExportError(f"its format is {description['format']!r:.60}")
    if description["version"] != _VERSION:
        found = description["version"]
        raise ExportError(f"its version is {found!r:.60}, this lavax reads {_VERSION}: export it again")


def _read_array(archive: zipfile.ZipFile, position: int) -> Array:
    with archive.open(_constant_name(position)) as file:
        numbers: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
    return array_of(numbers)


def _checked(description: dict[str, Any], graph: Graph, constants: list[Array]) -> Contents:
    """The parts together. Raises an error if they do not fit each other."""
    arguments, result = from_data(description["arguments"]), from_data(description["result"])
    weak = tuple(map(bool, description["weak"]))
    counts = (arguments.leaf_count + len(constants), result.leaf_count, result.leaf_count)
    if (len(graph.inputs), len(graph.outputs), len(weak)) != counts:
        raise ExportError("its graph does not take its arguments and constants, or does not give its result")
    wanted: list[TensorType] = [node.type for node in graph.inputs[arguments.leaf_count :]]
    for position, (array, type) in enumerate(zip(constants, wanted, strict=True)):
        if array.type != type:
            raise ExportError(f"constant {position} is {array.type}, its graph takes {type}")
    return Contents(str(description["function"]), graph, tuple(constants), arguments, result, weak)
