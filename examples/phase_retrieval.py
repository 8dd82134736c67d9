"""Recovers a complex image from intensities alone, by gradients with respect to complex numbers.

    python examples/phase_retrieval.py --seed 1 --out out

A camera far behind an object sees how large the Fourier transform of the wave is that leaves the object; the phases are
lost. So the object is lit through six known masks one after the other, which turn the wave by quarters of a circle at
random in every pixel (coded diffraction patterns: Candès, Li and Soltanolkotabi 2015). Photons are counted, so that the
patterns have noise. Adam looks for the image, a complex array, by the gradient of the mean square of the differences in
size. It starts from an eigenvector by the power method, without which it takes several times as many steps. No pattern
tells a turn of all pixels together, so the error is that after the best turn. Prints it for the start and the end;
draws sizes and phases of the true and the found image.

The error is 1.4 % at the end with the seeds 0, 1 and 2, which is what the noise allows, after 7 s on lavapipe.
"""
from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_sample_image
from tqdm import tqdm

import lavax as lx
import lavax.numpy as lnp
from lavax import optim

SIDE = 128  # pixels
PATTERNS = 6
PHOTONS = 1000.0  # a pixel and pattern, on average
POWER_STEPS = 30
STEPS_PER_CALL = 10
RATE = 0.05
QUICK = {"steps": 50}  # what --quick changes


def photographs(random: np.random.Generator) -> np.ndarray:
    """A complex image [SIDE, SIDE]: sizes are a part of one photograph, phases from −¾π to ¾π one of another."""
    parts = []
    for name in ("china.jpg", "flower.jpg"):
        photograph = load_sample_image(name).mean(axis=-1)[::2, ::2] / 255
        row, column = (random.integers(length - SIDE + 1) for length in photograph.shape)
        parts.append(photograph[row : row + SIDE, column : column + SIDE])
    return (parts[0] * np.exp(1.5j * np.pi * (parts[1] - 0.5))).astype(np.complex64)


def random_masks(random: np.random.Generator) -> np.ndarray:
    """Turns by quarters of a circle: [PATTERNS, SIDE, SIDE]."""
    return 1j ** random.integers(4, size=(PATTERNS, SIDE, SIDE)).astype(np.complex64)


def waves(image: Any, masks: Any) -> Any:
    """The waves at the camera, one a mask: [masks, rows, columns]. They have the norm of the image."""
    return lnp.fft.fft2(masks * image, norm="ortho")


