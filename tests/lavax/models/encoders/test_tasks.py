"""Encoders with layers for a task, against transformers: logits, losses, gradients, files; and recorded values."""
from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import lavax as lx
from lavax import io, models, nn
from lavax.models.encoders import BertConfig, Encoder, MaskedLanguageModel, SequenceClassifier
from lavax.models.encoders.tasks import TASKS as TASK_MODELS
from lavax.models.family import Family, family_of
from tests.documents import read
from tests.lavax.models.language import token_ids, torch_checkpoint
from tests.lavax.models.seeded import assert_close, assert_gradients_close, gradients_by_name, seeded_model

pytestmark = pytest.mark.usefixtures("reference_backend")

_SIZES: dict[str, Any] = dict(
    vocab_size=64, hidden_size=24, num_hidden_layers=2, num_attention_heads=4, intermediate_size=32,
    max_position_embeddings=16,
)  # fmt: skip
SETTINGS: dict[str, dict[str, Any]] = {
    "Bert": dict(_SIZES, model_type="bert", hidden_act="gelu_new"),
    "Roberta": dict(_SIZES, model_type="roberta", pad_token_id=1, type_vocab_size=1, hidden_act="relu"),
    "DistilBert": dict(
        model_type="distilbert", vocab_size=64, dim=24, n_layers=2, n_heads=4, hidden_dim=32,
        max_position_embeddings=16, activation="relu",
    ),
}  # fmt: skip

TOKENS = token_ids(62, 2, 8) + 2
MASK = np.arange(8) < np.array([8, 5])[:, None]
IDS = np.where(MASK, TOKENS, 1)  # 1 is RoBERTa's padding
MASKED = np.where(MASK & (np.arange(8) % 3 == 1), IDS, -100)
KINDS = np.where(MASK, IDS % 3, -100)


def mean_of_ends(logits: Any, places: dict[str, np.ndarray]) -> Any:
    start, end = (nn.cross_entropy(each, place) for each, place in zip(logits, places.values(), strict=True))
    return (start + end) / 2


def mean_over_tokens(logits: Any, labels: dict[str, np.ndarray]) -> Any:
    return nn.cross_entropy(logits, labels["labels"], axis=-1)


# Task -> what it is trained for, and its loss.
TASKS: dict[str, tuple[dict[str, np.ndarray], Callable[..., Any]]] = {
    "ForMaskedLM": ({"labels": MASKED}, mean_over_tokens),
    "ForSequenceClassification": ({"labels": np.array([2, 0])}, mean_over_tokens),
    "ForTokenClassification": ({"labels": KINDS}, mean_over_tokens),
    "ForQuestionAnswering": ({"start_positions": np.array([1, 3]), "end_positions": np.array([4, 3])}, mean_of_ends),
}
EACH = pytest.mark.parametrize("task", TASKS)
ALL = pytest.mark.parametrize("name", SETTINGS)


def settings_of(name: str, task: str) -> dict[str, Any]:
    """Answers have a start and an end, all else three labels."""
    return SETTINGS[name] | {"num_labels": 2 if task == "ForQuestionAnswering" else 3}


def family(name: str) -> Family:
    return family_of(SETTINGS[name]["model_type"])


def config_of(name: str, task: str, **changes: Any) -> Any:
    return family(name).config(**settings_of(name, task) | changes).for_task(task)


def arguments(task: str) -> tuple[np.ndarray, np.ndarray]:
    """Ids and a mask. Answers are sought among all tokens: without padding, as torch never trains its embedding."""
    return (TOKENS, np.ones_like(MASK)) if task == "ForQuestionAnswering" else (IDS, MASK)


def loss(model: Any, task: str) -> tuple[Any, Any]:
    labels, of_logits = TASKS[task]
    logits = model(*arguments(task))
    return of_logits(logits, labels), logits


def checkpoint(name: str, task: str, folder: Path) -> Any:
    given = {key: value for key, value in settings_of(name, task).items() if key != "model_type"}
    return torch_checkpoint(f"{name}{task}", dict(given, config=f"{name}Config"), folder)


