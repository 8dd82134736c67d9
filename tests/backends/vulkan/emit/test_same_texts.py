"""A program's kernels and shaders have the same text in every process, whatever the hash seed and the addresses are."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.backend import VulkanBackend
from lavax.backends.vulkan.plan.profile import GENERIC_GPU
from lavax.ir.graph import Graph, Node
from lavax.passes.kernels import index
from lavax.passes.simplify import remove_stop_gradient
from tests.random_graphs import random_graph

ROOT = Path(__file__).resolve().parents[4]
Texts = dict[str, dict[str, str]]


class ForGpu(VulkanBackend):
    """Lowers for a GPU and runs nothing."""

    profile = GENERIC_GPU
    _memory_bytes = 0


def _layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    centred = x - lnp.mean(x, axis=-1, keepdims=True)
    return lnp.sum(lnp.tanh(centred / lnp.sqrt(lnp.mean(centred**2, axis=-1, keepdims=True) + 1e-5) * scale + shift))


def _gathers(x: Any, i: Any, j: Any) -> tuple[Any, ...]:
    return x[i, j] + x[j, i], x[i][:, j], x.T[j, i] * x[i + j, j]


def _scattered(x: Any, i: Any, j: Any) -> Any:
    return x.at[i, j].add(x[j, i])


def _graphs() -> dict[str, Graph]:
    table, positions = np.zeros((40, 40), np.float32), np.zeros(24, np.int32)
    rows, row = np.zeros((64, 256), np.float32), np.zeros(256, np.float32)
    traced: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "layer norm": (lx.grad(_layer_norm, (0, 1, 2)), (rows, row, row)),
        "gathers": (_gathers, (table, positions, positions)),
        "gradient of gathers": (lx.grad(lambda *of: lnp.sum(_gathers(*of)[0])), (table, positions, positions)),
        "scattered": (_scattered, (table, positions, positions)),
        "sorted": (lambda x: (lnp.sort(x, axis=0), lnp.argsort(x)), (table,)),
    }
    graphs = {name: lx.trace(function)(*arguments) for name, (function, arguments) in traced.items()}
    return graphs | {f"random {seed}": random_graph(seed)[0] for seed in range(12)}


def texts() -> Texts:
    """The texts of some programs, all of which are traced and lowered anew."""
    found = {}
    for name, graph in _graphs().items():
        lowered = ForGpu().lower(remove_stop_gradient(graph))
        found[name] = {stage: lowered.as_text(stage) for stage in ("kernels", "glsl")}
    return found


def write_texts(seed: int) -> None:
    """Writes the texts to stdout. Shuffles addresses, because programs this small often get the same order of them."""
    factor = Random(seed).getrandbits(60) | 1

    def shuffled(value: object) -> int:
        return id(value) * factor % ((1 << 61) - 1)

    Node.__hash__ = shuffled  # type: ignore[method-assign, assignment]
    index.__dict__["id"] = shuffled
    json.dump(texts(), sys.stdout)


def _texts_of_process(seed: int) -> subprocess.Popen[str]:
    program = f"from tests.backends.vulkan.emit.test_same_texts import write_texts; write_texts({seed})"
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    command = [sys.executable, "-c", program]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment)


def _assert_same(found: Texts, expected: Texts) -> None:
    assert list(found) == list(expected)
    for name, stages in expected.items():
        for stage, text in stages.items():
            assert found[name][stage] == text, (name, stage)


def test_texts_are_the_same_in_every_process() -> None:
    processes = [_texts_of_process(seed) for seed in (1, 2)]
    first, second = (json.loads(process.communicate()[0]) for process in processes)
    assert [process.returncode for process in processes] == [0, 0]
    _assert_same(second, first)
    _assert_same(texts(), first)


def test_texts_are_the_same_when_a_process_lowers_again() -> None:
    _assert_same(texts(), texts())
