"""Colours for the text of graphs and kernels."""
from __future__ import annotations

from typing import Any, ClassVar

from pygments import lexers
from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

__all__ = ["IrLexer"]  # Pygments looks here


class IrLexer(RegexLexer):
    """Such as `%0 = dot(x, w) contract=[1]x[0] : f32[32,2]`."""

    name = "lavax IR"
    aliases: ClassVar[list[str]] = ["lavax"]
    tokens: ClassVar[dict[str, list[Any]]] = {
        "root": [
            (r"\s+", Text),
            (r"//.*", Comment.Single),
            (r'"[^"\n]*"', String),
            (r"\b(?:graph|kernel|program|return|donated|after_barrier|arena)\b", Keyword),
            (r"\b(?:bool|bf16|[fiu](?:8|16|32|64))(?=\[)", Keyword.Type),
            (r"%\w+", Name.Variable),
            (r"\w+(?=\()", Name.Function),
            (r"[a-z_]+(?==)", Name.Attribute),
            (r"-?\d+(?:\.\d+)?(?:e-?\d+)?", Number),
            (r"->|=|x(?=\[)", Operator),
            (r"[\[\](){},:]", Punctuation),
            (r"\w+", Name),
            (r".", Text),
        ]
    }


def register() -> None:
    """Makes "lavax" a language of code blocks."""
    lexers.LEXERS["IrLexer"] = (__name__, IrLexer.name, tuple(IrLexer.aliases), (), ())
