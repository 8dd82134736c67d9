r"""Formulas as MathML, which browsers show without a script: $x^2$ in a line, $$\sum_i x_i$$ as a block."""
from __future__ import annotations

import html
import re

from latex2mathml.converter import convert

# What pymdownx.arithmatex makes of formulas.
_INLINE = re.compile(r'<span class="arithmatex">\\\((?P<formula>.*?)\\\)</span>', re.DOTALL)
_BLOCK = re.compile(r'<div class="arithmatex">\\\[(?P<formula>.*?)\\\]</div>', re.DOTALL)


def with_mathml(text: str) -> str:
    """A page's HTML with its formulas as MathML."""
    text = _INLINE.sub(lambda found: convert(html.unescape(found["formula"])), text)
    return _BLOCK.sub(lambda found: convert(html.unescape(found["formula"].strip()), display="block"), text)
