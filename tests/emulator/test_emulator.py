"""Tests of the tester: small broken kernels that the emulator must report, and correct ones that it must not."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from emulator import build as emulator

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "emulator"
pytestmark = pytest.mark.skipif(bool(emulator.unable()), reason=emulator.unable())

# What each build says of a probe; None: this build cannot see it. Poison and changes with the schedule need no hooks.
CORRECT = [
    "OkBlockReduce",
    "OkWarpSync",
    "OkShuffles",
    "OkAtomics",
    "OkBarrierAll",
    "OkNeighbourBytes",
    "OkPacks",
    "OkFault",
    "OkMma",
    "OkMmaCutsOff",
    "OkLoadMatrices",
    "OkSlices",
    "OkCopies",
]
RACE, POISON, ORDER = "RACE on byte", "^NAN", "^SCHEDULE-DEPENDENT"
UNWRITTEN, OUTSIDE, STUCK = "UNINITIALISED", "OUT OF BOUNDS", "DIVERGENT SYNC"
BROKEN = {  # probe: (plain, race, sanitize)
    "MissingBarrier": (POISON, UNWRITTEN, POISON),
    "WriteAfterRead": (None, RACE, None),
    "SharedCounter": (ORDER, RACE, ORDER),
    "MissingWarpSync": (POISON, UNWRITTEN, POISON),
    "ShuffleIsNoSync": (None, RACE, None),
    "WarpSyncAcrossWarps": (POISON, UNWRITTEN, POISON),
    "UninitialisedShared": (None, UNWRITTEN, None),
    "SharedFromLastBlock": (POISON, UNWRITTEN, POISON),
    "BlocksWriteTheSame": (ORDER, RACE, ORDER),
    "BlockReadsAnother": (ORDER, RACE, ORDER),
    "NeedsBarrierAll": (None, RACE, None),
    "WarpSyncForGlobal": (None, RACE, None),
    "PlainAmongAtomics": (ORDER, RACE, ORDER),
    "ReadAfterOthersAtomics": (ORDER, RACE, ORDER),
    "ByteInAWord": (ORDER, RACE, ORDER),
    "DivergentBarrier": (STUCK, STUCK, STUCK),
    "EarlyReturn": (STUCK, STUCK, STUCK),
    "TwoBarriers": ("BARRIER MISMATCH", "BARRIER MISMATCH", "BARRIER MISMATCH"),
    "DivergentShuffle": (STUCK, STUCK, STUCK),
    "DivergentTripCount": (STUCK, STUCK, STUCK),
    "TwoShuffles": ("WARP MISMATCH", "WARP MISMATCH", "WARP MISMATCH"),
    "ShufflePastTheEnd": (POISON, POISON, POISON),
    "ReadPastTheEnd": (OUTSIDE, f"{OUTSIDE}.*reads 4 bytes 0 bytes past the end of tensor 0", OUTSIDE),
    "WritePastTheEnd": (OUTSIDE, f"{OUTSIDE}.*writes 4 bytes 0 bytes past the end of tensor 1", OUTSIDE),
    "ReadBeforeTheStart": (None, f"{OUTSIDE}.*4 bytes before tensor 0", "use-after-poison"),
    "FarAway": (OUTSIDE, OUTSIDE, OUTSIDE),
    "PastShared": (None, f"{OUTSIDE}.*past the end of shared memory", "heap-buffer-overflow"),
    "PastParams": (None, f"{OUTSIDE}.*parameters", "heap-buffer-overflow"),
    "WritesParams": (None, f"{OUTSIDE}.*parameters", None),
    "MemoryOfNoTensor": (OUTSIDE, OUTSIDE, OUTSIDE),
    "NullPointer": (OUTSIDE, OUTSIDE, "null pointer"),
    "MisalignedPack": (None, "MISALIGNED", "misaligned address"),
    "Overflow": (None, "INTEGER OVERFLOW", "signed integer overflow"),
    "ShiftTooFar": (None, "SHIFT", "cannot be represented|too large for"),
    "PastLocalArray": (None, "OUT OF BOUNDS of a local array", "out of bounds"),
    "StackOverflow": ("STACK OVERFLOW", "STACK OVERFLOW", "STACK OVERFLOW"),
    "CopyWithoutWait": (POISON, POISON, POISON),
    "CopyWithoutBarrier": (POISON, f"{RACE}|{UNWRITTEN}", POISON),
    "CopyBeforeBarrier": (None, RACE, None),
    "MisalignedMatrix": ("MISALIGNED", "MISALIGNED", "MISALIGNED"),
}


@pytest.fixture(scope="module", params=emulator.VARIANTS)
def variant(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def probes(variant: str) -> Path:
    return emulator.build(variant, "emulator_probes")


def run(program: Path, *words: str) -> subprocess.CompletedProcess[str]:
    options = {"ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0", "UBSAN_OPTIONS": "halt_on_error=1"}
    env = {k: v for k, v in os.environ.items() if not k.startswith("BARACUDA_")} | options
    return subprocess.run([program, *words], capture_output=True, text=True, timeout=120, env=env)


def outcome(program: Path, probe: str) -> str:
    done = run(program, "run", probe)
    # An aborting sanitizer speaks on stderr.
    return done.stdout.strip() if done.stdout else done.stderr


def test_every_probe_has_an_expectation(probes: Path) -> None:
    assert run(probes, "probes").stdout.split() == [*CORRECT, *BROKEN]


@pytest.mark.parametrize("probe", CORRECT)
def test_correct_bodies_are_clean(probes: Path, probe: str) -> None:
    assert outcome(probes, probe) == "CLEAN"


VISIBLE = [
    pytest.param(variant, probe, expected[i], id=f"{variant}-{probe}")
    for i, variant in enumerate(emulator.VARIANTS)
    for probe, expected in BROKEN.items()
    if expected[i]
]


@pytest.mark.parametrize(("variant", "probe", "expected"), VISIBLE, indirect=["variant"])
def test_broken_bodies_are_reported(probes: Path, probe: str, expected: str) -> None:
    assert re.search(expected, outcome(probes, probe))


def test_the_race_build_sees_everything() -> None:
    assert all(race for _, race, _ in BROKEN.values())


@pytest.mark.parametrize("variant", ["race"], indirect=True)
def test_reports_name_the_line(probes: Path) -> None:
    lines = (HERE / "probes.h").read_text().splitlines()
    found = re.findall(r"tests/emulator/probes\.h:(\d+)", run(probes, "run", "NeedsBarrierAll").stderr)
    assert [lines[int(n) - 1].strip() for n in found] == [
        "float v = p.y[int64_t(ctx.bid_x()) * p.n + (ctx.tid() ^ 64u)];",
        "p.y[own(ctx, p)] = p.x[ctx.tid()];",
    ]


def test_fake_runtime(probes: Path) -> None:
    cases = run(probes, "cases").stdout.split()
    assert len(cases) >= 16
    failed = {case: done.stdout + done.stderr for case in cases if (done := run(probes, "case", case)).returncode}
    assert not failed


def test_schedules_are_named(probes: Path) -> None:
    env = os.environ | {"BARACUDA_EMULATOR_SCHEDULE": "backwards", "ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run([probes, "run", "OkAtomics"], capture_output=True, text=True, env=env)
    assert done.returncode != 0 and "no schedule is named backwards" in done.stderr


@pytest.mark.parametrize("variant", ["plain"], indirect=True)
def test_fibers_of_other_processors(variant: str) -> None:
    program = emulator.build(variant, "emulator_probes_ucontext")
    symbols = subprocess.check_output(["nm", program], text=True)
    assert "swapcontext" in symbols and "bcu_emulator_switch" not in symbols
    for probe in ("OkBlockReduce", "OkShuffles", "OkBarrierAll"):
        assert outcome(program, probe) == "CLEAN"
    for probe in ("DivergentBarrier", "TwoShuffles", "MissingBarrier", "StackOverflow"):
        assert re.search(BROKEN[probe][0], outcome(program, probe))


def barriers_of(path: Path) -> list[int]:
    return [
        i
        for i, line in enumerate(path.read_text().splitlines())
        if re.match(r"\s*(barrier|warp_sync)\w*\(ctx\);", line)
    ]


REDUCE = ROOT / "csrc" / "simt" / "reduce.h"


@pytest.mark.parametrize("line", barriers_of(REDUCE))
def test_a_removed_barrier_is_caught(tmp_path: Path, line: int) -> None:
    """Builds the probes once more without one barrier of reduce.h."""
    emulator.build("race", "emulator_probes")
    folder = ROOT / "build" / "emulator-race"
    lines = REDUCE.read_text().splitlines(keepends=True)
    del lines[line]
    (tmp_path / "simt").mkdir()
    (tmp_path / "simt" / "reduce.h").write_text("".join(lines))
    entries = json.loads((folder / "compile_commands.json").read_text())
    command = next(e["command"] for e in entries if e["file"].endswith("emulator/main.cpp"))
    words = [w for w in shlex.split(command) if w != "ccache"]
    words[words.index("-o") + 1] = str(tmp_path / "main.o")
    subprocess.run([words[0], f"-I{tmp_path}", *words[1:]], cwd=folder, check=True)
    objects = [*folder.glob("CMakeFiles/probes.dir/**/runtime_cases.cpp.o")]
    objects += folder.glob("CMakeFiles/probe_device.dir/**/*.o")
    program = tmp_path / "probes"
    parts = [tmp_path / "main.o", *objects, *emulator.archives(folder), "-ldl", "-lpthread"]
    subprocess.run([words[0], *parts, "-o", program], check=True)
    assert re.search(f"{RACE}|{UNWRITTEN}", outcome(program, "OkBlockReduce"))


def test_there_are_barriers_to_remove() -> None:
    assert len(barriers_of(REDUCE)) >= 2
