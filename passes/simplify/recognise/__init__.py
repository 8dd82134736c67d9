"""Finding, in graphs of plain operations, what there is one operation for."""
from lavax.passes.simplify.recognise.attention import recognise_attention

__all__ = ["recognise_attention"]
