"""Functions with derivatives of their own, under the names of jax.custom_derivatives."""
from lavax.tracer.transforms.closure_convert import closure_convert
from lavax.tracer.transforms.custom_gradient import custom_gradient
from lavax.tracer.transforms.custom_rules import custom_jvp, custom_vjp
from lavax.tracer.transforms.symbolic_zeros import CustomVJPPrimal, SymbolicZero, custom_vjp_primal_tree_values

__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "custom_vjp_primal_tree_values",
]
