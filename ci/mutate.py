"""Mutation testing: wrong versions of csrc and python/baracuda, and whether the tests see them.

    python ci/mutate.py --seed 1 --count 300        # draws, builds, runs; goes on where it was stopped
    python ci/mutate.py --survivors                 # the survivors once more, with the tests as they are now
    python ci/mutate.py --survivors --keys K,L --tests "tests/test_refusal.py -k scalars"    # these, by these tests
    python ci/mutate.py --table                     # Markdown: made, killed, equivalent, by room

All C++ mutants are compiled into one build in build/mutate (ci/mutation_sites.py says how), which leaves the working tree
alone; those of GPU bodies run on the emulator. Survivors that no test can tell from the right code stand in
ci/equivalent_mutants.toml, each with its reason. Needs pip install -e '.[test]'.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

from mutation_rooms import ROOT, SHARES, room_of, share_of, tests_of
from mutation_sites import Mutant, mutants, replaced, with_switches

WORK = ROOT / "build" / "mutate"
TREE, RESULTS, DRAWN = WORK / "tree", WORK / "results.jsonl", WORK / "mutants.json"
EQUIVALENT = ROOT / "ci" / "equivalent_mutants.toml"
LEVEL = os.environ.get("BARACUDA_MUTATE_LEVEL", "v3")
SWITCH = """\
#pragma once
#include <cstdlib>
namespace bcu_mutation {
inline const int chosen = [] { const char* s = std::getenv("BCU_MUTANT"); return s ? std::atoi(s) : -1; }();
template <int kNumber> constexpr bool on() {
  if (__builtin_is_constant_evaluated()) return false;
  return chosen == kNumber;
}
}
"""


def sources() -> list[str]:
    listed = subprocess.check_output(["git", "-C", ROOT, "ls-files", "csrc", "include", "python/baracuda"], text=True)
    return [f for f in listed.split() if Path(f).suffix in (".h", ".cpp", ".cu", ".py") and room_of(f)]


def draw(seed: int, count: int, rooms: list[str]) -> list[Mutant]:
    """A sample with the rooms' shares, in each room over all of its mutants; none inside another."""
    by_room: dict[str, list[Mutant]] = defaultdict(list)
    for file in sources():
        if not rooms or room_of(file) in rooms:
            by_room[room_of(file)] += mutants(ROOT, file)
    total = sum(share_of(r) for r in by_room)
    drawn: list[Mutant] = []
    for room, found in sorted(by_room.items()):
        wanted = max(1, round(count * share_of(room) / total))
        random.Random(f"{seed} {room}").shuffle(found)
        kinds: Counter[str] = Counter()
        taken: list[Mutant] = []
        for m in found:  # no kind more often than a third of the room: constants are the most, and say the least
            clash = any(t.file == m.file and t.line <= m.line + 1 and m.line <= t.line + 1 for t in taken)
            nested = any(t.file == m.file and t.start < m.end and m.start < t.end for t in taken)
            if len(taken) < wanted and not clash and not nested and kinds[m.kind] * 3 <= wanted:
                taken.append(m)
                kinds[m.kind] += 1
        drawn += taken
    return drawn


def copy_tree() -> None:
    """The sources as git has them, with the changes of the working tree; what is the same stays, and so do builds of it."""
    for file in subprocess.check_output(["git", "-C", ROOT, "ls-files"], text=True).splitlines():
        if file.startswith(("bench/", "docs/")) or not (ROOT / file).exists():
            continue
        text, to = (ROOT / file).read_bytes(), TREE / file
        if file == "CMakeLists.txt":
            text = text.replace(b"set(optimize -O3)", b"set(optimize -O1)")
        if not to.exists() or to.read_bytes() != text:
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(text)
    if not (TREE / "mutation.h").exists():
        (TREE / "mutation.h").write_text(SWITCH)


