"""lavax itself."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import lavax as lx
from benchmarks.peers.peer import Run
from benchmarks.workloads import Arguments, Workload
from benchmarks.workloads.library import Library
from benchmarks.workloads.trees import leaves_of


class LavaxLibrary(Library):
    numpy = lx.numpy

    def convolution(self, x: Any, kernel: Any) -> Any:
        from lavax import nn

        return nn.conv(x, kernel, padding="SAME")

    def relu(self, x: Any) -> Any:
        return lx.nn.relu(x)

    def value_and_grad(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return lx.value_and_grad(function)


class LavaxPeer:
    """The default device."""

    def __init__(self) -> None:
        self.name = "lavax"
        self.version = lx.default_device().driver

    def prepare(self, workload: Workload, arguments: Arguments) -> Run:
        arguments = lx.device_put(arguments)
        function = lx.compile(workload.define(LavaxLibrary()))
        return Run(
            lambda: function(*arguments),
            _wait,
            lambda results: [np.asarray(leaf) for leaf in leaves_of(results)],
            lambda: function.lower(*arguments).compile().memory().peak,
        )


def _wait(results: Any) -> None:
    leaves_of(results)[-1].block_until_ready()  # one program made them all
