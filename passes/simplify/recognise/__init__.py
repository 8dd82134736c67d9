"""Recognises attention in plain operations, and extrema that derivatives need not go through."""
from lavax.passes.simplify.recognise.attention import recognise_attention
from lavax.passes.simplify.recognise.cancelling_extrema import stop_cancelling_extrema

__all__ = ["recognise_attention", "stop_cancelling_extrema"]
