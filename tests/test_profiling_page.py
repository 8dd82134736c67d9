"""What docs/profiling.md shows is so, but for times and for how the compiler happens to cut kernels."""
from __future__ import annotations

import re
from dataclasses import is_dataclass
from typing import Any

from tests.documents import ROOT

PAGE = (ROOT / "docs" / "profiling.md").read_text(encoding="utf-8")


def sample(name: str) -> list[list[str]]:
    """The words of each line of a sample."""
    found = re.search(rf"```text {name}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return words(found[1])


def words(text: str) -> list[list[str]]:
    return [line.split() for line in text.strip().splitlines()]


def test_the_samples_are_what_the_reports_print() -> None:
    block = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert block is not None
    names: dict[str, Any] = {}
    exec(compile(block[1], "profiling.md", "exec"), names)
    cost, memory, profile = (words(str(names[name])) for name in ("cost", "memory", "profile"))
    assert cost[0] == sample("cost")[0]
    assert cost[-1][:2] == sample("cost")[-1][:2]  # all operations together
    assert [row[0] for row in memory] == [row[0] for row in sample("memory")]
    assert memory[:4] == sample("memory")[:4]  # arguments, results, donated
    assert profile[1] == sample("profile")[1]
    kernels = names["cost"].kernels
    assert {row[0] for row in cost[1:-1]} == {row[0] for row in profile[2:-1]} == set(kernels)


def test_every_attribute_that_the_page_names_is_there() -> None:
    from lavax import profiler

    classes = [kind for name in profiler.__all__ if is_dataclass(kind := getattr(profiler, name))]
    attributes = {name for kind in classes for name in (*dir(kind), *kind.__dataclass_fields__)}
    named = {name for path in re.findall(r"`(?:cost|memory|profile)\.([a-z_.]+)", PAGE) for name in path.split(".")}
    listed = {"kind", "times", "is_least", "locations", "seconds", "total_seconds", "gigabytes_per_second", "gigaflops"}
    assert named | listed <= attributes
    assert all(f"`{name}`" in PAGE for name in listed | set(profiler.counters()))
