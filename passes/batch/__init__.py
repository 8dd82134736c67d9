"""Batching: turns a graph for one element into a graph for many at once, without loops."""
from lavax.passes.batch.batching import batch, batch_nodes, differing_outputs
from lavax.passes.batch.rules import NEVER_BATCHED, RULES

__all__ = ["NEVER_BATCHED", "RULES", "batch", "batch_nodes", "differing_outputs"]
