"""Finds the lines of a text that say about the same as a query, by an encoder from its folder.

    python examples/similar_sentences.py --model all-MiniLM-L6-v2 --text notes.txt --query "How are programs compiled?"

The folder is as Hugging Face publishes it: config.json and weights of BERT, RoBERTa or DistilBERT, tokenizer.json, and
modules.json if sentence-transformers made it. Prints the lines that are most similar to the query, and draws how
similar all lines are to one another. Without a folder it makes one, of a small model with random weights and a
tokenizer of single bytes: lines that share letters are similar then.
"""
from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers import models as tokenizer_models
from tqdm import tqdm

import lavax as lx
from lavax import models
from lavax.models.encoders import BertConfig, Encoder

LINES = (
    "A man is eating food.", "Someone eats a meal.", "A woman plays the violin.", "Music is played on a stringed "
    "instrument.", "A compiler turns programs into machine code.", "Programs are translated for a processor.",
    "It rains in the mountains.", "The weather is wet up there.",
)  # fmt: skip
LONGEST = 256  # tokens of a line; sentence-transformers cut all-MiniLM's there, too
QUICK = {"batch": 4}  # what --quick changes


def make_folder(folder: Path, seed: int) -> None:
    """A small encoder with random weights, and a tokenizer of single bytes."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(tokenizer_models.BPE({character: number for number, character in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = BertConfig(
        vocab_size=256, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
        max_position_embeddings=LONGEST,
    )  # fmt: skip
    lx.io.save_pretrained(Encoder(config, key=lx.random.key(seed)), folder)


def token_arrays(tokenizer: Tokenizer, lines: list[str], longest: int) -> tuple[np.ndarray, np.ndarray]:
    """Token ids [lines, T] and which of them are no padding; T is a power of 2, so that few functions are compiled."""
    tokenizer.enable_truncation(longest)  # which keeps the token that ends a line
    found = [encoding.ids for encoding in tokenizer.encode_batch(lines)]
    width = min(longest, 1 << max(max(map(len, found)) - 1, 15).bit_length())
    ids = np.zeros((len(found), width), np.int32)
    for row, tokens in zip(ids, found, strict=True):
        row[: len(tokens)] = tokens
    return ids, np.arange(width) < np.array([[len(tokens)] for tokens in found])


def embedded(folder: Path, lines: list[str], batch: int, dtype: str) -> np.ndarray:
    """A vector of length 1 for each line: float32 [lines, features]."""
    model, pooling = models.load(folder, dtype=dtype), models.Pooling.of_folder(folder)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    apply = lx.compile(lambda model, ids, mask: models.sentence_embeddings(model, ids, mask, pooling))
    made = []
    for first in tqdm(range(0, len(lines), batch), desc="lines", unit="batch"):
        some = lines[first : first + batch]
        padded = some + [some[-1]] * (batch - len(some))
        arrays = token_arrays(tokenizer, padded, min(LONGEST, model.config.longest))
        made.append(np.asarray(apply(model, *arrays))[: len(some)])
    vectors = np.concatenate(made)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def draw_similarities(file: Path, similarities: np.ndarray) -> None:
    """How similar each line is to each other one."""
    figure = Figure(figsize=(5.5, 4.5), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(similarities, vmin=min(0.0, float(similarities.min())), vmax=1)
    axes.set(xlabel="line", ylabel="line", title="Cosine similarity")
    figure.colorbar(image)
    figure.savefig(file)


def main() -> None:
    parser = argparse.ArgumentParser(description="Finds lines of a text that say about the same as a query.")
    parser.add_argument("--model", type=Path, help="folder of an encoder")
    parser.add_argument("--text", type=Path, help="text file, a sentence a line (default: eight sentences)")
    parser.add_argument("--query", default="Somebody has dinner.", help="what to look for")
    parser.add_argument("--most", type=int, default=3, help="lines to print")
    parser.add_argument("--batch", type=int, default=32, help="lines at once")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"), help="of the weights")
    parser.add_argument("--seed", type=int, default=0, help="of the weights that are made")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture")
    parser.add_argument("--quick", action="store_true", help="smaller, in seconds")
    options = parser.parse_args()
    if options.quick:
        parser.set_defaults(**QUICK)
        options = parser.parse_args()

    lines = list(LINES) if options.text is None else options.text.read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if line.strip()]
    if not lines:
        raise SystemExit(f"{options.text}: no lines")
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        if options.model is None:
            make_folder(Path(temporary), options.seed)
        vectors = embedded(options.model or Path(temporary), [*lines, options.query], options.batch, options.dtype)
    print(f"{len(vectors)} texts in {time.perf_counter() - start:.1f} seconds")
    found = vectors[:-1] @ vectors[-1]
    print(f"like {options.query!r}:")
    for index in np.argsort(-found)[: options.most]:
        print(f"  {found[index]:.3f}  {lines[index]}")

    options.out.mkdir(parents=True, exist_ok=True)
    draw_similarities(options.out / "similar_sentences.png", vectors[:-1] @ vectors[:-1].T)
    print(f"picture: {options.out / 'similar_sentences.png'}")


if __name__ == "__main__":
    main()