def oracle_results(oracle: Any, task: str) -> tuple[Any, list[np.ndarray]]:
    """The loss, and logits: of answers two."""
    import torch

    labels = {entry: torch.from_numpy(array) for entry, array in TASKS[task][0].items()}
    ids, mask = map(torch.from_numpy, arguments(task))
    found = oracle(ids, attention_mask=mask.int(), **labels)
    logits = [found[entry] for entry in ("logits", "start_logits", "end_logits") if entry in found]
    return found.loss, [each.detach().numpy() for each in logits]


@EACH
@ALL
def test_logits_and_gradients_are_those_of_transformers(name: str, task: str, tmp_path: Path) -> None:
    oracle, model = checkpoint(name, task, tmp_path), models.load(tmp_path)
    wanted, wanted_logits = oracle_results(oracle, task)
    (value, logits), gradients = lx.value_and_grad(lambda model: loss(model, task), has_aux=True)(model)
    shown = MASK[..., None] if task in ("ForMaskedLM", "ForTokenClassification") else np.True_  # not those of padding
    for found, each in zip(logits if isinstance(logits, tuple) else [logits], wanted_logits, strict=True):
        assert_close(found * shown, each * shown, 1e-5)
    assert float(value) == pytest.approx(float(wanted.detach()), rel=1e-5)
    wanted.backward()
    assert_gradients_close(gradients_by_name(family(name), gradients), oracle)


@EACH
@ALL
def test_a_saved_model_is_read_by_transformers(name: str, task: str, tmp_path: Path) -> None:
    oracle = checkpoint(name, task, tmp_path / "theirs")
    io.save_pretrained(models.load(tmp_path / "theirs"), tmp_path / "ours")
    read, report = type(oracle).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    assert all(np.array_equal(value, oracle.state_dict()[entry]) for entry, value in read.state_dict().items())


# Of transformers 5.23.0 and torch 2.13.0, in float32: the first logits of the second row, the loss, and sums of squares
# of two gradients.
RECORDED: dict[tuple[str, str], dict[str, Any]] = {
    ("Bert", "ForMaskedLM"): {
        "logits": [1.095845, 0.760628, -0.697752],
        "loss": 5.311446,
        "squares": {
            "cls.predictions.transform.dense.weight": 5.7308,
            "bert.embeddings.word_embeddings.weight": 8.9819,
        },
    },
    ("Bert", "ForSequenceClassification"): {
        "logits": [0.412733, 0.771778, 0.526967],
        "loss": 1.136878,
        "squares": {
            "bert.pooler.dense.weight": 3.04166,
            "bert.embeddings.word_embeddings.weight": 1.04894,
        },
    },
    ("Bert", "ForTokenClassification"): {
        "logits": [-0.908491, 1.309741, -0.380507],
        "loss": 1.911702,
        "squares": {
            "classifier.weight": 9.48861,
            "bert.embeddings.word_embeddings.weight": 0.622541,
        },
    },
    ("Bert", "ForQuestionAnswering"): {
        "logits": [0.782376, 1.22596, 1.372399],
        "loss": 2.319032,
        "squares": {
            "qa_outputs.weight": 1.78385,
            "bert.embeddings.word_embeddings.weight": 2.51646,
        },
    },
    ("Roberta", "ForMaskedLM"): {
        "logits": [0.825784, 0.498019, 1.331933],
        "loss": 5.15619,
        "squares": {
            "lm_head.dense.weight": 2.88413,
            "roberta.embeddings.word_embeddings.weight": 6.78081,
        },
    },
    ("Roberta", "ForSequenceClassification"): {
        "logits": [0.621932, -0.306215, -0.400025],
        "loss": 1.025328,
        "squares": {
            "classifier.dense.weight": 0.644738,
            "roberta.embeddings.word_embeddings.weight": 0.149487,
        },
    },
    ("Roberta", "ForTokenClassification"): {
        "logits": [1.410308, 0.026366, 0.82454],
        "loss": 0.8778539,
        "squares": {
            "classifier.weight": 1.548,
            "roberta.embeddings.word_embeddings.weight": 0.165252,
        },
    },
    ("Roberta", "ForQuestionAnswering"): {
        "logits": [-2.296999, -2.160883, -1.299294],
        "loss": 2.218216,
        "squares": {
            "qa_outputs.weight": 1.57814,
            "roberta.embeddings.word_embeddings.weight": 0.867302,
        },
    },
    ("DistilBert", "ForMaskedLM"): {
        "logits": [0.931745, 1.138919, -1.057442],
        "loss": 4.442222,
        "squares": {
            "vocab_transform.weight": 8.44025,
            "distilbert.embeddings.word_embeddings.weight": 8.56182,
        },
    },
    ("DistilBert", "ForSequenceClassification"): {
        "logits": [-0.247205, -0.694018, 0.295597],
        "loss": 0.9720839,
        "squares": {
            "pre_classifier.weight": 3.61222,
            "distilbert.embeddings.word_embeddings.weight": 1.43516,
        },
    },
    ("DistilBert", "ForTokenClassification"): {
        "logits": [0.169321, -0.717286, -0.300779],
        "loss": 1.241153,
        "squares": {
            "classifier.weight": 2.97007,
            "distilbert.embeddings.word_embeddings.weight": 1.56174,
        },
    },
    ("DistilBert", "ForQuestionAnswering"): {
        "logits": [-0.205514, -0.9848, 0.352897],
        "loss": 2.583647,
        "squares": {
            "qa_outputs.weight": 5.0599,
            "distilbert.embeddings.word_embeddings.weight": 2.29477,
        },
    },
}


