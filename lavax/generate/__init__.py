"""Text generation: prefill, decoding with a key-value cache, sampling."""
from lavax.generate.decoding import generate, stream
from lavax.generate.sampling import Sampling, sample

__all__ = ["Sampling", "generate", "sample", "stream"]
