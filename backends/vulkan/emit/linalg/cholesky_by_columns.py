"""Cholesky's factor by a subgroup whose lanes keep the matrix's columns (Golub and Van Loan, 4.2.6).

As many columns as there are lanes, a panel, become columns of the factor before the others hear of it. Of these columns
lanes have rows, of the numbers g · LOCAL + l for lane l, which are the numbers of the columns that the lane keeps: so a
lane has by itself what its columns are multiplied by. What stands above the diagonal is never read by another lane.
"""

from __future__ import annotations

from math import nan

from lavax.backends.vulkan.emit.linalg.matrices import MatrixRoutine
from lavax.backends.vulkan.emit.linalg.owned_columns import each, extent_of
from lavax.backends.vulkan.glsl.launch import Launch

_MOST_ELEMENTS = 2304  # of a lane; within MAX_LOOP_ITERATIONS

# `panel` has one row per lane, element c * GROUPS + g. Columns beyond the matrix are zeros, and come last.
_FACTOR = """
bool positive = true;
real panel[LOCAL * GROUPS];
for (int begin = 0; begin < GROUPS; ++begin) {
    int first = begin * LOCAL, held = begin * EXTENT;
    for (int g = begin; g < GROUPS; ++g) {
        real OPENED;
        for (int n = 0; n < LOCAL; ++n) {
            real taken = own[held + g * LOCAL + n];
            TAKE
        }
        KEPT
    }
    real ROOTS;
    {
        real LOADED_FIRST;
        DIAGONAL
        KEPT_FIRST
    }
    real CORNER;
    for (int g = begin + 1; g < GROUPS; ++g) {
        real LOADED;
        SOLVED
        KEPT
    }
    for (int j = begin + 1; j < GROUPS; ++j) {
        real ROWS;
        int at = j * EXTENT;
        for (int g = j; g < GROUPS; ++g) {
            real LOADED;
            UNROLL for (int n = 0; n < LOCAL; ++n) {
                real rest = own[at + g * LOCAL + n];
                SUBTRACT
                own[at + g * LOCAL + n] = rest;
            }
        }
    }
    for (int e = 0; e < GROUPS * LOCAL; ++e) {
        int g = e / LOCAL, r = g * LOCAL + lane, c = e % LOCAL;
        real element = r >= first + c ? panel[c * GROUPS + max(g, begin)] : 0.0;
        if (r < rows && first + c < rows) x.data[r * rows + first + c] = element;
    }
}
if (!positive) for (int e = lane; e < rows * rows; e += LOCAL) x.data[e] = e % rows <= e / rows ? FAILED : 0.0;
"""


# For each column of the panel.
_OF_COLUMN = {
    "TAKE": "real taken# = subgroupShuffle(taken, #u);\nelement# = lane == n ? taken# : element#;",
    "KEPT_FIRST": "panel[# * GROUPS + begin] = element#;",
    "KEPT": "panel[# * GROUPS + g] = element#;",
    "SUBTRACT": "rest -= subgroupShuffle(element#, uint(n)) * row#;",
}
_DECLARED = {
    "OPENED": "element# = 0.0",
    "ROOTS": "root#",
    "LOADED_FIRST": "element# = panel[# * GROUPS + begin]",
    "LOADED": "element# = panel[# * GROUPS + g]",
    "ROWS": "row# = panel[# * GROUPS + j]",
}


def suits_columns(routine: MatrixRoutine) -> bool:
    """Whether lanes can keep the matrix."""
    lanes = routine.routine.local
    return routine.is_subgroup and -(-routine.columns // lanes) * extent_of(routine.rows, lanes) <= _MOST_ELEMENTS


def factor_by_columns(routine: MatrixRoutine) -> Launch:
    """The shader of cholesky."""
    lanes = routine.routine.local
    groups, extent = -(-routine.rows // lanes), extent_of(routine.rows, lanes)
    _load(routine, groups, extent)
    corner = [
        f"corner{row}_{column} = subgroupShuffle(panel[{column} * GROUPS + begin], {row}u)"
        for row in range(lanes)
        for column in range(row)
    ]
    parts = {
        **{place: each(text, lanes) for place, text in _OF_COLUMN.items()},
        **{place: ", ".join(_numbered(text, lanes)) for place, text in _DECLARED.items()},
        "CORNER": ", ".join(corner),
        "DIAGONAL": "\n".join(_factored(lanes)),
        "SOLVED": "\n".join(_solved(lanes)),
        "UNROLL ": routine.body.uses.unroll,
        "FAILED": routine.number(nan),
        "GROUPS": str(groups),
        "EXTENT": str(extent),
    }
    text = _FACTOR
    for name, part in parts.items():
        text = text.replace(name, part)
    routine.write(text)
    return routine.close()


def _numbered(text: str, count: int) -> list[str]:
    return [text.replace("#", str(number)) for number in range(count)]


def _load(routine: MatrixRoutine, groups: int, extent: int) -> None:
    """Declares and fills `own`, from the diagonal of the lanes' columns down."""
    body = routine.body
    body.line(f"real own[{groups * extent}];")
    body.line(f"for (int e = 0; e < {groups * extent}; ++e) own[e] = 0.0;")
    with body.block(f"for (int j = 0; j < {groups}; ++j)"), body.block("for (int e = j * LOCAL; e < rows; ++e)"):
        row = routine.routine.position("r", "e", routine.rows)
        column = routine.routine.position("c", "min(j * LOCAL + lane, rows - 1)", routine.rows)
        body.line(f"real element = {routine.at(row, column)};")
        body.line(f"own[j * {extent} + r] = j * LOCAL + lane < rows ? element : 0.0;")


def _factored(lanes: int) -> list[str]:
    """The panel's first rows, which have the diagonal."""
    lines = []
    for k in range(lanes):
        lines += [
            f"real pivot{k} = subgroupShuffle(element{k}, {k}u);",
            f"positive = positive && (pivot{k} > 0.0 || first + {k} >= rows);",
            f"root{k} = sqrt(pivot{k});",
            f"element{k} = lane == {k} ? root{k} : element{k} / root{k};",
        ]
        for behind in range(k + 1, lanes):
            lines.append(f"real lower{behind}_{k} = subgroupShuffle(element{k}, {behind}u);")
            lines.append(f"element{behind} -= element{k} * lower{behind}_{k};")
    return lines


def _solved(lanes: int) -> list[str]:
    """A row below them."""
    lines = []
    for column in range(lanes):
        lines += [f"element{column} -= element{before} * corner{column}_{before};" for before in range(column)]
        lines.append(f"element{column} /= root{column};")
    return lines
