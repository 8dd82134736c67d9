"""Ordinary programs of arrays, beside JAX on the same processor, and single functions, beside PyTorch on a GPU."""
