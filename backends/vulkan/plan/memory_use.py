"""The device memory that a program needs, to the byte and before anything is allocated."""

from __future__ import annotations

from lavax.backends.vulkan.plan.plan import Plan
from lavax.passes.kernels.commands import FLAG_BYTES
from lavax.passes.reports import Memory

ALIGNMENT = 256

# Sizes are rounded up to a multiple of a sixteenth of themselves, or of this if it is less: similar sizes share pieces.
COARSEST_ROUNDING_BYTES = 1 << 20

RING = 4  # recordings of a program, each with a table of addresses: as many calls may be in flight
ADDRESS_BYTES = 8
TABLE_ALIGNMENT = 256


def rounded_size(nbytes: int) -> int:
    """The size of the piece of memory for a buffer of `nbytes`."""
    sixteenth = 1 << max(0, nbytes.bit_length() - 5)
    unit = min(max(ALIGNMENT, sixteenth), COARSEST_ROUNDING_BYTES)
    return max(unit, -(-nbytes // unit) * unit)


def table_stride(plan: Plan) -> int:
    """The bytes from one table of addresses to the next: a table has an address or a position per slot."""
    given = len(plan.arguments) + len(plan.results)
    slots = given + len(plan.constants) + len(plan.temporaries) + plan.flags + len(plan.range_slots)
    return max(1, -(-slots * ADDRESS_BYTES // TABLE_ALIGNMENT)) * TABLE_ALIGNMENT


def flag_bytes(plan: Plan) -> int:
    """The bytes of the flags that end loops; there is always one."""
    return FLAG_BYTES * max(1, plan.flags)


def memory_of(plan: Plan) -> Memory:
    """The memory of a program with this plan and of one call."""
    results = [result.nbytes for result in plan.results]
    handed_out = [*plan.arguments, *(result.nbytes for result in plan.results if result.donor is None)]
    constants = [len(constant) for constant in plan.constants if constant]
    tables = [flag_bytes(plan), RING * table_stride(plan)]
    every = [*handed_out, *constants, *plan.arena_blocks, *tables]
    needed = sum(handed_out) + sum(constants) + plan.arena_bytes
    return Memory(
        arguments=sum(plan.arguments),
        results=sum(results),
        donated=sum(plan.arguments) + sum(results) - sum(handed_out),
        temporaries=plan.arena_bytes,
        constants=sum(constants),
        overhead=sum(map(rounded_size, every)) - needed,
    )