@EACH
@ALL
def test_recorded_values(name: str, task: str) -> None:
    recorded, model = RECORDED[name, task], seeded_model(family(name), config_of(name, task))
    (value, logits), gradients = lx.value_and_grad(lambda model: loss(model, task), has_aux=True)(model)
    first = np.asarray(logits[0] if isinstance(logits, tuple) else logits)[1].ravel()[:3]
    assert_close(first, recorded["logits"], 1e-4)
    assert float(value) == pytest.approx(recorded["loss"], rel=1e-4)
    found = gradients_by_name(family(name), gradients)
    for entry, squares in recorded["squares"].items():
        assert float(np.sum(np.square(found[entry]))) == pytest.approx(squares, rel=2e-3), entry


@EACH
@ALL
def test_a_saved_model_is_read_again_and_its_encoder_by_itself(name: str, task: str, tmp_path: Path) -> None:
    model = seeded_model(family(name), config_of(name, task))
    io.save_pretrained(model, tmp_path / "whole")
    again = models.load(tmp_path / "whole")
    assert type(again) is type(model)
    assert all(map(np.array_equal, lx.tree.leaves(again), lx.tree.leaves(model)))
    io.save_pretrained(model.encoder, tmp_path / "encoder")
    alone = models.load(tmp_path / "encoder")
    assert type(alone) is Encoder
    assert np.array_equal(alone(IDS, MASK), model.encoder(IDS, MASK))
    assert np.array_equal(models.sentence_embeddings(model, IDS, MASK), models.sentence_embeddings(alone, IDS, MASK))


def test_a_model_made_in_python_says_what_it_is_for(tmp_path: Path) -> None:
    labels = {0: "bad", 1: "fair", 2: "good"}
    config = BertConfig(**SETTINGS["Bert"], id2label=labels)
    io.save_pretrained(SequenceClassifier(config, key=lx.random.key(0)), tmp_path)
    data = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    assert data["architectures"] == ["BertForSequenceClassification"]
    assert data["label2id"] == {"bad": 0, "fair": 1, "good": 2}
    model = models.load(tmp_path)
    assert type(model) is SequenceClassifier and model.config.id2label[2] == "good"


