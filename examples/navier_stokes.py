"""Recovers the beginning of a flow from a few late measurements, by gradients through the Navier-Stokes equations.

    python examples/navier_stokes.py --seed 1 --out out

A flow in a periodic square is given by its vorticity ω: ∂ω/∂t + u·∇ω = viscosity ∇²ω. The solver is spectral: it steps
Fourier coefficients by the method of Runge and Kutta, takes derivatives as products with wave numbers, and viscosity as
an exact factor. Products of fields are made on the grid, and only the lower two thirds of wave numbers are kept.

Sensors measure ω with noise at 256 of 4096 points, at three times in the second half. Of the beginning only the
spectrum is known. What is most probable given the measurements (4D-Var of weather services: Talagrand and Courtier
1987) is found by L-BFGS. Its gradient goes back through all time steps, in a scan of scans that are each a
`checkpoint`. Prints the errors of the beginning and of a forecast, relative to the true fields; draws them.

The errors are 9, 11 and 12 % with the seeds 0, 1 and 2, those of the forecast 9, 13 and 13 %, after 50 s on lavapipe.
"""
from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from tqdm import trange

import lavax as lx
import lavax.numpy as lnp
from lavax import optim

POINTS = 64  # of the grid on a side, which is 2π long
VISCOSITY = 1e-3
INTERVAL = 0.08  # time steps
INNER_STEPS = 10  # of the inner scans
SENSOR_DISTANCE = 4  # grid points
NOISE = 0.1  # standard deviation of measurements; that of the vorticity is 1
PEAK = 3.0  # wave number of most of the beginning
OPTIMIZER = optim.lbfgs(memory_size=40)
QUICK = {"iterations": 8, "steps": 20}  # what --quick changes


def wave_numbers(points: int) -> tuple[np.ndarray, np.ndarray]:
    """Those along rows and columns, of the coefficients that rfft2 gives: [points, 1] and [1, points // 2 + 1]."""
    along_rows = np.fft.fftfreq(points, 1 / points)[:, None].astype(np.float32)
    return along_rows, np.fft.rfftfreq(points, 1 / points)[None].astype(np.float32)


def change(coefficients: Any) -> Any:
    """−u·∇ω as coefficients, of coefficients of ω [points, points // 2 + 1]. The products are free of aliases."""
    points = len(coefficients)
    ky, kx = wave_numbers(points)
    squares = kx**2 + ky**2
    stream = coefficients / np.where(squares == 0, 1, squares)  # the stream function ψ, with −∇²ψ = ω
    fields = lnp.stack([1j * ky * stream, -1j * kx * stream, 1j * kx * coefficients, 1j * ky * coefficients])
    ux, uy, along_x, along_y = lnp.fft.irfft2(fields, s=(points, points))
    kept = (np.abs(kx) < points / 3) & (np.abs(ky) < points / 3)
    return -lnp.fft.rfft2(ux * along_x + uy * along_y) * kept


def step(coefficients: Any, interval: float = INTERVAL) -> Any:
    """Coefficients after a time step: Runge-Kutta of order 4, for what viscosity leaves."""
    ky, kx = wave_numbers(len(coefficients))
    half = np.exp(-VISCOSITY * (kx**2 + ky**2) * interval / 2)  # what viscosity leaves after half a step
    first = change(coefficients)
    second = change(half * (coefficients + interval / 2 * first))
    third = change(half * coefficients + interval / 2 * second)
    last = change(half * (half * coefficients + interval * third))
    return half**2 * (coefficients + interval / 6 * first) + interval / 6 * (2 * half * (second + third) + last)


