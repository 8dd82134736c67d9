"""The error classes of lavax; `LavaxError` is the base of all of them."""
from lavax.base.errors import (
    ArrayIndexError,
    AxisError,
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

# The names of JAX.
ConcretizationTypeError = ConcretizationError
JAXIndexError = ArrayIndexError
JAXTypeError = LavaxError
JaxRuntimeError = DeviceError
TracerArrayConversionError = ConcretizationError
TracerBoolConversionError = ConcretizationError
TracerIntegerConversionError = ConcretizationError
UnexpectedTracerError = TracerLeakError

__all__ = [
    "ArrayIndexError",
    "AxisError",
    "ConcretizationError",
    "ConcretizationTypeError",
    "ControlFlowTypeError",
    "CustomRuleError",
    "DeviceError",
    "DonatedArrayError",
    "DtypeError",
    "ExportError",
    "JAXIndexError",
    "JAXTypeError",
    "JaxRuntimeError",
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
    "ShapeError",
    "SideEffectError",
    "StaticArgumentError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "TracerLeakError",
    "TreeMismatchError",
    "UnboundAxisError",
    "UnexpectedTracerError",
    "VerificationError",
    "VmapAxisError",
    "ZeroStepError",
]
