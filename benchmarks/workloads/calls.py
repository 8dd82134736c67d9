"""Workloads that compute almost nothing: the overhead of a call."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.workloads.library import Library
from benchmarks.workloads.trees import map_tree
from benchmarks.workloads.workload import Workload, normal, words


def call_workloads() -> list[Workload]:
    """One array in and out, and a dict of 150."""
    shapes = {f"p{number}": (number % 7 + 1, 16) for number in range(150)}

    def plus_one(library: Library) -> Callable[..., Any]:
        return lambda tree: map_tree(lambda x: x + 1.0, tree)

    def tree(g: np.random.Generator) -> tuple[Any, ...]:
        return ({name: normal(g, *shape) for name, shape in shapes.items()},)

    return [
        Workload("call-1", plus_one, lambda g: (normal(g, 8),), 8, words((2, 8))),
        Workload("call-150", plus_one, tree, 16 * 150 * 4, 2 * words(*shapes.values())),
    ]
