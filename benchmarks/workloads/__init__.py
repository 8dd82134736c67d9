"""The workloads of the comparison, each written once for all libraries."""
from __future__ import annotations

from benchmarks.workloads.calls import call_workloads
from benchmarks.workloads.products import product_workloads, square_matmul
from benchmarks.workloads.rows import row_workloads
from benchmarks.workloads.training import deep_network, training_workloads
from benchmarks.workloads.workload import Arguments, Workload

__all__ = ["Arguments", "Workload", "deep_network", "square_matmul", "workloads_for"]


def workloads_for(large: bool) -> list[Workload]:
    """All workloads, with sizes for a discrete GPU or for a processor."""
    return [*call_workloads(), *row_workloads(large), *product_workloads(large), *training_workloads(large)]
