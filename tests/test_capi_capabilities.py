"""Questions about the SKU table through the C interface: Python's answers, and errors for what is no question."""

from __future__ import annotations

import ctypes as c
import json
import re
from typing import Any

import host
import pytest
from host import HostError, lib

import baracuda as bc


def asked(text: bytes) -> str:
    found, error = c.c_char_p(), host.Error()
    error.check(lib.bcu_capabilities(text, c.c_size_t(len(text)), c.byref(found), error.handle))
    answer = (found.value or b"").decode()
    lib.bcu_free(found)
    return answer


def test_capabilities_are_those_of_python() -> None:
    questions = [
        bc.Question(), bc.Question("softmax"), bc.Question("softmax", element="f32", device="cpu", rank=2),
        bc.Question("gather", element="bf16", index_element="i32", direction="backward"), bc.Question(device="cuda:sm_90", op="matmul"),
        bc.Question("matmul", device="cpu:v3"), bc.Question("matmul", device="metal:apple9", alignment=16),
        bc.Question("sum", element="f16", state="usable"), bc.Question(device="cuda", state="built"),
        bc.Question("softmax", device="cuda:7"),
        bc.Question("scaled_dot_product_attention", attributes={"causal": 1}, element="f64"), bc.Question("softmax", rank=9, element="i64"),
        bc.Question("glu", "backward", preference=bc.PlanPreference(max_error=0)),
        bc.Question("sum", preference=bc.PlanPreference(deterministic=True, max_error=1.0, sku="rows", max_workspace_bytes=0)),
    ]  # fmt: skip
    for question in questions:
        mine = bc.Capabilities.from_json(asked(question.to_json().encode()))
        assert mine.question == question
        assert mine == question.answer() and len(mine) == len(question.answer())
    assert bc.Capabilities.from_json(asked(b'{"schema": 2, "kind": "question", "question": {"op": "softmax"}}'))


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ({"op": "sofmax"}, 'question.op: got "sofmax"'), ({"rank": -1}, "question.rank"), ({"device": "gpu"}, "question.device"),
        ({"device": "cuda:sm_"}, "question.device"),
        ({"device": "cuda:sm_-9"}, "question.device"), ({"element": "f33"}, "question.element"),
        ({"op": "softmax", "attributes": [["x", 1]]}, "attribute of the op"),
        ({"attributes": [["axis"]]}, "a name and a number"), ({"preference": {"max_error": -1}}, "max_error"),
        ({"preference": {"max_error": 4}}, "no measure of each other"),
        ({"op": "glu", "preference": {"max_error": 4}}, "an op with a direction"), ({"more": 1}, "more"),
        ({"state": "here"}, "question.state"), ({"alignment": 2**40}, "question.alignment"), ([], "question"),
    ],
)  # fmt: skip
def test_questions_that_are_none(question: Any, said: str) -> None:
    with pytest.raises(HostError, match=re.escape(said)):
        asked(json.dumps({"schema": 2, "kind": "question", "question": question}).encode())


def test_questions_that_are_no_documents() -> None:
    whole = bc.Question("softmax", element="f32").to_json().encode()
    for text in (
        b"",
        b"{}",
        b"[]",
        whole[:-1],
        whole + b"x",
        whole.replace(b": 2", b": 99"),
        whole.replace(b"question", b"plan", 1),
    ):
        with pytest.raises(HostError):
            asked(text)
    assert lib.bcu_capabilities(None, c.c_size_t(3), c.byref(c.c_char_p()), None) == 2
    assert lib.bcu_capabilities(whole, c.c_size_t(len(whole)), None, None) == 2
