"""Batches of examples: shuffled, prefetched, resumable."""
