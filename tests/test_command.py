"""`python -m baracuda check` and `verify`: what they look at, what they say, and readers that stop reading."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from baracuda import __main__ as command
from baracuda import __version__, _core, _index
from baracuda.choose.sku import DIRECTIONS, rows
from baracuda.describe.elements import Element
from baracuda.memory.device import Device
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


# --- what is asked wrong ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("explain", "softmax"), "misses its argument 'shape'"),
        (("explain", "softmax", "shape"), "want NAME=VALUE"),
        (("explain", "softmax", "=8"), "want NAME=VALUE"),
        (("explain", "softmax", "shape=8", "shape=9"), "each name once"),
        (("explain", "softmax", "shpae=8x4"), "did you mean 'shape'"),
        (("explain", "softmax", "shape=8x-4"), "at least 0"),
        (("explain", "softmax", "shape=eight"), "shape"),
        (("explain", "softmax", "shape=8x4", "axis=7"), "axis"),
        (("explain", "softmax", "shape=8x4", "element=floaty"), "element"),
        (("explain", "softmax", "shape=8x4", "--device", "gpu"), "did you mean 'cuda'"),
        (("explain", "argmax", "--direction", "backward"), "has no gradient"),
        (("explain", "sofmax", "shape=8x4"), "did you mean 'softmax'"),
        (("explain", "svd"), "not in this version"),
        (("capabilities", "softmax", "--attribute", "causal"), "want NAME=VALUE"),
        (("capabilities", "softmax", "--element", "floaty"), "floaty"),
        (("capabilities", "softmax", "--device", "a100"), "cuda:sm_90"),
        (("capabilities", "softmax", "--rank", "-1"), "rank"),
        (("check", "--element", "floaty"), "floaty"),
        (("verify", "softmax", "--element", "floaty"), "floaty"),
        (("verify", "softmax", "--element", "i8"), "nothing was checked"),
        (("verify", "softmax", "--device", "cuda"), "nothing was checked"),
        (("verify", "softmax", "--device", "CPU"), "did you mean 'cpu'"),
    ],
)
def test_what_is_asked_wrong_is_told_in_a_line(
    arguments: tuple[str, ...], words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *arguments) == 2
    said = capsys.readouterr()
    assert words in said.err and "Traceback" not in said.err and "SKUs keep" not in said.out, said.err


def test_what_was_not_checked_says_why(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "verify", "softmax", "--device", "cuda") == 2
    assert "cuda" in (said := capsys.readouterr().err) and Device("cuda").reason in said


def test_version_and_help_of_every_option(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        run(monkeypatch, "--version")
    assert left.value.code == 0 and capsys.readouterr().out == f"baracuda {__version__}\n"
    parsers = [command._parser()]
    for parser in parsers:
        for action in parser._actions:
            assert action.help or isinstance(action, argparse._SubParsersAction), (
                f"{parser.prog} {action.dest or action.option_strings}"
            )
            if isinstance(action, argparse._SubParsersAction):
                parsers += [p for name, p in action.choices.items() if name != "bench"]
    assert len(parsers) == 9


def test_architectures_are_explained(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "explain", "softmax", "shape=8x128", "--device", "cuda:sm_90") == 0
    assert "softmax.forward.cuda.f32" in (said := capsys.readouterr().out) and "workspace" in said
    assert run(monkeypatch, "explain", "softmax", "shape=8x128", "element=f64", "--device", "metal:apple9") == 1
    assert "got f64" in capsys.readouterr().out


def test_progress_is_told_where_it_takes_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "SILENCE", 0.01)
    with command._progress(3) as begin:
        begin("softmax.forward")
        time.sleep(0.2)
    assert "... 1 of 3: softmax.forward" in capsys.readouterr().err


def test_the_script_is_declared() -> None:
    settings = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
    assert settings["project"]["scripts"] == {"baracuda": f"{command.__name__}:main"} and callable(command.main)
