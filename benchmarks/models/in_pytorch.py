"""A model in PyTorch on a CUDA device: eager, torch.compile, and torch.compile with its calls in CUDA graphs."""
from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from benchmarks.models.in_lavax import RATE
from benchmarks.models.measurement import Results, Timed, timed
from benchmarks.models.workload import Arrays, ModelWorkload

MODES = ("eager", "torch.compile", "with CUDA graphs")


def results(workload: ModelWorkload, tensors: dict[str, np.ndarray], inputs: Arrays, dtype: torch.dtype) -> Results:
    """Output, loss and gradients in a dtype; float64 is the reference."""
    twin, given = _prepared(workload, tensors, inputs, dtype)
    arguments = given[: workload.arguments]
    if _normalizes_batches(twin):
        output = _in_inference(twin, arguments)
    else:
        output = twin(*arguments).detach().cpu().numpy()
    loss = workload.twin_loss(twin, *given)
    loss.backward()
    gradients = {
        name: weight.grad.cpu().numpy() for name, weight in twin.named_parameters() if weight.grad is not None
    }
    return Results(output, float(loss.detach()), gradients)


def measured(
    workload: ModelWorkload,
    tensors: dict[str, np.ndarray],
    inputs: Arrays,
    training: bool,
    calls: int,
    autocast: bool = False,
) -> Iterator[tuple[str, Timed]]:
    """Each way of calling, with its times; with `autocast`, training in bfloat16 as PyTorch mixes it."""
    for mode in MODES:
        gc.collect()
        torch.cuda.empty_cache()
        torch.compiler.reset()
        before = torch.cuda.memory_allocated()
        twin, given = _prepared(workload, tensors, inputs, torch.float32)
        start = time.perf_counter()
        if training:
            call = _step(workload, twin, given, mode, autocast)
        else:
            call = _forward(twin, given[: workload.arguments], mode)
        if mode == MODES[2]:
            call = captured(call)
        preparing = time.perf_counter() - start
        first, seconds = timed(call, lambda result: torch.cuda.synchronize(), calls)
        torch.cuda.reset_peak_memory_stats()
        call()
        torch.cuda.synchronize()
        yield mode, Timed(seconds, preparing + first, torch.cuda.max_memory_allocated() - before)
        del twin, given, call


def _prepared(workload: ModelWorkload, tensors: dict[str, np.ndarray], inputs: Arrays, dtype: Any) -> tuple[Any, Any]:
    twin = workload.twin().to("cuda", dtype)
    state = {name: torch.from_numpy(np.array(array)) for name, array in tensors.items()}
    missing, unexpected = twin.load_state_dict(state, strict=False)
    assert not unexpected and all("num_batches" in name for name in missing), (missing, unexpected)
    return twin, [_on_device(array, dtype) for array in inputs]


def _on_device(array: np.ndarray, dtype: Any) -> torch.Tensor:
    found = torch.from_numpy(array).cuda()
    return found.to(dtype) if found.is_floating_point() else found.long()


def _normalizes_batches(twin: Any) -> bool:
    return any(isinstance(module, torch.nn.BatchNorm2d) for module in twin.modules())


def _in_inference(twin: Any, arguments: list[torch.Tensor]) -> np.ndarray:
    twin.eval()
    found: np.ndarray = twin(*arguments).detach().cpu().numpy()
    twin.train()
    return found


def _forward(twin: Any, arguments: list[torch.Tensor], mode: str) -> Callable[[], Any]:
    twin.eval()
    function = twin if mode == MODES[0] else torch.compile(twin)

    def call() -> Any:
        with torch.no_grad():
            return function(*arguments)

    return call


def _step(
    workload: ModelWorkload, twin: Any, given: list[torch.Tensor], mode: str, autocast: bool
) -> Callable[[], Any]:
    trained = [weight for weight in twin.parameters() if weight.requires_grad]
    optimizer = torch.optim.Adam(trained, lr=RATE, fused=True, capturable=True)
    loss_of = workload.twin_loss if mode == MODES[0] else torch.compile(workload.twin_loss)

    def call() -> Any:
        optimizer.zero_grad(set_to_none=True)
        # Graphs hold no cache: what is cast in one call would be read in all later ones.
        with torch.autocast("cuda", torch.bfloat16, enabled=autocast, cache_enabled=mode != MODES[2]):
            loss = loss_of(twin, *given)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return call


def captured(call: Callable[[], Any]) -> Callable[[], Any]:
    """The call as one CUDA graph, recorded after a few calls on a stream of their own."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call()

    def replay() -> Any:
        graph.replay()
        return result

    return replay
