"""Guards: a shader of one invocation that decides whether a branch or an iteration of a loop runs.

It sets the guard's flag, and the numbers of workgroups of each dispatch under the guard: the dispatch's own, or zero.
"""

from __future__ import annotations

from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.glsl.uses import Uses
from lavax.backends.vulkan.plan.plan import Shader

# Slots: index, flag, counts, groups, and the parent's flag if there is one; words: last case, case, dispatches.


def guard_shader(has_parent: bool) -> Shader:
    """The shader of a guard, with or without a guard around it."""
    uses = Uses()
    words = uses.reference("u32")
    first = 5 if has_parent else 4
    parent = f" && {words}(table.address[words[4]]).data[0] != 0u" if has_parent else ""
    lines = [
        f"int index = {uses.reference('i32')}(table.address[words[0]]).data[0];",
        f"bool runs = clamp(index, 0, int(words[{first}])) == int(words[{first + 1}]){parent};",
        f"{words}(table.address[words[1]]).data[0] = uint(runs);",
        f"{words} counts = {words}(table.address[words[2]]);",
        f"{words} groups = {words}(table.address[words[3]]);",
        f"for (uint i = 0u; i < 3u * words[{first + 2}]; ++i) counts.data[i] = runs ? groups.data[i] : 0u;",
    ]
    return assemble(ShaderText(uses, lines))
