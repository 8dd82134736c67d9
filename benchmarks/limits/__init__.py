"""Kernels written by hand for CPU drivers, to show how near lavax comes to the best that is known."""
