"""How long the loops of one invocation may be."""

from __future__ import annotations

# Turns of all loops that one invocation may make: some CPU drivers end loops without a word after 65,535.
MOST_TURNS = 40_000
