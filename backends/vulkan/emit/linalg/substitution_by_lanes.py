"""Substitution by a subgroup: each lane has a row of a triangle, and what is left of its right sides."""

from __future__ import annotations


def substitution(rows: int, unit_diagonal: bool) -> list[str]:
    """The statements that find the unknowns of so many rows: `reals found`, a lane's own, of `reals sum` and `lane`.

    `t0`, `t1`, … are the lane's elements of the triangle before the diagonal, and `inverse` is that of the diagonal's.
    Others may be anything: what later unknowns, which may be infinite, make of a lane's sum comes too late.
    """
    unknown = "sum" if unit_diagonal else "sum * inverse"
    lines = ["reals found = sum, known_to_all;"]
    for k in range(rows):
        lines.append(f"known_to_all = subgroupShuffle({unknown}, {k}u);")
        lines.append(f"found = lane == {k} ? known_to_all : found;")
        if k + 1 < rows:
            lines.append(f"sum -= t{k} * known_to_all;")
    return lines


def reals_of(real: str, sides: int) -> str:
    """The type of so many numbers, one for each right side: 1, 2 or 4."""
    return real if sides == 1 else {"float": f"vec{sides}", "double": f"dvec{sides}"}[real]


def side_of(text: str, sides: int, side: str) -> str:
    """One side's number."""
    return f"{text}[{side}]" if sides > 1 else text
