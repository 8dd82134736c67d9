"""When tiles pay, for every choice among them."""

from __future__ import annotations

from lavax.base.quick_dataclasses import dataclass


@dataclass(frozen=True)
class WorkgroupTileLimits:
    """When a tile of a workgroup pays. Chosen by `python -m benchmarks.contraction_tiles`."""

    least_extent: int = 16  # rows, columns and length of the sum
    used: float = 0.6  # the least share of the tile that lies in the result
    narrow: int = 32  # narrow tiles are for fewer rows or columns
    epilogue_nodes: int = 1536  # the most nodes of the epilogue, times elements of an invocation: GPUs compile quickly
    # The most vectors per invocation of operands that are rounded on their way, because these take twice the registers.
    rounded_vectors: int = 8


@dataclass(frozen=True)
class LongestEpilogue:
    """How long a shader may be that repeats its epilogue for every element of a tile, because drivers compile slowly
    what is long. Chosen by `python -m benchmarks first-calls`."""

    epilogue_nodes: int = 768  # nodes of the epilogue, times elements


WORKGROUP_TILES = WorkgroupTileLimits()
LONGEST_EPILOGUE = LongestEpilogue()
