"""Models that people use, built from configurations and loaded from their published checkpoints."""
from lavax.models import lora
from lavax.models.encoders.sentence_embeddings import Pooling, sentence_embeddings
from lavax.models.load import load
from lavax.models.quantization import dequantize, quantize

__all__ = ["Pooling", "dequantize", "load", "lora", "quantize", "sentence_embeddings"]
