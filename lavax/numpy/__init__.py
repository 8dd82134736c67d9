"""Array functions with the names and meanings they have in NumPy, JAX and the array API standard.

Every function takes arrays, traced values, NumPy arrays, nested lists and Python scalars. Operands are promoted
to one dtype (Python scalars yield) and broadcast to one shape. Importing this module gives arrays and traced
values their operators and methods.

Each module says in its `__all__` which of its names are public: those are the names here, with the second names below.
"""
import math as _math
from types import ModuleType as _ModuleType

from lavax.numpy.along_axis import *
from lavax.numpy.array_methods import METHODS as _METHODS
from lavax.numpy.bit_packing import *
from lavax.numpy.bitwise import *
from lavax.numpy.broadcasting import *
from lavax.numpy.calculus import *
from lavax.numpy.closeness import *
from lavax.numpy.comparison import *
from lavax.numpy.complex_parts import *
from lavax.numpy.convolution import *
from lavax.numpy.creation import *
from lavax.numpy.cumulative import *
from lavax.numpy.data_dependent import *
from lavax.numpy.divisors import *
from lavax.numpy.dtype_functions import *
from lavax.numpy.editing import *
from lavax.numpy.einsum import *
from lavax.numpy.elementwise import *
from lavax.numpy.exchange import *
from lavax.numpy.exponential import *
from lavax.numpy.flat_indices import *
from lavax.numpy.float_parts import *
from lavax.numpy.from_data import *
from lavax.numpy.grids import *
from lavax.numpy.hyperbolic import *
from lavax.numpy.index_tricks import *
from lavax.numpy.joining import *
from lavax.numpy.linear_algebra import *
from lavax.numpy.manipulation import *
from lavax.numpy.namespace_info import array_api_version as __array_api_version__
from lavax.numpy.namespace_info import namespace_info as __array_namespace_info__
from lavax.numpy.nan_functions import *
from lavax.numpy.operators import OPERATORS as _OPERATORS
from lavax.numpy.padding import *
from lavax.numpy.polynomials import *
from lavax.numpy.products import *
from lavax.numpy.reductions import *
from lavax.numpy.replacing import *
from lavax.numpy.rounding import *
from lavax.numpy.scalar_classes import *
from lavax.numpy.scalar_types import *
from lavax.numpy.searching import *
from lavax.numpy.selecting import *
from lavax.numpy.sets import *
from lavax.numpy.shape_functions import *
from lavax.numpy.signs import *
from lavax.numpy.sorting import *
from lavax.numpy.statistics import *
from lavax.numpy.taking import *
from lavax.numpy.trigonometric import *
from lavax.numpy.vectorize import *
from lavax.numpy.window_functions import *
from lavax.tracer import Value as _Value
from lavax.tracer import install as _install

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

# NumPy's names of dtypes that have others here.
double = float64
float_ = single = float32
int_ = int32
uint = uint32

e = _math.e
euler_gamma = 0.5772156649015329  # the limit of the sum of 1/k, k from 1 to n, less log n
inf = _math.inf
nan = _math.nan
newaxis = None
pi = _math.pi

ndarray = _Value  # the class of everything these functions give: isinstance(x, lnp.ndarray)

_install({**_OPERATORS, **_METHODS})

_public = [name for name, value in vars().items() if not (name.startswith("_") or isinstance(value, _ModuleType))]

from lavax import linalg  # noqa: E402  # last: it is made of what is above

__all__ = ["__array_api_version__", "__array_namespace_info__", "linalg", *_public]
