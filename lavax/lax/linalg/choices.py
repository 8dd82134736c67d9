"""Names of algorithms, which functions take and which change nothing: there is one of each."""
from __future__ import annotations

import enum


class SvdAlgorithm(enum.Enum):
    """Ways to singular values."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"


class EighImplementation(enum.Enum):
    """Ways to eigenvalues of symmetric matrices."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class EigImplementation(enum.Enum):
    """Ways to eigenvalues of other matrices."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"
