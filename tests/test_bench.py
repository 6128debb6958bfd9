"""The benchmark's harness: it runs, its JSON has what is promised, the picture is written. No time is asserted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import baracuda

pytest.importorskip("rich")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(baracuda.__file__).parent.parent)}


def bench(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "baracuda", "bench", *options]
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False, timeout=300)


def test_quick_run_writes_json_picture_and_table(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("matplotlib")
    json_file, picture, table = tmp_path / "r.json", tmp_path / "r.png", tmp_path / "r.md"
    done = bench(
        "--quick",
        "--runs",
        "3",
        "--filter",
        "swiglu",
        "--json",
        str(json_file),
        "--plot",
        str(picture),
        "--markdown",
        str(table),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    data = json.loads(json_file.read_text())
    assert data["schema"] == 1 and data["quick"] is True
    assert {"cpu", "threads", "versions", "memory_gib", "system"} <= set(data["machine"])
    assert len(data["load"]["before"]) == 3
    assert (
        data["ceilings"]["source"]
        and data["ceilings"]["values"]["memory"] > 0
        and data["ceilings"]["values"]["f32"] > 0
    )
    assert [f"{r['name']} {r['element']}" for r in data["rows"]] == [
        "swiglu forward f32", "swiglu backward f32", "swiglu forward bf16", "swiglu backward bf16",
    ]  # fmt: skip
    for row in data["rows"]:
        assert row["status"] == "measured", row["reason"]
        assert len(row["ours"]["runs"]) == len(row["theirs"]["runs"]) == len(row["ratio"]["runs"]) == 3
        assert row["ratio"]["q1"] <= row["ratio"]["median"] <= row["ratio"]["q3"]
        pairs = [p / o for o, p in zip(row["ours"]["runs"], row["theirs"]["runs"], strict=True)]
        assert row["ratio"]["median"] == sorted(pairs)[1]
        assert row["met"] is (row["ratio"]["median"] >= 0.95 * row["goal"])
        assert row["skus"] and row["ceiling"]["value"] == data["ceilings"]["values"]["memory"]
    assert data["summary"]["measured"] == 4 and data["summary"]["broken"] == 0
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 20_000
    assert "| swiglu backward bf16 |" in table.read_text()
    assert "swiglu forward f32" in done.stdout and "\x1b" not in done.stdout


def test_a_row_that_breaks_its_promise_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from baracuda.bench import measure
    from baracuda.bench.case import Case
    from baracuda.bench.cases.gated import cases
    from baracuda.bench.ceilings import Ceilings
    from baracuda.prove import verify

    case: Case = cases(quick=True)[0]
    ceilings = Ceilings("made up", 1, {"memory": 1.0})
    broken = verify.Report("sku", "", cases=1, problems=["error is 2 times what is allowed"])
    monkeypatch.setattr(verify, "verify", lambda *_, **__: broken)
    monkeypatch.setattr(measure, "_kept", {})
    row = measure.measure(case, ceilings, 1, 1e-4)
    assert (row.status, row.met) == ("broken", None) and "2 times" in row.reason


def test_sides_that_disagree_are_found() -> None:
    from baracuda.bench.case import Sides, Statement
    from baracuda.bench.measure import disagreement

    nothing = Statement("pass", {})
    same = Sides(nothing, nothing, results=lambda: ([[1.0, 2.0]], [[1.0, 2.0000001]]))
    other = Sides(nothing, nothing, results=lambda: ([[1.0, 2.0]], [[1.0, 2.1]]))
    unknown = Sides(nothing, nothing, results=lambda: ([[1.0, float("nan")]], [[1.0, 2.0]]))
    assert disagreement(same, "f32") == ""
    assert "differ" in disagreement(other, "f32") and "differ" in disagreement(unknown, "f32")


def test_both_sides_of_every_case_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from baracuda.bench.cases import all_cases
    from baracuda.bench.measure import disagreement

    # Inductor takes a compiler and a minute; whether it is right is not asked here.
    monkeypatch.setattr(torch, "compile", lambda fn, **_: fn)
    wrong = {c.key: text for c in all_cases(True) if (text := disagreement(c.build(), c.element))}
    assert not wrong, wrong


def test_list_and_empty_filter() -> None:
    pytest.importorskip("torch")
    listed = bench("--list", "--filter", "call")
    assert listed.returncode == 0 and "functional hit" in listed.stdout and "swiglu" not in listed.stdout
    assert bench("--list", "--filter", "no such case").returncode == 2


def test_missing_packages_are_named_in_one_line() -> None:
    hide = "u.find_spec = lambda n, *a: None if n == 'torch' else f(n, *a)"
    blocker = f"import sys, importlib.util as u; f = u.find_spec; {hide}\n"
    code = blocker + "from baracuda.bench import main; sys.exit(main(['--quick']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=ENVIRONMENT)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "torch" in done.stderr


def test_a_gpu_that_is_not_there_is_refused() -> None:
    pytest.importorskip("torch")
    done = bench("--quick", "--device", "cuda:7")
    assert done.returncode == 2
    assert done.stderr.startswith("bench --device cuda:7: ") and done.stderr.count("\n") == 1


def test_cases_on_a_device_keep_their_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """The part that needs no GPU: sets of data in turn, the device's goals, our plans where the data is."""
    pytest.importorskip("torch")
    from time import perf_counter

    from baracuda.bench import gpu
    from baracuda.bench.cases import all_cases
    from baracuda.bench.ceilings import Ceilings
    from baracuda.bench.measure import measure

    clocks = []

    def clock() -> float:
        clocks.append(0)
        return perf_counter()

    cases = {c.key: c for c in gpu.on_device(all_cases(True), 1 << 16, lambda: clock)}
    assert not any(c.goal_ns for c in cases.values()) and not any(k.startswith("call") for k in cases)
    monkeypatch.setattr("baracuda.bench.measure.broken_promise", lambda _: "")
    for key in ("swiglu backward f32", "add bf16", "copy of x.T f32", "rope f32", "matmul 64 f32"):
        row = measure(cases[key], Ceilings("test", 1, {"memory": 1.0, "f32": 1.0, "bf16": 1.0}), 2, 1e-4)
        assert row.status == "measured", row.reason
        assert row.ratio is not None and row.met_required is not None and row.ceiling is not None
    assert clocks
    turn = cases["add bf16"].build().ours
    assert turn.text == "next(turn)()"
    assert len({id(next(turn.names["turn"])) for _ in range(40)}) == min(
        16, 1 + 3 * (1 << 16) // int(cases["add bf16"].bytes)
    )


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="there may be a GPU")
def test_the_gpu_run_says_in_a_line_that_there_is_none() -> None:
    script = Path(__file__).resolve().parent.parent / "ci" / "gpu.sh"
    done = subprocess.run(["bash", str(script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "ci/gpu.sh: no NVIDIA GPU here: there is no nvidia-smi\n"