def apply(numbered: dict[int, Mutant]) -> None:
    by_file: dict[str, list[tuple[int, Mutant]]] = defaultdict(list)
    for number, m in numbered.items():
        by_file[m.file].append((number, m))
    for file in {f for f in sources() if not f.endswith(".py")}:
        text = (ROOT / file).read_bytes()
        wanted = with_switches(text, by_file[file]) if file in by_file else text
        if (TREE / file).read_bytes() != wanted:
            (TREE / file).write_bytes(wanted)


def compile_all() -> str:
    """Builds the package and the emulated cuda module; what the compilers said, if they failed."""
    flags = f"-include {TREE}/mutation.h -w -Wno-error"
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    common = [f"-DCMAKE_CXX_FLAGS={flags}", "-G", "Ninja", *launcher]
    said = ""
    for folder, source, options, target in (
        (TREE / "build/dev", TREE, ["-DBARACUDA_INPLACE=ON", "-DBARACUDA_CUDA=OFF", f"-DBARACUDA_CPU_LEVELS={LEVEL}",
                                    f"-DPython_EXECUTABLE={sys.executable}"], "all"),
        (TREE / "build/emulator-plain", TREE / "tests/harness/emulator", ["-DBARACUDA_EMULATOR=plain"],
         "libbaracuda_cuda_emulated.so"),
    ):  # fmt: skip
        if not (folder / "build.ninja").exists():
            subprocess.run(
                ["cmake", "-S", source, "-B", folder, *common, *options], check=True, stdout=subprocess.DEVNULL
            )
        done = subprocess.run(["ninja", "-C", folder, "-k", "0", target], capture_output=True, text=True)
        said += done.stdout + done.stderr if done.returncode else ""
    return said


def uncompilable(numbered: dict[int, Mutant], said: str) -> set[int]:
    """The mutants that an error names, by the lines that they have now; else those of the files that it names."""
    lines: dict[str, set[int]] = defaultdict(set)
    named: dict[str, set[int]] = defaultdict(set)
    for found in re.finditer(
        r"(?:^|[\s(])(?:\.\./)*[\w/.-]*?((?:csrc|include)/[\w/.-]+):(\d+)(?::\d+)?: (error)?", said, re.M
    ):
        (lines if found[3] else named)[found[1]].add(int(found[2]))
    bad: set[int] = set()
    for where in (lines, named):
        for file, at in where.items():
            text = (TREE / file).read_text()
            for number in (n for n, m in numbered.items() if m.file == file):
                start = text.find(f"::bcu_mutation::on<{number}>()")
                first = text.count("\n", 0, start) + 1
                spans = range(first - 1, first + 2 + 2 * numbered[number].right.count("\n"))
                if at & set(spans):
                    bad.add(number)
        if bad:
            return bad
    return {n for n, m in numbered.items() if m.file in lines or m.file in named}


def sources_digest() -> str:
    return hashlib.sha256(b"".join((ROOT / f).read_bytes() for f in sources())).hexdigest()


def found_again(drawn: dict[int, Mutant]) -> dict[int, Mutant]:
    """The same passages where they stand now; those that are gone are left out."""
    by_key = {
        m.key: m for file in {m.file for m in drawn.values()} if (ROOT / file).exists() for m in mutants(ROOT, file)
    }
    return {n: by_key[m.key] for n, m in drawn.items() if m.key in by_key}


def build(drawn: dict[int, Mutant]) -> dict[int, Mutant]:
    """Those that compile."""
    numbered = {n: m for n, m in drawn.items() if not m.file.endswith(".py")}
    copy_tree()
    while True:
        apply(numbered)
        said = compile_all()
        if not said:
            return {n: m for n, m in drawn.items() if n in numbered or m.file.endswith(".py")}
        bad = uncompilable(numbered, said)
        if not bad:
            sys.exit(f"the build failed without a mutant's fault:\n{said[-6000:]}")
        print(f"{len(bad)} mutants do not compile", flush=True)
        numbered = {n: m for n, m in numbered.items() if n not in bad}


