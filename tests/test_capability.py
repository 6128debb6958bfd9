"""How rows of backends that this build does not have are shown; tests/native/rows_test.cpp asks the engine itself."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

import baracuda as bc
from baracuda import __main__ as command
from baracuda import _core
from baracuda.sku import rows

REASON = "left out for this test"


@pytest.fixture
def cuda_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more row in the table, of a backend that is not built, answered for as the engine answers."""
    mine = next(r for r in rows() if (r["op"], r["direction"]) == ("exp", "forward"))
    table = (*rows(), mine | {"backend": "cuda", "variant": "simt"})
    ask, state_of = _core.evaluate, _core.backend_state

    def evaluate(question: dict[str, Any]) -> list[Any]:
        refusal = ("not_built", "device", "cuda", "a wheel with this backend", REASON, -1, -1)
        return [*ask(question), (len(table) - 1, 0, [refusal], [], 0)]

    for module in ("baracuda.capability", "baracuda.plan"):
        monkeypatch.setattr(sys.modules[module], "rows", lambda: table)
    monkeypatch.setattr(_core, "evaluate", evaluate)
    absent = {"built": False, "present": False, "arch": 0, "level": "", "reason": REASON}
    monkeypatch.setattr(_core, "backend_state", lambda name: state_of(name) if name == "cpu" else absent)


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

    skus = ("skus", "exp", "--direction", "forward")
    assert f"not built: {REASON}" in output(*skus)
    assert json.loads(output(*skus, "--json"))[-1] | {"sku": "", "elements": []} == {
        "sku": "", "state": "declared", "reason": REASON, "elements": [],
    }  # fmt: skip
    explained = output("explain", "exp", "shape=8")
    assert "[not_built]" in explained and REASON in explained


def test_all_rows_are_shown_by_their_number() -> None:
    assert [r["index"] for r in rows()] == list(range(len(rows())))
