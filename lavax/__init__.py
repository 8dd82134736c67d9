"""lavax: plain Python functions, traced, differentiated and compiled to Vulkan compute programs."""
from __future__ import annotations

from lavax import ir, numpy, profiler, tree
from lavax.errors import (
    ConcretizationError,
    ControlFlowTypeError,
    DeviceError,
    DonatedArrayError,
    DtypeError,
    LavaxError,
    NonScalarGradError,
    ParseError,
    ShaderCompilerError,
    ShapeError,
    StaticArgumentError,
    TracerLeakError,
    TreeMismatchError,
    VerificationError,
)
from lavax.tracer.abstract_evaluation import ShapeDtype, eval_shape, trace
from lavax.tracer.array import Array
from lavax.tracer.backend import Backend, register
from lavax.tracer.compile import compile
from lavax.tracer.control_flow import cond, fori_loop, map, scan, switch, while_loop
from lavax.tracer.grad import grad, stop_gradient, value_and_grad
from lavax.tracer.placement import device_put, devices
from lavax.tracer.vjp import vjp

__version__ = "0.1.0"
jit = compile


def _vulkan() -> Backend:
    from lavax.backends.vulkan.backend import VulkanBackend  # late: the tracer is there without it

    return VulkanBackend()


register(_vulkan)

__all__ = [
    "Array",
    "ConcretizationError",
    "ControlFlowTypeError",
    "DeviceError",
    "DonatedArrayError",
    "DtypeError",
    "LavaxError",
    "NonScalarGradError",
    "ParseError",
    "ShaderCompilerError",
    "ShapeDtype",
    "ShapeError",
    "StaticArgumentError",
    "TracerLeakError",
    "TreeMismatchError",
    "VerificationError",
    "__version__",
    "compile",
    "cond",
    "device_put",
    "devices",
    "eval_shape",
    "fori_loop",
    "grad",
    "ir",
    "jit",
    "map",
    "numpy",
    "profiler",
    "scan",
    "stop_gradient",
    "switch",
    "trace",
    "tree",
    "value_and_grad",
    "vjp",
    "while_loop",
]
