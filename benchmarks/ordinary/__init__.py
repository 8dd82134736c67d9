"""Ordinary programs of arrays, beside JAX on the same processor, single functions, beside PyTorch on a GPU, and random
transforms, beside SciPy."""
