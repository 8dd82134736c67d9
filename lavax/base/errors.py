"""The error classes of lavax. This module imports nothing of lavax.

An error is of the class that Python or NumPy has for it, and of the one that JAX raises, where they differ.
"""
from __future__ import annotations


class LavaxError(Exception):
    """Base of all errors of lavax."""


class ConcretizationError(LavaxError, TypeError):
    """A Python number or NumPy array was required of a traced value whose numbers are not known."""


class NonConcreteBooleanIndexError(ConcretizationError, IndexError):
    """A mask in a key is computed while tracing, so that the shape of the result is not known."""


class TracerLeakError(LavaxError, RuntimeError, TypeError):
    """A traced value was used after the trace that made it had ended."""


class NonScalarGradError(LavaxError, TypeError):
    """The result of a function given to `grad` is not a floating scalar."""


class ReverseModeError(LavaxError, ValueError):
    """A reverse-mode derivative was requested of a loop whose number of iterations is known only when it runs."""


class LinearityError(LavaxError, ValueError):
    """A function that must be linear is not."""


class VmapAxisError(LavaxError, ValueError, TypeError):
    """An axis given to `vmap` does not fit the values, or the mapped axes differ in extent."""


class UnboundAxisError(LavaxError, NameError):
    """A reduction names an axis that no enclosing `vmap` names."""


class CustomRuleError(LavaxError, TypeError, ValueError):
    """The rules of a function with custom derivatives are missing or do not fit the function."""


class SideEffectError(LavaxError, RuntimeError):
    """A print or callback is used in a place where it cannot be done when the program runs."""


class NaNError(LavaxError, FloatingPointError):
    """An operation returned NaN under `debug.nans`."""


class ControlFlowTypeError(LavaxError, TypeError):
    """Branches return different types, or a loop's body does not return the types it takes."""


class StaticArgumentError(LavaxError, TypeError, ValueError):
    """A static argument of a compiled function cannot be hashed."""


class DonatedArrayError(LavaxError, RuntimeError):
    """An array was used after its memory had been donated to a compiled function."""


class TreeMismatchError(LavaxError, TypeError, ValueError):
    """Two pytrees differ in structure, but must agree."""


class ShapeError(LavaxError, ValueError, TypeError):
    """Shapes that do not fit the operation."""


class AxisError(ShapeError, IndexError):
    """An axis that an array does not have."""


class ArrayIndexError(ShapeError, IndexError):
    """An index outside the array, more indices than it has axes, or a key that does not fit the array or is none."""


class DtypeError(LavaxError, TypeError, ValueError):
    """A dtype that does not fit the operation."""


class NumberRangeError(DtypeError, OverflowError):
    """A number that the dtype does not hold."""


class ZeroStepError(ShapeError, ZeroDivisionError):
    """Numbers in steps of 0, or as many parts."""


class NonFloatArgumentError(DtypeError):
    """A derivative was requested by an argument that does not consist of floats."""


class KeyReuseError(LavaxError, ValueError):
    """Random numbers were drawn twice from one key while key reuse was checked."""


class CheckError(LavaxError, ValueError, RuntimeError):
    """A check in a program failed: one of `experimental.checkify`."""


class ExportError(LavaxError, ValueError):
    """A function cannot be written to a file, or a file does not hold one."""


class VerificationError(LavaxError, ValueError):
    """A graph breaks a rule of the intermediate representation."""


class ONNXError(LavaxError, ValueError):
    """An ONNX model is damaged, breaks a rule of the format, or needs what lavax does not have."""


class ParseError(LavaxError, ValueError):
    """A text is not the text of a graph."""


class DeviceError(LavaxError, RuntimeError):
    """No usable Vulkan device, or the device failed.

    `has_begun`: it failed in the middle of a program, so arrays that were donated to it are lost.
    """

    has_begun = False


class ShaderCompilerError(LavaxError, RuntimeError):
    """No GLSL compiler was found, or it rejected a shader."""
