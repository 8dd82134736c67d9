"""Damaged texts and files are refused by the errors that name them, or read as what they say; never anything else.

Each test runs a few hundred mutants; with `make test-long` tens of thousands, in a process with little memory.
"""
from __future__ import annotations

import contextlib
import io
import math
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.backend import VulkanBackend
from lavax.base.errors import ExportError, LavaxError, ParseError, VerificationError
from lavax.io.gguf import load_gguf
from lavax.io.numpy_files import NpzFile, read_npy
from lavax.io.safetensors import SafetensorsFile, write_safetensors
from lavax.ir import OPERATIONS, parse, verify
from lavax.ir.graph import Graph, Node
from lavax.passes.simplify import remove_stop_gradient
from lavax.tracer.compiled.executable import plan
from tests.mutation import mutated_bytes, mutated_text
from tests.operation_cases import all_cases
from tests.random_graphs import random_graph

ROOT = Path(__file__).resolve().parent.parent

REGIONS = (
    """graph (i: i32[], x: f32[3]) {
  %0 = switch(i, x) branches=[graph (x: f32[3]) {
    %0 = sin(x) : f32[3]
    return %0
  },graph (x: f32[3]) {
    return x
  }] : (f32[3])
  %1 = item(%0) index=0 : f32[3]
  return %1
}""",
    """graph (x: f32[3], y: f32[4,3], w: f32[3]) {
  %0 = scan(x, y, w) carries=1 sequences=1 length=4 reverse=true body=graph (c: f32[3], s: f32[3], k: f32[3]) {
    %0 = add(c, s) : f32[3]
    %1 = multiply(%0, k) : f32[3]
    return %1, c
  } : (f32[3], f32[4,3])
  %1 = item(%0) index=1 : f32[4,3]
  return %1
}""",
    """graph (x: f32[], n: i32[]) {
  %0 = while(x, n) condition=graph (x: f32[], n: i32[]) {
    %0 = constant() value=9.0 : f32[]
    %1 = less(x, %0) : bool[]
    return %1
  } body=graph (x: f32[], n: i32[]) {
    %0 = add(x, x) : f32[]
    return %0
  } : (f32[])
  %1 = item(%0) index=0 : f32[]
  return %1
}""",
    """graph (x: f32[3]) {
  %0 = custom_vjp(x) arguments=1 body=graph (x: f32[3]) {
    %0 = sin(x) : f32[3]
    return %0
  } forward=graph (x: f32[3]) {
    %0 = sin(x) : f32[3]
    %1 = cos(x) : f32[3]
    return %0, %1
  } backward=graph (r: f32[3], g: f32[3]) {
    %0 = multiply(r, g) : f32[3]
    return %0
  } : (f32[3])
  %1 = item(%0) index=0 : f32[3]
  %2 = checkpoint(%1) keep="dots" body=graph (x: f32[3]) {
    return x
  } : (f32[3])
  %3 = item(%2) index=0 : f32[3]
  return %3
}""",
)


@cache
def texts() -> list[str]:
    """Graphs of every operation that a file may hold, of loops and branches, and of several operations at random."""
    cases = [str(case.graph) for case in all_cases() if OPERATIONS[case.op].family != "lowered"]
    return [*cases, *(str(random_graph(seed)[0]) for seed in range(60)), *REGIONS * 20]


def read_text(text: str) -> Graph | None:
    try:
        graph = parse(text)
        verify(graph)
    except (ParseError, VerificationError):
        return None
    return graph


# What the parser says of a node whose type does not follow from its operands and attributes.
_OTHER_TYPE = re.compile(r": the type must be (?P<type>.*)\n  (?P<line>.*)")
_MOST_REPAIRS = 4


