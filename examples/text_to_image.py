"""Makes pictures of a text, by a Stable Diffusion model from its folder.

    python examples/text_to_image.py --model stable-diffusion-v1-5 --prompt "a lighthouse in fog" --count 4

The folder is as Hugging Face publishes it: unet, vae, text_encoder, tokenizer and scheduler, with weights in
safetensors. Prints how long the steps took. Without a folder it makes one, of a small model with random weights, whose
pictures are patterns of noise.
"""
from __future__ import annotations

import argparse
import json
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from tokenizers.pre_tokenizers import ByteLevel
from tqdm import tqdm

import lavax as lx
from lavax.models import diffusion
from lavax.models.diffusion.prompts import PromptTokenizer
from lavax.models.vision.clip_text import CLIPText, CLIPTextConfig

SAMPLERS = {"ddim": diffusion.ddim, "euler": diffusion.euler, "euler-ancestral": diffusion.euler_ancestral}
QUICK = {"steps": 4}  # what --quick changes


def make_folder(folder: Path, seed: int) -> None:
    """A small Stable Diffusion with random weights, and a tokenizer of single letters."""
    letters = sorted(ByteLevel.alphabet())
    names = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    files = folder / "letters"
    files.mkdir(parents=True)
    (files / "vocab.json").write_text(json.dumps({name: number for number, name in enumerate(names)}))
    (files / "merges.txt").write_text("#version: 0.2\n")
    (files / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 16}))
    text = CLIPTextConfig(
        vocab_size=len(names), hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=16, eos_token_id=len(names) - 1,
    )  # fmt: skip
    unet = diffusion.UNetConfig(
        sample_size=8, block_out_channels=(16,), layers_per_block=1, norm_num_groups=4, cross_attention_dim=16,
        attention_head_dim=2, down_block_types=("CrossAttnDownBlock2D",), up_block_types=("CrossAttnUpBlock2D",),
    )  # fmt: skip
    vae = diffusion.AutoencoderConfig(
        block_out_channels=(8, 16), norm_num_groups=4, down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
    )  # fmt: skip
    keys = lx.random.split(lx.random.key(seed), 3)
    made = diffusion.TextToImage(
        PromptTokenizer.load(files),
        lx.compile(lambda key: CLIPText(text, key=key))(keys[0]),
        lx.compile(lambda key: diffusion.UNet(unet, key=key))(keys[1]),
        lx.compile(lambda key: diffusion.Autoencoder(vae, key=key))(keys[2]),
        diffusion.NoiseSchedule(beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012, steps_offset=1),
    )
    diffusion.save_pipeline(made, folder)


def draw_pictures(file: Path, images: np.ndarray, prompt: str) -> None:
    """Pictures uint8 [n, height, width, 3] in a row, below the text."""
    figure = Figure(figsize=(3 * len(images), 3.3), layout="constrained")
    for axes, image in zip(np.atleast_1d(figure.subplots(1, len(images))), images, strict=True):
        axes.imshow(image)
        axes.set_axis_off()
    figure.suptitle(prompt)
    figure.savefig(file)


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes pictures of a text.")
    parser.add_argument("--model", type=Path, help="folder of a Stable Diffusion model")
    parser.add_argument("--prompt", default="a lighthouse in fog")
    parser.add_argument("--negative", default="", help="what the pictures should not show")
    parser.add_argument("--count", type=int, default=2, help="of pictures")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--sampler", default="ddim", choices=sorted(SAMPLERS))
    parser.add_argument("--guidance", type=float, default=7.5, help="1: none")
    parser.add_argument("--height", type=int, help="in pixels (default: as the model was trained)")
    parser.add_argument("--width", type=int)
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"), help="of the weights")
    parser.add_argument("--seed", type=int, default=0, help="of the noise, and of weights that are made")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture")
    parser.add_argument("--quick", action="store_true", help="smaller, in seconds")
    options = parser.parse_args()
    if options.quick:
        parser.set_defaults(**QUICK)
        options = parser.parse_args()

    with tempfile.TemporaryDirectory() as temporary:
        folder = options.model or Path(temporary)
        if options.model is None:
            make_folder(folder, options.seed)
        make = diffusion.load_pipeline(folder, dtype=options.dtype)
    start = time.perf_counter()
    images = make(
        [options.prompt] * options.count, key=lx.random.key(options.seed), negative=options.negative,
        steps=options.steps, guidance=options.guidance, sampler=SAMPLERS[options.sampler],
        height=options.height, width=options.width, progress=partial(tqdm, unit="step"),
    )  # fmt: skip
    _, height, width, _ = images.shape
    seconds = time.perf_counter() - start
    print(f"{options.count} pictures of {height} x {width} pixels in {seconds:.1f} seconds, compilation included")

    options.out.mkdir(parents=True, exist_ok=True)
    draw_pictures(options.out / "text_to_image.png", images, options.prompt)
    print(f"picture: {options.out / 'text_to_image.png'}")


if __name__ == "__main__":
    main()
