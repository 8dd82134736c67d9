"""Trees of arrays as vectors: arithmetic, norms, running means, and values in states by their names."""
from lavax.optim.tree.arithmetic import add, add_scale, clip, div, mul, scale, size, sub, vdot, where
from lavax.optim.tree.keys import random_like, split_key_like
from lavax.optim.tree.moments import bias_correction, update_moment
from lavax.optim.tree.norms import norm
from lavax.optim.tree.precision import cast, cast_like, conj, full_like, ones_like, real, zeros_like
from lavax.optim.tree.reductions import allclose, max, min, sum
from lavax.optim.tree.states import get, get_all, set

__all__ = [
    "add",
    "add_scale",
    "allclose",
    "bias_correction",
    "cast",
    "cast_like",
    "clip",
    "conj",
    "div",
    "full_like",
    "get",
    "get_all",
    "max",
    "min",
    "mul",
    "norm",
    "ones_like",
    "random_like",
    "real",
    "scale",
    "set",
    "size",
    "split_key_like",
    "sub",
    "sum",
    "update_moment",
    "vdot",
    "where",
    "zeros_like",
]
