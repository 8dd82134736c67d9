"""Writes down what is said in a recording, by a Whisper model from its folder.

    python examples/transcribe.py --model whisper-tiny --audio speech.wav --language en --timestamps

The folder is as Hugging Face publishes it: config.json, generation_config.json, weights in safetensors, tokenizer.json.
The recording is a WAV file of 16-bit numbers. Prints each segment with its times, and draws the spectrogram that the
model hears. Without a folder it makes one, of a small model with random weights, which hears nonsense in a few tones.
"""
from __future__ import annotations

import argparse
import json
import tempfile
import time
import wave
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import lavax as lx
from lavax.models.whisper import TranscriptionSettings, log_mel_spectrogram, transcribe
from lavax.models.whisper.config import WhisperConfig
from lavax.models.whisper.whisper import Whisper

RATE = 16_000  # samples a second
QUICK = {"max_new_tokens": 10}  # what --quick changes


def make_folder(folder: Path, seed: int) -> None:
    """A small Whisper with random weights that hears two seconds at a time, and a tokenizer of single bytes."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({character: number for number, character in enumerate(alphabet)}, []))
    tokenizer.decoder = decoders.ByteLevel()
    end, start, silent = 256, 257, 258  # the last also says that no times follow; 101 tokens for times come after it
    config = WhisperConfig(
        vocab_size=360, d_model=64, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=128, decoder_layers=2,
        decoder_attention_heads=4, decoder_ffn_dim=128, max_source_positions=100, max_target_positions=64,
        decoder_start_token_id=start, eos_token_id=end,
    )  # fmt: skip
    lx.io.save_pretrained(Whisper(config, key=lx.random.key(seed)), folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    special = {"decoder_start_token_id": start, "eos_token_id": end, "no_timestamps_token_id": silent}
    special |= {"suppress_tokens": [start, silent]}
    (folder / "generation_config.json").write_text(json.dumps(special), encoding="utf-8")


def tones(seed: int) -> np.ndarray:
    """Three seconds of three rising tones in noise."""
    draw = np.random.default_rng(seed)
    seconds = np.arange(3 * RATE) / RATE
    phases = 2 * np.pi * draw.uniform(100, 1500, 3)[:, None] * (seconds + 0.2 * seconds**2)
    return (0.2 * np.sin(phases).sum(axis=0) + draw.normal(0, 0.02, seconds.size)).astype(np.float32)


def read_recording(path: Path) -> np.ndarray:
    """The mean of the channels of a WAV file, between −1 and 1, with RATE samples a second."""
    with wave.open(str(path)) as file:
        if file.getsampwidth() != 2:
            raise SystemExit(f"{path}: samples of 16 bits are needed, these have {8 * file.getsampwidth()}")
        numbers = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, file.getnchannels())
        given = file.getframerate()
    samples = numbers.mean(axis=1) / 2**15
    count = len(samples) * RATE // given
    return np.interp(np.arange(count) * (given / RATE), np.arange(len(samples)), samples).astype(np.float32)


def draw_spectrogram(file: Path, samples: np.ndarray, mel_bins: int) -> None:
    """The logarithm of the power in each of the bands, over time."""
    figure = Figure(figsize=(10, 3.5), layout="constrained")
    axes = figure.subplots()
    spectrogram = np.asarray(log_mel_spectrogram(samples, mel_bins))
    axes.imshow(spectrogram, origin="lower", aspect="auto", extent=(0, len(samples) / RATE, 0, mel_bins))
    axes.set(xlabel="seconds", ylabel="mel band", title="What the model hears")
    figure.savefig(file)


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes down what is said in a recording.")
    parser.add_argument("--model", type=Path, help="folder of a Whisper model")
    parser.add_argument("--audio", type=Path, help="WAV file (default: a few tones)")
    parser.add_argument("--language", help='such as "en" (default: the model says)')
    parser.add_argument("--translate", action="store_true", help="into English")
    parser.add_argument("--timestamps", action="store_true", help="the model says when segments begin and end")
    parser.add_argument("--max-new-tokens", type=int, help="for a window of 30 seconds")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"), help="of the weights")
    parser.add_argument("--seed", type=int, default=0, help="of the weights and the tones that are made")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture")
    parser.add_argument("--quick", action="store_true", help="smaller, in seconds")
    options = parser.parse_args()
    if options.quick:
        parser.set_defaults(**QUICK)
        options = parser.parse_args()

    samples = tones(options.seed) if options.audio is None else read_recording(options.audio)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.model or Path(temporary)
        if options.model is None:
            make_folder(folder, options.seed)
        model = lx.models.load(folder, dtype=options.dtype)
        settings = TranscriptionSettings.of_folder(folder)
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    start = time.perf_counter()
    transcript = transcribe(
        model, samples, settings, tokenizer=tokenizer, language=options.language,
        task="translate" if options.translate else None, timestamps=options.timestamps,
        max_new_tokens=options.max_new_tokens,
    )  # fmt: skip
    for segment in transcript.segments:
        print(f"[{segment.start:6.2f} to {segment.end:6.2f}] {segment.text}")
    print(f"{len(samples) / RATE:.1f} seconds of sound in {time.perf_counter() - start:.1f} seconds")

    options.out.mkdir(parents=True, exist_ok=True)
    draw_spectrogram(options.out / "transcribe.png", samples, model.config.num_mel_bins)
    print(f"picture: {options.out / 'transcribe.png'}")


if __name__ == "__main__":
    main()
