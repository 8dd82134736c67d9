"""lavax: plain Python functions, traced, differentiated and compiled to Vulkan compute programs."""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from lavax import (
    debug,
    errors,
    flatten_util,
    image,
    ir,
    linalg,
    nn,
    numpy,
    ops,
    optim,
    profiler,
    random,
    scipy,
    tree,
    tree_util,
)
from lavax.base.config import VERSION, enable_x64, matmul_precision
from lavax.errors import (
    ArrayIndexError,
    ConcretizationError,
    ControlFlowTypeError,
    CustomRuleError,
    DeviceError,
    DonatedArrayError,
    DtypeError,
    ExportError,
    KeyReuseError,
    LavaxError,
    LinearityError,
    NaNError,
    NonFloatArgumentError,
    NonScalarGradError,
    ParseError,
    ShaderCompilerError,
    ShapeError,
    SideEffectError,
    StaticArgumentError,
    TracerLeakError,
    TreeMismatchError,
    UnboundAxisError,
    VerificationError,
    VmapAxisError,
)
from lavax.parallel_scan import associative_scan
from lavax.tracer.compiled.compile import compile
from lavax.tracer.compiled.export import Exported, export, load_exported
from lavax.tracer.control_flow.branches import cond, switch
from lavax.tracer.control_flow.fori_loop import fori_loop
from lavax.tracer.control_flow.scan import map, scan
from lavax.tracer.control_flow.while_loop import while_loop
from lavax.tracer.tracing.abstract_evaluation import ShapeDtype, eval_shape, trace
from lavax.tracer.tracing.placement import default_device, device_put, devices
from lavax.tracer.transforms.checkpoint import checkpoint
from lavax.tracer.transforms.closure_convert import closure_convert
from lavax.tracer.transforms.custom_rules import custom_jvp, custom_vjp
from lavax.tracer.transforms.debugging import check_leaks
from lavax.tracer.transforms.grad import grad, stop_gradient, value_and_grad
from lavax.tracer.transforms.jacobian import hessian, jacfwd, jacrev
from lavax.tracer.transforms.jvp import jvp, linearize
from lavax.tracer.transforms.linear_transpose import linear_transpose
from lavax.tracer.transforms.named_axes import all_gather, axis_index, axis_size, pmax, pmean, pmin, psum
from lavax.tracer.transforms.vjp import vjp
from lavax.tracer.transforms.vmap import vmap
from lavax.tracer.values.array import Array
from lavax.tracer.values.backend import Backend, register

if TYPE_CHECKING:
    from lavax import data, generate, io, mixed_precision, models, train

__version__ = VERSION
jit = compile
remat = checkpoint


def _vulkan() -> Backend:
    from lavax.backends.vulkan.backend import VulkanBackend  # late: the tracer works without it

    return VulkanBackend()


register(_vulkan)

_IMPORTED_WHEN_USED = frozenset({"data", "generate", "io", "mixed_precision", "models", "train"})


def __getattr__(name: str) -> Any:
    if name in _IMPORTED_WHEN_USED:
        return importlib.import_module(f"lavax.{name}")
    raise AttributeError(f"module 'lavax' has no attribute {name!r}")

__all__ = [
    "Array",
    "ArrayIndexError",
    "ConcretizationError",
    "ControlFlowTypeError",
    "CustomRuleError",
    "DeviceError",
    "DonatedArrayError",
    "DtypeError",
    "ExportError",
    "Exported",
    "KeyReuseError",
    "LavaxError",
    "LinearityError",
    "NaNError",
    "NonFloatArgumentError",
    "NonScalarGradError",
    "ParseError",
    "ShaderCompilerError",
    "ShapeDtype",
    "ShapeError",
    "SideEffectError",
    "StaticArgumentError",
    "TracerLeakError",
    "TreeMismatchError",
    "UnboundAxisError",
    "VerificationError",
    "VmapAxisError",
    "__version__",
    "all_gather",
    "associative_scan",
    "axis_index",
    "axis_size",
    "check_leaks",
    "checkpoint",
    "closure_convert",
    "compile",
    "cond",
    "custom_jvp",
    "custom_vjp",
    "data",
    "debug",
    "default_device",
    "device_put",
    "devices",
    "enable_x64",
    "errors",
    "eval_shape",
    "export",
    "flatten_util",
    "fori_loop",
    "generate",
    "grad",
    "hessian",
    "image",
    "io",
    "ir",
    "jacfwd",
    "jacrev",
    "jit",
    "jvp",
    "linalg",
    "linear_transpose",
    "linearize",
    "load_exported",
    "map",
    "matmul_precision",
    "mixed_precision",
    "models",
    "nn",
    "numpy",
    "ops",
    "optim",
    "pmax",
    "pmean",
    "pmin",
    "profiler",
    "psum",
    "random",
    "remat",
    "scan",
    "scipy",
    "stop_gradient",
    "switch",
    "trace",
    "train",
    "tree",
    "tree_util",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]
