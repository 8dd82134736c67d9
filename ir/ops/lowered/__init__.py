"""Operations that only lowering makes: steps of others, made after tracing, differentiation and batching.

They have no gradients and are never batched. Importing this package fills the table `OPERATIONS`.
"""
from lavax.ir.ops.lowered import (
    attention,
    convolved_lines,
    cumulative,
    depthwise,
    fourier,
    linear_algebra,
    lines_across,
    odd_lines,
    paired_lines,
    scatter,
    sorting,
    wavefront,
    whole_spectra,
)

__all__ = [
    "attention", "convolved_lines", "cumulative", "depthwise", "fourier", "linear_algebra", "lines_across",
    "odd_lines", "paired_lines", "scatter", "sorting", "wavefront", "whole_spectra",
]  # fmt: skip
