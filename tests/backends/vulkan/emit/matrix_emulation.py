"""Shaders with cooperative matrices in plain GLSL, so that any device runs them.

The lanes of a subgroup share a matrix of sums: each has as many of its elements, every so many-th one. An operand is
read from shared memory where it is multiplied. If shared memory may change in between, each lane has all of it, as
float32 rounded to 16 bits by whoever staged it.

Mesa's drivers for CPUs end all loops of a shader after some iterations of all of them together (`MAX_LOOP_ITERATIONS`
is below that). A product of matrices of 16 rows, columns and steps takes 160 on eight lanes.
"""
from __future__ import annotations

import re

from lavax.backends.vulkan.compile.brain_floats import BRAIN_FLOATS
from lavax.backends.vulkan.glsl.extensions import EXTENSIONS
from lavax.base.quick_dataclasses import dataclass

_TYPE = re.compile(r"coopmat<(float|float16_t), gl_ScopeSubgroup, (\d+), (\d+), gl_MatrixUse(A|B|Accumulator)>")
_FILLED = re.compile(r"Matrix_Accumulator\((\(?[-+.e\d]+\)?)\)")
_DECLARED = re.compile(r"Matrix_(A|B|Accumulator) ([^;]+);")
_SCALED = re.compile(r"(\w+) = \1 \* (\w+);")
_ELEMENT = re.compile(r"(\w+)\[e\]")
_NARROWED = re.compile(r"Matrix_(A|B) (\w+) = Matrix_\1\((\w+)\);")
_REDUCED = re.compile(r"coopMatReduceNV\((\w+), (\w+), gl_CooperativeMatrixReduceRowNV, (\w+)\);")
_LOAD = re.compile(r"coopMatLoad\((\w+), staged, (.*), ([^,]+), gl_CooperativeMatrixLayout(Row|Column)Major\);")
_STORE = re.compile(r"coopMatStore\((\w+), staged, (.*), ([^,]+), gl_CooperativeMatrixLayoutRowMajor\);")
_MULTIPLY = re.compile(r"(\w+) = coopMatMulAdd\((\w+), (\w+), (\w+)\);")
_BASIC = "#extension GL_KHR_shader_subgroup_basic : require\n"
_TOGETHER = 4  # steps of a product, in an iteration
_SHUFFLE = "#extension GL_KHR_shader_subgroup_shuffle : require\n"


def emulated(source: str, lanes: int) -> str:
    """The shader, of subgroups of so many lanes, without cooperative matrices; itself if it has none."""
    if "coopmat<" not in source:
        return source
    is_bfloat16 = BRAIN_FLOATS in source
    source = source.replace(BRAIN_FLOATS, "").replace(EXTENSIONS["cooperative_matrix"], _BASIC)
    source = source.replace(EXTENSIONS["cooperative_matrix_2"], _SHUFFLE)
    kinds = {match.groups() for match in _TYPE.finditer(source)}
    (m, n), = {(int(rows), int(columns)) for _, rows, columns, use in kinds if use == "Accumulator"}
    k = max((int(columns) for _, _, columns, use in kinds if use == "A"), default=m)
    source = _TYPE.sub(lambda match: f"Matrix_{match[4]}", source)
    start = source.index("void main()")
    before, main = source[:start], source[start:]
    uses = {
        name.split(" = ")[0]: match[1] for match in _DECLARED.finditer(main) for name in match[2].split(", ")
    }
    emulation = _Emulation(m, n, k, lanes, uses, _kept(main, uses), is_bfloat16)
    return before + emulation.declarations() + emulation.main(main)


def _kept(main: str, uses: dict[str, str]) -> frozenset[str]:
    """The operands that are multiplied behind a barrier behind their load, or made of sums."""
    kept = {match[2] for match in _NARROWED.finditer(main)}
    for load in _LOAD.finditer(main):
        last = max((each.start() for each in _MULTIPLY.finditer(main) if load[1] in each.groups()[1:3]), default=0)
        if uses[load[1]] != "Accumulator" and "arrier();" in main[load.end() : last]:
            kept.add(load[1])
    return frozenset(kept)


