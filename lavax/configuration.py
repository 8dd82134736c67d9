"""`lavax.config`: settings by the names that JAX gives them."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from lavax.base import config as settings
from lavax.tracer.values.backend import runtime


def _refuse_nans(enabled: bool) -> None:
    runtime().refuses_nans = enabled


def _ignore(value: Any) -> None:
    """A setting of JAX's runtime that has no counterpart."""


def _one_of(name: str, *choices: Any) -> Callable[[Any], None]:
    """A setting of which lavax has one value, by these names."""

    def setting(value: Any) -> None:
        if value not in choices:
            raise ValueError(f"config.update: {name} is {' or '.join(map(repr, choices))} here, got {value!r}")

    return setting


# name -> how it is set, and how it is read (None: what was set last).
_SETTINGS: dict[str, tuple[Callable[[Any], None], Callable[[], Any] | None]] = {
    "jax_enable_x64": (settings.keep_64_bits, settings.keeps_64_bits),
    "jax_debug_nans": (_refuse_nans, lambda: runtime().refuses_nans),
    "jax_disable_jit": (lambda disabled: settings.compile_functions(not disabled), settings.runs_uncompiled),
    "jax_default_matmul_precision": (settings.choose_matmul_precision, None),
    "jax_log_compiles": (settings.log_all_compiles, settings.logs_compiles),
    "jax_explain_cache_misses": (settings.log_all_compiles, settings.logs_compiles),
    "jax_compilation_cache_dir": (_ignore, None),
    "jax_debug_key_reuse": (settings.refuse_key_reuse, settings.check_key_reuse),
    "jax_default_prng_impl": (_one_of("jax_default_prng_impl", "threefry2x32"), None),
    "jax_enable_checks": (_ignore, None),
    "jax_enable_compilation_cache": (_ignore, None),
    "jax_enable_custom_prng": (_ignore, None),
    "jax_legacy_prng_key": (_ignore, None),
    "jax_numpy_dtype_promotion": (_ignore, None),
    "jax_numpy_rank_promotion": (_ignore, None),
    "jax_persistent_cache_enable_xla_caches": (_ignore, None),
    "jax_persistent_cache_min_compile_time_secs": (_ignore, None),
    "jax_persistent_cache_min_entry_size_bytes": (_ignore, None),
    "jax_platform_name": (_ignore, None),
    "jax_platforms": (_ignore, None),
    "jax_threefry_partitionable": (_one_of("jax_threefry_partitionable", True), None),
    "jax_transfer_guard": (_ignore, None),
    "jax_traceback_filtering": (_ignore, None),
}

# What is read of the settings that change nothing, until they are set: how lavax behaves.
_DEFAULTS: dict[str, Any] = {
    "jax_default_prng_impl": "threefry2x32",
    "jax_legacy_prng_key": "allow",
    "jax_numpy_dtype_promotion": "standard",
    "jax_numpy_rank_promotion": "allow",
    "jax_threefry_partitionable": True,
}


class Config:
    """`config.update("jax_enable_x64", True)`, and `config.jax_enable_x64` to read a setting.

    These have an effect: jax_enable_x64, jax_log_compiles and jax_explain_cache_misses (one setting here), for the
    whole process; jax_debug_nans, for what is compiled from then on; jax_disable_jit, jax_debug_key_reuse and
    jax_default_matmul_precision, for this thread. Others are taken and change nothing: jax_platform_name and
    jax_platforms (LAVAX_DEVICE chooses the device), those of the cache of programs (LAVAX_CACHE), and those of
    promotion, transfers, tracebacks and JAX's own checks. Of generators there is one, jax_default_prng_impl
    "threefry2x32" with jax_threefry_partitionable: others raise ValueError.
    """

    def __init__(self) -> None:
        self._chosen: dict[str, Any] = {}

    def update(self, name: str, value: Any) -> None:
        """Sets a setting. Raises AttributeError for one that lavax does not know."""
        setting, _ = self._setting(name)
        setting(value)
        self._chosen[name] = value

    def read(self, name: str) -> Any:
        """The value of a setting. Raises AttributeError for one that lavax does not know."""
        _, reading = self._setting(name)
        return self._chosen.get(name, _DEFAULTS.get(name)) if reading is None else reading()

    @property
    def x64_enabled(self) -> bool:
        """Whether 64 bits are kept, as `jax_enable_x64` says."""
        return settings.keeps_64_bits()

    def __getattr__(self, name: str) -> Any:
        return self.read(name)

    @staticmethod
    def _setting(name: str) -> tuple[Callable[[Any], None], Callable[[], Any] | None]:
        if name not in _SETTINGS:
            raise AttributeError(f"lavax.config has no setting {name!r}; it has {', '.join(_SETTINGS)}")
        return _SETTINGS[name]


config = Config()


@contextmanager
def debug_nans(new_val: bool = True) -> Iterator[None]:
    """A context in which operations that return NaN raise NaNError, as `config.update("jax_debug_nans", True)`."""
    before = runtime().refuses_nans
    _refuse_nans(new_val)
    try:
        yield
    finally:
        _refuse_nans(before)


_GUARDS = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")


def _without_effect(name: str, choices: tuple[str, ...], reason: str) -> Callable[[str], AbstractContextManager[None]]:
    """A context of JAX's that changes nothing here."""

    @contextmanager
    def context(new_val: str) -> Iterator[None]:
        if new_val not in choices:
            raise ValueError(f"{name}: must be one of {', '.join(map(repr, choices))}, got {new_val!r}")
        yield

    context.__name__ = context.__qualname__ = name
    context.__doc__ = f"A context that changes nothing: {reason}. Raises ValueError for what JAX does not know."
    return context


_OF_DTYPES = "promotion is always the standard one, to which what \"strict\" takes is no exception"
_OF_RANKS = "arrays of fewer axes are always broadcast"
_OF_TRANSFERS = "arrays go to the device when they are used"
numpy_dtype_promotion = _without_effect("numpy_dtype_promotion", ("standard", "strict"), _OF_DTYPES)
numpy_rank_promotion = _without_effect("numpy_rank_promotion", ("allow", "warn", "raise"), _OF_RANKS)
transfer_guard = _without_effect("transfer_guard", _GUARDS, _OF_TRANSFERS)
transfer_guard_host_to_device = _without_effect("transfer_guard_host_to_device", _GUARDS, _OF_TRANSFERS)
transfer_guard_device_to_device = _without_effect("transfer_guard_device_to_device", _GUARDS, _OF_TRANSFERS)
transfer_guard_device_to_host = _without_effect("transfer_guard_device_to_host", _GUARDS, _OF_TRANSFERS)
default_prng_impl = _without_effect("default_prng_impl", ("threefry2x32",), "there is one generator")
