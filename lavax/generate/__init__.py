"""Text generation: prefill, decoding with a key-value cache, sampling."""
