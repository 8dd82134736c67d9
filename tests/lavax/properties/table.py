"""All cases, by name: the name of the function, or more words where there are several of one."""
from __future__ import annotations

from tests.lavax.properties import (
    creation,
    editing,
    elementwise,
    masked_reductions,
    ordering,
    polynomials,
    products,
    reductions,
    shapes,
)
from tests.lavax.properties.cases import Case

MODULES = (creation, editing, elementwise, masked_reductions, ordering, polynomials, products, reductions, shapes)
CASES: dict[str, Case] = {
    name: case
    for module in MODULES
    for name, case in module.CASES.items()
}
# Public names that have no case of their own, and why.
WITHOUT_CASE = {
    "can_cast": "of dtypes: tests/lavax/numpy/test_creation.py",
    "finfo": "of dtypes",
    "iinfo": "of dtypes",
    "isdtype": "of dtypes",
    "promote_types": "of dtypes",
    "result_type": "of dtypes",
    "from_dlpack": "takes another library's array",
    "ndarray": "a class",
    "ufunc": "a class",
    "frompyfunc": "makes a function: tests/lavax/numpy/functional/test_ufuncs.py",
    "sort_complex": "complex for any numbers: tests/lavax/numpy/complex/test_order_of_complex.py",
    "roots": "in any order: tests/lavax/numpy/complex/test_complex_arrays.py",
    **dict.fromkeys(
        ["character", "complexfloating", "dtype", "flexible", "floating", "generic", "inexact", "integer", "number",
         "object_", "signedinteger", "unsignedinteger"],
        "a class of NumPy's",
    ),
    **dict.fromkeys(
        ["einsum_path", "frombuffer", "fromfunction", "fromiter", "fromstring", "iscomplexobj", "isrealobj", "isscalar",
         "issubdtype", "iterable", "ndim", "shape", "size"],
        "tests/lavax/numpy/test_names.py",
    ),
    "__array_namespace_info__": "says what the namespace can do",
}
