"""Runs the models and prints a table per model."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from functools import partial
from typing import Any

import numpy as np

import lavax as lx
from benchmarks.figure import markdown, median, spread
from benchmarks.models import decoding, in_lavax
from benchmarks.models.library import WORKLOADS
from benchmarks.models.measurement import CALLS, Timed
from benchmarks.models.workload import ModelWorkload
from benchmarks.pytorch_calls import pytorch
from lavax.mixed_precision import Policy

HEAD = ("", "library", "a call: median (quartiles)", "x lavax", "kernels", "MiB at once", "x lavax", "first call, s")
QUICK_CALLS = 3
_POLICY = Policy.parse("params=float32,compute=bfloat16,output=float32")
# What is measured: how in lavax, and in PyTorch whether it is training, and in bfloat16 by autocast.
KINDS: tuple[tuple[str, Callable[..., Timed], bool, bool], ...] = (
    ("inference", in_lavax.inference, False, False),
    ("training step", in_lavax.training, True, False),
    ("training step, bfloat16", partial(in_lavax.training, policy=_POLICY), True, True),
)


def report(only: Sequence[str] | None, quick: bool, show: Callable[[str], Any]) -> None:
    """Measures the models whose names match, and "decoding", and shows a table of each as soon as it is done."""
    from lavax.backends.vulkan.device.device import get_device  # late: these open the device
    from lavax.backends.vulkan.measure.limits import copy_rate

    for make in WORKLOADS:
        workload = make()
        if not only or any(fnmatch(workload.name, pattern) for pattern in only):
            show(of_model(workload, QUICK_CALLS if quick else CALLS))
    if not only or any(fnmatch("decoding", pattern) for pattern in only):
        for table in decoding.tables(QUICK_CALLS if quick else CALLS, copy_rate(get_device())):
            show(table)


def of_model(workload: ModelWorkload, calls: int) -> str:
    torch = pytorch()
    inputs = workload.draw(np.random.default_rng(0))
    model = lx.compile(workload.build)(lx.random.key(0))
    rows: list[list[str]] = []
    for name, measure, training, autocast in KINDS:
        own = measure(workload, model, inputs, calls)
        rows.append(_row(name, "lavax", own, own))
        if torch is not None:
            from benchmarks.models import in_pytorch  # late: it imports PyTorch

            tensors = workload.tensors(model)
            for mode, found in in_pytorch.measured(workload, tensors, inputs, training, calls, autocast):
                rows.append(_row("", f"PyTorch, {mode}", found, own))
    return f"\n{workload.name}\n\n{markdown(HEAD, rows)}\n{_agreement(workload, model, inputs, torch)}"


def _row(name: str, library: str, found: Timed, own: Timed) -> list[str]:
    return [
        name,
        library,
        spread(found.seconds),
        f"{median(found.seconds) / median(own.seconds):.2f}",
        "" if found.kernels is None else str(found.kernels),
        f"{found.peak_bytes / 2**20:.0f}",
        f"{found.peak_bytes / own.peak_bytes:.2f}",
        f"{found.first:.2f}",
    ]


def _agreement(workload: ModelWorkload, model: Any, inputs: tuple[np.ndarray, ...], torch: Any) -> str:
    """How far outputs and gradients are from PyTorch's in float64."""
    found = in_lavax.results(workload, model, inputs)
    if torch is None:
        assert math.isfinite(found.loss)
        return "PyTorch with a CUDA device is not here to compare with."
    from benchmarks.models import in_pytorch

    tensors = workload.tensors(model)
    exact = in_pytorch.results(workload, tensors, inputs, torch.float64)
    lines = []
    for name, other in (("lavax", found), ("PyTorch", in_pytorch.results(workload, tensors, inputs, torch.float32))):
        output, gradient = other.distance(exact)
        lines.append(f"{name}: {output:.1e} of the output's, {gradient:.1e} of a gradient's largest number")
    return "From float64: " + "; ".join(lines) + "."
