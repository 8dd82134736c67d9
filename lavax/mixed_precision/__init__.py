"""Policies of dtypes, and loss scaling for float16."""
from lavax.mixed_precision.loss_scaling import DynamicLossScale, NoLossScale, StaticLossScale, all_finite, select_tree
from lavax.mixed_precision.policies import Policy, cast_floats, value_and_grad

__all__ = [
    "DynamicLossScale",
    "NoLossScale",
    "Policy",
    "StaticLossScale",
    "all_finite",
    "cast_floats",
    "select_tree",
    "value_and_grad",
]
