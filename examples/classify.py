"""Says what is in an image, by a classifier from its folder.

    python examples/classify.py --model resnet-50 --image cat.jpg

The folder is as Hugging Face publishes it: config.json, preprocessor_config.json, weights in safetensors. Prints the
likeliest labels, and draws the image as the model sees it. Without a folder it makes one: a small ResNet learns
scikit-learn's handwritten digits, with batch norm whose running statistics are part of the model; prints its accuracy
on the fifth of the images that training never sees. Without an image it takes one of these.

The small ResNet reaches 98.9, 99.2 and 99.2 % with the seeds 0, 1 and 2, in 9 s on lavapipe.
"""
from __future__ import annotations

import argparse
import json
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from sklearn.datasets import load_digits
from tqdm import trange

import lavax as lx
from lavax import nn, optim
from lavax.models.convolution import ResNet, ResNetConfig, fold_batch_norm

SIDE = 32  # of the digits, whose 8 × 8 pixels are repeated
BATCH = 64
RATE = 3e-3  # of the first epoch; it falls to nothing in even steps
QUICK = {"epochs": 2}  # what --quick changes


def loss(model: Any, images: Any, labels: Any) -> tuple[Any, Any]:
    """Mean cross-entropy, and the running statistics after the batch."""
    logits, statistics = model(images, training=True)
    return nn.cross_entropy(logits, labels), statistics


@partial(lx.compile, donate_argnums=(0, 1))
def step(model: Any, state: Any, images: Any, labels: Any, rate: Any) -> tuple[Any, Any, Any]:
    """One step of training on a batch; also gives the loss before it."""
    (value, statistics), gradients = lx.value_and_grad(loss, has_aux=True)(model, images, labels)
    updates, state = optim.adam(rate).update(gradients, state)
    return optim.apply_updates(model, updates).replace(statistics=statistics), state, value


@lx.compile
def probabilities(model: Any, images: Any) -> Any:
    """Of the labels of images [n, channels, height, width]: [n, labels]."""
    return nn.softmax(model(images))


def digits(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Images [1797, SIDE, SIDE] from 0 to 255, and their digits."""
    data = load_digits()
    rows = np.random.default_rng(seed).permutation(len(data.target))
    pixels = np.repeat(np.repeat(data.images[rows] * (255 / 16), SIDE // 8, axis=1), SIDE // 8, axis=2)
    return pixels.astype(np.uint8), data.target[rows].astype(np.int32)


def make_folder(folder: Path, seed: int, epochs: int) -> None:
    """A folder as models are published in: a small ResNet that has learned digits. Prints its accuracy."""
    pixels, labels = digits(seed)
    images = ((pixels[:, None] / 255 - 0.5) / 0.5).astype(np.float32)
    test, training = np.split(np.arange(len(labels)), [len(labels) // 5])
    names = {digit: f"digit {digit}" for digit in range(10)}
    sizes = dict(num_channels=1, embedding_size=16, hidden_sizes=(16, 32), depths=(1, 1))
    config = ResNetConfig(**sizes, layer_type="basic", id2label=names)
    model = ResNet(config, key=lx.random.key(seed))
    state = optim.adam(RATE).init(model)
    draw = np.random.default_rng(seed)
    for epoch in trange(epochs, unit="epoch"):
        order = draw.permutation(training)
        for start in range(0, len(order) - BATCH + 1, BATCH):
            rows = order[start : start + BATCH]
            model, state, _ = step(model, state, images[rows], labels[rows], np.float32(RATE * (1 - epoch / epochs)))
    found = np.asarray(probabilities(model, images[test])).argmax(axis=1)
    print(f"accuracy on digits: {100 * np.mean(found == labels[test]):.1f} %")
    lx.io.save_pretrained(model, folder)
    preprocessing = {"size": {"shortest_edge": SIDE}, "crop_pct": 1.0, "image_mean": [0.5], "image_std": [0.5]}
    (folder / "preprocessor_config.json").write_text(json.dumps(preprocessing), encoding="utf-8")


def seen(image: Image.Image, settings: dict[str, Any]) -> np.ndarray:
    """The middle of the image as the model takes it: [1, channels, side, side]. Sizes are as in the settings' file."""
    mean, deviation = (np.array(settings[name], np.float32) for name in ("image_mean", "image_std"))
    size = settings["size"]
    side = size.get("shortest_edge") or size["height"]
    scale = side / settings.get("crop_pct", 0.875) / min(image.size)
    larger = [max(round(scale * extent), side) for extent in image.size]
    left, top = ((extent - side) // 2 for extent in larger)
    resized = image.convert("L" if mean.size == 1 else "RGB").resize(larger, Image.Resampling.BICUBIC)
    pixels = np.asarray(resized.crop((left, top, left + side, top + side)), np.float32).reshape(side, side, -1)
    return np.moveaxis((pixels / 255 - mean) / deviation, -1, 0)[None].astype(np.float32)


def draw_seen(file: Path, image: np.ndarray, title: str) -> None:
    """What the model sees, with contrast as it comes."""
    figure = Figure(figsize=(4, 4), layout="constrained")
    axes = figure.subplots()
    pixels = np.moveaxis(image[0], 0, -1)
    axes.imshow((pixels - pixels.min()) / max(np.ptp(pixels), 1e-6), cmap="gray")
    axes.set_axis_off()
    axes.set_title(title)
    figure.savefig(file)


def main() -> None:
    parser = argparse.ArgumentParser(description="Says what is in an image.")
    parser.add_argument("--model", type=Path, help="folder of an image classifier")
    parser.add_argument("--image", type=Path, help="file (default: a digit)")
    parser.add_argument("--seed", type=int, default=0, help="of the weights, the split and the order of the digits")
    parser.add_argument("--epochs", type=int, default=10, help="of the model that is made without --model")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture")
    parser.add_argument("--quick", action="store_true", help="smaller, in seconds")
    options = parser.parse_args()
    if options.quick:
        parser.set_defaults(**QUICK)
        options = parser.parse_args()

    with tempfile.TemporaryDirectory() as temporary:
        folder = options.model or Path(temporary)
        if options.model is None:
            make_folder(folder, options.seed, options.epochs)
        model = lx.models.load(folder)
        settings = json.loads((folder / "preprocessor_config.json").read_text(encoding="utf-8"))
    if hasattr(model, "statistics"):
        model = fold_batch_norm(model)
    image = Image.open(options.image) if options.image else Image.fromarray(digits(options.seed)[0][0])
    given = seen(image, settings)
    found = np.asarray(probabilities(model, given))[0]
    likeliest = [(model.config.label(label), found[label]) for label in np.argsort(-found)[:5]]
    for name, probability in likeliest:
        print(f"{100 * probability:5.1f} %  {name}")

    options.out.mkdir(parents=True, exist_ok=True)
    draw_seen(options.out / "classify.png", given, likeliest[0][0])
    print(f"picture: {options.out / 'classify.png'}")


if __name__ == "__main__":
    main()
