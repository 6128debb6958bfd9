"""`bench --sweep`: every function with a peer is drawn, right beside its peer, and the same for the same seed. No time is asserted."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import baracuda
import baracuda.functional as F
from baracuda.bench import cli as command_line
from baracuda.bench.sweep import document as documents
from baracuda.bench.sweep.cells import Cell, chosen, draw, order
from baracuda.bench.sweep.cliffs import cliffs
from baracuda.bench.sweep.race import Times, race
from baracuda.bench.sweep.run import Options, measure, run
from baracuda.bench.sweep.sides import Broken, Unsuited, numbers, pair_of
from baracuda.prove import peers
from baracuda.prove.draws import BYTES, LAYOUTS, Array, Draws, arrays
from baracuda.prove.facts import facts
from conftest import SEED

torch = pytest.importorskip("torch")
from baracuda.bench.sweep.libraries import NumPy, Torch  # noqa: E402

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(baracuda.__file__).parent.parent)}
TINY = 3e3  # bytes
SHARDS = 8


@pytest.fixture(scope="module")
def beside() -> Torch:
    return Torch()


def suits(cell: Cell, library: Any, seed: int) -> bool:
    """Whether both sides take a cell, in one of its elements; they agree if they do."""
    for element in cell.elements[:6]:
        tried = draw(cell.name, seed, cell.number, gradient=cell.gradient, largest=TINY, element=element)
        try:
            pair_of(tried, library, seed)
        except Unsuited as no:
            if cell.gradient and no.side == "theirs":
                return True  # torch lacks some, such as that of vander
            continue
        except Broken as wrong:
            raise AssertionError(f"{tried.name} {tried.number}: {tried.text}: {wrong}") from wrong
        return True
    return False


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_function_with_a_peer_is_drawn_and_right(shard: int, gradient: bool, beside: Torch) -> None:
    wrong = []
    for name in chosen("", gradient)[shard::SHARDS]:
        cells = (draw(name, SEED, number, gradient=gradient, largest=TINY) for number in range(4))
        try:
            if not any(suits(cell, beside, SEED) for cell in cells):
                wrong.append(f"{name}: no call suits both sides")
        except AssertionError as error:
            wrong.append(str(error))
    assert not wrong, "\n".join(wrong)


def test_every_size_can_be_drawn() -> None:
    for name in chosen(""):
        for number in (SEED % 1000, SEED % 1000 + 1):
            assert draw(name, SEED, number).nbytes < 2e9, f"{name} {number}"


def test_rules_are_of_functions_and_modules_that_are_there() -> None:
    from baracuda import _index

    rules = peers.rules()  # raises where a function with a peer has none
    modules = {m.rpartition(".")[2] for m in _index.FUNCTIONS.values()}
    said = {name for found in facts().values() for name in found.sweep}
    assert said <= set(rules) | modules, "rules that nothing uses"
    assert len(rules) > 350


def test_a_seed_says_everything() -> None:
    for name in chosen("")[SEED % 4 :: 4]:
        first, again, other = (
            draw(name, 3, 1, largest=1e6),
            draw(name, 3, 1, largest=1e6),
            draw(name, 4, 1, largest=1e6),
        )
        assert (first.text, first.arguments) == (again.text, again.arguments)
        assert first.text != other.text or first.nbytes < 64 or first.name in ("eye",)
    rounds = order(chosen("sort"), 5)
    names = [next(rounds) for _ in range(40)]
    assert names == list(islice(order(chosen("sort"), 5), 40))
    count = len(chosen("sort"))
    assert sorted(n for n, _ in names[:count]) == sorted(chosen("sort")), "each function has its turn in a round"


def test_another_element_leaves_the_rest_of_a_draw() -> None:
    for number in range(20):
        one, two = (Draws("softmax", (1, number), element=e, nbytes=4000.0) for e in ("f32", "i32"))
        assert one.along() == two.along()


def test_sizes_layouts_elements_and_ranks_are_all_met() -> None:
    cells = [draw(name, SEED, number) for name in chosen("")[::6] for number in range(12)]
    assert {c.layout for c in cells} == set(LAYOUTS)
    assert {c.element for c in cells} == set(BYTES)
    assert {len(a.shape) for c in cells for a in arrays(c.arguments)} >= {1, 2, 3, 4, 5}
    decades = {int(np.log10(max(c.nbytes, 1))) for c in cells}
    assert decades >= {2, 3, 4, 5, 6, 7}
    assert max(c.nbytes for c in cells) < 2e9
    assert {c.out for c in cells} == {True, False}
    extents = [
        c.arguments["input"].shape[c.arguments["dim"]]
        for c in (draw("sum", SEED, n) for n in range(200))
        if isinstance(c.arguments.get("dim"), int)
    ]
    assert min(extents) <= 2 and max(extents) > 1e5
    odd = [n for c in cells for a in arrays(c.arguments) for n in a.shape if n > 8]
    assert sum(n % 2 for n in odd) > 0.3 * len(odd)


LAID: dict[str, tuple[Any, Any]] = {
    "contiguous": ((2, 3, 4, 5), (60, 20, 5, 1)),
    "permuted": ((2, 3, 4, 5), (3, 1, 30, 6)),
    "channels_last": ((2, 3, 4, 5), (60, 1, 15, 3)),
    "strided": ((2, 3, 4, 5), (120, 40, 10, 2)),
    "row": ((2, 3, 4, 5), (0, 20, 5, 1)),
    "column": ((2, 3, 4, 5), (12, 4, 1, 0)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_are_what_they_say(layout: str, beside: Torch) -> None:
    shape, strides = LAID[layout]
    described = Array(shape, "f32", layout, order=(2, 3, 0, 1) if layout == "permuted" else ())
    made = beside.make(described, np.random.default_rng(1))
    assert (tuple(made.shape), made.stride()) == (shape, strides)
    if layout == "channels_last":
        assert made.is_contiguous(memory_format=torch.channels_last)
    array = NumPy().make(described, np.random.default_rng(1))
    assert tuple(s // 4 for s in array.strides) == strides
    assert np.array_equal(array, made.numpy())


def test_values_are_what_they_say() -> None:
    rng = np.random.default_rng(2)
    along = numbers(Array((4, 7, 5), "i64", values="order", bound=9, dim=1), rng)
    assert all(len(set(along[i, :, j])) == 7 for i in range(4) for j in range(5)) and along.max() < 9
    places = numbers(Array((2, 3, 4, 4), "i64", values="places", bound=64, dim=-2), rng)
    assert all(len(set(p.ravel())) == 16 for p in places.reshape(6, 4, 4))
    assert np.all(np.diff(numbers(Array((50,), "f32", values="rising"), rng)) >= 0)
    assert numbers(Array((3000,), "f32", values=(2.0, 3.0)), rng).min() >= 2
    assert 0 < np.count_nonzero(numbers(Array((9000,), "f32", values="sparse"), rng)) < 200


def test_a_wrong_function_is_broken_and_not_timed(monkeypatch: pytest.MonkeyPatch, beside: Torch) -> None:
    # Drawn with the signatures of the right ones, which are remembered.
    cells = [draw(name, 1, 0, largest=TINY, element="f32") for name in ("exp", "sum")]
    right = F.exp
    monkeypatch.setitem(vars(F), "exp", lambda *a, **k: right(*a, **k) * 1.5)
    monkeypatch.setitem(vars(F), "sum", lambda input, *a, **k: input)
    for cell in cells:
        row = measure(cell, beside, Options(seed=1, largest=TINY, seconds=1e-5))
        assert row.status == "broken" and row.reason and row.ours == row.ratio == 0


def test_numpy_is_a_peer() -> None:
    options = Options("reduce", seed=2, budget=1e9, largest=TINY, seconds=1e-5, most=2)
    found = list(islice(run(options, NumPy()), 2 * len(chosen("reduce"))))
    measured = {r.name for r in found if r.status == "measured"}
    assert {"sum", "amax", "prod"} <= measured
    assert not [r for r in found if r.status == "broken"]


def test_runs_decide_what_is_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    from baracuda.bench.sweep import race as module

    class Known:
        slow = False

        def __init__(self, timer: float, _seconds: float) -> None:
            self.time = timer

        def run(self) -> float:
            return self.time

    class Given:
        def __init__(self, ours: float, theirs: float) -> None:
            self.ours = type("S", (), {"text": ours, "names": {}})
            self.theirs = type("S", (), {"text": theirs, "names": {}})

    monkeypatch.setattr(module, "_Side", Known)
    monkeypatch.setattr(module, "Timer", lambda text, globals: text)
    for theirs, runs in ((3.0, 2), (1.0, 7), (0.9, 7), (0.3, 4)):
        found = race(Given(1.0, theirs))  # type: ignore[arg-type]
        assert (len(found.ours), found.ratio) == (runs, theirs)
    assert Times([2.0, 1.0], [3.0, 4.0]).ratio == 3


def row(name: str, number: int, ours: float, theirs: float, **more: Any) -> dict[str, Any]:
    made = documents.Row(name, "f", number, False, False, "x", "f32", "contiguous", 100, 25)
    return {**documents.asdict(made), "ours": ours, "theirs": theirs, "ratio": theirs / ours, **more}


def test_what_became_slower_is_listed() -> None:
    old = {
        "rows": [
            row("a", 0, 1.0, 2.0),
            row("b", 0, 1.0, 2.0),
            row("c", 0, 1.0, 2.0),
            row("d", 0, 1.0, 2.0),
            row("e", 0, 1.0, 1.0),
        ]
    }
    new = {"rows": [
        row("a", 0, 1.2, 2.0),
        row("b", 0, 1.05, 2.0),  # not by 10 %
        row("c", 0, 1.5, 3.0),  # the machine is slower
        row("d", 0, 3.0, 2.0, call="another shape"),
        row("e", 0, 2.0, 1.0),
        row("f", 0, 9.0, 1.0),
    ]}  # fmt: skip
    assert [(r["name"], round(r["times"], 3)) for r in documents.slower(new, old)] == [("e", 2.0), ("a", 1.2)]
    assert documents.matched(new, old) == 4
    broken = copy.deepcopy(new)
    broken["rows"][0]["status"] = "broken"
    assert [r["name"] for r in documents.slower(broken, old)] == ["e"]


def test_figures_count_what_is_behind() -> None:
    f = documents.figures(
        [row("a", i, 1.0, t) for i, t in enumerate((4.0, 1.0, 0.9, 0.5))] + [row("z", 9, 1, 1, status="broken")]
    )
    assert (f["cells"], f["behind"], f["far_behind"], f["worst"]) == (4, 0.5, 0.25, 0.5)
    assert f["mean"] == pytest.approx((4 * 0.9 * 0.5) ** 0.25)


def test_a_jump_that_the_peer_has_too_is_no_cliff() -> None:
    points = [{"ns": o, "peer_ns": t} for o, t in ((1, 1), (0.5, 0.5), (2, 2), (5, 2), (5.1, 9))]
    assert cliffs(points) == [3]


def test_the_command_sweeps_and_writes(tmp_path: Path) -> None:
    pytest.importorskip("rich")
    written = tmp_path / "s.json"
    command = [sys.executable, "-m", "baracuda", "bench", "--threads", "1", "--sweep", "softmax", "--seed", "7"]
    command += ["--budget", "2", "--quick", "--out", str(written)]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    data = json.loads(written.read_text())
    assert data["options"]["seed"] == 7 and {"cpu", "threads", "versions"} <= set(data["machine"])
    assert data["summary"]["cells"] == sum(r["status"] == "measured" for r in data["rows"]) > 0
    assert {r["family"] for r in data["rows"]} == {"softmax"} == set(data["families"])
    assert "again with --seed 7" in done.stdout and "worst" in done.stdout


def test_reports_pictures_and_comparisons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rich")
    pytest.importorskip("matplotlib")
    written, picture = tmp_path / "s.json", tmp_path / "s.png"

    def sweep(*options: str) -> tuple[int, str]:
        status = command_line.swept(command_line.parser().parse_args(["--sweep", *options]), 1)
        captured = capsys.readouterr()
        return status, captured.out + captured.err

    threads = torch.get_num_threads(), baracuda.get_num_threads()
    try:
        made = sweep(
            "softmax", "--seed", "7", "--budget", "1", "--quick", "--out", str(written), "--plot", str(picture)
        )
        assert made[0] == 0 and picture.read_bytes()[:4] == b"\x89PNG"
        data = json.loads(written.read_text())
        cells = data["summary"]["cells"]
        for r in data["rows"]:
            r["ours"], r["ratio"] = r["ours"] / 100, r["ratio"] * 100
        written.write_text(json.dumps(data))
        assert (
            f"{cells} of {cells} cells that both have"
            in sweep("--quick", "--compare", str(written), "--budget", "99")[1]
        )
        status, text = sweep("--show", str(written))
        assert status == 0 and "again with --seed 7" in text
        status, text = sweep("nonsense")
        assert status == 2 and "families: " in text
        assert "cliffs; again" in sweep("cumsum", "--cliffs", "--quick", "--budget", "1")[1]
    finally:
        torch.set_num_threads(threads[0])
        baracuda.set_num_threads(threads[1])
