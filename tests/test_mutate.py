"""The tester of the tests: its mutants are wrong programs, one at a time, and what is excused still stands in the sources."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ci"))

import mutate
import mutation_rooms as rooms
from mutation_rooms import ROOT
from mutation_sites import mutants, replaced, with_switches

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
    text = "def f(a, b=1):\n    if a < b and not b:\n        raise ValueError('no')\n    return a + 2\n"
    (tmp_path / "f.py").write_text(text)
    found = mutants(tmp_path, "f.py")
    assert {m.kind for m in found} == {"comparison", "logic", "condition", "statement", "arithmetic", "constant"}
    for m in found:
        wrong = replaced(text.encode(), m).decode()
        compile(wrong, "f.py", "exec")
        assert wrong != text


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
