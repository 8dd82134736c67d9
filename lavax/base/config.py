"""The settings of lavax, read from the environment here and nowhere else.

A setting is a function, not a constant, so that a test or a program may change the environment before
the first use. This module imports nothing of lavax, so that every module may import it.
"""
from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from pathlib import Path
from typing import Any

# The version of lavax. Files kept on disk from run to run depend on it, so every module must be able to read it.
VERSION = "0.1.0"


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "0") not in ("", "0")


def chosen_settings() -> list[str]:
    """The settings that the environment makes, each as `NAME=value`, for reports."""
    return sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith("LAVAX_"))


_device_in_use: list[str] = []  # what `use_device` chose, before the environment


def device_selector() -> str | None:
    """`LAVAX_DEVICE`: an index into `lavax.devices()`, or part of a device's name; None: the best device."""
    return _device_in_use[-1] if _device_in_use else os.environ.get("LAVAX_DEVICE") or None


@contextmanager
def use_device(selector: str) -> Iterator[None]:
    """A context in which `device_selector` is this, in all threads."""
    _device_in_use.append(selector)
    try:
        yield
    finally:
        _device_in_use.pop()


def validate() -> bool:
    """`LAVAX_VALIDATE=1`: switch the Khronos validation layer on, with synchronization validation."""
    return _is_on("LAVAX_VALIDATE")


def verify_passes() -> bool:
    """`LAVAX_VERIFY=1`: check after every pass before fusion that the graph holds only what it may hold there."""
    return _is_on("LAVAX_VERIFY")


_logs_compiles: ContextVar[bool | None] = ContextVar("logs_compiles", default=None)
_process_logs_compiles: list[bool] = []  # what `config.update` chose last, before the environment


def logs_compiles() -> bool:
    """`LAVAX_LOG_COMPILES=1`, or within `log_compiles`: log every trace and every compile, and why they are needed."""
    chosen = _logs_compiles.get()
    if chosen is not None:
        return chosen
    return _process_logs_compiles[-1] if _process_logs_compiles else _is_on("LAVAX_LOG_COMPILES")


def log_all_compiles(enabled: bool) -> None:
    """The same for the whole process, outside `log_compiles`."""
    _process_logs_compiles[:] = [enabled]


@contextmanager
def log_compiles(new_val: bool = True) -> Iterator[None]:
    """A context in which every trace and every compile is logged, with its reason; with False, none is.

    The loggers are "lavax.trace" and "lavax.compile". They write to standard error unless the program has set up
    logging; `LAVAX_LOG_COMPILES=1` does the same for the whole process.
    """
    token = _logs_compiles.set(new_val)
    try:
        yield
    finally:
        _logs_compiles.reset(token)


def guard_memory() -> bool:
    """`LAVAX_GUARD_MEMORY=1`: fill results and temporaries with NaN before every program, and check that none writes
    behind an array. Programs then run one by one, slowly. Read when a device is opened and a program is made."""
    return _is_on("LAVAX_GUARD_MEMORY")


_key_reuse: ContextVar[bool] = ContextVar("key_reuse", default=False)


def check_key_reuse() -> bool:
    """`LAVAX_CHECK_KEY_REUSE=1`, or within `debug.key_reuse`: refuse to draw random numbers from one key twice."""
    return _key_reuse.get() or _is_on("LAVAX_CHECK_KEY_REUSE")


@contextmanager
def checked_key_reuse() -> Iterator[None]:
    """A context in which no key may be drawn from twice."""
    token = _key_reuse.set(True)
    try:
        yield
    finally:
        _key_reuse.reset(token)


def refuse_key_reuse(enabled: bool) -> None:
    """The same for this thread from now on."""
    _key_reuse.set(enabled)


def debug_nans() -> bool:
    """`LAVAX_DEBUG_NANS=1`: refuse every NaN that an operation makes, as `debug.nans` does. Read at the first use."""
    return _is_on("LAVAX_DEBUG_NANS")


def random_cuts() -> int | None:
    """`LAVAX_RANDOM_CUTS=SEED`: for tests: programs are cut at random points into submissions, as if they took long."""
    seed = os.environ.get("LAVAX_RANDOM_CUTS")
    return int(seed) if seed else None


def tune() -> bool:
    """`LAVAX_TUNE=1`: compile everything as `compile(tune=True)` does."""
    return _is_on("LAVAX_TUNE")


def _number(variable: str, default: float) -> float:
    """The number that a variable holds. Raises ValueError for another text, or a negative number."""
    written = os.environ.get(variable) or str(default)
    try:
        number = float(written)
    except ValueError:
        number = -1.0
    if not number >= 0:
        raise ValueError(f"{variable}={written}: set it to a number of at least 0, or to inf")
    return number


