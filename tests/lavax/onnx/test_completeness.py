"""Every operation of the IR has a form in ONNX files, or a refusal that says what to do; none has two."""
from __future__ import annotations

from collections import Counter

from lavax.ir.operation import OPERATIONS, names_of_family
from lavax.onnx.writing import fourier
from lavax.onnx.writing.compositions import COMPOSITIONS
from lavax.onnx.writing.portable import ATTENTION_GRADIENTS, OF_COMPLEX, REFUSED
from lavax.onnx.writing.save import RULES
from lavax.passes.build.inline import CALLS

# Lowering makes the first kind after a graph would be saved, but for Fourier transforms, which are made while complex
# numbers are taken apart; the others stand inside vmap alone.
_NEVER_SAVED = (names_of_family("lowered") - set(fourier.RULES)) | names_of_family("axis")


def test_every_operation_has_one_form_or_a_refusal() -> None:
    # `bitcast` has a form for some dtypes, and a refusal for others.
    tables = (RULES, COMPOSITIONS, ATTENTION_GRADIENTS, OF_COMPLEX, CALLS, REFUSED, _NEVER_SAVED)
    times = Counter(name for table in tables for name in table)
    assert {name: count for name, count in times.items() if count > 1} == {}
    assert set(times) == set(OPERATIONS)


def test_refusals_say_what_to_do() -> None:
    assert all(len(text.split()) > 5 for text in REFUSED.values())
