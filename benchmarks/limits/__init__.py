"""Hand-written kernels for CPU drivers, as a reference for lavax's kernels, and what limits convolutions."""
