"""The benchmark of whole models: its twins in PyTorch compute what lavax's models do, also a token at a time."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from benchmarks.models import decoding
from benchmarks.models.library import GPT2_MEDIUM, SMOLLM2, gpt2, llama_model
from benchmarks.models.workload import ModelWorkload
from lavax.backends.vulkan.plan.profile import GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import remove_stop_gradient

SMALL_GPT = {**GPT2_MEDIUM, "vocab_size": 11, "n_embd": 8, "n_layer": 2, "n_head": 2, "n_positions": 6}
SMALL_LLAMA = {**SMOLLM2, "vocab_size": 13, "hidden_size": 12, "intermediate_size": 16, "num_hidden_layers": 2,
               "num_attention_heads": 3, "num_key_value_heads": 1}  # fmt: skip


def _twin(workload: ModelWorkload, model: Any) -> Any:
    torch = pytest.importorskip("torch", reason="the twins are modules of PyTorch")
    twin = workload.twin()
    state = {name: torch.from_numpy(np.array(array)) for name, array in workload.tensors(model).items()}
    missing, unexpected = twin.load_state_dict(state, strict=False)
    assert not missing and not unexpected
    return twin


def test_gpt2_and_its_twin_agree_in_loss_and_gradients() -> None:
    workload = gpt2(SMALL_GPT, 2, 6)
    model = workload.build(lx.random.key(0))
    inputs = workload.draw(np.random.default_rng(0))
    twin = _twin(workload, model)
    (loss, _), gradients = lx.value_and_grad(workload.loss, has_aux=True)(model, *inputs)
    import torch

    of_twin = workload.twin_loss(twin, *(torch.from_numpy(each).long() for each in inputs))
    of_twin.backward()
    np.testing.assert_allclose(float(loss), float(of_twin.detach()), rtol=1e-6)
    found = workload.tensors(gradients)
    for name, weight in twin.named_parameters():
        np.testing.assert_allclose(found[name], weight.grad.numpy(), rtol=1e-4, atol=1e-6, err_msg=name)


def test_tokens_of_the_twin_with_a_cache_are_those_of_lavax() -> None:
    torch = pytest.importorskip("torch", reason="the twins are modules of PyTorch")
    from benchmarks.models.pytorch.llama import Llama
    from benchmarks.models.pytorch.llama_decoding import Decoding

    model = llama_model(SMALL_LLAMA, lx.random.key(3))
    twin = Llama(SMALL_LLAMA)
    twin.load_state_dict({n: torch.from_numpy(np.array(a)) for n, a in model.to_pretrained()[1].items()}, strict=False)
    with torch.no_grad():
        step = Decoding(twin, 8, 0)
        theirs = [int(step()) for _ in range(6)]
    token, cache, ours = np.zeros(1, np.int32), model.empty_cache(1, 8), []
    for _ in range(6):
        token, cache = decoding.decoding_step(model, token, cache)
        ours.append(int(np.asarray(token)[0]))
    assert ours == theirs and len(set(ours)) > 1


@pytest.mark.parametrize(("dtype", "kernels"), [("float32", 4), ("bfloat16", 5)])
def test_a_decoded_layer_takes_few_kernels_one_after_another(dtype: str, kernels: int) -> None:
    """On a GPU: q, k and v, attention with the output, gate and up, down; the output apart where attention has another
    precision than the GPU's matrices."""
    config = {**SMALL_LLAMA, "hidden_size": 96, "num_attention_heads": 6, "num_key_value_heads": 2}
    found = [_kernels_in_turn({**config, "num_hidden_layers": layers}, dtype) for layers in (2, 3)]
    assert found[1] - found[0] == kernels


def _kernels_in_turn(config: dict[str, Any], dtype: str) -> int:
    """The dispatches that wait for those before them, on a GPU."""
    model = llama_model(config, lx.random.key(0), dtype)
    arguments = model, lnp.zeros(1, "int32"), model.empty_cache(1, 64)
    graph = remove_stop_gradient(lx.trace(decoding.decoding_step)(*arguments))
    donated = [number for number, node in enumerate(graph.inputs) if node.name.startswith("cache.layers")]
    target = target_of(GENERIC_GPU, 1 << 34, 1 << 32)
    program = schedule(prepare(graph, target), donated, target=target)
    assert len(program.donors) == len(donated)  # the caches are updated in place
    return sum(step.barrier for step in program.steps)


def test_decoding_has_a_line_per_form_of_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "SMALL", ("small", SMALL_LLAMA, ("float32", "bfloat16")))
    for name, value in {"CACHE": 32, "FILLED": 4, "TOGETHER": 3}.items():
        monkeypatch.setattr(decoding, name, value)
    tables = list(decoding.tables(2, 1e9))
    forms = [[line.split("|")[1].strip() for line in table.splitlines()[5:]] for table in tables]
    assert forms == [["float32", ""], ["bfloat16", ""]]
    assert all(table.count("3 tokens a submission") == 1 for table in tables)