def idle_memory_seconds() -> float | None:
    """`LAVAX_IDLE_MEMORY_SECONDS`: after how long the driver gets unused memory back; inf: never, which is None here.

    10 by default. Raises ValueError if it is not a number of at least 0.
    """
    seconds = _number("LAVAX_IDLE_MEMORY_SECONDS", 10.0)
    return None if seconds == float("inf") else max(seconds, 0.01)


def kept_programs() -> float:
    """`LAVAX_KEPT_PROGRAMS`: how many programs a compiled function keeps, those used last; 256 by default.

    Raises ValueError if it is not a number of at least 0.
    """
    return max(_number("LAVAX_KEPT_PROGRAMS", 256.0), 1.0)


def kept_program_bytes() -> float:
    """`LAVAX_KEPT_PROGRAM_BYTES`: the device memory that the programs of one compiled function may hold: 2³².

    The few used last are kept whatever they hold. Raises ValueError if it is not a number of at least 0.
    """
    return _number("LAVAX_KEPT_PROGRAM_BYTES", float(1 << 32))


_cache_in_use: list[Path] = []  # what `cache_in` chose, before the environment


@contextmanager
def cache_in(folder: Path) -> Iterator[None]:
    """A context in which `cache_folder` is this, in all threads."""
    _cache_in_use.append(folder)
    try:
        yield
    finally:
        _cache_in_use.pop()


