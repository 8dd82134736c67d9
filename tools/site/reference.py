"""The pages of the reference: every public name with its signature and its docstring.

What is public is what a module's `__all__` names.
"""
from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

import lavax
from tools.site.sources import link_to

ROOT = Path(__file__).resolve().parents[2]
# Page -> its modules.
_PAGES: dict[str, tuple[str, ...]] = {
    "lavax": ("lavax",),
    "numpy": ("lavax.numpy",),
    "lax": ("lavax.lax",),
    "nn": ("lavax.nn", "lavax.nn.initializers"),
    "optim": ("lavax.optim", "lavax.optim.schedules", "lavax.optim.losses"),
    "random": ("lavax.random",),
    "linalg": ("lavax.linalg",),
    "scipy": tuple(
        f"lavax.scipy.{name}"
        for name in (
            *("cluster.vq", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal"),
            *("sparse.linalg", "spatial.transform", "special", "stats"),
        )
    ),
    "image": ("lavax.image",),
    "models": ("lavax.models", "lavax.generate"),
    "training": ("lavax.train", "lavax.data", "lavax.io", "lavax.mixed_precision"),
    "trees": ("lavax.tree", "lavax.tree_util", "lavax.flatten_util"),
    "debugging": ("lavax.debug", "lavax.profiler", "lavax.testing", "lavax.test_util"),
    "compiler": ("lavax.ir", "lavax.stages", "lavax.dtypes"),
}
# What only collects other modules, and what stands in `lavax` itself.
_LEFT_OUT = frozenset({"lavax.scipy", "lavax.errors"})


def _modules() -> dict[str, tuple[str, ...]]:
    """All pages, with one for the public modules that no page names."""
    shown = _LEFT_OUT.union(*_PAGES.values())
    modules = [f"lavax.{name}" for name in lavax.__all__ if inspect.ismodule(getattr(lavax, name))]
    return {**_PAGES, "others": tuple(name for name in modules if name not in shown)}


MODULES = _modules()
WIDTH = 96  # of a signature before each parameter gets a line of its own
_FENCED = re.compile(r"(`[^`\n]*`)")


def pages() -> dict[str, str]:
    """The Markdown of each page, by its path in docs/."""
    found = {f"api/{name}.md": _page(name, modules) for name, modules in MODULES.items()}
    all_modules = [(name, each) for name, modules in MODULES.items() for each in modules]
    rows = [f"| [`{each}`]({name}.md#{each}) | {_summary(each)} |" for name, each in all_modules]
    head = ["# API reference", "", "Every public name, by module.", "", "| module | what it holds |", "|---|---|"]
    found["api/index.md"] = "\n".join([*head, *rows, ""])
    return found


def public_names(module: ModuleType) -> list[str]:
    """The names that a module shows, but for modules: those have pages of their own."""
    shown = (name for name in module.__all__ if not name.startswith("_"))
    return [name for name in shown if not inspect.ismodule(getattr(module, name))]


def pages_in_order() -> list[str]:
    return ["api/index.md", *(f"api/{name}.md" for name in MODULES)]


def title_of(page: str) -> str:
    """The title of one of the pages: the name of the module that others are parts of, or of what they are for."""
    modules = MODULES.get(page, ())
    name = "lavax" if page == "lavax" else f"lavax.{page}"
    return "Overview" if not modules else name if all(f"{each}.".startswith(f"{name}.") for each in modules) else (
        page.capitalize()
    )


def _summary(module: str) -> str:
    return _first_sentence(inspect.getdoc(importlib.import_module(module)) or "")


def _page(name: str, modules: tuple[str, ...]) -> str:
    page = PurePosixPath(f"api/{name}.md")
    parts = [text for module in modules for text in _module(importlib.import_module(module), page)]
    front = "---\nhide: [toc]\n---\n" if len(parts) > 200 else ""
    return f"{front}# {title_of(name)}\n\n" + "\n\n".join(parts) + "\n"


def _module(module: ModuleType, page: PurePosixPath) -> Iterator[str]:
    """The parts of one module: what it says of itself, a table of its names, then each name."""
    name = module.__name__
    is_alone = name == title_of(page.stem)  # then it has the page's heading
    yield f'<span id="{name}"></span>' if is_alone else f"## {name} {{ #{name} .module }}"
    yield _prose(inspect.getdoc(module) or "")
    names = sorted(public_names(module), key=str.casefold)
    links = {each: f"#{name}.{each}" for each in names}
    rows = [f"| [`{each}`](#{name}.{each}) | {_first_sentence(_docstring(getattr(module, each)))} |" for each in names]
    yield "\n".join(["| name | what it is |", "|---|---|", *rows])
    for each in names:
        others = {word: link for word, link in links.items() if word != each}
        for part in _entry(name, each, getattr(module, each), page):
            yield part if part.startswith("```") else _linked(part, others)


def _linked(text: str, links: dict[str, str]) -> str:
    """Words in backticks that the module explains become links."""

    def linked(word: re.Match[str]) -> str:
        return f"[{word[0]}]({links[word[1]]})" if word[1] in links else word[0]

    return re.sub(r"(?<!\[)`(\w+)`", linked, text)


def _entry(module: str, name: str, value: Any, page: PurePosixPath) -> Iterator[str]:
    """One name: its heading, signature, source and docstring; of a class also its methods."""
    yield f"### {module}.{name} {{ #{module}.{name} .entry data-toc-label={name} }}"
    signature = _signature(name, value)
    if signature:
        yield f"```python\n{signature}\n```"
    source = _source(value, page)
    own = getattr(value, "__name__", name)
    if (inspect.isfunction(value) or inspect.isclass(value)) and own != name and own.isidentifier():
        yield f"The same as `{own}`." + (f" {source}" if source else "")
    elif source:
        yield source
    yield _prose(_docstring(value)) or f"`{value!r}`"
    if inspect.isclass(value) and issubclass(value, Enum):
        yield f"Members: {', '.join(f'`{member.name}`' for member in value)}."
    if inspect.isclass(value) and not issubclass(value, BaseException):
        yield from _methods(value)


def _methods(kind: type) -> Iterator[str]:
    """A class's public methods and properties that it defines itself and says something about."""
    rows = []
    for name, member in vars(kind).items():
        text = inspect.getdoc(getattr(member, "__func__", member))
        is_method = isinstance(member, (staticmethod, classmethod, property)) or inspect.isfunction(member)
        if (name.startswith("_") and name != "__call__") or not is_method or not text:
            continue
        signature = name if isinstance(member, property) else _signature(name, getattr(member, "__func__", member))
        shown = " ".join(signature.split()).removeprefix("def ").replace("( ", "(").replace(", )", ")")
        rows.append(f"`{shown}`\n\n:   {_indented(_prose(text))}")
    if rows:
        yield "\n\n".join(rows)


def _indented(text: str) -> str:
    return text.replace("\n", "\n    ")


def _signature(name: str, value: Any) -> str:
    """As it would stand in a program, without the class's self; "" for what cannot be called."""
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return ""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    if inspect.isclass(value) and issubclass(value, (BaseException, Enum)):
        return ""
    parameters = [each for each in signature.parameters.values() if each.name != "self"]
    signature = signature.replace(parameters=parameters)
    if inspect.isclass(value):
        signature = signature.replace(return_annotation=inspect.Signature.empty)
    text = _unquoted(f"{name}{signature}")
    if len(text) <= WIDTH:
        return text
    lines = [f"    {_unquoted(str(part))}," for part in _with_markers(signature)]
    tail = "" if signature.return_annotation is inspect.Signature.empty else f" -> {signature.return_annotation}"
    return _unquoted("\n".join([f"{name}(", *lines, f"){tail}"]))


def _with_markers(signature: inspect.Signature) -> Iterator[str]:
    """The parameters with the "/" and "*" that stand between their kinds."""
    before: Any = None
    for each in signature.parameters.values():
        if before is each.POSITIONAL_ONLY and each.kind is not each.POSITIONAL_ONLY:
            yield "/"
        if each.kind is each.KEYWORD_ONLY and before not in (each.KEYWORD_ONLY, each.VAR_POSITIONAL):
            yield "*"
        yield str(each)
        before = each.kind
    if before is inspect.Parameter.POSITIONAL_ONLY:
        yield "/"


def _unquoted(text: str) -> str:
    """Annotations are strings; their quotes, and the addresses of functions, are no part of the signature.

    Users know the class `Value` as `Array`.
    """
    text = re.sub(r"\bValue\b", "Array", re.sub(r"(: |-> )'([^']*)'", r"\1\2", text))
    return re.sub(r"<function (\w+)[^>]*>", r"\1", re.sub(r"<object object at \w+>", "...", text))


def _source(value: Any, page: PurePosixPath) -> str:
    """A link to where it is defined; "" if that is not in lavax."""
    found = inspect.unwrap(value) if callable(value) else value
    if not (inspect.isclass(found) or inspect.isfunction(found)):
        return ""
    try:
        path = Path(inspect.getsourcefile(found) or "")
        line = inspect.getsourcelines(found)[1]
    except (OSError, TypeError):
        return ""
    if not path.is_relative_to(ROOT):
        return ""
    name = path.relative_to(ROOT).as_posix()
    return f'<a class="defined" href="{link_to(name, page, line)}">{name}</a>'


def _docstring(value: Any) -> str:
    """What it says of itself; "" for numbers and the like, which say what their class is."""
    if isinstance(value, (bool, int, float, str, tuple, dict, frozenset)) or value is None:
        return ""
    return inspect.getdoc(value) or ""


def _first_sentence(text: str) -> str:
    """Up to the first full stop, colon or semicolon outside of brackets."""
    paragraph = " ".join(text.split("\n\n")[0].split())
    depth, end = 0, len(paragraph)
    for place, sign in enumerate(paragraph):
        depth += (sign in "([{") - (sign in ")]}")
        if depth == 0 and sign in ".:;" and paragraph[place + 1 : place + 2] in ("", " "):
            end = place + (sign == ".")
            break
    return _escaped(paragraph[:end]).replace("|", "\\|")


def _prose(text: str) -> str:
    """A docstring as Markdown: words in backticks stay; stars, brackets and signs are no markup."""
    return "\n".join(line if line.startswith("    ") else _escaped(line) for line in text.splitlines())


def _escaped(line: str) -> str:
    parts = _FENCED.split(line)
    return "".join(part if part.startswith("`") and len(part) > 1 else _plain(part) for part in parts)


def _plain(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"(?<!^)([*_\[\]])|^([_\[\]])", lambda found: "\\" + found[0], text)
