"""The tester of the tests: its mutants are wrong programs, one at a time, and what is excused still stands in the sources."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import baracuda

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ci"))

import mutate
import mutation_campaign
import mutation_rooms as rooms
from mutation_rooms import ROOT
from mutation_sites import Mutant, mutants, replaced, with_switches

PROGRAM = """\
#include <cstdio>
constexpr int kSize = 4 + 1;
template <int N> int last(const int (&v)[N]) { return v[N - 1]; }
int main() {
  static_assert(kSize == 5);
  int total = 0, v[kSize] = {};
  for (int i = 0; i < kSize; ++i) {
    v[i] = i * i;
    if (i > 2) total += v[i];
  }
  std::printf("%d %d", total, last(v));
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.cpp").write_text(PROGRAM)
    (tmp_path / "switch.h").write_text(mutate.SWITCH)
    return tmp_path


def test_compiled_mutants_run_one_at_a_time(folder: Path) -> None:
    small = [m for m in mutants(folder, "program.cpp") if m.kind in ("constant", "comparison", "bound", "index")]
    chosen = []
    for m in sorted(small, key=lambda m: m.end - m.start):  # none inside another
        if all(m.end <= c.start or c.end <= m.start for _, c in chosen):
            chosen.append((len(chosen), m))
    (folder / "all.cpp").write_bytes(with_switches(PROGRAM.encode(), chosen))
    build = ["g++", "-std=c++20", "-include", "switch.h", "all.cpp", "-o", "all"]
    subprocess.run(build, cwd=folder, check=True, timeout=120)

    def said(number: int) -> str:
        done = subprocess.run(
            [folder / "all"], env={"BCU_MUTANT": str(number)}, capture_output=True, text=True, timeout=20
        )
        return done.stdout

    assert said(-1) == said(10_000) == "25 16"
    different = [n for n, _ in chosen if said(n) != "25 16"]
    assert len(different) > len(chosen) // 2, "most changes of so small a program show"


def test_nothing_that_only_the_compiler_sees_is_changed(folder: Path) -> None:
    lines = {m.line for m in mutants(folder, "program.cpp")}
    assert lines.isdisjoint({1, 2, 5}), "constexpr, static_assert and what is included"


def test_mutants_of_python_are_valid_and_different(tmp_path: Path) -> None:
    text = "def f(a, b=1):\n    c: int\n    if a < b and not b:\n        raise ValueError('no')\n    return a + 2\n"
    (tmp_path / "f.py").write_text(text)
    found = mutants(tmp_path, "f.py")
    assert {m.kind for m in found} == {"comparison", "logic", "condition", "statement", "arithmetic", "constant"}
    for m in found:
        wrong = replaced(text.encode(), m).decode()
        compile(wrong, "f.py", "exec")
        assert wrong != text


def test_what_the_build_has_otherwise_stands_in_the_sources() -> None:
    for file in mutate.OTHERWISE:
        text = (ROOT / file).read_bytes()
        assert mutate.otherwise(file, text) != text


SUBJECT = """\
import os

def test_right():
    import baracuda

def test_wrong():
    assert os.environ.get("BCU_MUTANT") != "1"

def test_endless():
    while os.environ.get("BCU_MUTANT") == "2":
        pass

def test_crash():
    if os.environ.get("BCU_MUTANT") == "3":
        os.abort()
"""


def test_the_server_runs_each_request_in_a_process_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "test_subject.py").write_text(SUBJECT)
    common = {
        "arguments": [f"--rootdir={tmp_path}", "-c", os.devnull, str(tmp_path)],
        "site": str(Path(baracuda.__file__).parents[1]),
    }
    common |= {"cpu_seconds": 2, "test_seconds": 240, "seconds": 300, "seed": ""}
    common |= {"first": ["test_subject.py::test_right"], "only": "", "without": []}
    plan = [("", False, {}), ("1", False, {}), ("2", False, {}), ("3", True, {}), ("1", True, {}),
            ("1", False, {"without": ["test_subject.py::test_wrong"]}), ("1", True, {"only": "test_subject.py::test_right"})]  # fmt: skip
    requests = [{"env": {"BCU_MUTANT": n} if n else {}, "fresh": fresh, **more} for n, fresh, more in plan]
    done = subprocess.run(
        [sys.executable, ROOT / "ci/mutation_server.py"],
        input="".join(json.dumps(common | r) + "\n" for r in requests), capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    words = ["passed", "failed", "hung", "failed", "failed", "passed", "passed"]
    assert [a["word"] for a in answers] == words, f"{answers} {done.stderr}"
    assert [a["test"].partition("::")[2] for a in answers[1:5]] == [
        "test_wrong",
        "test_endless",
        "test_crash",
        "test_wrong",
    ]


class Answers:
    """A worker whose tests are a table: what fails with a mutant (True) and what fails with the right code, too (None)."""

    def __init__(self, tests: dict[str, bool | None]) -> None:
        self.tests, self.asked = tests, list[list[str]]()

    def pytest(self, arguments: list[str], fresh: bool, mutant: int | None = None, **order: Any) -> dict[str, str]:
        order = mutation_campaign.ORDER | order
        self.asked.append(arguments)
        for test in sorted(self.tests, key=lambda t: (t not in order["first"], t)):
            fails = self.tests[test] is None or (self.tests[test] and mutant is not None)
            if fails and test not in order["without"] and order["only"] in ("", test):
                return {"word": "failed", "test": test, "said": "wrong"}
        return {"word": "passed", "test": "", "said": ""}

    def close(self) -> None:
        pass


def campaign(tmp_path: Path, worker: Answers, again: bool = False) -> mutation_campaign.Campaign:
    made = mutation_campaign.Campaign(tmp_path, tmp_path, 0, "v3", [], again)
    made.workers.put(worker)  # type: ignore[arg-type]
    made.jobs = 1
    return made


def test_a_campaign_goes_on_where_it_stopped(tmp_path: Path) -> None:
    m = Mutant("csrc/core/plan.cpp", "constant", 1, 0, 1, "0", "1")
    groups = len(rooms.tests_of(m.file)) + 1  # and the first once more, where baracuda is imported with the mutant
    campaign(tmp_path, blind := Answers({"a.py::x": False})).run({0: m}, 1)
    assert [r["verdict"] for r in mutation_campaign.results(tmp_path / "results.jsonl").values()] == ["open"]
    campaign(tmp_path, blind).run({0: m}, groups)
    assert len(blind.asked) == groups, "each group once"
    found = mutation_campaign.results(tmp_path / "results.jsonl")
    assert found[m.key]["verdict"] == "survived"
    campaign(tmp_path, seeing := Answers({"a.py::x": True})).run({0: m}, groups)
    assert not seeing.asked, "judged already"
    campaign(tmp_path, seeing, again=True).run({0: m}, groups)
    found = mutation_campaign.results(tmp_path / "results.jsonl")
    assert (found[m.key]["verdict"], found[m.key]["test"]) == ("killed", "a.py::x")


def test_a_test_that_fails_without_a_mutant_kills_none(tmp_path: Path) -> None:
    m = Mutant("csrc/core/plan.cpp", "constant", 1, 0, 1, "0", "1")
    made = campaign(tmp_path, Answers({"a.py::always": None, "a.py::x": False}))
    made.run({0: m}, 1)
    assert made.results[m.key]["verdict"] == "open"
    other = Mutant("csrc/core/plan.cpp", "constant", 2, 0, 1, "1", "2")
    worker = Answers({"a.py::always": None, "b.py::y": True})
    made.workers.get()
    made.workers.put(worker)  # type: ignore[arg-type]
    made.run({1: other}, 1)
    assert (made.results[other.key]["verdict"], made.results[other.key]["test"]) == ("killed", "b.py::y")
    assert made.killers("csrc/core/plan.cpp") == ["b.py::y"]


def test_every_room_has_tests_that_exist() -> None:
    seen = {}
    for file in mutate.sources():
        seen.setdefault(rooms.room_of(file), file)
    assert {*rooms.SHARES, *rooms.families()} <= set(seen)
    for file in seen.values():
        for arguments in rooms.tests_of(file):
            paths = [a for a in arguments if a.startswith("tests/")]
            assert paths, file
            assert all((ROOT / p).exists() for p in paths), f"{file}: {paths}"


def test_what_is_excused_stands_in_the_sources() -> None:
    """An entry whose passage is gone is deleted with it."""
    entries = tomllib.loads(mutate.EQUIVALENT.read_text())["mutant"]
    assert len({e["key"] for e in entries}) == len(entries)
    for e in entries:
        assert len(e["reason"]) > 20, f"{e['key']}: why no test can see it"
        file = e["what"].split(":")[0]
        assert e["key"] in {m.key for m in mutants(ROOT, file)}, (
            f"{e['what']}: no such mutant any more, delete the entry"
        )
