"""Trees of arrays as vectors: arithmetic, norms, running means, and values in states by their names."""
from lavax.optim.tree.arithmetic import add, add_scale, clip, div, mul, scale, size, sub, vdot, where
from lavax.optim.tree.moments import bias_correction, update_moment
from lavax.optim.tree.norms import norm
from lavax.optim.tree.precision import cast, cast_like, full_like, ones_like, zeros_like
from lavax.optim.tree.reductions import max, min, sum
from lavax.optim.tree.states import get, get_all, set

__all__ = [
    "add",
    "add_scale",
    "bias_correction",
    "cast",
    "cast_like",
    "clip",
    "div",
    "full_like",
    "get",
    "get_all",
    "max",
    "min",
    "mul",
    "norm",
    "ones_like",
    "scale",
    "set",
    "size",
    "sub",
    "sum",
    "update_moment",
    "vdot",
    "where",
    "zeros_like",
]
