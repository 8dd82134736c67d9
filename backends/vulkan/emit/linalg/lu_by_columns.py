"""Gaussian elimination by a subgroup whose lanes keep the matrix's columns (Golub and Van Loan, 3.4.1 and 3.2.9).

Four columns, a panel, are eliminated before the others hear of it. Of these columns lanes have rows: lane l has those
of the numbers g · LOCAL + l. Each element has the same numbers subtracted in the same order as without panels.
"""

from __future__ import annotations

from lavax.backends.vulkan.emit.linalg.matrices import MatrixRoutine
from lavax.backends.vulkan.emit.linalg.owned_columns import each, extent_of, load_columns
from lavax.backends.vulkan.glsl.launch import Launch

_MOST_ELEMENTS = 2304  # of a lane; within MAX_LOOP_ITERATIONS
_PANEL = 4  # columns; a subgroup has a multiple of as many lanes

# `panel` has one row per lane, element c * GROUPS + g. The first of equal pivots is taken; a column of zeros stays as
# it is.
_ELIMINATE = """
real panel[4 * GROUPS];
for (int r = lane; r < rows; r += LOCAL) x.data[permutation + r] = real(r);
real sign = 1.0;
for (int first = 0; first < columns; first += 4) {
    int begin = first / LOCAL, owner = first % LOCAL, held = first / LOCAL * EXTENT;
    for (int g = begin; g < GROUPS; ++g) {
        real OPENED;
        for (int n = 0; n < LOCAL; ++n) {
            real taken = own[held + g * LOCAL + n];
            TAKE
        }
        KEPT
    }
    for (int k = first; k < min(first + 4, columns); ++k) {
        int column = (k - first) * GROUPS;
        real highest = -1.0;
        int place = rows;
        for (int g = begin; g < GROUPS; ++g) {
            int r = g * LOCAL + lane;
            real magnitude = abs(panel[column + g]);
            if (r >= k && r < rows && magnitude > highest) { highest = magnitude; place = r; }
        }
        real best = largest(highest);
        int pivot = int(-largest(highest == best && place < rows ? -float(place) : -float(rows)));
        pivot = pivot < rows ? pivot : k;
        if (pivot != k) {
            EXCHANGE
            sign = -sign;
        }
        real divisor = subgroupShuffle(panel[column + begin], uint(k % LOCAL));
        for (int g = begin; g < GROUPS; ++g) {
            bool is_changed = g * LOCAL + lane > k && divisor != 0.0;
            panel[column + g] = is_changed ? panel[column + g] / divisor : panel[column + g];
        }
        for (int behind = column + GROUPS; behind < 4 * GROUPS; behind += GROUPS) {
            real next = subgroupShuffle(panel[behind + begin], uint(k % LOCAL));
            for (int g = begin; g < GROUPS; ++g) {
                real rest = panel[behind + g] - panel[column + g] * next;
                panel[behind + g] = g * LOCAL + lane > k ? rest : panel[behind + g];
            }
        }
    }
    for (int g = begin; g < GROUPS; ++g) {
        real LOADED;
        for (int n = 0; n < LOCAL; ++n) {
            real put = own[held + g * LOCAL + n];
            PUT
            own[held + g * LOCAL + n] = put;
        }
    }
    real CORNER;
    for (int j = begin; j * LOCAL < columns; ++j) {
        int at = j * EXTENT;
        bool is_behind = j * LOCAL + lane >= first + 4;
        real row0 = own[at + first], row1 = own[at + first + 1] - factor10 * row0;
        real row2 = own[at + first + 2] - factor20 * row0 - factor21 * row1;
        real row3 = own[at + first + 3] - factor30 * row0 - factor31 * row1 - factor32 * row2;
        own[at + first + 1] = is_behind ? row1 : own[at + first + 1];
        own[at + first + 2] = is_behind ? row2 : own[at + first + 2];
        own[at + first + 3] = is_behind ? row3 : own[at + first + 3];
        for (int g = begin; g < GROUPS; ++g) {
            real LOADED;
            for (int n = g == begin ? first + 4 - begin * LOCAL : 0; n < LOCAL; ++n) {
                real before = own[at + g * LOCAL + n], rest = before;
                SUBTRACT
                own[at + g * LOCAL + n] = is_behind ? rest : before;
            }
        }
    }
}
for (int e = 0; e < OWNED * rows; ++e) {
    int r = e % rows, c = e / rows * LOCAL + lane;
    if (c < columns) x.data[r * columns + c] = own[e / rows * EXTENT + r];
}
if (lane == 0) x.data[parity] = sign;
"""
_EXCHANGE = """
for (int j = 0; j * LOCAL < columns; ++j) {
    real upper = own[j * EXTENT + k];
    own[j * EXTENT + k] = own[j * EXTENT + pivot];
    own[j * EXTENT + pivot] = upper;
}
for (int each = 0; each < 4 * GROUPS; each += GROUPS) {
    real upper = subgroupShuffle(panel[each + begin], uint(k % LOCAL));
    real lower = subgroupShuffle(panel[each + pivot / LOCAL], uint(pivot % LOCAL));
    panel[each + begin] = lane == k % LOCAL ? lower : panel[each + begin];
    panel[each + pivot / LOCAL] = lane == pivot % LOCAL ? upper : panel[each + pivot / LOCAL];
}
if (lane == 0) {
    real moved = x.data[permutation + k];
    x.data[permutation + k] = x.data[permutation + pivot];
    x.data[permutation + pivot] = moved;
}
"""
# For each column of the panel. All lanes take part in exchanges: one that does not has no value for the others.
_OF_COLUMN = {
    "TAKE": "real taken# = subgroupShuffle(taken, uint(owner + #));\nelement# = lane == n ? taken# : element#;",
    "KEPT": "panel[# * GROUPS + g] = element#;",
    "PUT": "real put# = subgroupShuffle(element#, uint(n));\nput = lane == owner + # ? put# : put;",
    "SUBTRACT": "rest -= subgroupShuffle(element#, uint(n)) * row#;",
}


def suits_columns(routine: MatrixRoutine) -> bool:
    """Whether lanes can keep the matrix."""
    lanes = routine.routine.local
    elements = -(-routine.columns // lanes) * extent_of(routine.rows, lanes)
    return routine.is_subgroup and lanes % _PANEL == 0 and elements <= _MOST_ELEMENTS


def eliminate_by_columns(routine: MatrixRoutine) -> Launch:
    """The shader of lu."""
    lanes = routine.routine.local
    groups, owned = -(-routine.rows // lanes), -(-routine.columns // lanes)
    load_columns(routine)
    corner = [
        f"factor{row}{column} = subgroupShuffle(panel[{column} * GROUPS + begin], uint(owner + {row}))"
        for row in range(_PANEL)
        for column in range(row)
    ]
    parts = {
        **{place: each(text, _PANEL) for place, text in _OF_COLUMN.items()},
        "OPENED": ", ".join(f"element{column} = 0.0" for column in range(_PANEL)),
        "LOADED": ", ".join(f"element{column} = panel[{column} * GROUPS + g]" for column in range(_PANEL)),
        "CORNER": ", ".join(corner),
        "EXCHANGE": _EXCHANGE.strip(),
        "GROUPS": str(groups),
        "OWNED": str(owned),
        "EXTENT": str(extent_of(routine.rows, lanes)),
    }
    text = _ELIMINATE
    for name, part in parts.items():
        text = text.replace(name, part)
    routine.write(text)
    return routine.close()
