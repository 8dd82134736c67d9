"""Arrays of random keys as containers of their words, which is what traces see in them."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lavax.ir.types import uint32
from lavax.tracer.pytrees.keys import GetAttrKey
from lavax.tracer.pytrees.pytree import NodeKind, register
from lavax.tracer.tracing.convert import lift
from lavax.tracer.tracing.float0 import is_float0
from lavax.tracer.values.key_array import KeyArray
from lavax.tracer.values.value import Value


def _keys_of(data: Any, children: Sequence[Any]) -> Any:
    """What stands for keys, given what stands for their words: an axis, a mark or an object is itself."""
    (words,) = children
    if isinstance(words, Value) or (isinstance(words, np.ndarray) and words.dtype == uint32.numpy):
        return KeyArray(lift(words))
    if is_float0(words):
        return words[..., 0]
    return words.as_keys() if hasattr(words, "as_keys") else words


KEYS = NodeKind(
    "keys",
    lambda keys: ((keys.words,), None),
    _keys_of,
    lambda data, count: (GetAttrKey("words"),),
    KeyArray,
    is_one_leaf=True,
)
register(KeyArray, KEYS)
