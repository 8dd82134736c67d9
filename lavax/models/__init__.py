"""Models that people use, built from configurations and loaded from their published checkpoints."""
from lavax.models.encoders.sentence_embeddings import Pooling, sentence_embeddings
from lavax.models.load import load

__all__ = ["Pooling", "load", "sentence_embeddings"]
