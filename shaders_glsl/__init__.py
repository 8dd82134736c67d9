"""Hand-written GLSL, and its loader for the code generator.

Every `.glsl` file here compiles on its own. Marker lines delimit its functions,

    //! function NAME needs OTHER, OTHER
    ...
    //! end

so that a shader includes only the functions that it calls. Names are unique over all files. The functions
are plain GLSL 4.50 core; those of 64 bits, whose names end in 64, need the extension for 64-bit integers.
"""
from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

FILES = (
    "double_arithmetic.glsl",
    "double_bessel.glsl",
    "double_error.glsl",
    "double_exponential.glsl",
    "double_gamma.glsl",
    "double_logarithm.glsl",
    "double_power.glsl",
    "double_roots.glsl",
    "double_trigonometric.glsl",
    "elementary_bessel.glsl",
    "elementary_beta.glsl",
    "elementary_comparison.glsl",
    "elementary_exponential.glsl",
    "elementary_gamma.glsl",
    "elementary_incomplete.glsl",
    "elementary_integral.glsl",
    "elementary_inverse.glsl",
    "elementary_power.glsl",
    "elementary_quotient.glsl",
    "elementary_remainder.glsl",
    "elementary_roots.glsl",
    "elementary_rounding.glsl",
    "elementary_trigonometric.glsl",
    "elementary_zeta.glsl",
    "integer_arithmetic.glsl",
    "integer_arithmetic_64.glsl",
    "narrow_floats.glsl",
    "narrow_functions.glsl",
    "pair_arithmetic.glsl",
    "random_bits.glsl",
)

_FUNCTION = "//! function "
_END = "//! end"


_FOLDER = Path(__file__).parent
# Functions of scalars also have a form for vectors, which the code generator derives from their signature.
_SCALAR = "float|double|int|uint|int64_t|uint64_t|bool"
_SIGNATURE = re.compile(rf"^({_SCALAR}) (\w+)\(([^)]*)\)", re.MULTILINE)


@dataclass(frozen=True)
class ShaderFunction:
    """One GLSL function: its name, the functions it calls, its text, and the types of its result and parameters.

    `result` is None, and `parameters` is empty, unless the function is one of scalars.
    """

    name: str
    needs: tuple[str, ...]
    text: str
    result: str | None = None
    parameters: tuple[str, ...] = ()


def source(name: str) -> str:
    """The text of the file `name` of this folder."""
    return _FOLDER.joinpath(name).read_text(encoding="utf-8")


def parse_functions(text: str) -> list[ShaderFunction]:
    """The functions between the markers of one file, in the file's order."""
    functions = []
    for part in text.split(_END)[0].split(_FUNCTION)[1:]:
        header, body = part.split("\n", 1)
        name, _, needs = header.partition(" needs ")
        required = tuple(word.strip() for word in needs.split(",") if word.strip())
        functions.append(_function(name.strip(), required, body.strip() + "\n"))
    return functions


def _function(name: str, needs: tuple[str, ...], text: str) -> ShaderFunction:
    signature = next((found for found in _SIGNATURE.finditer(text) if found[2] == name), None)
    if signature is None or not signature[3].strip():
        return ShaderFunction(name, needs, text)
    parameters = tuple(parameter.split()[0] for parameter in signature[3].split(","))
    return ShaderFunction(name, needs, text, signature[1], parameters)


@functools.cache
def elementary_functions() -> dict[str, ShaderFunction]:
    """Every elementary function by name.

    Raises:
        ValueError: two functions have the same name.
    """
    table: dict[str, ShaderFunction] = {}
    for file in FILES:
        for function in parse_functions(source(file)):
            if function.name in table:
                raise ValueError(f"the GLSL function {function.name} is defined twice; rename the one in {file}")
            table[function.name] = function
    return table


def functions_for(names: Iterable[str]) -> list[ShaderFunction]:
    """The functions `names` and all that they need, each once, needed ones first.

    The same set of names gives the same list, in any order of the names.

    Raises:
        KeyError: no function of that name exists.
    """
    table = elementary_functions()
    chosen: dict[str, ShaderFunction] = {}

    def choose(name: str) -> None:
        if name in chosen:
            return
        if name not in table:
            raise KeyError(f"no GLSL function {name!r}; there are {', '.join(sorted(table))}")
        for needed in table[name].needs:
            choose(needed)
        chosen[name] = table[name]

    for name in sorted(set(names)):
        choose(name)
    return list(chosen.values())


def function_source(names: Iterable[str]) -> str:
    """The GLSL text of the functions `names` and of all they need. Raises KeyError as `functions_for` does."""
    return "\n".join(function.text for function in functions_for(names))