def simulate(vorticity: Any, steps: int, inner_steps: int = INNER_STEPS) -> Any:
    """The vorticity after every `inner_steps` of all steps: [steps / inner_steps, points, points]."""

    @lx.checkpoint
    def inner(coefficients: Any, _: Any) -> tuple[Any, Any]:
        coefficients, _ = lx.scan(lambda now, _: (step(now), None), coefficients, None, length=inner_steps)
        return coefficients, lnp.fft.irfft2(coefficients, s=vorticity.shape)

    return lx.scan(inner, lnp.fft.rfft2(vorticity), None, length=steps // inner_steps)[1]


@partial(lx.compile, static_argnames="steps")
def flow(vorticity: Any, steps: int) -> Any:
    """`simulate`, compiled."""
    return simulate(vorticity, steps)


def spectrum(points: int) -> np.ndarray:
    """What a beginning's coefficients are, as multiples of those of white noise; ω has the standard deviation 1."""
    ky, kx = wave_numbers(points)
    size = np.hypot(kx, ky)
    amplitudes = size**2 * np.exp(-((size / PEAK) ** 2))
    twice = np.where((kx == 0) | (kx == points / 2), 1, 2)  # columns that stand for two, of the whole transform
    return (amplitudes / np.sqrt(np.sum(twice * amplitudes**2) / points**2)).astype(np.float32)


def coloured(noise: Any) -> Any:
    """A beginning made of white noise: [points, points]."""
    return lnp.fft.irfft2(spectrum(len(noise)) * lnp.fft.rfft2(noise), s=noise.shape)


def measured(fields: Any) -> Any:
    """What sensors would see without noise in the second half of the fields [times, points, points]."""
    return fields[len(fields) // 2 :, ::SENSOR_DISTANCE, ::SENSOR_DISTANCE]


def improbability(noise: Any, measurements: Any, steps: int) -> Any:
    """−log of the probability of the noise that a beginning is made of, given measurements; but for a constant."""
    misfit = (measured(simulate(coloured(noise), steps)) - measurements) / NOISE
    return (lnp.sum(noise**2) + lnp.sum(misfit**2)) / 2


@partial(lx.compile, static_argnames="steps", donate_argnums=(0, 1))
def improve(noise: Any, state: Any, measurements: Any, steps: int) -> tuple[Any, Any, Any]:
    """A step of L-BFGS; also gives the improbability before."""

    def loss(noise: Any) -> Any:
        return improbability(noise, measurements, steps)

    value, gradient = optim.value_and_grad_from_state(loss)(noise, state=state)
    updates, state = OPTIMIZER.update(gradient, state, noise, value=value, grad=gradient, value_fn=loss)
    return optim.apply_updates(noise, updates), state, value


def experiment(seed: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """A true beginning [POINTS, POINTS], and what sensors measure of the flow."""
    random = np.random.default_rng(seed)
    beginning = np.asarray(coloured(random.normal(size=(POINTS, POINTS)).astype(np.float32)))
    exact = np.asarray(measured(flow(beginning, steps=steps)))
    return beginning, exact + random.normal(0, NOISE, exact.shape).astype(np.float32)


def recover(measurements: np.ndarray, steps: int, iterations: int) -> tuple[np.ndarray, list[float]]:
    """The most probable beginning, and the improbability before each iteration."""
    noise = lnp.zeros((POINTS, POINTS))
    state = OPTIMIZER.init(noise)
    values: list[float] = []
    with trange(iterations, unit="iteration") as progress:
        for _ in progress:
            noise, state, value = improve(noise, state, measurements, steps=steps)
            values.append(float(value))
            progress.set_postfix(improbability=f"{values[-1]:.1f}")
    return np.asarray(coloured(noise)), values


def relative_error(found: np.ndarray, right: np.ndarray) -> float:
    """The distance in the Euclidean norm over the norm of what is right."""
    return float(np.linalg.norm(found - right) / np.linalg.norm(right))


def draw(file: Path, measurements: np.ndarray, pairs: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
    """The last measurements; then what was found, below what is true."""
    figure = Figure(figsize=(11, 7), layout="constrained")
    axes = figure.subplots(2, 1 + len(pairs))
    shown = {(0, 0): ("last measurements", measurements[-1])}
    for column, (name, fields) in enumerate(pairs.items(), 1):
        shown |= {(row, column): (f"{name}, {kind}", fields[row]) for row, kind in enumerate(("true", "found"))}
    axes[1, 0].set_axis_off()
    for place, (title, values) in shown.items():
        axes[place].imshow(values, cmap="RdBu_r", vmin=-3, vmax=3)
        axes[place].set(title=title, xticks=[], yticks=[])
    figure.savefig(file)


def main() -> None:
    parser = argparse.ArgumentParser(description="Recovers the beginning of a flow.")
    parser.add_argument("--seed", type=int, default=0, help="of the flow and the noise")
    parser.add_argument("--iterations", type=int, default=60, help="of L-BFGS")
    parser.add_argument("--steps", type=int, default=50, help="of time")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture")
    parser.add_argument("--quick", action="store_true", help="smaller, in seconds")
    options = parser.parse_args()
    if options.quick:
        parser.set_defaults(**QUICK)
        options = parser.parse_args()

    beginning, measurements = experiment(options.seed, options.steps)
    found, values = recover(measurements, options.steps, options.iterations)
    print(f"improbability: {values[0]:.1f} without measurements, {values[-1]:.1f} at the end")
    forecasts = [np.asarray(flow(field, steps=2 * options.steps))[-1] for field in (beginning, found)]
    pairs = {"beginning": (beginning, found), "forecast": (forecasts[0], forecasts[1])}
    for name, (right, guess) in pairs.items():
        print(f"relative error of the {name}: {relative_error(guess, right):.3f}")

    options.out.mkdir(parents=True, exist_ok=True)
    draw(options.out / "navier_stokes.png", measurements, pairs)
    print(f"picture: {options.out / 'navier_stokes.png'}")


if __name__ == "__main__":
    main()