def count_photons(image: np.ndarray, masks: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """The sizes of waves that counts of photons tell: [masks, rows, columns]."""
    intensities = np.abs(np.asarray(waves(image, masks))) ** 2
    unit = PHOTONS / np.mean(intensities)
    return np.sqrt(random.poisson(intensities * unit) / unit).astype(np.float32)


def misfit(image: Any, masks: Any, sizes: Any) -> Any:
    """The mean square of the differences in size."""
    return lnp.mean((lnp.abs(waves(image, masks)) - sizes) ** 2)


@lx.compile
def first_image(key: Any, masks: Any, sizes: Any) -> Any:
    """The power method from a random image, on a matrix whose expectation has the true image as an eigenvector.

    It weights the waves by what is measured. The result has the norm of the image, which is that of a pattern.
    """

    def step(image: Any, _: Any) -> tuple[Any, None]:
        weighted = lnp.fft.ifft2(weights * waves(image, masks), norm="ortho")
        image = lnp.sum(masks.conj() * weighted, axis=0)
        return image / lnp.linalg.norm(image), None

    mean = lnp.mean(sizes**2)
    weights = lnp.minimum(sizes**2, 9 * mean)  # the few largest ones would rule the rest
    image = lx.random.normal(key, masks.shape[1:], "complex64")
    image, _ = lx.scan(step, image, None, length=POWER_STEPS)
    return image * lnp.sqrt(mean * image.size)


@partial(lx.compile, donate_argnums=(0, 1))
def improve(image: Any, state: Any, masks: Any, sizes: Any) -> tuple[Any, Any, Any]:
    """Some steps of Adam; also gives the misfit before the last one.

    The gradient by a complex number x + iy is that by x, less i times that by y: descent goes along its conjugate.
    """

    def step(carry: Any, _: Any) -> tuple[Any, Any]:
        image, state = carry
        value, gradient = lx.value_and_grad(misfit)(image, masks, sizes)
        updates, state = optim.adam(RATE).update(gradient.conj(), state)
        return (optim.apply_updates(image, updates), state), value

    (image, state), values = lx.scan(step, (image, state), None, length=STEPS_PER_CALL)
    return image, state, values[-1]


def turned(image: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The image, multiplied by the number of length 1 that brings it nearest to the right one."""
    product = np.vdot(image, right)
    return image * (product / np.abs(product))


def relative_error(image: np.ndarray, right: np.ndarray) -> float:
    """The least distance in the Euclidean norm for any turn, over the norm of what is right."""
    return float(np.linalg.norm(turned(image, right) - right) / np.linalg.norm(right))


def recover(masks: np.ndarray, sizes: np.ndarray, seed: int, steps: int) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """The first image, the last, and the misfits after each call of `improve`."""
    first = np.asarray(first_image(lx.random.key(seed), masks, sizes))
    image, state = lnp.asarray(first), optim.adam(RATE).init(first)
    values: list[float] = []
    with tqdm(total=steps, unit="step") as progress:
        for _ in range(0, steps, STEPS_PER_CALL):
            image, state, value = improve(image, state, masks, sizes)
            values.append(float(value))
            progress.update(STEPS_PER_CALL)
            progress.set_postfix(misfit=f"{values[-1]:.2e}")
    return first, np.asarray(image), values


def draw(file: Path, pattern: np.ndarray, right: np.ndarray, found: np.ndarray) -> None:
    """A pattern; then sizes and phases of the true image above, of the found one below."""
    figure = Figure(figsize=(11, 7), layout="constrained")
    axes = figure.subplots(2, 3)
    axes[0, 0].imshow(np.fft.fftshift(pattern) ** 0.5, cmap="gray")
    axes[0, 0].set_title("one of the patterns (square root)")
    for row, (kind, image) in enumerate({"true": right, "found": found}.items()):
        axes[row, 1].imshow(np.abs(image), cmap="gray", vmin=0, vmax=1)
        axes[row, 1].set_title(f"size, {kind}")
        axes[row, 2].imshow(np.angle(image), cmap="twilight", vmin=-np.pi, vmax=np.pi)
        axes[row, 2].set_title(f"phase, {kind}")
    for part in axes.flat:
        part.set_axis_off()
    figure.savefig(file)


def main() -> None:
    parser = argparse.ArgumentParser(description="Recovers a complex image from intensities.")
    parser.add_argument("--seed", type=int, default=0, help="of the image, the masks, the photons and the start")
    parser.add_argument("--steps", type=int, default=300, help="of Adam")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture")
    parser.add_argument("--quick", action="store_true", help="smaller, in seconds")
    options = parser.parse_args()
    if options.quick:
        parser.set_defaults(**QUICK)
        options = parser.parse_args()

    random = np.random.default_rng(options.seed)
    image, masks = photographs(random), random_masks(random)
    sizes = count_photons(image, masks, random)
    first, found, _ = recover(masks, sizes, options.seed, options.steps)
    start, end = relative_error(first, image), relative_error(found, image)
    print(f"relative error: {start:.4f} at the start, {end:.4f} at the end")

    options.out.mkdir(parents=True, exist_ok=True)
    draw(options.out / "phase_retrieval.png", sizes[0], image, turned(found, image))
    print(f"picture: {options.out / 'phase_retrieval.png'}")


if __name__ == "__main__":
    main()