def repaired(text: str) -> str:
    """The text with the types that follow from a change, so that more mutants are graphs."""
    for _ in range(_MOST_REPAIRS):
        try:
            parse(text)
        except ParseError as error:
            found = _OTHER_TYPE.search(str(error))
            if found is None or " : " not in found["line"]:
                return text
            sound = f"{found['line'].rpartition(' : ')[0]} : {found['type']}"
            text = text.replace(found["line"], sound, 1)
    return text


def lower(graph: Graph) -> None:
    """To GLSL, and simplified before, unless it is refused by name."""
    with contextlib.suppress(LavaxError):
        VulkanBackend().lower(plan(remove_stop_gradient(graph)).graph).as_text("glsl")


def hold(name: str, seeds: Iterable[int], attempt: Callable[[Random], bool]) -> int:
    """Makes an attempt for each seed, and returns how many mutants were accepted. A failure's message has its seed."""
    accepted = 0
    for seed in seeds:
        try:
            accepted += attempt(Random(crc32(f"{name} {seed}".encode())))
        except Exception as error:
            raise AssertionError(f"mutant {seed} of {name}: {type(error).__name__}: {error}") from error
    return accepted


def _has_steps_of_lowering(graph: Graph) -> bool:
    return any(OPERATIONS[node.op].family in ("lowered", "axis") for node in graph.nodes)


def text_mutant(random: Random) -> bool:
    graph = read_text(repaired(mutated_text(random, random.choice(texts()), texts())))
    if graph is not None and not _has_steps_of_lowering(graph):
        lower(graph)
    return graph is not None


_IDENTITY = parse("graph (x: f32[3]) {\n  return x\n}")
VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 3, 5, 1 << 31, (1 << 63) - 1, 1 << 63, -(1 << 63), 10**30, 0.5, -0.0, math.nan,
    math.inf, "", "x", "add", "f16", "cumulative_sum", (), (0,), (1,), (0, 1), (1, 0), (0, 0), (-1,), (1 << 40,),
    ((), ()), ((0,), (0,)), ((0,), (1,)), ((0, 1), (0, 1)), ((), (), ()), np.int64(1), np.float32(1), [0], {}, b"",
    _IDENTITY, (_IDENTITY,), (_IDENTITY, _IDENTITY), object(),
)  # fmt: skip


def _other_value(random: Random, value: Any) -> Any:
    """Another attribute: a near one of the same kind, or any of VALUES."""
    if random.random() < 0.4:
        return random.choice(VALUES)
    if isinstance(value, tuple) and value:
        place = random.randrange(len(value))
        changed = (*value[:place], _other_value(random, value[place]), *value[place + 1 :])
        return random.choice((changed, changed, value[:place], (*value, value[place]), value[::-1]))
    if isinstance(value, bool):
        return not value
    return value + random.choice((-2, -1, 1, 2, 7)) if isinstance(value, (int, float)) else random.choice(VALUES)


@cache
def _nodes_with_attributes() -> list[Graph]:
    graphs = [*(case.graph for case in all_cases()), *map(parse, REGIONS * 20)]
    return [graph for graph in graphs if any(node.attrs for node in graph.nodes)]


def attribute_mutant(random: Random) -> bool:
    """One attribute of one node is another value, and its type is what then follows, if any does."""
    graph = random.choice(_nodes_with_attributes())
    chosen = random.choice([node for node in graph.nodes if node.attrs])
    name = random.choice(list(chosen.attrs))
    attrs = {**chosen.attrs, name: _other_value(random, chosen.attrs[name])}
    type = chosen.type
    with contextlib.suppress(Exception):
        type = OPERATIONS[chosen.op].infer([operand.type for operand in chosen.operands], attrs, chosen.type)
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    for node in graph.nodes:
        operands = tuple(found[operand] for operand in node.operands)
        found[node] = Node(node.op, operands, *((attrs, type) if node is chosen else (node.attrs, node.type)))
    mutant = Graph(graph.inputs, tuple(found[n] for n in graph.nodes), tuple(found[n] for n in graph.outputs))
    try:
        verify(mutant)
    except VerificationError:
        return False
    if not _has_steps_of_lowering(mutant):
        lower(mutant)
    return True


