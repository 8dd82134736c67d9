"""What is found under which name."""
from __future__ import annotations

from importlib import import_module
from inspect import unwrap
from pathlib import Path
from types import ModuleType

import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base import errors as base_errors
from tools import coverage

FOLDER = Path(lnp.__file__).parent
FILES = [path for path in sorted(FOLDER.rglob("*.py")) if path.stem != "__init__" and path.parent.name != "fft"]
PATHS = [path.relative_to(FOLDER) for path in FILES]
MODULES = [".".join(path.with_suffix("").parts) for path in PATHS]


@pytest.mark.parametrize("name", ["linalg", "nn", "numpy", "optim", "random", "scipy", "tree"])
def test_a_namespace_is_there_without_an_import_of_its_own(name: str) -> None:
    assert isinstance(getattr(lx, name), ModuleType)
    assert name in dir(lx) and name in lx.__all__


def test_every_public_name_of_a_module_is_the_packages() -> None:
    """And no two modules make one name public."""
    home: dict[str, str] = {}
    for module in MODULES:
        held = import_module(f"lavax.numpy.{module}")
        for name in getattr(held, "__all__", ()):
            assert name not in home, f"{name} is public in {home.get(name)} and in {module}"
            assert unwrap(getattr(lnp, name)) is unwrap(getattr(held, name)), "perhaps one that takes random keys, too"
            assert name in lnp.__all__
            home[name] = module
    assert len(home) > 250


def test_all_has_no_module_but_two_and_nothing_twice() -> None:
    assert len(set(lnp.__all__)) == len(lnp.__all__)
    assert [name for name in lnp.__all__ if isinstance(getattr(lnp, name), ModuleType)] == ["fft", "linalg"]


def test_the_page_of_names_is_up_to_date_and_gives_a_reason_for_every_absence() -> None:
    assert coverage.page() == coverage.PAGE.read_text(encoding="utf-8"), "run python tools/coverage.py"
    assert coverage.NOT_YET not in coverage.page()


def test_every_error_is_public() -> None:
    raised = {name for name, value in vars(base_errors).items() if isinstance(value, type)}
    public = [getattr(lx.errors, name) for name in lx.errors.__all__]  # some under JAX's names, too
    assert {error.__name__ for error in public} == raised
    assert all(getattr(lx, name) is getattr(base_errors, name) for name in raised)


@pytest.mark.parametrize(
    "name", ["numpy.fft", "numpy.linalg", "scipy.fft", "scipy.linalg", "scipy.special", "scipy.stats"]
)
def test_a_namespace_is_a_module_that_can_be_imported(name: str) -> None:
    """As `import jax.numpy.linalg` and `from jax.numpy.linalg import norm` are."""
    outer, inner = name.split(".")
    module = import_module(f"lavax.{name}")
    assert module is getattr(getattr(lx, outer), inner) and module.__all__
