"""All shaders of many graphs are valid GLSL and SPIR-V, for a GPU too, and without a device."""
from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from lavax.backends.vulkan import emit
from lavax.backends.vulkan.compile.shader_compiler import compile_glsl
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.base.errors import DtypeError
from lavax.ir import Graph
from lavax.passes.simplify import simplify
from tests.backends.vulkan.emit.emission import dispatches_of
from tests.operation_cases import all_cases, cases_of
from tests.random_graphs import random_graph

SEEDS = range(40)
NAMES = sorted({case.op for case in all_cases()})


def test_exchanges_are_not_half_of_a_choice() -> None:
    """A lane that does not take part in an exchange has no value for the others: GLSL computes one half of `a ? b : c`
    only. Drivers for processors compute both, and so do not tell."""
    emitters = Path(emit.__file__).parent
    choices = re.compile(r"[?:]\s*-?subgroup(Shuffle|Broadcast|Add|Max|Min|All|Any)")
    texts = {path: path.read_text(encoding="utf-8") for path in emitters.rglob("*.py")}
    assert [(path.name, found[0]) for path, text in texts.items() for found in choices.finditer(text)] == []
    assert sum("subgroupShuffle" in text for text in texts.values()) > 10


def _graphs() -> Iterator[tuple[str, Graph]]:
    for seed in SEEDS:
        graph, _ = random_graph(seed)
        yield f"seed {seed}", simplify(graph)


@cache
def _sources(op: str, first: int = 0, step: int = 3) -> dict[str, str]:
    """Every different shader of an operation's cases on a GPU, or of every third, with the case it came from."""
    found: dict[str, str] = {}
    for number, case in list(enumerate(cases_of(op)))[first::step]:
        compiled = (False,) if number % 8 == 0 else ()  # each has shaders of its own, unlike eager ones
        for eager in () if case.in_float64 else (True, *compiled):
            for dispatch in dispatches_of(case.graph, GENERIC_GPU, eager=eager):
                found.setdefault(dispatch.shader.source, str(case))
    return found


def _assert_compiles(sources: dict[str, str]) -> None:
    for source, case in sources.items():
        try:
            assert compile_glsl(source)
        except Exception as error:
            raise AssertionError(f"{case}\n{source}") from error


@pytest.mark.parametrize("op", NAMES)
def test_operations_compile_for_a_gpu(op: str) -> None:
    _assert_compiles(_sources(op))


@pytest.mark.long
@pytest.mark.parametrize("first", [1, 2])
@pytest.mark.parametrize("op", NAMES)
def test_operations_compile_for_a_gpu_in_all_cases(op: str, first: int) -> None:
    _assert_compiles(_sources(op, first))


def test_random_graphs_compile_for_a_gpu_and_for_a_cpu() -> None:
    for name, graph in _graphs():
        for profile in (GENERIC_GPU, CPU_DRIVER):
            for dispatch in dispatches_of(graph, profile):
                try:
                    assert compile_glsl(dispatch.shader.source)
                except Exception as error:
                    raise AssertionError(f"{name}\n{dispatch.shader.source}") from error


def test_float64_is_refused_where_the_device_has_none() -> None:
    (case, *_) = (case for case in cases_of("add") if case.in_float64)
    with pytest.raises(DtypeError, match="generic GPU has no float64"):
        dispatches_of(case.graph, GENERIC_GPU)


def test_references_are_aligned_to_their_numbers() -> None:
    """Vulkan asks that a load or store promises an alignment to its scalars; older validation layers do not tell."""
    declared = re.compile(r"buffer_reference_align = (\d+)\)[\w ]* \{ (\w+) \w+\[\]; \}")
    profile, aligned = replace(CPU_DRIVER, float64=True), 0
    for case in (case for case in all_cases() if case.in_float64):
        for dispatch in dispatches_of(case.graph, profile):
            source = dispatch.shader.source
            (real,) = re.findall(r"#define real (\w+)", source) or [""]
            for align, element in declared.findall(source):
                if (real if element == "real" else element) in ("double", "dvec4", "uint64_t", "int64_t"):
                    assert int(align) % 8 == 0, f"{case}\n{source}"
                    aligned += 1
    assert aligned > 50


def test_no_dispatch_needs_more_slots_and_words_than_there_are() -> None:
    for seed in range(100):
        graph, _ = random_graph(seed, 80)
        for dispatch in dispatches_of(graph, GENERIC_GPU, eager=bool(seed % 2)):
            assert len(dispatch.slots) + len(dispatch.words) <= 30


@pytest.mark.parametrize(("seed", "steps"), [(675, 25), (20, 80)])
def test_a_reduction_is_asked_for_only_where_it_is_computed(seed: int, steps: int) -> None:
    """A kernel once took in a value that was written by a later map, and so met its own reduction in another row."""
    assert dispatches_of(random_graph(seed, steps)[0], CPU_DRIVER)


@pytest.mark.skipif(shutil.which("spirv-val") is None, reason="spirv-val (package spirv-tools) is not installed")
def test_spirv_is_valid(tmp_path: Path) -> None:
    """One shader an operation, and those of some random graphs."""
    sources = {source: case for op in NAMES for source, case in list(_sources(op).items())[:1]}
    for name, graph in list(_graphs())[:8]:
        sources |= {dispatch.shader.source: name for dispatch in dispatches_of(graph, GENERIC_GPU)}
    assert len(sources) > 50
    file = tmp_path / "shader.spv"
    for source, case in sources.items():
        file.write_bytes(compile_glsl(source))
        command = ["spirv-val", "--target-env", "vulkan1.3", "--scalar-block-layout", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{case}\n{done.stdout}{done.stderr}\n{source}"