def _written(write: Callable[[Path], None], suffix: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{suffix}"
        write(path)
        return path.read_bytes()


def _read(content: bytes, suffix: str, read: Callable[[Path], None], refusals: type[Exception]) -> bool:
    """Whether the file is accepted. Only its refusals are let through."""
    with tempfile.NamedTemporaryFile(suffix=suffix) as file:
        file.write(content)
        file.flush()
        try:
            read(Path(file.name))
        except refusals as error:
            assert type(error) in (ExportError, ValueError), f"{type(error).__name__}: {error}"
            return False
    return True


@cache
def archive() -> bytes:
    weights = lx.device_put(np.arange(9, dtype="f").reshape(3, 3))

    def function(x: Any, state: dict[str, Any]) -> Any:
        turned = lx.scan(lambda c, y: (c * y, lnp.sin(c)), x, state["y"])
        return {"sum": lnp.sum(weights @ x), "turned": turned}

    arguments = lx.ShapeDtype((3,), "float32"), {"y": lx.ShapeDtype((4, 3), "float32")}
    return _written(lx.export(function, *arguments).save, ".lavax")


@cache
def members() -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(archive())) as found:
        return {name: found.read(name) for name in found.namelist()}


def _load_exported(path: Path) -> None:
    lower(lx.load_exported(path).graph)


def archive_mutant(random: Random) -> bool:
    """The bytes of the archive are changed, or one of its members, which is packed again with a sum that fits."""
    if random.random() < 0.3:
        return _read(mutated_bytes(random, archive()), ".lavax", _load_exported, ExportError)
    name = random.choice(list(members()))
    content = members()[name]
    if name.endswith(".npy"):
        changed = mutated_bytes(random, content, 80)
    else:
        others = [content.decode(), *(texts()[:50])]
        changed = repaired(mutated_text(random, content.decode(), others)).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", random.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED))) as found:
        for each, data in members().items():
            found.writestr(each, changed if each == name else data)
    return _read(packed.getvalue(), ".lavax", _load_exported, ExportError)


def _arrays() -> dict[str, np.ndarray]:
    return {
        "a": np.arange(12, dtype="f").reshape(3, 4),
        "b": np.arange(5, dtype="i8"),
        "c": np.zeros((2, 0), "f2"),
        "d": np.ones((), "?"),
    }


def _read_all(file: Mapping[str, np.ndarray]) -> None:
    for name in file:
        array = file[name]
        assert array.nbytes < 1 << 20
        array.sum() if array.dtype.kind in "biuf" else bytes(array.data)


@cache
def npz(compressed: bool) -> bytes:
    return _written(lambda path: (np.savez_compressed if compressed else np.savez)(path, **_arrays()), ".npz")


def npz_mutant(random: Random) -> bool:
    """Half of the archives are packed again around a changed array."""
    content = npz(random.random() < 0.5)
    if random.random() < 0.5:
        return _read(mutated_bytes(random, content), ".npz", lambda path: _read_all(NpzFile(path)), ValueError)
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as whole, zipfile.ZipFile(packed, "w") as found:
        chosen = random.choice(whole.namelist())
        for name in whole.namelist():
            data = whole.read(name)
            method = random.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED))
            found.writestr(name, mutated_bytes(random, data, 80) if name == chosen else data, method)
    return _read(packed.getvalue(), ".npz", lambda path: _read_all(NpzFile(path)), ValueError)


def npy_mutant(random: Random) -> bool:
    content = _written(lambda path: np.save(path, _arrays()["a"]), ".npy")
    if random.random() < 0.5:
        text = mutated_text(random, content[10:128].decode(), ["(3, 4), True, '<f8', '|O', '|V0', '<M8[s]', '<U9'"])
        changed = content[:8] + len(text.encode()).to_bytes(2, "little") + text.encode() + content[128:]
    else:
        changed = mutated_bytes(random, content, 128)
    return _read(changed, ".npy", lambda path: _read_all(read_npy(path)), ValueError)