def test_the_first_published_file_is_read(tmp_path: Path) -> None:
    """ "bert-base-uncased" names its class so, has older names, and holds the pooling layer and BERT's other task."""
    model = seeded_model(family("Bert"), config_of("Bert", "ForMaskedLM", add_pooling_layer=True))
    io.save_pretrained(model, tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    assert "bert.pooler.dense.weight" in tensors
    for name in ("cls.seq_relationship.bias", "cls.predictions.decoder.weight"):
        tensors[name] = np.zeros(24, np.float32)
    gammas = {re.sub(r"Norm\.weight$", "Norm.gamma", name): array for name, array in tensors.items()}
    older = {re.sub(r"Norm\.bias$", "Norm.beta", name): array for name, array in gammas.items()}
    save_file(older, tmp_path / "model.safetensors")
    again = models.load(tmp_path)
    assert type(again) is MaskedLanguageModel
    assert np.array_equal(again(IDS, MASK), model(IDS, MASK))
    hidden = model.encoder(IDS, MASK)
    assert np.array_equal(again.encoder.pooled(hidden), model.encoder.pooled(hidden))


@EACH
@ALL
def test_an_encoder_gets_layers_for_another_task(name: str, task: str, tmp_path: Path) -> None:
    encoder = seeded_model(family(name), config_of(name, "ForMaskedLM")).encoder
    labels = {0: "person", 1: "place", 2: "thing", 3: "none"}
    build: Any = TASK_MODELS[task]
    model = build.with_encoder(encoder, id2label=labels, key=lx.random.key(0))
    assert np.array_equal(model.encoder(IDS, MASK), encoder(IDS, MASK))
    if "Classification" in task:
        assert model(IDS, MASK).shape[-1] == 4
    io.save_pretrained(model, tmp_path)
    again = models.load(tmp_path)
    assert type(again) is type(model) and dict(again.config.id2label) == {str(key): labels[key] for key in labels}
    assert all(map(np.array_equal, lx.tree.leaves(again), lx.tree.leaves(model)))


def test_a_trained_pooling_layer_is_kept() -> None:
    encoder = seeded_model(family("Bert"), config_of("Bert", "Model"))
    model = SequenceClassifier.with_encoder(encoder, key=lx.random.key(0))
    assert model.encoder.pooler is encoder.pooler


def test_the_page_on_models_classifies_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    io.save_pretrained(seeded_model(family("Bert"), config_of("Bert", "ForMaskedLM")), tmp_path / "bert-base-uncased")
    monkeypatch.chdir(tmp_path)
    block = re.search(r"```python texts\n(.*?)```", read("docs/models.md"), re.DOTALL)
    assert block is not None
    names: dict[str, Any] = {"ids": IDS, "mask": MASK, "labels": np.array([1, 0])}
    exec(compile(block[1], "docs/models.md", "exec"), names)
    assert np.any(np.asarray(names["gradients"].out.weight))
    saved = models.load(tmp_path / "bert-of-reviews")
    assert saved.config.architectures == ("BertForSequenceClassification",)
    assert_close(names["loss"](saved, IDS, MASK, np.array([1, 0])), names["value"], 1e-6)


@pytest.mark.parametrize(("name", "kind"), [("Camembert", "camembert"), ("XLMRoberta", "xlm-roberta")])
def test_relatives_of_roberta_are_read_as_roberta(name: str, kind: str, tmp_path: Path) -> None:
    settings = {key: value for key, value in SETTINGS["Roberta"].items() if key != "model_type"}
    oracle = torch_checkpoint(f"{name}ForMaskedLM", dict(settings, config=f"{name}Config"), tmp_path)
    model = models.load(tmp_path)
    _, (logits,) = oracle_results(oracle, "ForMaskedLM")
    assert_close(model(IDS, MASK) * MASK[..., None], logits * MASK[..., None], 1e-5)
    config = family_of(kind).config(model_type=kind)
    assert config.for_task("ForMaskedLM").architectures == (f"{name}ForMaskedLM",) == model.config.architectures


def test_an_unknown_task_gives_the_encoder(tmp_path: Path) -> None:
    model = seeded_model(family("Bert"), config_of("Bert", "ForMultipleChoice"))
    assert type(model) is Encoder


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    model = seeded_model(family("Bert"), config_of("Bert", "ForSequenceClassification"))
    io.save_pretrained(model, tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["classifier.weight"]
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"missing: classifier\.weight"):
        models.load(tmp_path)


def test_an_output_layer_of_its_own_is_refused() -> None:
    with pytest.raises(ValueError, match="tie_word_embeddings is false, but the last layer is the embeddings"):
        MaskedLanguageModel(config_of("Bert", "ForMaskedLM", tie_word_embeddings=False), key=lx.random.key(0))
