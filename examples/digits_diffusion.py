"""Learns to make handwritten digits of noise: a diffusion model (Ho et al. 2020), given the digit to make.

    python examples/digits_diffusion.py --seed 1 --out out

A network learns from scikit-learn's images to tell noise from image, and DDIM sampling makes images with it. They are
judged by a classifier that is trained on half of the real images: prints how many it takes for the digit that was asked
for, beside how many of the other half. Also prints the mean distance between images made of a digit, over that between
real ones: a model that always makes the same image has 0. Draws images that it made.

Of the images it made with the seeds 0, 1 and 2, 98.0, 98.2 and 97.4 % were taken for the digit asked for, where of
real ones 97.6 % were; the distances were 0.87 of the real ones. It takes 76 s on lavapipe.
"""
from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.svm import SVC
from tqdm import tqdm, trange

import lavax as lx
import lavax.numpy as lnp
from lavax import nn, optim
from lavax.models import diffusion

SIDE = 8
TIMES = 1000
SCHEDULE = diffusion.NoiseSchedule(TIMES, beta_schedule="squaredcos_cap_v2", clip_sample=True)
RATE = 2e-3  # of the first epoch; it falls to nothing along a cosine
BATCH = 128
QUICK = {"epochs": 50, "sampling_steps": 20}  # what --quick changes


class Block(nn.Module):
    """Adds to its input a function of that and of the condition: [n, width] and [n, width] to [n, width]."""

    norm: nn.LayerNorm
    inward: nn.Linear
    condition: nn.Linear
    outward: nn.Linear

    def __init__(self, width: int, *, key: Any) -> None:
        first, second, third = lx.random.split(key, 3)
        self.norm = nn.LayerNorm(width)
        self.inward = nn.Linear(width, width, key=first)
        self.condition = nn.Linear(width, width, key=second)
        self.outward = nn.Linear(width, width, key=third)

    def __call__(self, x: Any, condition: Any) -> Any:
        hidden = nn.silu(self.inward(self.norm(x)) + self.condition(condition))
        return x + self.outward(hidden)


class Denoiser(nn.Module):
    """The noise in images [n, 64] at times [n] of the schedule, given their digits [n]: [n, 64]."""

    first: nn.Linear
    digits: nn.Embedding
    time: nn.Linear
    blocks: tuple[Block, ...]
    norm: nn.LayerNorm
    last: nn.Linear

    def __init__(self, width: int, blocks: int, *, key: Any) -> None:
        for_first, for_digits, for_time, for_last, *keys = lx.random.split(key, 4 + blocks)
        self.first = nn.Linear(SIDE * SIDE, width, key=for_first)
        self.digits = nn.Embedding(10, width, key=for_digits)
        self.time = nn.Linear(32, width, key=for_time)
        self.blocks = tuple(Block(width, key=key) for key in keys)
        self.norm = nn.LayerNorm(width)
        self.last = nn.Linear(width, SIDE * SIDE, key=for_last)

    def __call__(self, images: Any, times: Any, digits: Any) -> Any:
        angles = times[:, None] / TIMES * np.pi * 2.0 ** np.arange(-1, 7, 0.5, dtype=np.float32)
        waves = lnp.concatenate([lnp.sin(angles), lnp.cos(angles)], axis=-1)
        condition = nn.silu(self.time(waves) + self.digits(digits))
        x = self.first(images)
        for block in self.blocks:
            x = block(x, condition)
        return self.last(self.norm(x))


def noise_in(denoiser: Denoiser, images: Any, times: Any, digits: Any) -> Any:
    """The denoiser's answer as samplers and the loss ask for it: `times` may be one number for all images."""
    return denoiser(images, lnp.broadcast_to(times, images.shape[:1]), digits)


@partial(lx.compile, donate_argnums=(0, 1))
def epoch(denoiser: Denoiser, state: Any, images: Any, digits: Any, key: Any, rate: Any) -> tuple[Denoiser, Any, Any]:
    """Steps of Adam on all images in a new order, less the few that fill no batch; also gives the mean loss."""

    def step(carry: Any, inputs: Any) -> tuple[Any, Any]:
        denoiser, state = carry
        rows, key = inputs
        loss, gradients = lx.value_and_grad(diffusion.loss)(
            denoiser, images[rows], key, digits[rows], schedule=SCHEDULE, predict=noise_in
        )
        updates, state = optim.adam(rate).update(gradients, state)
        return (optim.apply_updates(denoiser, updates), state), loss

    steps = len(images) // BATCH
    for_order, key = lx.random.split(key)
    rows = lx.random.permutation(for_order, len(images))[: steps * BATCH].reshape(steps, BATCH)
    (denoiser, state), losses = lx.scan(step, (denoiser, state), (rows, lx.random.split(key, steps)))
    return denoiser, state, lnp.mean(losses)