@dataclass(frozen=True)
class _Emulation:
    """Matrices of m x n sums, of products of k terms; `kept` are the operands that lanes have all of."""

    m: int
    n: int
    k: int
    lanes: int
    uses: dict[str, str]
    kept: frozenset[str]
    is_bfloat16: bool

    def declarations(self) -> str:
        number = "uintBitsToFloat(bits << 16)" if self.is_bfloat16 else "unpackHalf2x16(bits).x"
        rounded = "unpackHalf2x16(packHalf2x16(vec2(x))).x"
        if self.is_bfloat16:
            rounded = "uintBitsToFloat((floatBitsToUint(x) + 0x7fffu + (floatBitsToUint(x) >> 16 & 1u)) & 0xffff0000u)"
        assert self.m * self.n % self.lanes == 0 and (self.n % self.lanes == 0 or self.lanes % self.n == 0)
        kept = {self.uses[name] for name in self.kept}
        operands = "".join(
            f"struct Matrix_{use} {{ int at, down, over; {f'float e[{count}];' if use in kept else ''} }};\n"
            for use, count in (("A", self.m * self.k), ("B", self.k * self.n))
        )
        return f"""
#define ONE int(gl_NumWorkGroups.z)  // unknown to drivers, which would unroll the loops
{operands}struct Matrix_Accumulator {{ float e[{self._own}]; }};
float narrow(int at, int place) {{
    uint bits = staged[at + place / 8][place % 8 / 2] >> (16 * (place % 2)) & 0xffffu;
    return {number};
}}
float rounded(float x) {{ return {rounded}; }}
Matrix_Accumulator filled_Accumulator(float number) {{
    Matrix_Accumulator found;
    for (int i = 0; i < ONE * {self._own}; ++i) found.e[i] = number;
    return found;
}}
"""

    def main(self, main: str) -> str:
        sums = {name for name, use in self.uses.items() if use == "Accumulator"}
        main = _FILLED.sub(r"filled_Accumulator(\1)", main)
        main = _SCALED.sub(lambda match: self._scaled(*match.groups()) if {*match.groups()} <= sums else match[0], main)
        main = _ELEMENT.sub(lambda match: f"{match[1]}.e[e]" if match[1] in sums else match[0], main)
        main = main.replace(".length()", ".e.length()")
        for pattern, text in (
            (_NARROWED, self._narrowed),
            (_REDUCED, self._reduced),
            (_LOAD, self._load),
            (_STORE, self._store),
            (_MULTIPLY, self._multiply),
        ):
            main = pattern.sub(lambda match, text=text: text(*match.groups()), main)  # type: ignore[misc]
        return main

    @property
    def _own(self) -> int:
        """Elements of a lane."""
        return self.m * self.n // self.lanes

    @property
    def _each_own(self) -> str:
        """The head of a loop over a lane's elements `own`."""
        return f"for (int own = 0; own < ONE * {self._own}; ++own)"

    @property
    def _number(self) -> str:
        """A lane's element in the matrix."""
        return f"int number = own * {self.lanes} + int(gl_SubgroupInvocationID);"

    def _of_lanes(self, matrix: str, number: str) -> str:
        """Any lane's element of a matrix of sums."""
        return f"subgroupShuffle({matrix}.e[({number}) / {self.lanes}], uint(({number}) % {self.lanes}))"

    def _scaled(self, matrix: str, by: str) -> str:
        return f"{self._each_own} {matrix}.e[own] *= {by}.e[own];"

    def _narrowed(self, use: str, found: str, wide: str) -> str:
        number = self._of_lanes(wide, "number")
        each = f"for (int number = 0; number < ONE * {self.m * self.k if use == 'A' else self.k * self.n}; ++number)"
        return f"Matrix_{use} {found}; {each} {found}.e[number] = rounded({number});"

    def _reduced(self, found: str, matrix: str, join: str) -> str:
        first = f"number / {self.n} * {self.n}"
        each = self._of_lanes(matrix, f"{first} + column")
        return (
            f"{self._each_own} {{ {self._number} float joined = {self._of_lanes(matrix, first)};"
            f" for (int column = 1; column < ONE * {self.n}; ++column) joined = {join}(joined, {each});"
            f" {found}.e[own] = joined; }}"
        )

    def _load(self, matrix: str, at: str, stride: str, order: str) -> str:
        use = self.uses[matrix]
        per, columns = (4, self.n) if use == "Accumulator" else (8, self.k if use == "A" else self.n)
        down, over = (f"({stride}) * {per}", "1") if order == "Row" else ("1", f"({stride}) * {per}")
        if use != "Accumulator" and matrix not in self.kept:
            return f"{matrix}.at = {at}; {matrix}.down = {down}; {matrix}.over = {over};"
        head = f"int begin = {at}, down_by = {down}, over_by = {over};"
        place = f"int place = number / {columns} * down_by + number % {columns} * over_by;"
        if use == "Accumulator":
            value = "uintBitsToFloat(staged[begin + place / 4][place % 4])"
            return f"{{ {head} {self._each_own} {{ {self._number} {place} {matrix}.e[own] = {value}; }} }}"
        each = f"for (int number = 0; number < ONE * {self.m * self.k if use == 'A' else self.k * self.n}; ++number)"
        return f"{{ {head} {each} {{ {place} {matrix}.e[number] = narrow(begin, place); }} }}"

    def _store(self, matrix: str, at: str, stride: str) -> str:
        place = f"begin + number / {self.n} * ({stride}) + number % {self.n} / 4"
        return (
            f"{{ int begin = {at}; {self._each_own} {{ {self._number}"
            f" staged[{place}][number % 4] = floatBitsToUint({matrix}.e[own]); }} }}"
        )

    def _multiply(self, found: str, left: str, right: str, sums: str) -> str:
        steps = [f"step + {step}" for step in range(_TOGETHER)]
        terms = [f"{self._factor(left, 'down', step)} * {self._factor(right, step, 'over')}" for step in steps]
        return (
            f"{self._each_own} {{ {self._number} int down = number / {self.n}, over = number % {self.n};"
            f" float sum = {sums}.e[own];"
            f" for (int step = 0; step < ONE * {self.k}; step += {_TOGETHER}) sum = sum + {' + '.join(terms)};"
            f" {found}.e[own] = sum; }}"
        )

    def _factor(self, matrix: str, row: str, column: str) -> str:
        if matrix in self.kept:
            return f"{matrix}.e[({row}) * {self.k if self.uses[matrix] == 'A' else self.n} + {column}]"
        return f"narrow({matrix}.at, ({row}) * {matrix}.down + ({column}) * {matrix}.over)"
