"""The folders of the house, from the ground up: what each may import, and how much it holds."""
from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("lavax", "tracer", "passes", "backends", "ir", "shaders_glsl")
MOST_FILES = 24  # in a folder, besides its __init__

# From the ground up: a module may import from its own folder and from those that stand before it.
# A folder's __init__ only names what others may import; where it names anything, it stands in the list by itself.
_FLOORS = """
lavax/base
shaders_glsl/__init__
ir
ir/ops
ir/ops/lowered
ir/ops/lowered/__init__
ir/ops/__init__
ir/__init__

passes/target
passes/kernels
passes/build
passes/numerics
passes/simplify/recognise
passes/simplify/recognise/__init__
passes/simplify
passes/simplify/__init__
passes/differentiate
passes/differentiate/__init__
passes/batch
passes/batch/__init__
passes/complex_parts
passes/fuse
passes/prepare/decompose
passes/prepare/decompose/__init__
passes/prepare
passes/schedule/levels
passes/schedule
passes/reports
passes/reports/__init__

tracer/pytrees
tracer/calls
tracer/values
tracer/tracing
tracer/compiled
tracer/control_flow
tracer/transforms
tracer/__init__

backends/vulkan/api
backends/vulkan/plan
backends/vulkan/memory
backends/vulkan/glslang
backends/vulkan/glslang/__init__
backends/vulkan/compile
backends/vulkan/device
backends/vulkan/glsl
backends/vulkan/emit/contract
backends/vulkan/emit/strided
backends/vulkan/emit/attention
backends/vulkan/emit/reduce
backends/vulkan/emit/map
backends/vulkan/emit/scan
backends/vulkan/emit/sort
backends/vulkan/emit/scatter
backends/vulkan/emit/linalg
backends/vulkan/emit/fourier
backends/vulkan/emit/fourier/lines
backends/vulkan/emit/fourier/steps
backends/vulkan/emit/gates
backends/vulkan/emit/loop/registers
backends/vulkan/emit/loop
backends/vulkan/emit
backends/vulkan/run
backends/vulkan/measure
backends/vulkan

lavax/numpy/_core
lavax/numpy/elementwise
lavax/numpy/arrays
lavax/numpy/reductions
lavax/numpy/indexing
lavax/numpy/types
lavax/numpy/functional
lavax/numpy/sorting
lavax/numpy/products
lavax/numpy/editing
lavax/numpy/grids
lavax/numpy/analysis
lavax/numpy/fft
lavax/numpy/fft/__init__
lavax/numpy/methods
lavax/linalg
lavax/linalg/__init__
lavax/numpy/__init__
lavax/image
lavax/image/__init__
lavax/nn
lavax/scipy
lavax/random
lavax/random/__init__
lavax/nn/initializers
lavax/nn/initializers/__init__
lavax/nn/sound
lavax/nn/sound/__init__
lavax/nn/modules
lavax/nn/__init__
lavax/optim/tree
lavax/optim/tree/__init__
lavax/optim/schedules
lavax/optim/schedules/__init__
lavax/optim/transforms
lavax/optim/line_search
lavax/optim
lavax/optim/__init__
lavax/scipy/linalg
lavax/scipy/linalg/__init__
lavax/scipy/sparse
lavax/scipy/sparse/__init__
lavax/scipy/cluster
lavax/scipy/cluster/__init__
lavax/scipy/fft
lavax/scipy/fft/__init__
lavax/scipy/integrate/__init__
lavax/scipy/interpolate
lavax/scipy/interpolate/__init__
lavax/scipy/ndimage
lavax/scipy/ndimage/__init__
lavax/scipy/optimize
lavax/scipy/optimize/__init__
lavax/scipy/signal
lavax/scipy/signal/__init__
lavax/scipy/spatial
lavax/scipy/spatial/__init__
lavax/scipy/stats
lavax/scipy/stats/__init__
lavax/scipy/__init__
lavax/io
lavax/io/__init__
lavax/data
lavax/data/__init__
lavax/mixed_precision
lavax/mixed_precision/__init__
lavax/train
lavax/train/__init__
lavax/models
lavax/models/convolution
lavax/models/convolution/__init__
lavax/models/vision
lavax/models/vision/__init__
lavax/models/smolvla
lavax/models/smolvla/__init__
lavax/models/diffusion
lavax/models/diffusion/__init__
lavax/models/encoders
lavax/models/encoders/__init__
lavax/models/whisper
lavax/models/whisper/__init__
lavax/models/__init__
lavax/generate
lavax/generate/__init__
lavax/experimental
lavax/experimental/__init__
lavax/explanation
lavax/command_line
lavax
lavax/lax
lavax/lax/linalg
lavax/lax/linalg/__init__
lavax/lax/__init__
lavax/onnx/reading
lavax/onnx/operators
lavax/onnx/operators/microsoft
lavax/onnx/writing
lavax/onnx
lavax/onnx/nnef
lavax/onnx/__init__
lavax/testing
lavax/testing/__init__
lavax/__init__
"""
FLOORS = _FLOORS.split()

# Rooms side by side: the tracer and the backend know each other as protocols only (tracer/values/backend.py).
STRANGERS = {"backends": ("tracer",), "tracer": ("backends",)}