def train(denoiser: Denoiser, images: np.ndarray, digits: np.ndarray, key: Any, epochs: int) -> Denoiser:
    """The denoiser after so many times through the images [n, 64], which lie between −1 and 1."""
    state = optim.adam(RATE).init(denoiser)
    on_device = lx.device_put((images, digits))
    with trange(epochs, unit="epoch") as progress:
        for number in progress:
            rate = np.float32(RATE * (1 + np.cos(np.pi * number / epochs)) / 2)
            denoiser, state, loss = epoch(denoiser, state, *on_device, lx.random.fold_in(key, number), rate)
            if number % 10 == 9:
                progress.set_postfix(loss=f"{float(loss):.3f}")
    return denoiser


def made_images(denoiser: Denoiser, digits: np.ndarray, key: Any, steps: int) -> np.ndarray:
    """An image of each of the digits [n]: [n, 64]."""
    noise = lx.random.normal(key, (len(digits), SIDE * SIDE))
    sample = diffusion.sampling(SCHEDULE, noise_in)
    made = sample(denoiser, diffusion.ddim(SCHEDULE, steps), noise, digits, progress=partial(tqdm, unit="step"))
    return np.asarray(made)


def variety(images: np.ndarray, digits: np.ndarray) -> float:
    """The mean distance between two images of the same digit."""
    return float(np.mean([_mean_distance(images[digits == digit]) for digit in range(10)]))


def _mean_distance(images: np.ndarray) -> np.floating:
    distances = np.linalg.norm(images[:, None] - images, axis=-1)
    return distances[np.triu_indices(len(images), 1)].mean()


def draw_images(file: Path, images: np.ndarray, digits: np.ndarray) -> None:
    """Ten images of each digit, a row each."""
    framed = np.pad(images.reshape(-1, SIDE, SIDE), ((0, 0), (1, 1), (1, 1)), constant_values=-1)
    rows = [np.concatenate(framed[digits == digit][:10], axis=1) for digit in range(10)]
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    axes.imshow(np.concatenate(rows), cmap="gray_r", vmin=-1, vmax=1)
    axes.set_axis_off()
    axes.set_title("Digits made of noise")
    figure.savefig(file)


def main() -> None:
    parser = argparse.ArgumentParser(description="Learns to make handwritten digits of noise.")
    parser.add_argument("--seed", type=int, default=0, help="of the weights, the order and the noise")
    parser.add_argument("--epochs", type=int, default=400)
    parser.add_argument("--width", type=int, default=192)
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--sampling-steps", type=int, default=50)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture")
    parser.add_argument("--quick", action="store_true", help="smaller, in seconds")
    options = parser.parse_args()
    if options.quick:
        parser.set_defaults(**QUICK)
        options = parser.parse_args()

    data = load_digits()
    images, digits = (data.data / 8 - 1).astype(np.float32), data.target.astype(np.int32)
    for_weights, for_training, for_noise = lx.random.split(lx.random.key(options.seed), 3)
    denoiser = Denoiser(options.width, options.blocks, key=for_weights)
    denoiser = train(denoiser, images, digits, for_training, options.epochs)

    wanted = np.repeat(np.arange(10, dtype=np.int32), 50)
    made = made_images(denoiser, wanted, for_noise, options.sampling_steps)
    judge = SVC().fit(images[::2], digits[::2])
    agreed, agreed_real = judge.score(made, wanted), judge.score(images[1::2], digits[1::2])
    print(f"taken for the digit asked for: {100 * agreed:.1f} % (real images: {100 * agreed_real:.1f} %)")
    print(f"variety, over that of real images: {variety(made, wanted) / variety(images, digits):.2f}")

    options.out.mkdir(parents=True, exist_ok=True)
    draw_images(options.out / "digits_diffusion.png", made, wanted)
    print(f"picture: {options.out / 'digits_diffusion.png'}")


if __name__ == "__main__":
    main()
