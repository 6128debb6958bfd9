"""What a change touches since everything was last tested: "all", or op families and test files, with commas between.

python ci/changed.py            # since the commit in ci/whole_run.txt; BARACUDA_CI=all answers "all"
python ci/changed.py COMMIT     # since another one
python ci/changed.py --record   # everything passed at HEAD: writes ci/whole_run.txt, to be committed

`pytest --touched=...` takes this list, `BARACUDA_CPU_FAMILIES` and `--families` its families (ci/changed.py --families).
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from zlib import crc32

from mutation_rooms import ROOT, families, users_of

RECORD = ROOT / "ci/whole_run.txt"
# Nothing is tested anew for what people read or measure with, nor for what ci/check.sh compares with its sources.
UNTESTED = re.compile(
    r"(docs|examples|bench|licenses|packaging|tools|\.github|python/baracuda/bench)/|[A-Z_]+(\.md)?$|\.gitignore$|\.clang-format$"
    r"|ci/(?!(test|build|install|lib|level|sanitize|emulator|changed)\.)|python/baracuda/(functional\.pyi|_descriptors\.pyi|_index\.py)$"
)
FAMILY = re.compile(r"(?:csrc|python/baracuda)/ops/(\w+)/")
# Rooms that no other one needs, and what their tests are called.
ALONE = {
    "python/baracuda/graph/": (
        "tests/test_graph*.py",
        "tests/test_jit.py",
        "tests/device/test_device_trace.py",
        "tests/test_examples.py",
    ),
    "python/baracuda/llm/": ("tests/test_llm*.py",),
    "python/baracuda/engine/": (
        "tests/test_engine.py",
        "tests/test_engine_aliases.py",
        "tests/device/test_device_engine.py",
    ),
    "tests/conformance/": ("tests/conformance/test_*.py",),
    "tests/models/": ("tests/models/test_*.py",),
    "python/baracuda/onnx/": (
        "tests/conformance/test_*.py",
        "tests/test_command.py",
        "tests/test_docs.py",
        "tests/test_layers.py",
        "tests/test_onnx_*.py",
    ),
    # On the emulator, with whatever has memory on a device. Its table of functions (csrc/core/device.h) is everybody's.
    "csrc/backends/metal/": (
        "tests/device/test_*.py",
        "tests/emulator/test_metal_*.py",
        "tests/test_layers.py",
        "tests/test_metal_text.py",
        "tests/test_packaging.py",
    ),
}
# Generated for each row and element: of kernels, whoever launches them.
OF_ROWS = re.compile(r"tests/device/test_device_(guarantee|large|far|empties)\.py$")
# In such a room, and everybody's: what is written from every family's kernels.
SHARED = {"csrc/backends/metal/flatten.py"}
TESTS = re.compile(r"tests/(?!harness/)(.*/)?test_\w+\.py$")


def git(*arguments: str) -> str:
    return subprocess.check_output(["git", "-C", str(ROOT), *arguments], text=True, stderr=subprocess.DEVNULL)


def changed_since(commit: str) -> list[str] | None:
    """Files that differ from a commit, uncommitted ones too; None where the history does not reach it."""
    try:
        git("merge-base", "--is-ancestor", commit, "HEAD")
        files = [
            *git("diff", "--name-only", "--no-renames", commit).split(),
            *git("ls-files", "-o", "--exclude-standard").split(),
        ]
        # A new family concerns itself: its files say so.
        listed = "CMakeLists.txt"
        if listed in files and without_families(git("show", f"{commit}:{listed}")) == without_families(
            (ROOT / listed).read_text()
        ):
            files.remove(listed)
        return files
    except (subprocess.CalledProcessError, OSError):
        return None


def without_families(text: str) -> str:
    """What CMakeLists.txt says beside the names of families."""
    return re.sub(r"(set\(BARACUDA_FAMILIES\n)(?:  \w+\n)+", r"\1", text)


def tests_of(room: str) -> set[str]:
    """The files of tests that a room has to itself."""
    found = {p.relative_to(ROOT).as_posix() for pattern in ALONE[room] for p in ROOT.glob(pattern)}
    return {f for f in found if not OF_ROWS.match(f)}


def touched(files: list[str]) -> set[str] | None:
    """Families and test files that these files concern; None is everything."""
    found: set[str] = set()
    for file in files:
        family = FAMILY.match(file)
        if family and family[1] in families():
            found |= {family[1], *(users_of(file, "csrc/ops/{}/*.*") if file.endswith(".h") else [])}
        elif file not in SHARED and (room := next((room for room in ALONE if file.startswith(room)), "")):
            found |= tests_of(room)
        elif TESTS.match(file):
            found |= {file} if (ROOT / file).exists() else set()
        elif not UNTESTED.match(file):
            return None
    return found


def recorded() -> str:
    """The commit at which everything passed last; empty where there is none."""
    return RECORD.read_text().split()[0] if RECORD.exists() else ""


def drawn(parts: int) -> list[str]:
    """Families with sources that have changed since everything passed, and one of so many parts of the others, another at each commit.

    For what takes long and hardly ever depends on the engine: whether the CUDA kernels compile, races between threads.
    """
    files = changed_since(recorded()) if recorded() and os.environ.get("BARACUDA_CI") != "all" else None
    if files is None:
        return families()
    own = {f[1] for f in map(FAMILY.match, files) if f and f[0].startswith("csrc/")}
    count = git("rev-list", "--count", "HEAD").strip()
    return [f for f in families() if f in own or crc32(f"{count} {f}".encode()) % parts == 0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", nargs="?")
    parser.add_argument("--record", action="store_true", help="writes that everything passed at HEAD")
    parser.add_argument("--families", action="store_true", help="prints the families alone")
    parser.add_argument("--drawn", type=int, help="prints changed families, and one of so many parts of the rest")
    parser.add_argument("--all-families", action="store_true", help="prints all that there are")
    options = parser.parse_args()
    if options.all_families:
        return print(*families())
    if options.drawn:
        return print(*drawn(options.drawn))
    if options.record:
        if git("status", "--porcelain"):
            sys.exit("not recorded: what was tested is not committed")
        RECORD.write_text(git("log", "-1", "--format=%H %as"))
        return
    commit = options.commit or recorded()
    files = changed_since(commit) if commit and os.environ.get("BARACUDA_CI") != "all" else None
    found = touched(files) if files is not None else None
    if found is not None and options.families:
        found &= set(families())
    print("all" if found is None else ",".join(sorted(found)))


if __name__ == "__main__":
    main()
