"""The architectures as workloads of `benchmarks.models`."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

import lavax as lx
from benchmarks.architectures import in_lavax
from benchmarks.architectures.sizes import ARCHITECTURES, Draw, Loss
from benchmarks.models.measurement import CALLS
from benchmarks.models.report import QUICK_CALLS, of_model
from benchmarks.models.workload import ModelWorkload


def workload(name: str, loss: Loss, draw: Draw) -> ModelWorkload:
    def shapes() -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {}

        def weight(name: str, *shape: int) -> Any:
            found[name] = shape
            return lx.random.normal(lx.random.key(0), shape)

        lx.eval_shape(partial(loss, in_lavax, weight), *draw(np.random.default_rng(0)))
        return found

    def build(key: Any) -> dict[str, Any]:
        drawn = enumerate(shapes().items())
        return {name: _drawn(name, shape, lx.random.fold_in(key, number)) for number, (name, shape) in drawn}

    def in_own_functions(functions: ModuleType, weights: Any, *inputs: Any) -> Any:
        return loss(functions, lambda name, *shape: weights[name], *inputs)

    def twin() -> Any:
        import torch

        from benchmarks.architectures import in_pytorch

        class Twin(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                for name, shape in shapes().items():
                    self.register_parameter(name, torch.nn.Parameter(torch.empty(shape)))

            def forward(self, *inputs: Any) -> Any:
                return in_own_functions(in_pytorch, self._parameters, *inputs)

        return Twin()

    return ModelWorkload(
        name,
        build,
        twin,
        draw,
        loss=lambda weights, *inputs: (in_own_functions(in_lavax, weights, *inputs), None),
        twin_loss=lambda module, *inputs: module(*inputs),
        arguments=len(draw(np.random.default_rng(0))),
        call=partial(in_own_functions, in_lavax),
        published=lambda weights: {name: np.asarray(weight) for name, weight in weights.items()},
    )


def _drawn(name: str, shape: tuple[int, ...], key: Any) -> Any:
    if name.endswith("_scale"):
        return lx.numpy.ones(shape)
    if name.endswith("_bias"):
        return lx.numpy.zeros(shape)
    return lx.random.normal(key, shape) / math.sqrt(math.prod(shape[1:]))


def report(only: Sequence[str] | None, quick: bool, show: Callable[[str], Any]) -> None:
    """Measures the architectures whose names match, and shows a table of each as soon as it is done."""
    for name, loss, draw in ARCHITECTURES:
        if not only or any(fnmatch(name, pattern) for pattern in only):
            show(of_model(workload(name, loss, draw), QUICK_CALLS if quick else CALLS))
