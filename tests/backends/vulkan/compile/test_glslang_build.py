"""Building the glslang binding: which libraries it is linked against."""
from __future__ import annotations

import pytest

from lavax.backends.vulkan.glslang import build


def test_only_libraries_that_exist_are_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    """glslang 12 has libraries that 14 has not: one that is missing must not end the search, nor be taken."""
    existing = build.libraries_found()
    if not existing:
        pytest.skip("glslang's libraries are not installed, or there is no C compiler")
    monkeypatch.setattr(build, "LIBRARIES", (existing[0], "lavax-no-such-library", *existing[1:]))
    assert build.libraries_found() == existing