class Site:
    """A package of its own for each worker, since mutants of Python replace its files."""

    def __init__(self, number: int) -> None:
        self.path = WORK / f"site-{number}"
        shutil.rmtree(self.path, ignore_errors=True)
        shutil.copytree(
            TREE / "python",
            self.path,
            copy_function=lambda a, b: (os.link if a.endswith(".so") else shutil.copyfile)(a, b),
        )
        for file in (ROOT / "python").rglob("*.py*"):  # as they are now
            if "__pycache__" not in file.parts and file.suffix in (".py", ".pyi"):
                shutil.copyfile(file, self.path / file.relative_to(ROOT / "python"))

    def pytest(self, arguments: list[str], mutant: int | None, limit: float) -> tuple[str, str]:
        """ "passed", "failed", "hung" or "none" (no test), and the last lines."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("BARACUDA_", "BCU_"))}
        env |= {"PYTHONPATH": str(self.path), "PYTHONDONTWRITEBYTECODE": "1", "BARACUDA_CPU_LEVEL": LEVEL}
        if mutant is not None:
            env["BCU_MUTANT"] = str(mutant)
        if any("test_device" in a for a in arguments):
            module = str(TREE / "build/emulator-plain/libbaracuda_cuda_emulated.so")
            env |= {"BARACUDA_CUDA_MODULE": module, "BARACUDA_CUBLASLT_LIBRARY": module}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=line", "-p", "no:cacheprovider",
                   "-W", "ignore", *arguments]  # fmt: skip
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   start_new_session=True)  # fmt: skip
        try:
            said, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            return "hung", f"no end in {limit:.0f} s"
        word = {0: "passed", 5: "none"}.get(process.returncode, "failed")
        return word, "\n".join(said.splitlines()[-12:])


class Campaign:
    """Runs mutants on two sites at once and writes each result as it comes."""

    def __init__(self, jobs: int, stages: int, tests: list[str]) -> None:
        self.stages, self.tests = stages, tests
        self.sites: SimpleQueue[Site] = SimpleQueue()
        self.jobs = jobs
        for n in range(jobs):
            self.sites.put(Site(n))
        self.limits: dict[tuple[str, ...], float] = {}
        self.measuring = Lock()

    def limit(self, site: Site, arguments: list[str]) -> float:
        """Some times what the tests take with the right code, which they must pass."""
        key = tuple(arguments)
        with self.measuring:
            if key not in self.limits:
                start = time.monotonic()
                word, said = site.pytest(arguments, None, 1800)
                if word in ("failed", "hung"):
                    raise RuntimeError(f"without a mutant: {word}: pytest {' '.join(arguments)}\n{said}")
                self.limits[key] = 60 + 5 * (time.monotonic() - start) if word == "passed" else 0
            return self.limits[key]

    def judge(self, number: int, m: Mutant) -> dict[str, object]:
        site = self.sites.get()
        start = time.monotonic()
        try:
            verdict, detail = self._judge(site, number, m)
        except RuntimeError as e:
            verdict, detail = "error", str(e)
        finally:
            self.sites.put(site)
        return {"key": m.key, "file": m.file, "line": m.line, "what": str(m), "verdict": verdict, "detail": detail,
                "seconds": round(time.monotonic() - start, 1)}  # fmt: skip

    def _judge(self, site: Site, number: int, m: Mutant) -> tuple[str, str]:
        python = m.file.endswith(".py")
        inside = site.path / m.file.removeprefix("python/")
        right = inside.read_bytes() if python else b""
        wanted = [self.tests] if self.tests else tests_of(m.file)
        for arguments in wanted[: self.stages]:
            limit = self.limit(site, arguments)
            if not limit:
                continue
            if python:
                inside.write_bytes(replaced((ROOT / m.file).read_bytes(), m))
            try:
                word, said = site.pytest(arguments, None if python else number, limit)
            finally:
                if python:
                    inside.write_bytes(right)
            if word in ("failed", "hung"):
                return "killed", next((s for s in said.splitlines() if "FAILED" in s or "Error" in s), said[-300:])
        return ("survived" if len(wanted) <= self.stages and not self.tests else "open"), ""

    def run(self, numbered: dict[int, Mutant], done: set[str]) -> None:
        with ThreadPoolExecutor(self.jobs) as pool:
            left = [(n, m) for n, m in numbered.items() if m.key not in done]
            left.sort(key=lambda t: room_of(t[1].file) in SHARES)  # families first: their tests are the shortest
            waiting = [pool.submit(self.judge, n, m) for n, m in left]
            for i, future in enumerate(waiting):
                result = future.result()
                if result["verdict"] == "killed" or not self.tests:  # other tests may know what these do not
                    with RESULTS.open("a") as f:
                        f.write(json.dumps(result) + "\n")
                print(
                    f"{i + 1}/{len(waiting)} {result['verdict']:9} {result['seconds']:6} s  {result['what']}",
                    flush=True,
                )


def results() -> dict[str, dict[str, object]]:
    """The last one of each mutant."""
    if not RESULTS.exists():
        return {}
    return {r["key"]: r for r in map(json.loads, RESULTS.read_text().splitlines())}


def equivalent() -> dict[str, str]:
    if not EQUIVALENT.exists():
        return {}
    return {e["key"]: e["reason"] for e in tomllib.loads(EQUIVALENT.read_text())["mutant"]}


def table() -> str:
    reasons, counts = equivalent(), defaultdict(Counter)
    for r in results().values():
        verdict = "equivalent" if r["verdict"] == "survived" and r["key"] in reasons else str(r["verdict"])
        counts[room_of(str(r["file"]))][verdict] += 1
        counts["all"][verdict] += 1
    lines = ["| room | made | killed | equivalent | survived | killed of the others |", "|---|---|---|---|---|---|"]
    for room, c in sorted(counts.items(), key=lambda t: (t[0] == "all", t[0])):
        others = c["killed"] + c["survived"]
        share = f"{c['killed'] / others:.0%}" if others else ""
        lines.append(f"| {room} | {c.total()} | {c['killed']} | {c['equivalent']} | {c['survived']} | {share} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--rooms", default="", help="only these, with commas between")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--stages", type=int, default=9, help="no more than so many groups of tests for each mutant")
    parser.add_argument("--survivors", action="store_true")
    parser.add_argument("--keys", default="", help="only the mutants with these keys, with commas between")
    parser.add_argument("--tests", default="", help="pytest's arguments instead of the tests of each room")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if options.table:
        print(table())
        return 0
    WORK.mkdir(parents=True, exist_ok=True)
    asked = {"seed": options.seed, "count": options.count, "rooms": options.rooms}
    held = json.loads(DRAWN.read_text()) if DRAWN.exists() else None
    if options.survivors or (held and held["asked"] == asked):
        if held is None:
            sys.exit("no mutants have been drawn yet: leave --survivors out")
        numbered = found_again({int(n): Mutant(**m) for n, m in held["mutants"].items()})
        if held.get("sources") != sources_digest():
            numbered = build(numbered)
    else:
        shutil.rmtree(WORK)
        WORK.mkdir()
        numbered = build(dict(enumerate(draw(options.seed, options.count, [r for r in options.rooms.split(",") if r]))))
        held = {"asked": asked}
    held |= {"mutants": {n: asdict(m) for n, m in numbered.items()}, "sources": sources_digest()}
    DRAWN.write_text(json.dumps(held))
    final = ("killed",) if options.survivors else ("killed", "survived")
    done = {k for k, r in results().items() if r["verdict"] in final}
    if options.keys:
        numbered = {n: m for n, m in numbered.items() if m.key in options.keys.split(",")}
    Campaign(options.jobs, options.stages, shlex.split(options.tests)).run(numbered, done)
    print(table())
    left = [r for r in results().values() if r["verdict"] == "survived" and r["key"] not in equivalent()]
    for r in left:
        print(f"survived: {r['key']}  {r['what']}")
    return 1 if any(r["verdict"] == "error" for r in results().values()) else 0


if __name__ == "__main__":
    sys.exit(main())
