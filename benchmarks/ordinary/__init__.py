"""Ordinary programs of arrays, beside JAX on the same processor."""
