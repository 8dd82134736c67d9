"""Decoding: the time of a token of a language model, and the share of it that reading its weights once takes."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import lavax as lx
import lavax.numpy as lnp
from benchmarks.figure import markdown, median, spread
from benchmarks.models.library import SMOLLM2, SMOLLM2_LARGE, llama_model
from benchmarks.models.measurement import timed
from benchmarks.pytorch_calls import pytorch
from lavax import models

CACHE = 1024  # tokens that a row has room for
FILLED = 512
TOGETHER = 16  # tokens of one submission
HEAD = ("weights", "library", "a token: median (quartiles)", "x lavax", "kernels", "weights, MiB", "time to read them")
# Models with the forms of their weights; those of the second kind are for GPUs alone.
SMALL = ("SmolLM2-135M", SMOLLM2, ("float32", "bfloat16", "int8", "int4"))
LARGE = ("SmolLM2-1.7B", SMOLLM2_LARGE, ("float32", "bfloat16", "int8", "int4"))


def tables(calls: int, copy_bytes_per_second: float) -> Iterator[str]:
    """A table of each form of the weights of each model that suits the device, as soon as it is measured."""
    shown = [SMALL, LARGE] if lx.default_device().kind == "discrete" else [SMALL]
    for name, config, forms in shown:
        for form in forms:
            rows = markdown(HEAD, _rows(config, form, calls, copy_bytes_per_second))
            yield f"\n{name} in {form}, decoding one row, cache of {CACHE}\n\n{rows}"


def _rows(config: dict[str, Any], form: str, calls: int, rate: float) -> list[list[str]]:
    model = _model(config, form)
    size = sum(leaf.nbytes for leaf in lx.tree.leaves(model))
    one, kernels = _in_lavax(model, 1, calls)
    several, _ = _in_lavax(model, TOGETHER, calls)
    found = {"lavax": one, f"lavax, {TOGETHER} tokens a submission": several}
    if pytorch() is not None and form in ("float32", "bfloat16"):
        found["PyTorch, static cache, CUDA graph"] = _in_pytorch(config, model, form, calls)
    counts = {"lavax": str(kernels)}
    return [
        [
            form if library == "lavax" else "",
            library,
            spread(seconds),
            f"{median(seconds) / median(one):.2f}",
            counts.get(library, ""),
            f"{size / 2**20:.0f}",
            f"{100 * size / rate / median(seconds):.0f} %",
        ]
        for library, seconds in found.items()
    ]


def _model(config: dict[str, Any], form: str) -> Any:
    is_stored = form in ("float32", "bfloat16")
    dtype = form if is_stored else "float32"
    model = lx.compile(partial(llama_model, config), static_argnums=1)(lx.random.key(0), dtype)
    return model if is_stored else models.quantize(model, form)


def decoding_step(model: Any, token: Any, cache: Any) -> tuple[Any, Any]:
    """The token after `token`; once the cache is full, its last place is written again and again."""
    hidden, cache = model.extend(token[:, None], cache)
    cache = cache.replace(lengths=lnp.minimum(cache.lengths, CACHE - 1))
    return lnp.argmax(model.logits(hidden[:, 0]), axis=-1).astype("int32"), cache


def _in_lavax(model: Any, together: int, calls: int) -> tuple[list[float], int]:
    """Seconds a token, and the kernels of a submission."""

    def several(model: Any, token: Any, cache: Any) -> tuple[Any, Any]:
        turn = lambda carried, _: (decoding_step(model, *carried), None)  # noqa: E731
        (token, cache), _ = lx.scan(turn, (token, cache), None, length=together)
        return token, cache

    compiled = lx.compile(decoding_step if together == 1 else several, donate_argnums=2)
    cache = model.empty_cache(1, CACHE)
    cache = cache.replace(lengths=lx.device_put(np.full(1, FILLED, np.int32)))
    held = [lx.device_put(np.zeros(1, np.int32)), cache]

    def call() -> Any:
        held[0], held[1] = compiled(model, *held)
        return held[0]

    kernels = compiled.lower(model, *held).compile().cost().kernels.values()
    _, seconds = timed(call, lambda token: token.block_until_ready(), calls)
    return [second / together for second in seconds], sum(kernel.times for kernel in kernels)


def _in_pytorch(config: dict[str, Any], model: Any, form: str, calls: int) -> list[float]:
    import torch

    from benchmarks.models.in_pytorch import captured
    from benchmarks.models.pytorch.llama import Llama
    from benchmarks.models.pytorch.llama_decoding import Decoding

    dtype = getattr(torch, form)
    tensors = {name: np.asarray(array).astype(np.float32) for name, array in model.to_pretrained()[1].items()}
    twin = Llama(config)
    twin.load_state_dict({name: torch.from_numpy(array) for name, array in tensors.items()}, strict=False)
    decoding = Decoding(twin.to("cuda", dtype), CACHE, FILLED)
    compiled: Callable[[], Any] = torch.compile(decoding)
    with torch.no_grad():
        call = captured(compiled)
        _, seconds = timed(call, lambda token: torch.cuda.synchronize(), calls)
    return seconds
