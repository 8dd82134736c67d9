"""Shaders with cooperative matrices in plain GLSL, so that any device runs them: each lane has all of every matrix.

An operand's elements are kept as float32, rounded to 16 bits by whoever staged them. A lane that stores a matrix writes
what all others write.
"""
from __future__ import annotations

import re

from lavax.backends.vulkan.compile.brain_floats import BRAIN_FLOATS
from lavax.backends.vulkan.glsl.extensions import EXTENSIONS

_TYPE = re.compile(r"coopmat<(float|float16_t), gl_ScopeSubgroup, (\d+), (\d+), gl_MatrixUse(A|B|Accumulator)>")
_FILLED = re.compile(r"Matrix_Accumulator\((\(?[-+.e\d]+\)?)\)")
_DECLARED = re.compile(r"Matrix_Accumulator ([^;]+);")
_SCALED = re.compile(r"(\w+) = \1 \* (\w+);")
_ELEMENT = re.compile(r"(\w+)\[e\]")
_REDUCED = re.compile(r"coopMatReduceNV\((\w+), (\w+), gl_CooperativeMatrixReduceRowNV, (\w+)\);")
_LOAD = re.compile(r"coopMatLoad\((\w+), staged, (.*), ([^,]+), gl_CooperativeMatrixLayout(Row|Column)Major\);")
_STORE = re.compile(r"coopMatStore\((\w+), staged, (.*), ([^,]+), gl_CooperativeMatrixLayoutRowMajor\);")
_MULTIPLY = re.compile(r"coopMatMulAdd\((\w+), (\w+), (\w+)\)")
_BASIC = "#extension GL_KHR_shader_subgroup_basic : require\n"


def emulated(source: str) -> str:
    """The shader without cooperative matrices; itself if it has none."""
    if "coopmat<" not in source:
        return source
    is_bfloat16 = BRAIN_FLOATS in source
    source = source.replace(BRAIN_FLOATS, "").replace(EXTENSIONS["cooperative_matrix"], _BASIC)
    source = source.replace(EXTENSIONS["cooperative_matrix_2"], "")
    kinds = {match.groups() for match in _TYPE.finditer(source)}
    (m, n), = {(int(rows), int(columns)) for _, rows, columns, use in kinds if use == "Accumulator"}
    depths = {int(columns) for _, _, columns, use in kinds if use == "A"}
    source = _TYPE.sub(lambda match: f"Matrix_{match[4]}", source)
    source = _FILLED.sub(r"filled_Accumulator(\1)", source)
    source = _LOAD.sub(lambda match: f"load({match[1]}, {match[2]}, {match[3]}, {int(match[4] == 'Row')});", source)
    source = _STORE.sub(lambda match: f"store({match[1]}, {match[2]}, {match[3]});", source)
    source = _MULTIPLY.sub(lambda match: f"multiplied({match[1]}, {match[2]}, {match[3]})", source)
    start = source.index("void main()")
    before, main = source[:start], source[start:]
    sums = {each.split(" = ")[0] for match in _DECLARED.finditer(main) for each in match[1].split(", ")}
    main = _SCALED.sub(lambda m: f"{m[1]} = times({m[1]}, {m[2]});" if {*m.groups()} <= sums else m[0], main)
    main = _ELEMENT.sub(lambda m: f"{m[1]}.e[e]" if m[1] in sums else m[0], main).replace(".length()", ".e.length()")
    main = re.sub(r"= Matrix_A\((\w+)\);", r"= narrowed(\1);", main)
    joins = "".join(sorted({_reduction(match[3], m, n) for match in _REDUCED.finditer(main)}))
    main = _REDUCED.sub(r"\1 = reduced_by_\3(\2);", main)
    return before + _functions(m, n, max(depths, default=m), is_bfloat16) + joins + main


def _reduction(function: str, m: int, n: int) -> str:
    return f"""
Matrix_Accumulator reduced_by_{function}(Matrix_Accumulator matrix) {{
    for (int row = 0; row < ONE * {m}; ++row) {{
        float joined = matrix.e[row * {n}];
        for (int column = 1; column < ONE * {n}; ++column) joined = {function}(joined, matrix.e[row * {n} + column]);
        for (int column = 0; column < ONE * {n}; ++column) matrix.e[row * {n} + column] = joined;
    }}
    return matrix;
}}
"""


def _functions(m: int, n: int, k: int, is_bfloat16: bool) -> str:
    number = "uintBitsToFloat(bits << 16)" if is_bfloat16 else "unpackHalf2x16(bits).x"
    rounded = "unpackHalf2x16(packHalf2x16(vec2(x))).x"
    if is_bfloat16:
        rounded = "uintBitsToFloat((floatBitsToUint(x) + 0x7fffu + (floatBitsToUint(x) >> 16 & 1u)) & 0xffff0000u)"
    loads = "".join(
        f"""
void load(out Matrix_{use} matrix, int at, int stride, int by_rows) {{
    for (int i = 0; i < ONE * {rows * columns}; ++i) {{
        int row = i / {columns}, column = i % {columns};
        int place = by_rows == 1 ? row * stride * {per} + column : column * stride * {per} + row;
        matrix.e[i] = {read}(at, place);
    }}
}}"""
        for use, rows, columns, per, read in (
            ("A", m, k, 8, "narrow"), ("B", k, n, 8, "narrow"), ("Accumulator", m, n, 4, "wide")
        )
    )
    return f"""
#define ONE int(gl_NumWorkGroups.z)  // unknown to drivers, which would unroll the loops
struct Matrix_A {{ float e[{m * k}]; }};
struct Matrix_B {{ float e[{k * n}]; }};
struct Matrix_Accumulator {{ float e[{m * n}]; }};
float narrow(int at, int place) {{
    uint bits = staged[at + place / 8][place % 8 / 2] >> (16 * (place % 2)) & 0xffffu;
    return {number};
}}
float wide(int at, int place) {{ return uintBitsToFloat(staged[at + place / 4][place % 4]); }}
{loads}
void store(Matrix_Accumulator matrix, int at, int stride) {{
    for (int i = 0; i < ONE * {m * n}; ++i)
        staged[at + i / {n} * stride + i % {n} / 4][i % 4] = floatBitsToUint(matrix.e[i]);
}}
Matrix_Accumulator filled_Accumulator(float number) {{
    Matrix_Accumulator found;
    for (int i = 0; i < ONE * {m * n}; ++i) found.e[i] = number;
    return found;
}}
Matrix_A narrowed(Matrix_Accumulator wide) {{
    Matrix_A found;
    for (int i = 0; i < ONE * {m * k}; ++i) {{ float x = wide.e[i]; found.e[i] = {rounded}; }}
    return found;
}}
Matrix_Accumulator times(Matrix_Accumulator left, Matrix_Accumulator right) {{
    for (int i = 0; i < ONE * {m * n}; ++i) left.e[i] *= right.e[i];
    return left;
}}
Matrix_Accumulator multiplied(Matrix_A left, Matrix_B right, Matrix_Accumulator sums) {{
    for (int i = 0; i < ONE * {m * n}; ++i)
        for (int k = 0; k < ONE * {k}; ++k)
            sums.e[i] += left.e[i / {n} * {k} + k] * right.e[k * {n} + i % {n}];
    return sums;
}}
"""
