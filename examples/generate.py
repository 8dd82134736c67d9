"""Continues a prompt with a language model from its folder, token by token.

    python examples/generate.py --model SmolLM2-135M --prompt "The sea is" --temperature 0.8 --seed 1

The folder is as Hugging Face publishes it: config.json, weights in safetensors, tokenizer.json. Prints the text as it
comes, and how many characters a second came after the first piece, which waits for compilation and the prompt. Without
a folder it makes one, of a small Llama with random weights, which writes nonsense.
"""
from __future__ import annotations

import argparse
import pydoc_data.topics
import tempfile
import time
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

import lavax as lx
from lavax.models.llama import Llama
from lavax.models.llama_config import LlamaConfig

QUICK = {"max_new_tokens": 20}  # what --quick changes
VOCABULARY = 512  # of the folder that is made


def make_folder(folder: Path, seed: int) -> None:
    """A tokenizer of bytes that knows the pages of help(), and a small Llama with random weights."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(pydoc_data.topics.topics.values(), trainer)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=64, intermediate_size=192, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, rope_theta=10000.0, max_position_embeddings=2048,
    )  # fmt: skip
    lx.io.save_pretrained(Llama(config, key=lx.random.key(seed)), folder)
    tokenizer.save(str(folder / "tokenizer.json"))


def main() -> None:
    parser = argparse.ArgumentParser(description="Continues a prompt with a language model.")
    parser.add_argument("--model", type=Path, help="folder with config.json, model.safetensors and tokenizer.json")
    parser.add_argument("--prompt", default="The value of an expression is")
    parser.add_argument("--chat", action="store_true", help="the prompt is a message, in the folder's chat template")
    parser.add_argument("--stop", action="append", default=[], help="end before this text; may be given several times")
    parser.add_argument("--max-new-tokens", type=int, default=100)
    parser.add_argument("--temperature", type=float, default=0.0, help="0 takes the most likely token")
    parser.add_argument("--top-k", type=int, help="draw among so many tokens only")
    parser.add_argument("--top-p", type=float, help="draw among the likeliest that have this probability together")
    parser.add_argument("--min-p", type=float, help="draw among those with this share of the likeliest's probability")
    parser.add_argument("--repetition-penalty", type=float, default=1.0, help="above 1: fewer tokens again")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"), help="of the weights")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn")
    parser.add_argument("--quick", action="store_true", help="smaller, in seconds")
    options = parser.parse_args()
    if options.quick:
        parser.set_defaults(**QUICK)
        options = parser.parse_args()

    with tempfile.TemporaryDirectory() as temporary:
        folder = options.model or Path(temporary)
        if options.model is None:
            make_folder(folder, options.seed)
        model = lx.models.load(folder, dtype=options.dtype)
        tokenizer = lx.generate.Tokenizer.load(folder)
    prompt: Any = options.prompt
    if options.chat:
        prompt = tokenizer.chat([{"role": "user", "content": options.prompt}])
    names = ("stop", "temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed")
    settings = {name: getattr(options, name) for name in names}

    print("" if options.chat else options.prompt, end="", flush=True)
    pieces, times = [], []
    for piece in lx.generate.stream_text(model, tokenizer, prompt, options.max_new_tokens, **settings):
        print(piece, end="", flush=True)
        pieces.append(piece)
        times.append(time.perf_counter())
    print()
    if len(times) > 1:
        print(f"{sum(map(len, pieces[1:])) / (times[-1] - times[0]):.0f} characters a second")


if __name__ == "__main__":
    main()
