"""Mutation testing: wrong versions of csrc and python/baracuda, and whether the tests see them.

    python ci/mutate.py --seed 1 --count 300        # draws, builds, runs; goes on where it was stopped
    python ci/mutate.py --stages 1                  # no further than the first, short, group of tests
    python ci/mutate.py --survivors                 # the survivors once more, with the tests as they are now
    python ci/mutate.py --survivors --keys K,L --tests "tests/test_refusal.py -k scalars"    # these, by these tests
    python ci/mutate.py --table                     # Markdown: made, killed, equivalent, by room

All C++ mutants are compiled into one build in build/mutate (ci/mutation_sites.py says how), which leaves the working tree
alone; those of GPU bodies run on the emulator. ci/mutation_campaign.py runs the tests. Survivors that no test can tell from
the right code stand in ci/equivalent_mutants.toml, each with its reason. Needs pip install -e '.[test]'.
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
import tomllib
from collections import Counter, defaultdict
from dataclasses import asdict
from pathlib import Path

from mutation_campaign import Campaign, results
from mutation_rooms import ROOT, room_of, share_of
from mutation_sites import Mutant, mutants, with_switches

WORK = ROOT / "build" / "mutate"
TREE, RESULTS, DRAWN = WORK / "tree", WORK / "results.jsonl", WORK / "mutants.json"
EQUIVALENT = ROOT / "ci" / "equivalent_mutants.toml"
LEVEL = os.environ.get("BARACUDA_MUTATE_LEVEL", "v3")
SWITCH = """\
#pragma once
#include <cstdlib>
namespace bcu_mutation {
inline int from_environment() { const char* s = std::getenv("BCU_MUTANT"); return s ? std::atoi(s) : -1; }
// One for all libraries of a process, however they are opened; ci/mutation_server.py sets it after a fork.
inline __attribute__((visibility("default"))) int chosen __asm__("bcu_mutant_chosen") = from_environment();
template <int kNumber> constexpr bool on() {
  if (__builtin_is_constant_evaluated()) return false;
  return chosen == kNumber;
}
}
"""
# What the build of the mutants has otherwise: it is compiled faster, and forks of ci/mutation_server.py run threads.
OTHERWISE = {
    "CMakeLists.txt": [("set(optimize -O3)", "set(optimize -O1)")],
    "csrc/backends/cpu/parallel.cpp": [
        ("g_forked.store(true,", 'g_forked.store(std::getenv("BCU_MUTATION_SERVER") == nullptr,'),
        ("if (base == nullptr ||", 'if (std::getenv("BCU_MUTATION_SERVER") != nullptr || base == nullptr ||'),
    ],
}


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


def otherwise(file: str, text: bytes) -> bytes:
    for right, instead in OTHERWISE.get(file, []):
        assert right.encode() in text, f"{file} has no {right!r} any more: see OTHERWISE"
        text = text.replace(right.encode(), instead.encode())
    return text


def copy_tree() -> None:
    """The sources as git has them, with the changes of the working tree; what is the same stays, and so do builds of it."""
    for file in subprocess.check_output(["git", "-C", ROOT, "ls-files"], text=True).splitlines():
        if file.startswith(("bench/", "docs/")) or not (ROOT / file).exists():
            continue
        text, to = otherwise(file, (ROOT / file).read_bytes()), TREE / file
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
        wanted = otherwise(file, with_switches(text, by_file[file]) if file in by_file else text)
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


def equivalent() -> dict[str, str]:
    if not EQUIVALENT.exists():
        return {}
    return {e["key"]: e["reason"] for e in tomllib.loads(EQUIVALENT.read_text())["mutant"]}


def table() -> str:
    reasons, counts = equivalent(), defaultdict(Counter)
    judged = results(RESULTS)
    for m in (Mutant(**m) for m in json.loads(DRAWN.read_text())["mutants"].values()):
        verdict = str(judged[m.key]["verdict"]) if m.key in judged else "open"
        for room in (room_of(m.file), "all"):
            counts[room]["equivalent" if verdict != "killed" and m.key in reasons else verdict] += 1
    lines = [
        "| room | made | killed | equivalent | survived | open | killed of the others |",
        "|---|---|---|---|---|---|---|",
    ]
    for room, c in sorted(counts.items(), key=lambda t: (t[0] == "all", t[0])):
        others = c.total() - c["equivalent"]
        share = f"{c['killed'] / others:.0%}" if others else ""
        left = f"{c['survived']} | {c['open'] + c['error']}"
        lines.append(f"| {room} | {c.total()} | {c['killed']} | {c['equivalent']} | {left} | {share} |")
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
    if options.keys:
        numbered = {n: m for n, m in numbered.items() if m.key in options.keys.split(",")}
    tests = shlex.split(options.tests)
    with Campaign(WORK, TREE, options.jobs, LEVEL, tests, options.survivors, equivalent()) as campaign:
        campaign.run(numbered, min(options.stages, 1) if options.tests else options.stages)
    print(table())
    left = [r for r in results(RESULTS).values() if r["verdict"] == "survived" and r["key"] not in equivalent()]
    for r in left:
        print(f"survived: {r['key']}  {r['what']}")
    return 1 if any(r["verdict"] == "error" for r in results(RESULTS).values()) else 0


if __name__ == "__main__":
    sys.exit(main())
