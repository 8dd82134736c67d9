"""What lavax has done so far in this process."""
from lavax.counters import snapshot as counters

__all__ = ["counters"]
