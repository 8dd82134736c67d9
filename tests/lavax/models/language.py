"""What the tests of language models share: token ids, the loss of the next token, checks against transformers."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import io, models
from lavax.generate import generate
from lavax.models.family import Family
from lavax.nn import log_softmax
from tests.lavax.models.seeded import assert_close, assert_gradients_close, gradients_by_name, seed_torch


def token_ids(vocabulary: int, *shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, vocabulary, shape)


def next_token_loss(model: Any, ids: np.ndarray) -> Any:
    """The mean cross-entropy of each row's next tokens."""
    scores = log_softmax(model(ids)[:, :-1])
    return -lnp.mean(lnp.take_along_axis(scores, lnp.asarray(ids)[:, 1:, None], axis=-1))


def torch_checkpoint(kind: str, settings: dict[str, Any], folder: Path) -> Any:
    """A model of transformers with seeded weights, saved in `folder`. `kind` names its class, without "Config"."""
    pytest.importorskip("torch", reason="compares with transformers")
    transformers = pytest.importorskip("transformers", reason="compares with transformers")
    config = getattr(transformers, settings["config"])(
        **{name: value for name, value in settings.items() if name != "config"}, attn_implementation="eager"
    )
    made = seed_torch(getattr(transformers, kind)(config))
    made.save_pretrained(folder)
    return made


def check_against_transformers(oracle: Any, family: Family, folder: Path, ids: np.ndarray) -> None:
    """Logits, the loss and every gradient of the model in `folder` are those of `oracle`."""
    import torch

    model, given = models.load(folder), torch.from_numpy(ids)
    found = oracle(given, labels=given)
    assert_close(model(ids), found.logits.detach().numpy(), 1e-5)
    found.loss.backward()
    value, gradients = lx.value_and_grad(next_token_loss)(model, ids)
    assert float(value) == pytest.approx(float(found.loss.detach()), rel=1e-5)
    assert_gradients_close(gradients_by_name(family, gradients), oracle)


def check_saved_again(oracle: Any, folder: Path, again: Path, ids: np.ndarray) -> None:
    """Transformers reads what lavax saved of the model in `folder`, and computes the same."""
    import torch

    io.save_pretrained(models.load(folder), again)
    read, report = type(oracle).from_pretrained(again, output_loading_info=True, attn_implementation="eager")
    assert not report["missing_keys"] and not report["unexpected_keys"]
    given = torch.from_numpy(ids)
    with torch.no_grad():
        for ours, theirs in zip(read.eval()(given).to_tuple(), oracle(given).to_tuple(), strict=True):
            if isinstance(ours, torch.Tensor):
                assert torch.equal(ours, theirs)


def check_cached(model: Any, ids: np.ndarray) -> None:
    """Token after token with a cache gives the logits of the whole, also for rows of different lengths."""
    wanted = np.asarray(model(ids))
    batch, length = ids.shape
    hidden, cache = model.extend(ids[:, :3], model.empty_cache(batch, length))
    made = [model.logits(hidden)]
    for position in range(3, length):
        hidden, cache = model.extend(ids[:, position : position + 1], cache)
        made.append(model.logits(hidden))
    assert_close(np.concatenate(made, axis=1), wanted, 1e-5)
    assert np.array_equal(cache.lengths, [length] * batch)


def check_long_decode(model: Any, ids: np.ndarray) -> None:
    """One token after another, in a loop over 256 tokens, gives the logits of the whole."""
    batch, length = ids.shape

    def step(cache: Any, token: Any) -> tuple[Any, Any]:
        hidden, cache = model.extend(lnp.expand_dims(token, 1), cache)
        return cache, model.logits(hidden[:, 0])

    _, made = lx.scan(step, model.empty_cache(batch, length), lnp.asarray(ids.T))
    assert_close(np.moveaxis(np.asarray(made), 0, 1), model(ids), 2e-5)


def check_generation(oracle: Any, folder: Path, prompts: list[np.ndarray], count: int = 6) -> None:
    """The most likely tokens after prompts of different lengths are those of transformers, prompt by prompt."""
    import torch

    made = generate(models.load(folder), prompts, count, eos_token_id=())
    for row, prompt in zip(made, prompts, strict=True):
        given = torch.from_numpy(prompt[None])
        wanted = oracle.generate(
            given, attention_mask=torch.ones_like(given), max_new_tokens=count, do_sample=False, eos_token_id=None,
            pad_token_id=0,
        )
        assert np.array_equal(row[: len(prompt) + count], wanted[0].numpy())


def check_recorded(model: Any, family: Family, ids: np.ndarray, recorded: dict[str, Any]) -> None:
    """The last logits of the first row, the loss, and sums of squares of gradients are those recorded."""
    assert_close(model(ids)[0, -1, : len(recorded["logits"])], recorded["logits"], 1e-4)
    value, gradients = lx.value_and_grad(next_token_loss)(model, ids)
    assert float(value) == pytest.approx(recorded["loss"], rel=1e-5)
    by_name = gradients_by_name(family, gradients)
    for name, squares in recorded["squares"].items():
        assert float(np.sum(np.square(by_name[name]))) == pytest.approx(squares, rel=2e-3), name


def record(oracle: Any, ids: np.ndarray, names: list[str]) -> dict[str, Any]:
    """What `check_recorded` takes, computed by transformers; for whoever adds a model."""
    import torch

    given = torch.from_numpy(ids)
    found = oracle(given, labels=given)
    found.loss.backward()
    parameters = dict(oracle.named_parameters())
    return {
        "logits": [round(x, 6) for x in found.logits[0, -1, :6].tolist()],
        "loss": float(found.loss.detach()),
        "squares": {name: float((parameters[name].grad ** 2).sum()) for name in names},
    }
