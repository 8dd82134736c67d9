"""The least that a program computes and moves, per kernel."""
from __future__ import annotations

from collections.abc import Mapping

from lavax.base.quick_dataclasses import dataclass
from lavax.passes.reports.table import bytes_text, lines_text, table, times_text


@dataclass(frozen=True)
class KernelCost:
    """One run of a kernel, and how often it runs in a call.

    `operations` counts floating-point operations: one for an addition or a multiplication, and for a function like exp
    about as many as its polynomial takes. Each element that is needed counts once, even if fusion computes it again.
    `bytes_read` and `bytes_written` count the bytes that must be read or written once.

    If the number of iterations of a loop is known only when it runs, `times` counts one iteration and `is_least` is
    set. Every branch counts as taken. `locations` holds the lines of the user's program, "file:line", that the kernel
    was made from.
    """

    name: str
    kind: str  # "map", "row", "contract", "routine", or "guard": selects a branch or ends a loop
    operations: int
    bytes_read: int
    bytes_written: int
    times: int = 1
    is_least: bool = False
    locations: tuple[str, ...] = ()

    @property
    def bytes_moved(self) -> int:
        """Bytes read and written."""
        return self.bytes_read + self.bytes_written


@dataclass(frozen=True, eq=False)
class Cost:
    """The cost of a call: its kernels by name, in the order they run, and the sums over all their runs."""

    kernels: Mapping[str, KernelCost]

    @property
    def operations(self) -> int:
        """Floating-point operations of all runs."""
        return sum(kernel.operations * kernel.times for kernel in self.kernels.values())

    @property
    def bytes_read(self) -> int:
        """Bytes read by all runs."""
        return sum(kernel.bytes_read * kernel.times for kernel in self.kernels.values())

    @property
    def bytes_written(self) -> int:
        """Bytes written by all runs."""
        return sum(kernel.bytes_written * kernel.times for kernel in self.kernels.values())

    @property
    def is_least(self) -> bool:
        """Whether there are loops of which only one iteration is counted."""
        return any(kernel.is_least for kernel in self.kernels.values())

    def __str__(self) -> str:
        head = ("kernel", "kind", "times", "operations", "read", "written", "source lines")
        rows = [
            (
                kernel.name,
                kernel.kind,
                times_text(kernel.times, kernel.is_least),
                f"{kernel.operations:,}",
                bytes_text(kernel.bytes_read),
                bytes_text(kernel.bytes_written),
                lines_text(kernel.locations),
            )
            for kernel in self.kernels.values()
        ]
        total = ("all", "", "", f"{self.operations:,}", bytes_text(self.bytes_read), bytes_text(self.bytes_written), "")
        return table(head, [*rows, total])
