"""Array functions with the names and meanings they have in NumPy, JAX and the array API standard.

Every function takes arrays, traced values, NumPy arrays, nested lists and Python scalars. Operands are promoted
to one dtype (Python scalars yield) and broadcast to one shape. Importing this module gives arrays and traced
values their operators and methods.
"""
import math

from lavax.numpy.bitwise import (
    bitwise_and,
    bitwise_count,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
)
from lavax.numpy.broadcasting import broadcast_arrays, broadcast_shapes, broadcast_to
from lavax.numpy.comparison import (
    equal,
    greater,
    greater_equal,
    isfinite,
    isinf,
    isnan,
    isneginf,
    isposinf,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
    where,
)
from lavax.numpy.creation import (
    arange,
    array,
    asarray,
    astype,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    identity,
    linspace,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from lavax.numpy.einsum import einsum
from lavax.numpy.elementwise import (
    abs,
    add,
    cbrt,
    clip,
    cos,
    divide,
    exp,
    exp2,
    expm1,
    fabs,
    log,
    log1p,
    log2,
    maximum,
    minimum,
    multiply,
    negative,
    positive,
    reciprocal,
    rsqrt,
    sign,
    sin,
    sqrt,
    square,
    subtract,
    tanh,
)
from lavax.numpy.exponential import float_power, hypot, log10, logaddexp, logaddexp2, power
from lavax.numpy.float_parts import copysign, frexp, heaviside, ldexp, modf, nan_to_num, nextafter, signbit
from lavax.numpy.hyperbolic import acosh, asinh, atanh, cosh, sinh
from lavax.numpy.joining import (
    array_split,
    concatenate,
    hstack,
    repeat,
    roll,
    split,
    stack,
    tile,
    vstack,
)
from lavax.numpy.linear_algebra import dot, inner, matmul, outer, tensordot, vdot
from lavax.numpy.manipulation import (
    atleast_1d,
    atleast_2d,
    expand_dims,
    flip,
    matrix_transpose,
    moveaxis,
    ravel,
    reshape,
    squeeze,
    swapaxes,
    transpose,
)
from lavax.numpy.operators import OPERATORS
from lavax.numpy.padding import pad
from lavax.numpy.reductions import (
    all,
    any,
    argmax,
    argmin,
    array_equal,
    count_nonzero,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)
from lavax.numpy.rounding import ceil, divmod, floor, floor_divide, fmod, remainder, rint, round, trunc
from lavax.numpy.scalar_types import bool_, finfo, float32, iinfo, int32, uint32
from lavax.numpy.taking import take, take_along_axis
from lavax.numpy.trigonometric import acos, asin, atan, atan2, degrees, radians, sinc, tan
from lavax.tracer import Value, install

# Second names of the same functions: those of the array API standard and of NumPy.
absolute = abs
arccos = acos
arccosh = acosh
arcsin = asin
arcsinh = asinh
arctan = atan
arctan2 = atan2
arctanh = atanh
amax = max
amin = min
bitwise_not = invert = bitwise_invert
left_shift = bitwise_left_shift
right_shift = bitwise_right_shift
deg2rad = radians
rad2deg = degrees
fix = trunc
concat = concatenate
mod = remainder
permute_dims = transpose
pow = power
true_divide = divide

e = math.e
inf = math.inf
nan = math.nan
newaxis = None
pi = math.pi

ndarray = Value  # the class of everything these functions give: isinstance(x, lnp.ndarray)

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "all",
    "amax",
    "amin",
    "any",
    "arange",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "array",
    "array_equal",
    "array_split",
    "asarray",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "atleast_1d",
    "atleast_2d",
    "bitwise_and",
    "bitwise_count",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "bool_",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "cbrt",
    "ceil",
    "clip",
    "concat",
    "concatenate",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "deg2rad",
    "degrees",
    "divide",
    "divmod",
    "dot",
    "e",
    "einsum",
    "empty",
    "empty_like",
    "equal",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "eye",
    "fabs",
    "finfo",
    "fix",
    "flip",
    "float32",
    "float_power",
    "floor",
    "floor_divide",
    "fmod",
    "frexp",
    "full",
    "full_like",
    "greater",
    "greater_equal",
    "heaviside",
    "hstack",
    "hypot",
    "identity",
    "iinfo",
    "inf",
    "inner",
    "int32",
    "invert",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "ldexp",
    "left_shift",
    "less",
    "less_equal",
    "linspace",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mod",
    "modf",
    "moveaxis",
    "multiply",
    "nan",
    "nan_to_num",
    "ndarray",
    "negative",
    "newaxis",
    "nextafter",
    "not_equal",
    "ones",
    "ones_like",
    "outer",
    "pad",
    "permute_dims",
    "pi",
    "positive",
    "pow",
    "power",
    "prod",
    "rad2deg",
    "radians",
    "ravel",
    "reciprocal",
    "remainder",
    "repeat",
    "reshape",
    "right_shift",
    "rint",
    "roll",
    "round",
    "rsqrt",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "swapaxes",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "transpose",
    "true_divide",
    "trunc",
    "uint32",
    "var",
    "vdot",
    "vstack",
    "where",
    "zeros",
    "zeros_like",
]

install(OPERATORS)
