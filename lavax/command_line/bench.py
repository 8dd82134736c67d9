"""`lavax bench`: how fast this device is, or a function on it, beside the device's measured limits."""
from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.base.quick_dataclasses import dataclass
from lavax.command_line.dump import compiled_form
from lavax.command_line.errors import UsageError
from lavax.command_line.output import say
from lavax.command_line.targets import ARGUMENTS_HELP, arguments_of, function_at, user_code
from lavax.nn.attention import dot_product_attention
from lavax.nn.functional import softmax
from lavax.passes.reports import Profile
from lavax.passes.reports.table import rate_text, seconds_text, table
from lavax.tracer.compiled.compile import BoundMethod, CompiledFunction, compile
from lavax.tracer.pytrees.pytree import map as map_tree
from lavax.tracer.tracing.abstract_evaluation import ShapeDtype
from lavax.tracer.tracing.placement import block_until_ready, default_device, device_put

_Sizes = dict[str, int]


@dataclass(frozen=True)
class Workload:
    """A program and the shapes of its arguments, by the side of a square or the like."""

    function: Callable[..., Any]
    shapes: Callable[[int], list[tuple[int, ...]]]
    sizes: _Sizes  # by the kind of device


# Large enough that a call takes longer than submitting it.
WORKLOADS = {
    "x + 1 of one element": Workload(lambda x: x + 1, lambda n: [(n,)], {"cpu": 1, "gpu": 1}),
    "sum of two arrays": Workload(lnp.add, lambda n: [(n,), (n,)], {"cpu": 1 << 22, "gpu": 1 << 26}),
    "softmax of rows": Workload(
        partial(softmax, axis=-1), lambda n: [(n, 1024)], {"cpu": 1 << 11, "gpu": 1 << 15}
    ),
    "product of squares": Workload(lnp.matmul, lambda n: [(n, n), (n, n)], {"cpu": 512, "gpu": 4096}),
    "attention of 8 heads": Workload(
        dot_product_attention, lambda n: [(1, n, 8, 64)] * 3, {"cpu": 256, "gpu": 4096}
    ),
    "sort": Workload(lnp.sort, lambda n: [(n,)], {"cpu": 1 << 16, "gpu": 1 << 24}),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the command."""
    parser.add_argument("function", nargs="?", metavar="FILE:FUNCTION", help="time this; else a few programs")
    parser.add_argument("arguments", nargs="*", metavar="ARGUMENT", help=f"{ARGUMENTS_HELP}; types are filled randomly")
    parser.add_argument("--example", metavar="NAME", help="take the arguments from this name in the file")
    parser.add_argument("--seconds", type=float, default=1.0, help="of calls, for each program (1)")


def run(options: argparse.Namespace) -> int:
    """Times the function, or the built-in programs. Raises DeviceError without a device."""
    if options.seconds <= 0:
        raise UsageError(f"--seconds must be positive, got {options.seconds}")
    if options.function is None:
        return _bench_device(options.seconds)
    target = function_at(options.function)
    args, kwargs = arguments_of(target, options.arguments, options.example)
    args, kwargs = map_tree(_filled, args), map_tree(_filled, kwargs)
    compiled = compiled_form(target.function)
    with user_code(options.function):
        first, times = _timed(compiled, args, kwargs, options.seconds)
    say(f"first call {seconds_text(first)}, with tracing and compilation")
    say(f"then {seconds_text(median(times))} a call ({seconds_text(min(times))} to {seconds_text(max(times))})")
    say()
    say(str(compiled.lower(*args, **kwargs).compile().profile(*args, **kwargs)))
    return 0


def _bench_device(seconds: float) -> int:
    device = default_device()
    kind = "cpu" if device.kind == "cpu" else "gpu"
    say(f"{device.name}, {device.driver}")
    head = ("", "size", "first call", "a call", "on the device", "GB/s", "GFLOP/s", "of the limit")
    rows, profile = [], None
    for name, workload in WORKLOADS.items():
        size = workload.sizes[kind]
        arrays = [_filled(ShapeDtype(shape, "float32")) for shape in workload.shapes(size)]
        compiled = compile(workload.function)
        first, times = _timed(compiled, tuple(arrays), {}, seconds)
        profile = compiled.lower(*arrays).compile().profile(*arrays)
        rows.append((name, f"{size:,}", seconds_text(first), seconds_text(median(times)), *_rates(profile)))
    say(table(head, rows))
    if profile is not None:
        copies, arithmetic = rate_text(profile.copy_gigabytes_per_second), rate_text(profile.arithmetic_gigaflops)
        say(f"limits, measured: copies move {copies} GB/s; arithmetic in registers {arithmetic} GFLOP/s")
    return 0


def _rates(profile: Profile) -> Iterator[str]:
    cost = profile.cost
    yield seconds_text(profile.seconds)
    yield rate_text((cost.bytes_read + cost.bytes_written) / profile.seconds / 1e9)
    yield rate_text(cost.operations / profile.seconds / 1e9)
    yield f"{100 * profile.of_limit(cost, profile.seconds):.0f} %"


def _timed(
    compiled: CompiledFunction | BoundMethod, args: tuple[Any, ...], kwargs: dict[str, Any], seconds: float
) -> tuple[float, list[float]]:
    """The seconds of the first call, and of each of those that follow for that long."""

    def call() -> float:
        start = time.perf_counter()
        block_until_ready(compiled(*args, **kwargs))
        return time.perf_counter() - start

    first = call()
    times, end = [call()], time.perf_counter() + seconds
    while time.perf_counter() < end:
        times.append(call())
    return first, times


def _filled(leaf: Any) -> Any:
    """Random numbers on the device in place of a type: normal ones, or integers and truths among 0 and 1."""
    if not isinstance(leaf, ShapeDtype):
        return leaf
    generator, dtype = np.random.default_rng(0), np.dtype(leaf.dtype)
    shape = tuple(leaf.shape)
    is_float = dtype.kind in "fV"
    return device_put((generator.normal(size=shape) if is_float else generator.integers(0, 2, shape)).astype(dtype))
