"""Text generation: prefill, decoding with a key-value cache, sampling; tokens or texts."""
from lavax.generate.decoding import generate, stream
from lavax.generate.sampling import Sampling, sample
from lavax.generate.texts import stream_text, text
from lavax.generate.tokenizer import Tokenizer

__all__ = ["Sampling", "Tokenizer", "generate", "sample", "stream", "stream_text", "text"]
