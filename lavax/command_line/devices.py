"""`lavax devices`: what each Vulkan driver of this machine offers, and which schedules typical kernels get there."""
from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

import lavax.numpy as lnp
from lavax.command_line.output import columns, say
from lavax.ir import Graph
from lavax.nn.attention import dot_product_attention
from lavax.passes.reports.table import bytes_text
from lavax.passes.simplify import remove_stop_gradient
from lavax.tracer.tracing.abstract_evaluation import ShapeDtype, trace

if TYPE_CHECKING:
    from lavax.backends.vulkan.survey import SurveyedDevice


def _float(*shape: int) -> ShapeDtype:
    return ShapeDtype(shape, "float32")


def _typical() -> Mapping[str, Graph]:
    """Typical programs, of which schedules are shown: one of each kind of kernel, at an ordinary size."""
    square, rows = _float(1024, 1024), _float(4096, 1024)
    found = {
        "x + 1, a million elements": trace(lambda x: x + 1)(_float(1 << 20)),
        "transpose of 1024 × 1024": trace(lnp.transpose)(square),
        "sums of 4096 rows of 1024": trace(lambda x: lnp.sum(x, axis=1))(rows),
        "sum of 16 million": trace(lnp.sum)(_float(1 << 24)),
        "product of 1024 × 1024": trace(lnp.matmul)(square, square),
        "matrix times vector": trace(lnp.matmul)(square, _float(1024)),
        "attention, 8 heads of 64": trace(dot_product_attention)(*[_float(4, 1024, 8, 64)] * 3),
        "cumulative sum of a million": trace(lnp.cumsum)(_float(1 << 20)),
        "sort of a million": trace(lnp.sort)(_float(1 << 20)),
    }
    return {name: remove_stop_gradient(graph) for name, graph in found.items()}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the command."""
    parser.add_argument("--brief", action="store_true", help="one line per device, without schedules")


def run(options: argparse.Namespace) -> int:
    """Shows every device that the loader reports. Raises DeviceError if there is none."""
    from lavax.backends.vulkan.survey import survey  # late: it needs the Vulkan loader

    found = survey()
    usable = [device for device in found if device.profile is not None]
    for number, device in enumerate(found):
        if number and not options.brief:
            say()
        index = str(usable.index(device)) if device in usable else "-"
        mark = "  <- used (LAVAX_DEVICE selects another)" if device.is_chosen else ""
        say(f"{index}: {device.physical.name}{mark}")
        if not options.brief:
            _describe(device)
    return 0 if usable else 1


def _describe(device: SurveyedDevice) -> None:
    for line in columns(_facts(device), indent="  "):
        say(line)
    if device.profile is None:
        return
    say("  schedules:")
    for name, schedules in device.schedules(_typical()):
        say(f"    {name}")
        for text in schedules:
            say(f"      {text}")


def _facts(device: SurveyedDevice) -> list[tuple[str, str]]:
    physical, profile = device.physical, device.profile
    facts = [("driver", physical.driver), ("kind", physical.kind), ("memory", bytes_text(physical.memory_bytes))]
    if profile is None:
        return [*facts, ("cannot be used", f"it lacks {', '.join(physical.missing)}")]
    sizes = f"{profile.subgroup_size}"
    if profile.min_subgroup_size != profile.max_subgroup_size:
        sizes += f" ({profile.min_subgroup_size} to {profile.max_subgroup_size})"
    has, lacks = device.features
    return [
        *facts,
        ("largest array", bytes_text(device.largest_array)),
        ("subgroups", f"{sizes} invocations"),
        ("workgroups", f"up to {profile.max_workgroup_invocations} invocations"),
        ("shared memory", bytes_text(profile.shared_memory_bytes)),
        ("has", ", ".join(has)),
        ("lacks", ", ".join(lacks) or "nothing that lavax uses"),
        ("matrices", ", ".join(f"{shape.dtype} {shape.m}×{shape.n}×{shape.k}" for shape in profile.matrices) or "none"),
    ]

