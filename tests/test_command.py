"""`python -m baracuda check` and `verify`: what they look at, what they say, and readers that stop reading."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from baracuda import __main__ as command
from baracuda import _core, _index
from baracuda.choose.sku import DIRECTIONS, rows
from baracuda.describe.elements import Element
from baracuda.prove import verify as proofs
from conftest import table_items


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["baracuda", *arguments])
    return command.main()


def test_check_glances_at_every_op_and_direction(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "check") == 0
    said = capsys.readouterr().out.splitlines()
    seen = {tuple(line.split()[1].split(".")[:2]) for line in said if line.startswith("kept")}
    assert seen == {(op, direction) for op, direction, _ in table_items()}
    assert said[-1] == f"OK: {sum(line.startswith('kept') for line in said)} SKUs checked, 0 broken"
    assert said[0].startswith("baracuda ")


def test_check_all_takes_every_element(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[tuple[Any, ...]] = []

    def verify(op: str, direction: str, element: Any, variant: str, **options: Any) -> proofs.Report:
        asked.append((op, direction, element, variant))
        return proofs.Report(f"{op}.{direction}.cpu.{element}.{variant}", "", cases=1)

    monkeypatch.setattr(proofs, "verify", verify)
    assert run(monkeypatch, "check", "--all") == 0
    arch = _core.backend_state("cpu")["arch"]
    wanted = {
        (r["op"], r["direction"], e, r["variant"])
        for r in rows() if r["backend"] == "cpu" and r["op"] in _index.OPS and r["min_arch"] <= arch for e in r["elements"]
    }  # fmt: skip
    assert set(asked) == wanted and len(asked) == len(wanted)
    assert f"OK: {len(wanted)} SKUs checked" in capsys.readouterr().out
    asked.clear()
    assert run(monkeypatch, "check", "--all", "--element", "bf16") == 0
    assert set(asked) == {w for w in wanted if w[2] == Element.BF16}


def test_a_broken_promise_is_a_failure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def verify(op: str, direction: str, element: Any, variant: str, **options: Any) -> proofs.Report:
        return proofs.Report(f"{op}.{direction}", "exact", 1, float("inf"), "there", ["wrong"] if op == "exp" else [])

    monkeypatch.setattr(proofs, "verify", verify)
    assert run(monkeypatch, "check") == 1
    said = capsys.readouterr().out
    assert "BROKEN exp.forward" in said and "kept   sum.forward" in said and "FAILED: " in said and "2 broken" in said
    assert run(monkeypatch, "verify", "exp", "--element", "f32", "--json") == 1
    reports = json.loads(capsys.readouterr().out)["reports"]
    assert [(r["ok"], r["worst_error"], r["problems"]) for r in reports] == [(False, "inf", ["wrong"])] * 2


def test_verify_as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "verify", "neg", "--element", "f32", "--element", "i8", "--seed", "5", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["seed"], found["device"]) == ("verify", 5, "cpu")
    assert {tuple(r["sku"].split(".")[:4]) for r in found["reports"]} >= {
        ("neg", d, "cpu", "f32") for d in DIRECTIONS
    } | {("neg", "forward", "cpu", "i8")}
    for r in found["reports"]:
        assert r["ok"] and r["problems"] == [] and r["cases"] > 0 and 0 <= r["worst_error"] <= 1 and r["promise"]


@pytest.mark.parametrize(
    "arguments", [("capabilities",), ("info",), ("verify", "neg", "abs", "--element", "f32"), ("explain", "exp", "shape=8")]
)  # fmt: skip
def test_a_pipe_that_closes_is_no_error(arguments: tuple[str, ...]) -> None:
    """As `| head -1` closes it; the first line is read, so that the command has begun to write."""
    with subprocess.Popen(
        [sys.executable, "-m", "baracuda", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() in (0, 141)


@pytest.mark.parametrize("argument", ["capabilities", "--help", "config"])
def test_a_pipe_that_was_never_read(argument: str) -> None:
    code = (
        f"import os, sys\nr, w = os.pipe()\nos.close(r)\nos.dup2(w, 1)\nsys.argv = ['baracuda', '{argument}']\n"
        "from baracuda.__main__ import main\nsys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, stderr=subprocess.PIPE, text=True)
    # argparse looks away by itself where Python buffers nothing (PYTHONUNBUFFERED).
    assert done.stderr == "" and done.returncode in ({0, 141} if argument == "--help" else {141})


def test_most_cases_ends_early() -> None:
    few = proofs.verify("neg", "forward", Element.F32, "tiled", most_cases=3, stretched=0, batched=0)
    assert few.cases == 3 and few.ok and np.isfinite(few.worst_error)
