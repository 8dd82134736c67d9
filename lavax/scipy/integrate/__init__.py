"""Integrals of samples."""
from lavax.numpy import trapezoid

__all__ = ["trapezoid"]
