"""Decoding: tokens a second of a language model, and the share of the time that reading its weights once takes."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import lavax as lx
import lavax.numpy as lnp
from benchmarks.figure import markdown, median, spread
from benchmarks.models.library import smollm2_model
from benchmarks.models.measurement import timed
from lavax import models

CACHE = 1024  # tokens that a row has room for
FILLED = 512


def table(calls: int, copy_bytes_per_second: float) -> str:
    """SmolLM2-135M, one row, in each form of weights."""
    rows = [_row(name, make(), calls, copy_bytes_per_second) for name, make in FORMS.items()]
    time = "a token: median (quartiles)"
    head = ("weights", time, "tokens/s", "kernels", "weights, MiB", "time to read them")
    return f"\nSmolLM2-135M, decoding one row, cache of {CACHE}\n\n{markdown(head, rows)}"


def _model(dtype: str) -> Any:
    return lx.compile(smollm2_model, static_argnums=1)(lx.random.key(0), dtype)


FORMS: dict[str, Callable[[], Any]] = {
    "float32": lambda: _model("float32"),
    "bfloat16": lambda: _model("bfloat16"),
    "int8": lambda: models.quantize(_model("float32"), "int8"),
    "int4": lambda: models.quantize(_model("float32"), "int4"),
}


def _row(name: str, model: Any, calls: int, copy_bytes_per_second: float) -> list[str]:
    def step(model: Any, token: Any, cache: Any) -> tuple[Any, Any]:
        hidden, cache = model.extend(token[:, None], cache)
        return lnp.argmax(model.logits(hidden[:, 0]), axis=-1).astype("int32"), cache

    compiled = lx.compile(step, donate_argnums=2)
    cache = model.empty_cache(1, CACHE)
    cache = cache.replace(lengths=lx.device_put(np.full(1, FILLED, np.int32)))
    held = [lx.device_put(np.zeros(1, np.int32)), cache]

    def call() -> Any:
        held[0], held[1] = compiled(model, *held)
        return held[0]

    kernels = compiled.lower(model, *held).compile().cost().kernels.values()
    _, seconds = timed(call, lambda token: token.block_until_ready(), calls)
    nbytes = sum(leaf.nbytes for leaf in lx.tree.leaves(model))
    share = nbytes / copy_bytes_per_second / median(seconds)
    return [
        name,
        spread(seconds),
        f"{1 / median(seconds):.0f}",
        str(sum(kernel.times for kernel in kernels)),
        f"{nbytes / 2**20:.0f}",
        f"{100 * share:.0f} %",
    ]