def cache_folder() -> Path:
    """`LAVAX_CACHE`: the folder for compiled shaders, plans and tuning results; by default in the user's cache folder.

    Raises RuntimeError if nothing says where that is: the user has no home directory.
    """
    if _cache_in_use:
        return _cache_in_use[-1]
    chosen = os.environ.get("LAVAX_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return Path(base or Path.home() / ".cache") / "lavax"


def is_installed() -> bool:
    """Whether lavax is an installed package, whose rooms lie in one folder, rather than a checkout that is worked on.
    """
    return (Path(__file__).parents[1] / "ir").is_dir()


def keeps_plans() -> bool:
    """`LAVAX_PLANS`: whether finished plans are kept in the cache folder; by default if lavax is installed.

    In a checkout they are not: a program may patch a pass, and the next process would find that pass's plan.
    """
    chosen = os.environ.get("LAVAX_PLANS")
    return chosen != "0" if chosen else is_installed()


def glsl_compiler() -> str | None:
    """`LAVAX_GLSL`: "extension" or "program", what compiles shaders; None: the extension if it was built and works.

    Raises ValueError for anything else.
    """
    chosen = os.environ.get("LAVAX_GLSL") or None
    if chosen not in (None, "extension", "program"):
        raise ValueError(f'LAVAX_GLSL must be "extension" or "program", got {chosen!r}')
    return chosen


_keeps_64_bits: ContextVar[bool | None] = ContextVar("keeps_64_bits", default=None)
_process_keeps_64_bits: list[bool] = []  # what `config.update` chose last, before the environment


def keeps_64_bits() -> bool:
    """`LAVAX_X64=1`, or within `enable_x64`: 64-bit NumPy data stay 64-bit if no dtype is given."""
    chosen = _keeps_64_bits.get()
    if chosen is not None:
        return chosen
    return _process_keeps_64_bits[-1] if _process_keeps_64_bits else _is_on("LAVAX_X64")


def keep_64_bits(enabled: bool) -> None:
    """The same for the whole process, outside `enable_x64`."""
    _process_keeps_64_bits[:] = [enabled]


# The dtypes to which operands of float32 products are rounded, and their names in the IR.
_PRECISIONS = {"float32": "", "bfloat16": "bf16", "float16": "f16"}
# Of the products themselves, and of the products in their gradients.
MatmulPrecision = tuple[str, str]
_matmul_precision: ContextVar[MatmulPrecision] = ContextVar("matmul_precision", default=("", ""))

# The dtypes to which operands of float32 products, and of their gradients, are rounded, as named in the IR.
chosen_matmul_precision: Callable[[], MatmulPrecision] = _matmul_precision.get


def trace_settings() -> tuple[Any, ...]:
    """Every setting that changes what a trace records: traces under other settings are kept apart."""
    return (_matmul_precision.get(), _keeps_64_bits.get(), _key_reuse.get(), *_process_keeps_64_bits)


def recorded_precision(function: str, name: str, precision: str) -> str:
    """The IR's name of the dtype. Raises ValueError, which names the option `name` of `function`."""
    if precision not in tuple(_PRECISIONS):
        raise _refused_precision(function, name, precision)
    return _PRECISIONS[precision]


def _refused_precision(function: str, name: str, precision: Any) -> ValueError:
    choices = ", ".join(map(repr, _PRECISIONS))
    return ValueError(f"{function}: {name} must be one of {choices}, got {precision!r}")


def dtype_of_product(function: str, precision: Any) -> str | None:
    """The dtype to which one product rounds its operands; None if it is that of `matmul_precision`.

    `precision` is None, a name of JAX's, such as "highest", a member of an enumeration of that name, or a pair of
    these, of which the first counts. "default" and "fastest" are None. Raises ValueError, naming `function`, for other
    names.
    """
    if isinstance(precision, (tuple, list)) and len(precision) == 2:
        precision = precision[0]
    name = str(precision.name).lower() if isinstance(precision, Enum) else precision
    if name in (None, "default", "fastest"):
        return None
    found = _PRECISIONS_OF_JAX.get(name) if isinstance(name, str) else None
    if found is None:
        raise _refused_precision(function, "precision", precision)
    return found


def precision_of_product(function: str, precision: Any) -> str | None:
    """The same as the IR names it."""
    chosen = dtype_of_product(function, precision)
    return None if chosen is None else _PRECISIONS[chosen]


@contextmanager
def matmul_precision(precision: str, *, backward: str = "float32") -> Iterator[None]:
    """A context, or a decorator, in which products and convolutions of float32 may use narrower operands.

    `precision`: the dtype to which operands are rounded, to nearest even: "float32" (no rounding; the default),
    "bfloat16" (8 bits of precision) or "float16" (11 bits; numbers beyond 65504 become infinite). Products are summed
    in float32. They run on cooperative matrices if the device has them; other devices compute the same without.
    `backward`: the same for the products in gradients, including those of forward mode.

    The precision is recorded with each product when it is traced, and stays with it. It does not apply to products of
    other dtypes, nor to `nn.dot_product_attention`. Raises ValueError for another name.
    """
    function = "matmul_precision"
    of_products = recorded_precision(function, "precision", precision)
    token = _matmul_precision.set((of_products, recorded_precision(function, "backward", backward)))
    try:
        yield
    finally:
        _matmul_precision.reset(token)


# By the names that JAX gives to precisions of products, what they are here: at least as precise.
_NAMES_OF_JAX: dict[str, tuple[str, ...]] = {
    "float32": (
        "default", "high", "highest", "float32", "tensorfloat32", "F32_F32_F32", "TF32_TF32_F32", "TF32_TF32_F32_X3",
        "BF16_BF16_F32_X3", "bfloat16_3x", "fastest",
    ),
    "bfloat16": ("bfloat16", "BF16_BF16_F32"),
    "float16": ("float16", "F16_F16_F32"),
}  # fmt: skip
_PRECISIONS_OF_JAX = {name: precision for precision, names in _NAMES_OF_JAX.items() for name in names}


def precision_named(name: str | None) -> str:
    """The dtype of operands for a precision as JAX names it. Raises ValueError for another name."""
    if name is None:
        return "float32"
    if name not in _PRECISIONS_OF_JAX:
        raise ValueError(f"default_matmul_precision: unknown precision {name!r}; use one of {list(_PRECISIONS_OF_JAX)}")
    return _PRECISIONS_OF_JAX[name]


@contextmanager
def default_matmul_precision(new_val: str | None) -> Iterator[None]:
    """`matmul_precision` with JAX's names, for products and their gradients alike.

    "bfloat16" (also "BF16_BF16_F32") and "float16" ("F16_F16_F32") round operands. "default", "high", "highest",
    "tensorfloat32" and None are all float32 here, which is at least as precise. Raises ValueError for another name.
    """
    chosen = precision_named(new_val)
    with matmul_precision(chosen, backward=chosen):
        yield


def choose_matmul_precision(precision: str | None) -> None:
    """The same from now on, in this thread. Raises ValueError for another name."""
    held = _PRECISIONS[precision_named(precision)]
    _matmul_precision.set((held, held))


_runs_uncompiled: ContextVar[bool] = ContextVar("runs_uncompiled", default=False)
runs_uncompiled: Callable[[], bool] = _runs_uncompiled.get  # whether `compile` is switched off


@contextmanager
def disable_jit(disable: bool = True) -> Iterator[None]:
    """A context in which compiled functions run operation by operation, so that their values can be looked at.

    Loops and branches (`scan`, `while_loop`, `cond`) are still programs of their own. With False, functions are
    compiled again.
    """
    token = _runs_uncompiled.set(disable)
    try:
        yield
    finally:
        _runs_uncompiled.reset(token)


def compile_functions(enabled: bool) -> None:
    """Switches `compile` on or off from now on, in this thread."""
    _runs_uncompiled.set(not enabled)


@contextmanager
def enable_x64(new_val: bool = True) -> Iterator[None]:
    """A context in which 64-bit NumPy data stay 64-bit if no dtype is given; with False they become 32-bit."""
    token = _keeps_64_bits.set(new_val)
    try:
        yield
    finally:
        _keeps_64_bits.reset(token)
