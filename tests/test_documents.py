"""Plans as bytes: one strict reader for all hosts, exact numbers, and every promise of the question kept."""

from __future__ import annotations

import json
import math
import random
import struct
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import baracuda as bc
from baracuda import _core

PLAN = bc.plan(bc.GatedActivationDescriptor("glu", (4, 6)))
TEXT = PLAN.to_bytes().decode()


def with_descriptor(text: str) -> str:
    """The plan's document with this as its descriptor, which the engine passes over."""
    return TEXT[: TEXT.index('"descriptor":')] + f'"descriptor": {text}}}'


def through_reader(text: str) -> Any:
    return json.loads(_core.read_plan_document(with_descriptor(text)))["descriptor"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nul",
        "True",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "+1",
        "NaN",
        "Infinity",
        "1e999",
        "'a'",
        '"a',
        '"\\x"',
        '"\\u12"',
        '"\n"',
        '"\\ud800"',
        '"\\udc00"',
        '"\\ud800\\u0041"',
        "[1,]",
        "[1 2]",
        "{1: 2}",
        '{"a" 1}',
        '{xa": 1}',
        '{"a": 1, 5"b": 2}',
        '{"a": 1,}',
        '{"a": 1, "a": 2}',
        "[" * 16 + "]" * 16,
        "9223372036854775808999",
        "-9223372036854775809",
        "1, 2",
        "1}{",
    ],
)
def test_what_is_no_json(text: str) -> None:
    with pytest.raises(bc.InvalidProblemError, match=r"JSON|document"):
        through_reader(text)


@pytest.mark.parametrize("data", [b'"\xff"', b'"\xc0\x80"', b'"\xed\xa0\x80"', b'"\xf5\x80\x80\x80"', b'"\xe2\x82"'])
def test_text_is_utf8(data: bytes) -> None:
    with pytest.raises(bc.InvalidProblemError, match="UTF-8"):
        _core.read_plan_document(with_descriptor("@").encode().replace(b"@", data))


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc\"\\\u20ac", max_size=3), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(values)
def test_values_keep_their_kind_and_bits(value: Any) -> None:
    for ascii in (True, False):
        again = through_reader(json.dumps(value, ensure_ascii=ascii))
        assert repr(again) == repr(value)


@pytest.mark.parametrize("number", [5e-324, 0.1, 1e22, 1.7976931348623157e308, -0.0, 2.0, 1e-7])
def test_doubles_round_trip(number: float) -> None:
    assert struct.pack("<d", through_reader(json.dumps(number))) == struct.pack("<d", number)


@pytest.mark.parametrize(
    ("path", "value", "word"),
    [
        (("schema",), 99, "schema"),
        (("schema",), True, "schema"),
        (("kind",), "program", "kind"),
        (("sku",), 3, "sku"),
        (("extra",), 1, "extra"),
        (("question", "op"), "nonsense", "op"),
        (("question", "op"), "", "op"),
        (("question", "direction"), "sideways", "direction"),
        (("question", "device"), "tpu", "device"),
        (("question", "device"), "cuda:01", "device"),
        (("question", "device"), "cpu:1", "device"),
        (("question", "element"), "f31", "element"),
        (("question", "reads"), ["f31"], r"reads\[0\]"),
        (("question", "alignment"), 2**40, "alignment"),
        (("question", "attributes"), {}, "split_dim"),
        (("question", "attributes", "more"), 1, "attributes"),
        (("question", "preference", "max_error"), -1.0, "max_error"),
        (("question", "preference", "max_error"), "nan", "max_error"),
        (("question", "preference", "math_precision"), "fast", "math_precision"),
        (("question", "preference", "threads"), -1, "threads"),
        (("signature", "tensors"), [], "tensors"),
        (("signature", "scalars"), [{"name": "p", "kind": "float"}], "name"),
        (("signature", "dims"), {str(i): 1 for i in range(9)}, "dims"),
        (("signature", "dims"), {"n": -1}, "dims"),
        (("signature", "tensors", 0, "name"), "z", "name"),
        (("signature", "tensors", 0, "shape"), [1] * 9, "shape"),
        (("signature", "tensors", 0, "shape"), [2**40, 2**40], "shape"),
        (("signature", "tensors", 0, "shape"), [-1], "shape"),
        (("signature", "tensors", 0, "shape"), [{"dim": "m"}], "dim"),
        (("signature", "tensors", 0, "shapes"), [], "shapes"),
        (("signature", "tensors", 0, "strides"), [1], "strides"),
        (("signature", "tensors", 0, "shape"), [8, 3], "digest"),
        (("digest",), "0", "digest"),
    ],
)
def test_wrong_members_are_named(path: tuple[Any, ...], value: Any, word: str) -> None:
    document = json.loads(TEXT)
    inner = document
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = value
    with pytest.raises(bc.InvalidProblemError, match=word) as caught:
        bc.Plan.from_bytes(json.dumps(document).encode())
    assert caught.value.code == "document"


def test_truncated_and_changed_bytes_are_errors() -> None:
    rng = random.Random(7)
    data = PLAN.to_bytes()
    for end in range(len(data)):
        with pytest.raises(bc.InvalidProblemError):
            bc.Plan.from_bytes(data[:end])
    for _ in range(2000):
        changed = bytearray(data)
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        with suppress(bc.BaracudaError):
            assert bc.Plan.from_bytes(bytes(changed)).to_bytes() == data  # white space, and the like


@pytest.mark.parametrize("data", [None, 3, ["x"], PLAN, "\ud800"])
def test_what_is_no_bytes(data: Any) -> None:
    with pytest.raises(bc.InvalidProblemError):
        bc.Plan.from_bytes(data)


def test_everything_that_was_asked_comes_back() -> None:
    n = bc.Dim("n", max=64)
    preference = bc.PlanPreference(
        deterministic=True, batch_invariant=True, max_error=1e3, max_workspace_bytes=2**40, threads=1
    )
    made = bc.plan(
        bc.SoftmaxDescriptor("softmax", (n, 2 * n + 1)), preference=preference, layout={"x": (1, 5)}, alignment=64
    )
    again = bc.Plan.from_bytes(made.to_bytes())
    assert again.descriptor == made.descriptor and again.sku == made.sku and again.to_bytes() == made.to_bytes()
    document = json.loads(made.to_bytes())
    assert document["signature"]["tensors"][0]["strides"] == [1, 5]
    assert document["question"]["preference"] == {
        "deterministic": True,
        "batch_invariant": True,
        "math_precision": "ieee",
        "max_error": 1e3,
        "max_workspace_bytes": 2**40,
        "threads": 1,
    }
    x = np.random.default_rng(1).normal(size=(3, 7)).astype(np.float32)
    out = [np.empty_like(x) for _ in range(2)]
    made.run(x=x, y=out[0])
    again.run(x=x, y=out[1])
    assert (out[0] == out[1]).all()


def test_fields_that_are_infinite() -> None:
    for p in (math.inf, -math.inf):
        desc = bc.VectorNormDescriptor((3, 4), p=p)
        assert bc.Plan.from_bytes(bc.plan(desc).to_bytes()).descriptor == desc


def test_no_names_of_modules_and_no_positions() -> None:
    assert "baracuda" not in TEXT and set(json.loads(TEXT)["descriptor"]) == {"class", "fields"}