# Imports inside functions that lead upwards, each for a reason.
UPWARDS = {
    ("lavax.command_line.run_model", "lavax/onnx"): "a command loads a model when it is asked to",
    ("lavax.tracer.tracing.tracer", "tracer/compiled"): "a tracer that is asked for a number runs the graph so far",
    ("lavax.tracer.values.eager", "tracer/compiled"): "a check for NaN looks at the operation that made it, by itself",
    ("lavax.numpy.methods.array_methods", "lavax/numpy/__init__"): "an array names the namespace that it belongs to",
    ("lavax.numpy.analysis.polynomials", "lavax/linalg"): "a fit is a least-squares problem",
}


def module_name(path: Path) -> str:
    """The name that the file `path` of a room is imported by; a package by its folder."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    prefix = () if parts[0] == "lavax" else ("lavax",)
    return ".".join(prefix + parts).removesuffix(".__init__")


SOURCES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
MODULES = {module_name(path): path for path in SOURCES}
ORDER = {floor: number for number, floor in enumerate(FLOORS)}


def floor_of(module: str) -> str:
    """The line of FLOORS that holds the module: its folder, or for a package its __init__."""
    path = MODULES[module].relative_to(ROOT)
    return str(path.with_suffix("")) if path.name == "__init__.py" else str(path.parent)


def imported_modules(text: str) -> Iterator[str]:
    """Modules of lavax that a text imports anywhere. An __init__ counts only if something is imported from it."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are written in full"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found = full if full in MODULES else node.module
                if found in MODULES:
                    yield found


def refused_imports(text: str, module: str) -> list[str]:
    """The arrows that the floors do not allow, each with its reason."""
    home = floor_of(module)
    found = []
    for name in imported_modules(text):
        floor = floor_of(name)
        if floor.split("/")[0] in STRANGERS.get(home.split("/")[0], ()):
            found.append(f"{module} -> {name}: {home} and {floor} know nothing of each other")
        elif floor != home and ORDER[floor] > ORDER[home] and (module, floor) not in UPWARDS:
            found.append(f"{module} -> {name}: {floor} stands above {home}")
    return found


@pytest.mark.parametrize("module", [name for name in MODULES if MODULES[name].stat().st_size])
def test_imports_lead_down(module: str) -> None:
    assert refused_imports(MODULES[module].read_text(encoding="utf-8"), module) == []


@pytest.mark.parametrize(
    ("text", "module", "upper"),
    [
        ("import lavax.passes.fuse.fuse", "lavax.ir.graph", "passes/fuse"),
        ("from lavax.passes.simplify import simplify", "lavax.passes.kernels.index", "passes/simplify/__init__"),
        ("from lavax.ir import parse", "lavax.ir.graph", "ir/__init__"),
        ("def late():\n    from lavax.passes.schedule import schedule", "lavax.passes.fuse.fuse", "passes/schedule"),
        ("from lavax.backends.vulkan.run.program import Program", "lavax.tracer.values.value", "backends/vulkan/run"),
        ("from lavax.tracer import bind", "lavax.backends.vulkan.emit.program", "tracer/__init__"),
        ("import lavax", "lavax.numpy.arrays.creation", "lavax/__init__"),
    ],
)
def test_an_arrow_that_leads_up_is_refused_by_name(text: str, module: str, upper: str) -> None:
    (refused,) = refused_imports(text, module)
    assert refused.startswith(f"{module} -> ") and upper in refused and floor_of(module) in refused


@pytest.mark.parametrize(
    ("text", "module"),
    [
        ("from lavax.base.errors import ShapeError", "lavax.ir.types"),
        ("from lavax.base import config, counters", "lavax.backends.vulkan.device.device"),
        ("from lavax.passes.fuse.drafts import Drafts", "lavax.passes.fuse.fuse"),
        ("import numpy, os.path", "lavax.base.config"),
        ("from lavax.backends.vulkan.backend import VulkanBackend", "lavax.profiler"),
    ],
)
def test_an_arrow_that_leads_down_is_let_pass(text: str, module: str) -> None:
    assert refused_imports(text, module) == []


def test_every_folder_has_a_floor() -> None:
    """And no floor is named twice, or of a folder that is gone or names nothing."""
    assert len(ORDER) == len(FLOORS)
    filled = {floor_of(name) for name, path in MODULES.items() if path.stat().st_size}
    assert set(FLOORS) == filled


def test_every_exception_is_still_needed() -> None:
    for module, floor in UPWARDS:
        found = imported_modules(MODULES[module].read_text(encoding="utf-8"))
        assert floor in {floor_of(name) for name in found} and ORDER[floor] > ORDER[floor_of(module)]


def test_no_folder_is_a_hall() -> None:
    others = [path for folder in ("tests", "benchmarks", "examples", "tools") for path in (ROOT / folder).rglob("*.py")]
    folders = [path.parent for path in (*SOURCES, *others) if path.name != "__init__.py"]
    assert {str(folder.relative_to(ROOT)) for folder in folders if folders.count(folder) > MOST_FILES} == set()


def test_what_is_no_backend_names_no_driver() -> None:
    """Passes ask for limits and features of a target, not for a vendor's device or driver."""
    sources = [path for room in ("ir", "passes", "tracer") for path in sorted((ROOT / room).rglob("*.py"))]
    words = ("mesa", "llvmpipe", "lavapipe", "nvidia")
    assert not [str(path) for path in sources if any(word in path.read_text("utf-8").lower() for word in words)]
