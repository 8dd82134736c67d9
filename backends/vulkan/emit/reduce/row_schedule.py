"""A row kernel's schedule: how its rows are shared out over invocations.

A *row group* is the invocations that share a row, or four neighbouring rows. Each of its *members* takes every n-th
element, n being the size of the group. Each form of row group is a subclass of `RowSchedule`, defined beside the code
that writes it: an invocation by itself (invocation.py), neighbouring invocations (neighbours.py), and invocations that
stand apart because neighbours have neighbouring rows (interleaved.py).
"""

from __future__ import annotations

from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.lanes import LANE
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.kernels.index import Index, linear, variable


@dataclass(frozen=True, kw_only=True)
class RowSchedule:
    """What all forms of row groups have. `row_width` and `element_width` are 1 or 4, and at most one of them is 4.

    A *step* is an element of a row, or a vector of them. `unrolled` steps are written out one after the other: all
    steps of a member, or those of one iteration if there is a `loop`.
    """

    members: int = 1
    row_width: int = 1
    element_width: int = 1
    local: int  # invocations of a workgroup
    unrolled: int = 1
    run: int = 1  # neighbouring steps that a member takes one after the other; a divisor of `unrolled` and of all steps
    loop: bool = True
    chunked: bool = False  # whether long sums keep rounding errors per chunk rather than per element
    in_turn: bool = False  # whether an invocation is done with one of its rows before it begins the next
    online: bool = False  # whether one walk makes both a row's maximum and its sum of exponentials

    @property
    def is_shared(self) -> bool:
        return self.members > 1

    @property
    def row_groups(self) -> int:
        """Row groups per workgroup."""
        return self.local // self.members

    def steps(self, length: int) -> int:
        """The steps of a row of that length."""
        return length // self.element_width

    def additions(self, length: int) -> int:
        """How many elements one member adds up one after the other."""
        return self.steps(length) // self.members

    def row_index(self, rows: int, name: str) -> Index:
        """The rows that an invocation works on; `name` is the shader's variable for the number of its row group."""
        row = variable(name, rows // self.row_width)
        return linear([(row, VECTOR), (LANE, 1)]) if self.row_width == VECTOR else row

    @property
    def ends(self) -> int:
        """How many elements of a row lie in no step; the first members take one each before a walk's steps."""
        return 0

    def element_of(self, number: int, step: Index) -> Index:
        """The element, or the four, of a step in the invocation's row of that number."""
        return self.element_index(step)

    def element_index(self, step: Index) -> Index:
        """The element of a step, or its four elements."""
        return linear([(step, VECTOR), (LANE, 1)]) if self.element_width == VECTOR else step
