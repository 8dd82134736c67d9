"""Matrices whose columns the lanes of a subgroup keep in arrays of their own, as GLSL text.

Memory that lanes share is accessed lane by lane, with a loop for each access; an array of each lane takes a third of
that time. Column j · LOCAL + lane is `own[j * EXTENT]` and what follows. Columns and rows are padded with zeros, so
that walks take as many rows at once as there are lanes. What all lanes need of a row is loaded for as many rows as
there are lanes, and passed on by shuffles.
"""

from __future__ import annotations

from lavax.backends.vulkan.emit.linalg.matrices import MatrixRoutine
from lavax.passes.kernels.index import Index

_AT_ONCE = 2  # columns of a lane that a walk takes at once
_TAKE = """
{
    real taken = subgroupShuffle(own[COLUMN / LOCAL * EXTENT + start + #], uint(COLUMN % LOCAL));
    element = lane == # ? taken : element;
}
"""
_WALK = """
for (int first = BEGIN / LOCAL; first * LOCAL < rows; first += AT_ONCE) {
    OPEN_COLUMNS
    for (int start = START; start < rows; start += LOCAL) {
        bool is_row = start + lane < rows;
        int one = min(start + lane, rows - 1);
        real row_a = is_row ? ROWS_A[one] : 0.0, row_b = is_row ? ROWS_B[one] : 0.0;
        real row_next = is_row ? NEXT[one] : 0.0;
        UNROLL for (int n = 0; n < LOCAL; ++n) {
            real a = subgroupShuffle(row_a, uint(n)), b = subgroupShuffle(row_b, uint(n));
            real next = subgroupShuffle(row_next, uint(n));
            EACH_COLUMN
        }
    }
    CLOSE_COLUMNS
}
meet();
"""
_OPEN_COLUMN = """
int c# = (first + #) * LOCAL + lane, at# = (first + #) * EXTENT;
bool is# = c# >= BEGIN && c# < rows;
real a# = is# ? COLUMNS_A[min(c#, rows - 1)] : 0.0, b# = is# ? COLUMNS_B[min(c#, rows - 1)] : 0.0, sum# = 0.0;
"""
_EACH_COLUMN = """
{
    real element = own[at# + start + n] - (a * a# + b * b#);
    own[at# + start + n] = element;
    sum# += element * next;
}
"""
_CLOSE_COLUMN = "if (is#) SUMS[c#] = sum#;"


def each(text: str, count: int) -> str:
    """The text for each of so many columns, rows or lanes, whose number replaces #."""
    return "\n".join(text.strip().replace("#", str(number)) for number in range(count))


def extent_of(rows: int, lanes: int) -> int:
    """How many elements of an array a column has."""
    return rows + lanes


def load_columns(routine: MatrixRoutine, *, symmetric: bool = False) -> None:
    """Declares and fills `own`; of symmetric matrices the lower triangle is read."""
    body, lanes = routine.body, routine.routine.local
    extent, columns = extent_of(routine.rows, lanes), -(-routine.columns // lanes)
    size = (columns + _AT_ONCE - 1) * extent
    body.line(f"real own[{size}];")
    body.line(f"for (int e = 0; e < {size}; ++e) own[e] = 0.0;")
    with body.block(f"for (int e = 0; e < rows * {columns}; ++e)"):
        body.line("int column = e / rows * LOCAL + lane;")
        row = routine.routine.position("r", "e % rows", routine.rows)
        if symmetric:
            column: Index = routine.routine.position("c", "min(min(r, column), rows - 1)", routine.rows)
            row = routine.routine.position("below", "min(max(r, column), rows - 1)", routine.rows)
        else:
            column = routine.routine.position("c", "min(column, columns - 1)", routine.columns)
        body.line(f"real element = {routine.at(row, column)};")
        body.line(f"own[e / rows * {extent} + r] = column < columns ? element : 0.0;")


def take(column: str, lanes: int) -> str:
    """Makes `element` the one in row `start` + lane of a column, which one lane has."""
    return each(_TAKE, lanes).replace("COLUMN", column)


def subtract(
    rows: tuple[str, str], columns: tuple[str, str], *, multiplied: str, sums: str, start: str, begin: str, unroll: str
) -> str:
    """Subtracts the products of two columns `rows` with two rows `columns`, shared arrays, from all rows from `start`
    on of all columns from `begin` on, and multiplies these by the column `multiplied`, for `sums`."""
    parts = {"OPEN_COLUMNS": _OPEN_COLUMN, "EACH_COLUMN": _EACH_COLUMN, "CLOSE_COLUMNS": _CLOSE_COLUMN}
    text = _WALK.strip()
    for place, part in parts.items():
        text = text.replace(place, each(part, _AT_ONCE))
    names = {"ROWS_A": rows[0], "ROWS_B": rows[1], "COLUMNS_A": columns[0], "COLUMNS_B": columns[1]}
    names |= {"NEXT": multiplied, "SUMS": sums, "START": start, "BEGIN": begin}
    names |= {"AT_ONCE": str(_AT_ONCE), "UNROLL ": unroll}
    for name, value in names.items():
        text = text.replace(name, value)
    return text


def folded(lanes: int) -> str:
    """Lane n gets the sum of all lanes' `sum`n as `sum0`, by halves: each keeps half of its sums, and adds to them
    those of another."""
    lines, width = [], lanes // 2
    while width:
        for n in range(width):
            is_upper, low, high = f"(lane & {width}) != 0", f"sum{n}", f"sum{n + width}"
            away = f"subgroupShuffleXor({is_upper} ? {low} : {high}, {width}u)"
            lines.append(f"{low} = ({is_upper} ? {high} : {low}) + {away};")
        width //= 2
    return "\n".join(lines)
