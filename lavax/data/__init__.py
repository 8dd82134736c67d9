"""Batches of examples: shuffled, prefetched, resumable."""
from lavax.data.loader import Loader
from lavax.data.tokens import Windows, tokens

__all__ = ["Loader", "Windows", "tokens"]