@cache
def safetensors() -> bytes:
    return _written(lambda path: write_safetensors(path, _arrays(), {"format": "pt"}), ".safetensors")


def safetensors_mutant(random: Random) -> bool:
    """Half of the headers are changed as texts, and keep a length that fits."""
    content = safetensors()
    length = int.from_bytes(content[:8], "little")
    if random.random() < 0.5:
        text = content[8 : 8 + length].decode()
        header = mutated_text(random, text, [text, '"BF16" "F8_E4M3" "C64" "BOOL" [2,3] [0,48]']).encode()
        changed = len(header).to_bytes(8, "little") + header + content[8 + length :]
    else:
        changed = mutated_bytes(random, content, 8 + length)
    return _read(changed, ".safetensors", lambda path: _read_all(SafetensorsFile(path)), ValueError)


@cache
def gguf_file() -> bytes:
    import gguf

    def write(path: Path) -> None:
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_block_count(2)
        writer.add_array("tokenizer.ggml.tokens", ["a", "b", "c"])
        writer.add_array("scores", [0.5, 1.5])
        writer.add_tensor("w", np.arange(64, dtype="f").reshape(2, 32))
        writer.add_tensor("i", np.arange(4, dtype="i4"))
        quantised = gguf.quants.quantize(np.ones((2, 32), "f"), gguf.GGMLQuantizationType.Q8_0)
        writer.add_tensor("q", quantised, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    return _written(write, ".gguf")


def gguf_mutant(random: Random) -> bool:
    return _read(
        mutated_bytes(random, gguf_file(), 400), ".gguf", lambda path: _read_all(load_gguf(path)), ValueError
    )


# How many mutants are tried at once, and in the long run. And of the first, how many are accepted at least: a test
# whose mutants are all refused at the first word says little.
MUTANTS: dict[str, tuple[Callable[[Random], bool], int, int, int]] = {
    "texts": (text_mutant, 500, 60_000, 20),
    "attributes": (attribute_mutant, 400, 40_000, 20),
    "archives": (archive_mutant, 300, 12_000, 5),
    "npz": (npz_mutant, 200, 10_000, 5),
    "npy": (npy_mutant, 200, 10_000, 5),
    "safetensors": (safetensors_mutant, 200, 20_000, 5),
    "gguf": (gguf_mutant, 200, 10_000, 5),
}


@pytest.mark.filterwarnings("ignore")  # NumPy warns of headers of Python 2, and of overflows in sums
@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_refused_by_name(name: str) -> None:
    if name == "gguf":
        pytest.importorskip("gguf", reason="the package that reads GGUF files")
    attempt, count, _, least = MUTANTS[name]
    assert hold(name, range(count), attempt) >= least


_PROGRAM = """
import resource, sys, warnings
resource.setrlimit(resource.RLIMIT_AS, ({bytes}, {bytes}))
warnings.simplefilter("ignore")
from tests.test_mutations import MUTANTS, hold
print(hold({name!r}, range({first}, {last}), MUTANTS[{name!r}][0]))
"""
_MEMORY_BYTES = 4 << 30  # libraries take most of it, before a file is read


@pytest.mark.long
@pytest.mark.parametrize("name", MUTANTS)
def test_many_mutants_are_refused_in_little_memory(name: str) -> None:
    pytest.importorskip("resource", reason="bounds of memory are those of Unix")
    if name == "gguf":
        pytest.importorskip("gguf", reason="the package that reads GGUF files")
    _, first, last, _ = MUTANTS[name]
    program = _PROGRAM.format(bytes=_MEMORY_BYTES, name=name, first=first, last=last)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) >= (last - first) // 100, "accepted"
