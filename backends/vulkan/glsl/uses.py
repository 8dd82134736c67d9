"""What the text of a shader uses, recorded while it is written.

GLSL is written as strings. If a string needs a declaration elsewhere in the shader (one of lavax's functions, a type of
reference, a descriptor, an extension), it takes the name from `Uses`, which records it, so that nothing has to be found
in the text afterwards. Recording a name whose text is then dropped only adds an unused declaration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from lavax.backends.vulkan.glsl.accesses import ACCESSES, reference_name
from lavax.backends.vulkan.glsl.extensions import EXTENSIONS
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import DType, float32


@dataclass
class Uses:
    """The names that a shader's text refers to and does not declare itself."""

    functions: set[str] = field(default_factory=set)  # of shaders_glsl
    references: set[str] = field(default_factory=set)  # types of references to buffers
    accesses: set[str] = field(default_factory=set)  # functions that address memory (accesses.py)
    descriptors: set[tuple[str, int]] = field(default_factory=set)  # form, and the array's slot
    extensions: set[str] = field(default_factory=set)  # names in extensions.py
    doubles: bool = False  # whether anything is computed in float64

    def copy(self) -> Uses:
        """The same names, to which others may be added."""
        found = Uses()
        found.include(self)
        return found

    def function(self, name: str, dtype: DType = float32) -> str:
        """The name of one of lavax's functions for a dtype."""
        self.doubles |= dtype.name == "f64"
        found = f"{name}_64" if dtype.bits == 64 else name
        self.functions.add(found)
        return found

    def reference(self, dtype_name: str, suffix: str = "") -> str:
        """The type of a reference to a buffer: "" one element, "x4" four aligned ones, "x4u" four unaligned ones."""
        name = reference_name(dtype_name, suffix)
        self.references.add(name)
        self.doubles |= dtype_name == "f64"
        return name

    def access(self, name: str) -> str:
        """The name of a function that addresses memory."""
        access = ACCESSES[name]
        self.accesses |= {name, *access.needs}
        self.references.update(access.references)
        return name

    def descriptor(self, form: str, slot: int) -> str:
        """The name of an array that is seen through a descriptor."""
        self.descriptors.add((form, slot))
        return f"{form}{slot}"

    def extension(self, name: str) -> None:
        """Enables a feature of GLSL."""
        self.extensions.add(EXTENSIONS[name] and name)

    @property
    def unroll(self) -> str:
        """The attribute that makes the compiler unroll a loop."""
        self.extension("unroll")
        return "[[unroll]] "

    @property
    def keep_rolled(self) -> str:
        """The attribute that asks the compiler not to unroll a loop, so that its code is short."""
        self.extension("unroll")
        return "[[dont_unroll]] "

    def with_slots(self, slots: Sequence[int]) -> Uses:
        """The same with descriptors of arrays in other slots, by their own."""
        found = self.copy()
        found.descriptors = {(form, slots[slot]) for form, slot in self.descriptors}
        return found

    def include(self, other: Uses) -> None:
        """Adds what another part of the same shader uses."""
        self.functions |= other.functions
        self.references |= other.references
        self.accesses |= other.accesses
        self.descriptors |= other.descriptors
        self.extensions |= other.extensions
        self.doubles |= other.doubles
