"""Questions to the SKU table and their answers; tests/native/rows_test.cpp asks the engine about rows of its own."""

from __future__ import annotations

import json
import pickle
import platform
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import baracuda as bc
from baracuda import __main__ as command
from baracuda import _core, _index
from baracuda.choose.capability import Capabilities, _capability, answer
from baracuda.choose.question import STATES, Question
from baracuda.choose.sku import EPILOGUES, rows
from baracuda.ops.matmul.matmul import Activation

REASON = "left out for this test"


@pytest.fixture
def cuda_row(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One more row in the table, of a backend that is not built, answered for as the engine answers."""
    mine = next(r for r in rows() if (r["op"], r["direction"]) == ("exp", "forward"))
    table = (*rows(), mine | {"index": len(rows()), "backend": "cuda", "variant": "simt"})
    ask, state_of, name_of = _core.evaluate, _core.backend_state, _core.sku_name

    def evaluate(*question: Any) -> list[Any]:
        refusal = ("not_built", "device", "cuda", "a wheel with this backend", REASON, -1, -1)
        return [*ask(*question), (len(table) - 1, "no", (refusal,), (), 0)]

    for module in ("baracuda.choose.capability", "baracuda.choose.plan"):
        monkeypatch.setattr(sys.modules[module], "rows", lambda: table)
    monkeypatch.setattr(_core, "evaluate", evaluate)
    monkeypatch.setattr(_core, "sku_name", lambda i, e: name_of(i, e) if i < len(table) - 1 else "of this test")
    absent = {"built": False, "present": False, "arch": 0, "level": "", "reason": REASON}
    monkeypatch.setattr(_core, "backend_state", lambda name: state_of(name) if name == "cpu" else absent)
    _capability.cache_clear()
    yield
    _capability.cache_clear()  # other tests ask the table as it is


@pytest.mark.usefixtures("cuda_row")
def test_unbuilt_rows_are_shown_with_the_reason() -> None:
    found = bc.capabilities("exp", direction="forward")
    cpu, cuda = found[0], found[-1]
    assert (cpu.state, cpu.reason) == ("present", "") or cpu.state == "usable"
    assert (cuda.state, cuda.reason, cuda.support.verdict) == ("declared", REASON, "no")
    assert f"not built: {REASON}" in found.to_markdown()
    assert {c.sku.backend for c in bc.capabilities("exp", direction="forward", state="built")} == {"cpu"}


@pytest.mark.usefixtures("cuda_row")
def test_commands_show_unbuilt_rows(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def output(*args: str) -> str:
        monkeypatch.setattr(sys, "argv", ["baracuda", *args])
        assert command.main() == 0
        return capsys.readouterr().out

    asked = ("capabilities", "exp", "--direction", "forward")
    assert f"not built: {REASON}" in output(*asked)
    last = Capabilities.from_json(output(*asked, "--json"))[-1]
    assert (last.state, last.reason, last.sku.backend) == ("declared", REASON, "cuda")
    explained = output("explain", "exp", "shape=8")
    assert "[not_built]" in explained and REASON in explained


def test_all_rows_are_shown_by_their_number() -> None:
    assert [r["index"] for r in rows()] == list(range(len(rows())))


def test_names_of_kernels_are_their_own() -> None:
    named = [(_core.sku_name(r["index"], e), e) for r in rows() for e in r["elements"]]
    twice = {n for n in named if named.count(n) > 1} if len(set(named)) < len(named) else set()
    assert not twice


QUESTIONS = [
    Question(),
    Question("exp", element="f32", device="cpu", state="usable"),
    Question(
        "embedding",
        direction="backward",
        element="bf16",
        index_element="i64",
        rank=2,
        alignment=64,
    ),
    Question("scaled_dot_product_attention", device="cuda:sm_90", attributes={"causal": True, "softcap": 0.5}),
    Question("matmul", preference=bc.PlanPreference(max_error=3.0, math_precision="tf32", deterministic=True)),
]


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_questions_and_answers_survive_json(question: Question) -> None:
    assert Question.from_json(question.to_json()) == question
    found = answer(question)
    again = Capabilities.from_json(found.to_json())
    assert again == found and again.question == question and len(found) > 0
    assert pickle.loads(pickle.dumps(found)) == found
    assert again.to_json() == found.to_json() == answer(question).to_json()


@pytest.mark.parametrize(
    ("field", "value"),
    [("op", "exq"), ("direction", "sideways"), ("element", "f33"), ("device", "cuda:sm"), ("rank", -1), ("rank", 2.0),
     ("alignment", "8"), ("state", "here"), ("attributes", [["causl", 1.0]]), ("nothing", 1),
     ("preference", {"sku": 3}), ("attributes", {"causal": 1}), ("attributes", [["causal", "x"]])],
)  # fmt: skip
def test_questions_of_other_json_are_refused(field: str, value: Any) -> None:
    document = json.loads(Question("scaled_dot_product_attention").to_json())
    document["question"][field] = value
    with pytest.raises(bc.InvalidProblemError, match=field):
        Question.from_json(json.dumps(document))


@pytest.mark.parametrize("text", ["", "[]", "{}", "nonsense", '{"schema": 0, "kind": "question"}', b"\xff", None])
def test_other_documents_are_refused(text: Any) -> None:
    for read in (Question.from_json, Capabilities.from_json):
        with pytest.raises(bc.InvalidProblemError):
            read(text)


def test_answers_cannot_be_changed() -> None:
    found = bc.capabilities("exp")
    with pytest.raises(AttributeError):
        found.question = Question()  # type: ignore[misc]
    with pytest.raises(AttributeError):
        found[0].state = "usable"  # type: ignore[misc]


@pytest.mark.parametrize(("wrong", "right"), [("sofmax", "softmax"), ("matmull", "matmul"), ("eXp", "exp")])
def test_misspelt_ops_are_errors_with_the_nearest_name(
    wrong: str, right: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(bc.InvalidProblemError, match=f"did you mean '{right}'"):
        bc.capabilities(wrong)
    for arguments in (("capabilities", wrong), ("explain", wrong), ("verify", wrong)):
        monkeypatch.setattr(sys, "argv", ["baracuda", *arguments])
        assert command.main() == 2
        assert f"did you mean '{right}'" in capsys.readouterr().err


def test_absent_devices_are_answered_from_the_table() -> None:
    for device, backend in (("cpu:v3", "cpu"), ("cuda:sm_90", "cuda"), ("metal:apple9", "metal")):
        found = bc.capabilities("exp", direction="forward", element="f32", device=device)
        assert {c.sku.backend for c in found} == {backend} and all(found)
        assert {c.support.verdict for c in found} == {"yes"} and {c.state for c in found} <= set(STATES[:2])
        assert all(c.reason for c in found)
    assert not bc.capabilities("exp", device="cpu:v3", state="present"), "no device of these is looked for"


def test_architectures_are_compared_with_what_rows_need() -> None:
    old, new = (bc.capabilities("scaled_matmul", device=f"cuda:sm_{arch}") for arch in (75, 90))
    assert all(any(r.code == "arch" for r in c.support.refusals) for c in old)
    assert not any(r.code == "arch" for c in new for r in c.support.refusals)
    needed = {r["min_arch"] for r in rows() if r["backend"] == "cpu"} - {0}
    for name, level in _core.cpu_levels.items():
        refused = [
            c for c in bc.capabilities(device=f"cpu:{name}") if any(r.code == "arch" for r in c.support.refusals)
        ]
        assert bool(refused) == any(level < n for n in needed)


def test_index_elements_are_asked_about() -> None:
    def verdicts(**asked: Any) -> set[str]:
        return {c.support.verdict for c in bc.capabilities("embedding", element="f32", device="cpu:v4x", **asked)}

    assert verdicts(index_element="i64") == {"yes"}
    assert verdicts(index_element="f32") == {"no"}
    assert verdicts() == {"depends"}
    refused = bc.capabilities("exp", index_element="i64")
    assert all(any(r.code == "aux_element" for r in c.support.refusals) for c in refused), "exp has no second element"


def test_attributes_are_judged_without_sizes() -> None:
    def variants(op: str, **attributes: float) -> set[str]:
        found = bc.capabilities(op, direction="forward", element="bf16", device="cuda:sm_90", attributes=attributes)
        return {c.sku.variant for c in found if c.support.verdict != "no"}

    attention = "scaled_dot_product_attention"
    assert "cudnn" in variants(attention) & variants(attention, softcap=0) & variants(attention, window_left=-1)
    assert "cudnn" not in variants(attention, softcap=30.0) | variants(attention, window_left=128)
    assert "cublaslt" in variants("matmul", activation=0) and "cublaslt" not in variants("matmul", activation=1)
    assert "simt" in variants("matmul", activation=1)
    with pytest.raises(bc.InvalidProblemError, match="did you mean 'causal'"):
        variants(attention, causel=1)
    others = bc.capabilities(attributes={"causal": 1}, device="cpu")
    assert {c.sku.op for c in others if c.support.verdict != "no"} <= {
        r["op"] for r in rows() if "causal" in [name for _, name in r["attributes"]]
    }


# The categories of the system whose protocol this is, so far as there are ops of them here.
WORDS = {
    "gemm", "unary_elementwise", "binary_elementwise", "ternary_elementwise", "gated_activation", "reduction", "scan", "convolution",
    "pooling", "normalization", "softmax", "attention", "indexing", "embedding", "shape_layout", "random", "loss", "quantization",
    "sorting", "image", None,
}  # fmt: skip


def test_skus_say_category_layout_and_architecture() -> None:
    found = [c.sku for c in bc.capabilities()]
    assert {s.family for s in found} == _index.CATEGORIES.keys()
    assert {s.category for s in found} == WORDS
    assert {s.category for s in found if s.op in ("matmul", "scaled_matmul")} == {"gemm"}
    assert {s.layout for s in found} == {"strided"}
    assert bc.plan(bc.SoftmaxDescriptor("softmax", (4, 6))).sku.category == "softmax"
    archs = {(s.backend, s.arch) for e in ("bf16", "f8e4m3") for s in (c.sku for c in bc.capabilities(element=e))}
    own = "neon_dot" if platform.machine() in ("aarch64", "arm64") else "v4x"  # of the same number
    assert archs == {
        ("cpu", ""),
        ("cpu", own),
        ("cuda", "sm_80"),
        ("cuda", "sm_89"),
        ("metal", ""),
        ("metal", "apple7"),
    }


def test_skus_of_products_say_their_epilogues() -> None:
    """Of all combinations, those that a plan of the SKU takes, and no other."""
    assert tuple(f"bias_{a.value}" if a.code else "bias" for a in Activation) == EPILOGUES
    for c in bc.capabilities():
        assert bool(c.sku.epilogue) == (c.sku.op in ("matmul", "scaled_matmul")), c.sku.name
    for element in ("f32", "bf16", "i32"):
        for c in bc.capabilities(op="matmul", element=element, device="cpu", state="usable"):
            assert {"identity", "bias"} <= set(c.sku.epilogue)
            for activation in Activation:
                name = EPILOGUES[activation.code]
                support = []
                for bias in (False, True):
                    try:
                        d = bc.MatmulDescriptor((1, 64), (64, 64), element, bias=bias, activation=activation)
                        support.append(bool(d.plan_class.query(d, preference=bc.PlanPreference(sku=c.sku.name))))
                    except bc.InvalidProblemError:
                        support.append(False)
                assert support == [name in c.sku.epilogue] * 2, (c.sku.name, activation)


@pytest.mark.parametrize(
    ("element", "older", "device"),
    [("bf16", "cpu:v4", "cpu:v4x"), ("f32", "cuda:sm_75", "cuda:sm_80"), ("f8e4m3", "cuda:sm_80", "cuda:sm_89")],
)
def test_what_a_sku_calls_its_architecture_is_the_oldest_that_takes_it(element: str, older: str, device: str) -> None:
    new, old = (bc.capabilities(element=element, device=d) for d in (device, older))
    takes = [(a, b) for a, b in zip(new, old, strict=True) if all(r.code != "element" for r in a.support.refusals)]
    mine = [(a, b) for a, b in takes if a.sku.arch == device.partition(":")[2]]
    assert mine
    for a, b in mine:
        assert all(r.code not in ("arch", "backend") for r in a.support.refusals)
        assert any(r.code == "arch" for r in b.support.refusals), b.sku.name


def test_one_number_bounds_what_is_promised_in_one_kind() -> None:
    assert (
        bc.plan(bc.UnaryDescriptor("exp", (4,)), preference=bc.PlanPreference(max_error=4)).precision_guarantee.bound
        == "ulp"
    )
    least = bc.plan(bc.UnaryDescriptor("exp", (4,))).precision_guarantee.c
    assert not bc.UnaryPlan.query(bc.UnaryDescriptor("exp", (4,)), preference=bc.PlanPreference(max_error=least / 2))
    exact = bc.plan(bc.UnaryDescriptor("neg", (4,)), preference=bc.PlanPreference(max_error=0)).precision_guarantee
    assert exact.bound == "exact"
    bounded = bc.PlanPreference(max_error=4)
    assert bc.capabilities("glu", direction="forward", preference=bounded)
    for asked in ({}, {"op": "glu"}, {"direction": "forward"}):
        with pytest.raises(bc.InvalidProblemError, match=r"max_error: got 4.*sum and in ulp.*Ask about"):
            bc.capabilities(**asked, preference=bounded)
