"""NumPy, on the processor; it has no gradients."""
from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers.peer import Run
from benchmarks.workloads import Arguments, Workload
from benchmarks.workloads.library import Library
from benchmarks.workloads.trees import leaves_of


class NumpyLibrary(Library):
    numpy = np

    def scatter_add(self, target: Any, places: Any, updates: Any) -> Any:
        target = target.copy()
        np.add.at(target, places, updates)
        return target


class NumpyPeer:
    name = "NumPy"
    version = np.__version__

    def prepare(self, workload: Workload, arguments: Arguments) -> Run:
        function = workload.define(NumpyLibrary())
        return Run(
            lambda: function(*arguments),
            lambda results: None,
            lambda results: [np.asarray(leaf) for leaf in leaves_of(results)],
        )
