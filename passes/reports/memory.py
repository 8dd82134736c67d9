"""The device memory that a program needs."""
from __future__ import annotations

from lavax.base.quick_dataclasses import dataclass
from lavax.passes.reports.table import bytes_text, table

MEANINGS = {
    "arguments": "what it is called with",
    "results": "what it returns",
    "donated": "of the results, those in the memory of arguments",
    "temporaries": "the arena, in which buffers share memory by lifetime",
    "constants": "arrays it closes over, tables of its kernels",
    "overhead": "tables of addresses, and what the allocator rounds up",
}


@dataclass(frozen=True)
class Memory:
    """Bytes of device memory. A program holds the arena, the constants and the tables for its whole life.

    `donated` bytes also count as results. A result needs no memory if it is an argument returned unchanged, or has
    the same number everywhere.
    """

    arguments: int = 0
    results: int = 0
    donated: int = 0
    temporaries: int = 0
    constants: int = 0
    overhead: int = 0

    @property
    def argument_size_in_bytes(self) -> int:
        """`arguments`, as JAX calls it."""
        return self.arguments

    @property
    def output_size_in_bytes(self) -> int:
        """`results`, as JAX calls it."""
        return self.results

    @property
    def alias_size_in_bytes(self) -> int:
        """`donated`, as JAX calls it."""
        return self.donated

    @property
    def temp_size_in_bytes(self) -> int:
        """`temporaries`, as JAX calls it."""
        return self.temporaries

    @property
    def peak(self) -> int:
        """Bytes that one call needs at once: exactly what the allocator provides for the program and the call."""
        kept = self.arguments + self.temporaries + self.constants + self.overhead
        return kept + self.results - self.donated

    def __str__(self) -> str:
        rows = [(name, bytes_text(getattr(self, name)), meaning) for name, meaning in MEANINGS.items()]
        return table(("", "bytes", ""), [*rows, ("peak", bytes_text(self.peak), "needed at once")])
