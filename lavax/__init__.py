"""lavax: plain Python functions, traced, differentiated and compiled to Vulkan compute programs."""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from lavax import (
    ad_checkpoint,
    core,
    custom_batching,
    custom_derivatives,
    debug,
    dlpack,
    dtypes,
    errors,
    experimental,
    flatten_util,
    image,
    ir,
    lax,
    linalg,
    nn,
    numpy,
    ops,
    optim,
    profiler,
    random,
    scipy,
    sharding,
    stages,
    test_util,
    tree,
    tree_util,
    typing,
)
from lavax.base.config import (
    VERSION,
    default_matmul_precision,
    disable_jit,
    enable_x64,
    log_compiles,
    matmul_precision,
)
from lavax.configuration import (
    config,
    debug_nans,
    default_prng_impl,
    numpy_dtype_promotion,
    numpy_rank_promotion,
    transfer_guard,
    transfer_guard_device_to_device,
    transfer_guard_device_to_host,
    transfer_guard_host_to_device,
)
from lavax.errors import (
    ArrayIndexError,
    AxisError,
    CheckError,
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
    NonConcreteBooleanIndexError,
    NonFloatArgumentError,
    NonScalarGradError,
    NumberRangeError,
    ONNXError,
    ParseError,
    ReverseModeError,
    ShaderCompilerError,
    ShapeError,
    SideEffectError,
    StaticArgumentError,
    TracerLeakError,
    TreeMismatchError,
    UnboundAxisError,
    VerificationError,
    VmapAxisError,
    ZeroStepError,
)
from lavax.export import module as export
from lavax.ir.location import named_scope
from lavax.parallel_scan import associative_scan
from lavax.tracer.compiled.compile import compile
from lavax.tracer.compiled.export import Exported, load_exported
from lavax.tracer.compiled.make_jaxpr import make_jaxpr
from lavax.tracer.control_flow.branches import cond, switch
from lavax.tracer.control_flow.fori_loop import fori_loop
from lavax.tracer.control_flow.scan import map, scan
from lavax.tracer.control_flow.while_loop import while_loop
from lavax.tracer.tracing.abstract_evaluation import ShapeDtype, eval_shape, trace, typeof
from lavax.tracer.tracing.placement import (
    block_until_ready,
    default_backend,
    default_device,
    device_count,
    device_get,
    device_put,
    devices,
    effects_barrier,
    local_devices,
    process_count,
    process_index,
)
from lavax.tracer.tracing.trace import ensure_compile_time_eval
from lavax.tracer.transforms.callbacks import pure_callback
from lavax.tracer.transforms.checkpoint import checkpoint
from lavax.tracer.transforms.checkpoint_policies import checkpoint_policies
from lavax.tracer.transforms.closure_convert import closure_convert
from lavax.tracer.transforms.custom_gradient import custom_gradient
from lavax.tracer.transforms.custom_rules import custom_jvp, custom_vjp
from lavax.tracer.transforms.debugging import check_leaks
from lavax.tracer.transforms.grad import grad, stop_gradient, value_and_grad
from lavax.tracer.transforms.jacobian import hessian, jacfwd, jacrev
from lavax.tracer.transforms.jvp import jvp, linearize
from lavax.tracer.transforms.linear_transpose import linear_transpose
from lavax.tracer.transforms.named_axes import all_gather, axis_index, axis_size, pmax, pmean, pmin, psum
from lavax.tracer.transforms.named_call import named_call
from lavax.tracer.transforms.vjp import vjp
from lavax.tracer.transforms.vmap import vmap
from lavax.tracer.values.backend import Backend, register
from lavax.tracer.values.programs import clear_caches
from lavax.tracer.values.value import Value as Array  # a traced value is an array, too

if TYPE_CHECKING:
    from lavax import data, generate, io, mixed_precision, models, onnx, testing, train
    from lavax.explanation.explain import explain

__version__ = VERSION
jit = compile
remat = checkpoint
jacobian = jacrev
checking_leaks = check_leaks
explain_cache_misses = log_compiles
check_tracer_leaks = check_leaks
local_device_count = device_count
host_count = process_count
host_id = process_index
float0 = dtypes.float0
ShapeDtypeStruct = ShapeDtype


def _vulkan() -> Backend:
    from lavax.backends.vulkan.backend import VulkanBackend  # late: the tracer works without it

    return VulkanBackend()


register(_vulkan)

_IMPORTED_WHEN_USED = frozenset({"data", "generate", "io", "mixed_precision", "models", "onnx", "testing", "train"})


def __getattr__(name: str) -> Any:
    if name in _IMPORTED_WHEN_USED:
        return importlib.import_module(f"lavax.{name}")
    if name == "explain":
        from lavax.explanation.explain import explain  # late: it needs the backend

        return explain
    raise AttributeError(f"module 'lavax' has no attribute {name!r}")

__all__ = [
    "Array",
    "ArrayIndexError",
    "AxisError",
    "CheckError",
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
    "NonConcreteBooleanIndexError",
    "NonFloatArgumentError",
    "NonScalarGradError",
    "NumberRangeError",
    "ONNXError",
    "ParseError",
    "ReverseModeError",
    "ShaderCompilerError",
    "ShapeDtype",
    "ShapeDtypeStruct",
    "ShapeError",
    "SideEffectError",
    "StaticArgumentError",
    "TracerLeakError",
    "TreeMismatchError",
    "UnboundAxisError",
    "VerificationError",
    "VmapAxisError",
    "ZeroStepError",
    "__version__",
    "ad_checkpoint",
    "all_gather",
    "associative_scan",
    "axis_index",
    "axis_size",
    "block_until_ready",
    "check_leaks",
    "check_tracer_leaks",
    "checking_leaks",
    "checkpoint",
    "checkpoint_policies",
    "clear_caches",
    "closure_convert",
    "compile",
    "cond",
    "config",
    "core",
    "custom_batching",
    "custom_derivatives",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "data",
    "debug",
    "debug_nans",
    "default_backend",
    "default_device",
    "default_matmul_precision",
    "default_prng_impl",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "disable_jit",
    "dlpack",
    "dtypes",
    "effects_barrier",
    "enable_x64",
    "ensure_compile_time_eval",
    "errors",
    "eval_shape",
    "experimental",
    "explain",
    "explain_cache_misses",
    "export",
    "flatten_util",
    "float0",
    "fori_loop",
    "generate",
    "grad",
    "hessian",
    "host_count",
    "host_id",
    "image",
    "io",
    "ir",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "linalg",
    "linear_transpose",
    "linearize",
    "load_exported",
    "local_device_count",
    "local_devices",
    "log_compiles",
    "make_jaxpr",
    "map",
    "matmul_precision",
    "mixed_precision",
    "models",
    "named_call",
    "named_scope",
    "nn",
    "numpy",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "onnx",
    "ops",
    "optim",
    "pmax",
    "pmean",
    "pmin",
    "process_count",
    "process_index",
    "profiler",
    "psum",
    "pure_callback",
    "random",
    "remat",
    "scan",
    "scipy",
    "sharding",
    "stages",
    "stop_gradient",
    "switch",
    "test_util",
    "testing",
    "trace",
    "train",
    "transfer_guard",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
    "tree",
    "tree_util",
    "typeof",
    "typing",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]
