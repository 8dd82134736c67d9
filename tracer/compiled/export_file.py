"""The file of an exported function: a zip archive of text, JSON and .npy. Reading it runs no code from it."""
from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from lavax.base.errors import ExportError
from lavax.base.npy_header import read_npy_header
from lavax.base.quick_dataclasses import dataclass
from lavax.ir import OPERATIONS, Graph, Node, parse, verify
from lavax.tracer.pytrees.plain_trees import from_data, to_data
from lavax.tracer.pytrees.pytree import TreeDef
from lavax.tracer.tracing.convert import array_of
from lavax.tracer.values.array import Array

_FORMAT, _VERSION = "lavax exported function", 1
_DESCRIPTION, _GRAPH = "function.json", "graph.txt"

# Constants of so many bytes are compressed, and all others stored as they are, so that what is unpacked is at most this
# and a small multiple of the file: more is no file of ours, but one that is to take all memory.
_COMPRESSED_BYTES = 32 << 20
_MOST_UNPACKED = 64 << 20
_MOST_PER_BYTE = 64

# Operations that mean something only while a function is traced or lowered.
_NEVER_WRITTEN = ("axis", "lowered")


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


def write(path: Path | BinaryIO, contents: Contents) -> None:
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
    texts = {_DESCRIPTION: json.dumps(description, indent=1).encode(), _GRAPH: f"{contents.graph}\n".encode()}
    left = _COMPRESSED_BYTES
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
        for position, array in enumerate(contents.constants):
            data = _array_bytes(np.asarray(array))
            left -= len(data)
            method = zipfile.ZIP_DEFLATED if left >= 0 else zipfile.ZIP_STORED
            archive.writestr(zipfile.ZipInfo(_constant_name(position)), data, method)


def _array_bytes(numbers: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, numbers, allow_pickle=False)
    return buffer.getvalue()


def read(path: Path | BinaryIO) -> Contents:
    """Reads a file that `write` wrote. Raises ExportError, with its name and the reason, for anything else."""
    if isinstance(path, Path):
        with open(path, "rb") as file:
            return _read(file, str(path))
    return _read(path, "this")


def _read(file: BinaryIO, name: str) -> Contents:
    try:
        return _contents(file)
    except Exception as error:  # the libraries that read a damaged archive raise errors of many classes
        raise ExportError(
            f"{name} is damaged, or not a function that Exported.save wrote: {str(error) or type(error).__name__}"
        ) from error


def _contents(file: BinaryIO) -> Contents:
    size = file.seek(0, os.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        _check_size(archive, size)
        description = json.loads(archive.read(_DESCRIPTION))
        _check_format(description)
        arguments, result = from_data(description["arguments"]), from_data(description["result"])
        weak = tuple(map(bool, description["weak"]))
        graph = parse(archive.read(_GRAPH).decode())
        verify(graph)
        _check_graph(graph, description["constants"], arguments, result, weak)
        taken = graph.inputs[arguments.leaf_count :]
        constants = tuple(_read_constant(archive, position, node) for position, node in enumerate(taken))
    return Contents(str(description["function"]), graph, constants, arguments, result, weak)


def _check_size(archive: zipfile.ZipFile, packed: int) -> None:
    unpacked = sum(info.file_size for info in archive.infolist())
    if unpacked > _MOST_UNPACKED + _MOST_PER_BYTE * packed:
        raise ExportError(f"its {packed} bytes would become {unpacked}")


def _check_format(description: Any) -> None:
    if description["format"] != _FORMAT:
        raise ExportError(f"its format is {description['format']!r:.60}")
    if description["version"] != _VERSION:
        found = description["version"]
        raise ExportError(f"its version is {found!r:.60}, this lavax reads {_VERSION}: export it again")


def _check_graph(graph: Graph, constants: Any, arguments: TreeDef, result: TreeDef, weak: tuple[bool, ...]) -> None:
    """Raises ExportError if the graph does not fit the rest of the file."""
    counts = (arguments.leaf_count + constants, result.leaf_count, result.leaf_count)
    if (len(graph.inputs), len(graph.outputs), len(weak)) != counts:
        raise ExportError("its graph does not take its arguments and constants, or does not give its result")
    for node in _all_nodes(graph):
        if OPERATIONS[node.op].family in _NEVER_WRITTEN:
            raise ExportError(f"its graph has the operation {node.op}, which no exported function has")


def _all_nodes(graph: Graph) -> Iterator[Node]:
    """The nodes of a graph and of the graphs in it."""
    for node in graph.nodes:
        yield node
        for value in node.attrs.values():
            for inner in value if isinstance(value, tuple) else (value,):
                if isinstance(inner, Graph):
                    yield from _all_nodes(inner)


def _read_constant(archive: zipfile.ZipFile, position: int, taken: Node) -> Array:
    info = archive.getinfo(_constant_name(position))
    with archive.open(info) as file:
        read_npy_header(file, info.file_size)
    with archive.open(info) as file:
        numbers: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
    array = array_of(numbers)
    if array.type != taken.type:
        raise ExportError(f"constant {position} is {array.type}, its graph takes {taken.type}")
    return array
