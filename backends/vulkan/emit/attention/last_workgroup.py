"""Parts of a row that workgroups compute side by side, joined by the workgroup that ends last.

Each leaves its part in memory, then counts itself by an atomic operation; the one that finds all others counted reads
their parts. None waits for another, so it does not matter how many run at once. A kernel that joins parts would have to
wait for all of them, and the reader of its result for that kernel. The last one sets the count to zero, for the next
run.
"""

from __future__ import annotations

from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.shader import word

_FLOAT_BYTES = 4


class LastWorkgroup:
    """The memory in which `parts` of each of `rows` meet, `vectors` of four floats each, and then `shared` vectors of
    every row, if there are any.

    What is written to it is for the first subgroup of a workgroup, in whose shader `row` and `part` are named so.
    """

    declarations = (
        "layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Arrivals { uint data[]; };",
        "layout(buffer_reference, scalar, buffer_reference_align = 16) coherent buffer Parts { vec4 data[]; };",
    )

    shared_declarations = ("shared uint shared_arrived;",)  # for whole workgroups

    def __init__(self, body: Body, rows: int, parts: int, vectors: int, shared: int = 0) -> None:
        self._body, self._rows, self._parts, self._vectors, self._shared = body, rows, parts, vectors, shared
        self._counts = rows // VECTOR + 1  # vectors of them, before those of the parts: one for each row, and of rows
        self._first = self._counts + rows * parts * vectors  # of the vectors that rows leave for each other
        self.memory_bytes = _FLOAT_BYTES * VECTOR * (self._first + rows * shared)
        body.line(f"uint64_t memory = table.address[{word(body.parameters.slots, body.uses)}];")
        body.parameters.slots += 1

    def vector(self, part: str, number: str) -> str:
        """A vector of a part."""
        first = f"{self._counts} + (row * {self._parts} + {part}) * {self._vectors}"
        return f"Parts(memory).data[{first} + {number}]"

    def of_row(self, row: str, number: str) -> str:
        """A vector that a row leaves for the others."""
        return f"Parts(memory).data[{self._first} + {row} * {self._shared} + {number}]"

    def end_unless_last(self) -> None:
        """Ends all workgroups of a row but the one behind which all parts are in memory, and its other subgroups.

        One invocation counts for its subgroup, so memory is ordered by its own barriers: behind the writes of all when
        it counts, and before the reads of all when it has counted. Barriers of others order no operation but theirs.

        Other subgroups end behind the first barrier, although SPIR-V lets them end before it: a driver for CPUs (Mesa
        25) takes all subgroups from barrier to barrier until it finds one that has ended, so what comes after a second
        barrier behind that end would never run.
        """
        arrivals = "Arrivals(memory).data[row]"
        self._body.lines(
            [
                "subgroupBarrier();",
                "if (gl_SubgroupID != 0u) return;",
                "memoryBarrierBuffer();",
                "uint arrived = 0u;",
                f"if (gl_SubgroupInvocationID == 0u) arrived = atomicAdd({arrivals}, 1u);",
                f"if (subgroupShuffle(arrived, 0u) != {self._parts - 1}u) return;",
                "memoryBarrierBuffer();",
                "subgroupBarrier();",
                f"if (gl_SubgroupInvocationID == 0u) {arrivals} = 0u;",
            ]
        )

    def end_workgroup_unless_last(self, of_rows: bool = False) -> None:
        """The same for whole workgroups, of which all that is left is ended; `of_rows`: of all rows in place of parts.

        All invocations may have written; the first one counts for them.
        """
        arrivals = f"Arrivals(memory).data[{self._rows if of_rows else 'row'}]"
        self._body.lines(
            [
                "memoryBarrierBuffer();",
                "barrier();",
                f"if (member == 0) shared_arrived = atomicAdd({arrivals}, 1u);",
                "barrier();",
                f"if (shared_arrived != {(self._rows if of_rows else self._parts) - 1}u) return;",
                "memoryBarrierBuffer();",
                f"if (member == 0) {arrivals} = 0u;",
            ]
        )
