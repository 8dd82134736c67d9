"""The errors lavax raises by a class of its own. This module imports nothing of lavax."""
from __future__ import annotations


class LavaxError(Exception):
    """Base of all errors of lavax's own."""


class ConcretizationError(LavaxError, TypeError):
    """A traced value was asked for a Python number or a NumPy array where none exists."""


class TracerLeakError(LavaxError, RuntimeError):
    """A traced value was used after the trace that made it had ended."""


class NonScalarGradError(LavaxError, TypeError):
    """`grad` was asked of a function whose result is not a floating scalar."""


class LinearityError(LavaxError, ValueError):
    """A function that had to be linear is not."""


class VmapAxisError(LavaxError, ValueError):
    """An axis given to `vmap` does not fit the values, or the mapped axes differ in extent."""


class UnboundAxisError(LavaxError, NameError):
    """A reduction over a named axis stands where no `vmap` gives an axis that name."""


class CustomRuleError(LavaxError, TypeError):
    """The rules of a function with derivatives of its own are missing or do not fit the function."""


class SideEffectError(LavaxError, RuntimeError):
    """A print or callback stands where it cannot be done when the program runs."""


class NaNError(LavaxError, FloatingPointError):
    """An operation gave NaN where `debug.nans` was watching."""


class ControlFlowTypeError(LavaxError, TypeError):
    """Branches give different types, or a loop's body does not give what it takes."""


class StaticArgumentError(LavaxError, TypeError):
    """A static argument of a compiled function cannot be hashed."""


class DonatedArrayError(LavaxError, RuntimeError):
    """An array was used after its memory had been donated to a compiled function."""


class TreeMismatchError(LavaxError, TypeError):
    """Two pytrees that had to agree in structure do not."""


class ShapeError(LavaxError, ValueError):
    """Shapes that do not fit the operation."""


class ArrayIndexError(LavaxError, IndexError):
    """An index outside the array, or more indices than it has axes."""


class DtypeError(LavaxError, TypeError):
    """A dtype that does not fit the operation."""


class NonFloatArgumentError(DtypeError):
    """A derivative was asked by an argument that is not made of floats."""


class KeyReuseError(LavaxError, ValueError):
    """Random numbers were drawn twice from one key while that was being checked."""


class ExportError(LavaxError, ValueError):
    """A function cannot be written to a file, or a file does not hold one."""


class VerificationError(LavaxError, ValueError):
    """A graph breaks a rule of the intermediate representation."""


class ParseError(LavaxError, ValueError):
    """A text is not the text of a graph."""


class DeviceError(LavaxError, RuntimeError):
    """No usable Vulkan device, or the device failed."""


class ShaderCompilerError(LavaxError, RuntimeError):
    """No GLSL compiler was found, or it refused a shader."""
