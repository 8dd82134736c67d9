"""The special values of complex functions, by the array API standard 2024.12 (those of C99, annex G.6).

A line is a case: sets of real and of imaginary parts, then the parts of the result. `0` as a set has both zeros, ±
before a result leaves its sign open, and 0*cos is 0·cos b for the imaginary part b. The functions without a table are
others turned by i. Where the standard's text differs from C99, the table has C99's value: sqrt at infinite and NaN real
parts, where the text contradicts itself, and tanh, whose imaginary part is 0·sin 2b at an infinite real part.
"""
from __future__ import annotations

TABLES = {
    "acos": """
        0, +0: π/2 -0
        0, nan: π/2 nan
        finite, inf: π/2 -inf
        nonzero, nan: nan nan
        -inf, positive: π -inf
        inf, positive: +0 -inf
        -inf, inf: 3π/4 -inf
        inf, inf: π/4 -inf
        ±inf, nan: nan ±inf
        nan, finite: nan nan
        nan, inf: nan -inf
        nan, nan: nan nan
    """,
    "acosh": """
        0, +0: +0 π/2
        finite, inf: inf π/2
        nonzero, nan: nan nan
        +0, nan: nan ±π/2
        -inf, positive: inf π
        inf, positive: inf +0
        -inf, inf: inf 3π/4
        inf, inf: inf π/4
        ±inf, nan: inf nan
        nan, finite: nan nan
        nan, inf: inf nan
        nan, nan: nan nan
    """,
    "asinh": """
        +0, +0: +0 +0
        positive, inf: inf π/2
        finite, nan: nan nan
        inf, positive: inf +0
        inf, inf: inf π/4
        nan, +0: nan +0
        nan, nonzero: nan nan
        nan, inf: ±inf nan
        nan, nan: nan nan
    """,
    "atanh": """
        +0, +0: +0 +0
        +0, nan: +0 nan
        1, +0: inf +0
        positive, inf: +0 π/2
        nonzero, nan: nan nan
        inf, positive: +0 π/2
        inf, inf: +0 π/2
        inf, nan: +0 nan
        nan, finite: nan nan
        nan, inf: ±0 π/2
        nan, nan: nan nan
    """,
    "cosh": """
        +0, +0: 1 +0
        +0, inf: nan ±0
        +0, nan: nan ±0
        nonzero, inf: nan nan
        nonzero, nan: nan nan
        inf, +0: inf +0
        inf, nonzero: inf*cos inf*sin
        inf, inf: ±inf nan
        inf, nan: inf nan
        nan, 0: nan ±0
        nan, nonzero: nan nan
        nan, nan: nan nan
    """,
    "exp": """
        0, +0: 1 +0
        finite, inf: nan nan
        finite, nan: nan nan
        inf, +0: inf +0
        -inf, finite: 0*cos 0*sin
        inf, nonzero: inf*cos inf*sin
        -inf, inf: ±0 ±0
        inf, inf: ±inf nan
        -inf, nan: ±0 ±0
        inf, nan: ±inf nan
        nan, +0: nan +0
        nan, nonzero: nan nan
        nan, nan: nan nan
    """,
    "expm1": """
        0, +0: ±0 +0
        finite, inf: nan nan
        finite, nan: nan nan
        inf, +0: inf +0
        -inf, finite: -1 0*sin
        inf, nonzero: inf*cos inf*sin
        -inf, inf: -1 ±0
        inf, inf: ±inf nan
        -inf, nan: -1 ±0
        inf, nan: ±inf nan
        nan, +0: nan +0
        nan, nonzero: nan nan
        nan, nan: nan nan
    """,
    "log": """
        -0, +0: -inf π
        +0, +0: -inf +0
        finite, inf: inf π/2
        finite, nan: nan nan
        -inf, positive: inf π
        inf, positive: inf +0
        -inf, inf: inf 3π/4
        inf, inf: inf π/4
        ±inf, nan: inf nan
        nan, finite: nan nan
        nan, inf: inf nan
        nan, nan: nan nan
    """,
    "log1p": """
        -1, +0: -inf +0
        finite, inf: inf π/2
        finite, nan: nan nan
        -inf, positive: inf π
        inf, positive: inf +0
        -inf, inf: inf 3π/4
        inf, inf: inf π/4
        ±inf, nan: inf nan
        nan, finite: nan nan
        nan, inf: inf nan
        nan, nan: nan nan
    """,
    "sinh": """
        +0, +0: +0 +0
        +0, inf: ±0 nan
        +0, nan: ±0 nan
        positive, inf: nan nan
        positive, nan: nan nan
        inf, +0: inf +0
        inf, positive: inf*cos inf*sin
        inf, inf: ±inf nan
        inf, nan: ±inf nan
        nan, +0: nan +0
        nan, nonzero: nan nan
        nan, nan: nan nan
    """,
    "sqrt": """
        0, +0: +0 +0
        any, inf: inf inf
        finite, nan: nan nan
        -inf, positive: +0 inf
        inf, positive: inf +0
        -inf, nan: nan ±inf
        inf, nan: inf nan
        nan, finite: nan nan
        nan, nan: nan nan
    """,
    "tanh": """
        +0, +0: +0 +0
        nonzero, inf: nan nan
        +0, inf: +0 nan
        nonzero, nan: nan nan
        +0, nan: +0 nan
        inf, positive: 1 0*sin2
        inf, inf: 1 ±0
        inf, nan: 1 ±0
        nan, +0: nan +0
        nan, nonzero: nan nan
        nan, nan: nan nan
    """,
}
