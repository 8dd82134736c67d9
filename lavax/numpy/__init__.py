"""Array functions with the names and meanings they have in NumPy, JAX and the array API standard.

Every function takes arrays, traced values, NumPy arrays, nested lists and Python scalars. Operands are promoted
to one dtype (Python scalars yield) and broadcast to one shape. Importing this module gives arrays and traced
values their operators and methods.

The `__all__` of each module lists its public names; they are all public here, besides the second names below.
"""
import math as _math
import sys as _sys
from types import ModuleType as _ModuleType

from lavax.numpy._core.broadcasting import *
from lavax.numpy._core.key_movement import makes_keys as _makes_keys
from lavax.numpy._core.key_movement import moves_keys as _moves_keys
from lavax.numpy.analysis.averages import *
from lavax.numpy.analysis.calculus import *
from lavax.numpy.analysis.convolution import *
from lavax.numpy.analysis.histograms import *
from lavax.numpy.analysis.interpolation import *
from lavax.numpy.analysis.polynomials import *
from lavax.numpy.analysis.quantiles import *
from lavax.numpy.analysis.window_functions import *
from lavax.numpy.arrays.complex_parts import *
from lavax.numpy.arrays.creation import *
from lavax.numpy.arrays.exchange import *
from lavax.numpy.arrays.from_data import *
from lavax.numpy.arrays.joining import *
from lavax.numpy.arrays.manipulation import *
from lavax.numpy.arrays.matrices import *
from lavax.numpy.arrays.ranges import *
from lavax.numpy.arrays.rearranging import *
from lavax.numpy.arrays.scalar_types import *
from lavax.numpy.arrays.shape_functions import *
from lavax.numpy.arrays.splitting import *
from lavax.numpy.arrays.tiling import *
from lavax.numpy.editing.bit_packing import *
from lavax.numpy.editing.editing import *
from lavax.numpy.editing.padding import *
from lavax.numpy.editing.replacing import *
from lavax.numpy.elementwise.arithmetic import *
from lavax.numpy.elementwise.bitwise import *
from lavax.numpy.elementwise.comparison import *
from lavax.numpy.elementwise.exponential import *
from lavax.numpy.elementwise.extrema import *
from lavax.numpy.elementwise.float_parts import *
from lavax.numpy.elementwise.hyperbolic import *
from lavax.numpy.elementwise.powers import *
from lavax.numpy.elementwise.rounding import *
from lavax.numpy.elementwise.signs import *
from lavax.numpy.elementwise.trigonometric import *
from lavax.numpy.functional.along_axis import *
from lavax.numpy.functional.piecewise import *
from lavax.numpy.functional.ufuncs import *
from lavax.numpy.functional.vectorize import *
from lavax.numpy.grids.flat_indices import *
from lavax.numpy.grids.grids import *
from lavax.numpy.grids.index_tricks import *
from lavax.numpy.grids.matrix_indices import *
from lavax.numpy.indexing.nonzero import *
from lavax.numpy.indexing.selecting import *
from lavax.numpy.indexing.taking import *
from lavax.numpy.methods.array_methods import METHODS as _METHODS
from lavax.numpy.methods.key_methods import KEY_METHODS as _KEY_METHODS
from lavax.numpy.methods.operators import OPERATORS as _OPERATORS
from lavax.numpy.methods.writing import WRITING as _WRITING
from lavax.numpy.products.einsum import *
from lavax.numpy.products.linear_algebra import *
from lavax.numpy.products.products import *
from lavax.numpy.reductions.closeness import *
from lavax.numpy.reductions.cumulative import *
from lavax.numpy.reductions.divisors import *
from lavax.numpy.reductions.nan_functions import *
from lavax.numpy.reductions.reductions import *
from lavax.numpy.sorting.searching import *
from lavax.numpy.sorting.sets import *
from lavax.numpy.sorting.sorting import *
from lavax.numpy.types.dtype_functions import *
from lavax.numpy.types.limits import *
from lavax.numpy.types.namespace_info import array_api_version as __array_api_version__
from lavax.numpy.types.namespace_info import namespace_info as __array_namespace_info__
from lavax.numpy.types.scalar_classes import *
from lavax.tracer import Value as _Value
from lavax.tracer import install as _install
from lavax.tracer.values.array import Array as _Array
from lavax.tracer.values.key_array import KeyArray as _KeyArray

# The functions that take random keys: they move elements, and compute nothing with them.
for _name in (
    "append", "array", "array_split", "asarray", "atleast_1d", "atleast_2d", "atleast_3d", "block", "broadcast_arrays",
    "broadcast_to", "choose", "column_stack", "compress", "concatenate", "copy", "delete", "diag", "diagonal", "dsplit",
    "dstack", "empty_like", "expand_dims", "extract", "fill_diagonal", "flip", "fliplr", "flipud", "full", "full_like",
    "hsplit", "hstack", "insert", "matrix_transpose", "meshgrid", "moveaxis", "ones_like", "put_along_axis", "ravel",
    "repeat", "reshape", "resize", "roll", "rollaxis", "rot90", "select", "split", "squeeze", "stack", "swapaxes",
    "take", "take_along_axis", "tile", "transpose", "tril", "triu", "unstack", "vsplit", "vstack", "where",
    "zeros_like",
):  # fmt: skip
    globals()[_name] = _moves_keys(globals()[_name])
for _name in ("empty", "ones", "zeros"):
    globals()[_name] = _makes_keys(globals()[_name])

# Second names of functions, from the array API standard and NumPy.
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
around = round
bool = bool_
bitwise_not = invert = bitwise_invert
left_shift = bitwise_left_shift
right_shift = bitwise_right_shift
deg2rad = radians
rad2deg = degrees
fix = trunc
concat = concatenate
conjugate = conj
mod = remainder
permute_dims = transpose
pow = power
true_divide = divide

# NumPy's names of dtypes.
cdouble = complex128
csingle = complex64
double = float64
single = float32

e = _math.e
euler_gamma = 0.5772156649015329  # the limit of the sum of 1/k, k from 1 to n, less log n
inf = _math.inf
nan = _math.nan
newaxis = None
pi = _math.pi

ndarray = _Value  # the class of all results: isinstance(x, lnp.ndarray)

_install({**_OPERATORS, **_METHODS}, _Value)
_install(_WRITING, _Array)
_install(_KEY_METHODS, _KeyArray)

_public = [name for name, value in vars().items() if not (name.startswith("_") or isinstance(value, _ModuleType))]

from lavax import linalg  # noqa: E402  # last: they use the functions above
from lavax.numpy import fft  # noqa: E402

_sys.modules[f"{__name__}.linalg"] = linalg  # so that `import lavax.numpy.linalg` finds it

__all__ = ["__array_api_version__", "__array_namespace_info__", "fft", "linalg", *_public]
