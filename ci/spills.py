"""Compiles the kernels of op families with nvcc and fails where a kernel's values are kept in memory for want of registers.

python ci/spills.py               # all families: some minutes
python ci/spills.py unary gated   # these only
python ci/spills.py --log FILE    # what an `nvcc -Xptxas -v` has printed

Prints a table of the registers of every kernel.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ARCHITECTURES = (80, 90)
# None of their kernels spills.
FAMILIES = tuple(sorted(path.parent.name for path in (ROOT / "csrc" / "ops").glob("*/cuda.cu")))

# Kernels that may spill, with the reason: a pattern of the demangled name, and the bytes.
ALLOWED: dict[str, tuple[int, str]] = {}


@dataclass
class Kernel:
    """What ptxas says of one kernel on one architecture."""

    name: str
    arch: str
    registers: int = 0
    stack: int = 0
    spilled: int = 0

    def allowed(self) -> int:
        """How many bytes it may spill."""
        return max((size for pattern, (size, _) in ALLOWED.items() if re.search(pattern, self.name)), default=0)


def read(text: str) -> list[Kernel]:
    """The kernels of a log, with readable names."""
    kernels: list[Kernel] = []
    for line in text.splitlines():
        if entry := re.search(r"Compiling entry function '(\S+)' for '(\S+)'", line):
            kernels.append(Kernel(entry[1], entry[2]))
        elif not kernels:
            continue
        elif memory := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            kernels[-1].stack = int(memory[1])
            kernels[-1].spilled = max(int(memory[2]), int(memory[3]))
        elif used := re.search(r"Used (\d+) registers", line):
            kernels[-1].registers = int(used[1])
    names = "\n".join(kernel.name for kernel in kernels)
    plain = subprocess.run(["c++filt"], input=names, check=True, capture_output=True, text=True).stdout.splitlines()
    for kernel, name in zip(kernels, plain, strict=True):
        kernel.name = re.sub(r"^void baracuda::simt::entry<(.*)>\(.*$", r"\1", name).replace("baracuda::", "")
    return kernels


def slices(family: str) -> int:
    """In how many parts the build compiles a family."""
    found = re.search(rf"set\(BARACUDA_(?:SIMT_)?SLICES_{family} (\d+)\)", (ROOT / "CMakeLists.txt").read_text())
    return int(found[1]) if found else 1


def compile_slice(family: str, slice_: int, count: int, out: Path) -> str:
    """What ptxas says of one part of a family."""
    flags = ["-std=c++20", "-O3", "-Icsrc", "-Iinclude", "--diag-suppress=186", "-Xcompiler", "-fPIC", "-Xptxas", "-v"]
    flags += [f"-gencode=arch=compute_{ARCHITECTURES[0]},code=sm_{a}" for a in ARCHITECTURES]  # as the build
    flags += [f"-DBCU_SLICE={slice_}", f"-DBCU_SLICES={count}"]
    source = f"csrc/ops/{family}/cuda.cu"
    command = ["nvcc", *flags, "-c", source, "-o", str(out / f"{family}_{slice_}.o")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def compiled(families: list[str]) -> Iterator[Kernel]:
    """The kernels of families, two compilers at a time."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        parts = [(f, i, slices(f), Path(folder)) for f in families for i in range(slices(f))]
        for text in pool.map(lambda part: compile_slice(*part), parts):
            yield from read(text)


def table(kernels: list[Kernel]) -> list[str]:
    """A line per kernel: its registers on each architecture, and what it spills."""
    archs = sorted({k.arch for k in kernels})
    rows: dict[str, dict[str, Kernel]] = {}
    for k in kernels:
        rows.setdefault(k.name, {})[k.arch] = k
    lines = ["  ".join([*archs, "kernel, by its registers"])]
    for name, found in sorted(rows.items()):
        numbers = [f"{found[a].registers:{len(a)}}" if a in found else " " * len(a) for a in archs]
        spilled = "".join(f"  {k.spilled} bytes spilled on {k.arch}" for k in found.values() if k.spilled)
        lines.append("  ".join([*numbers, name.strip() + spilled]))
    return lines


def main() -> int:
    """Prints kernels and says whether any spills more than it may."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("families", nargs="*", default=FAMILIES)
    parser.add_argument("--log", type=Path, help="read this log; compile nothing")
    options = parser.parse_args()
    if not options.log and not shutil.which("nvcc"):
        print("no nvcc on PATH: nothing is checked")
        return 0
    kernels = read(options.log.read_text()) if options.log else list(compiled(list(options.families)))
    if not kernels:
        print("no kernels: was nvcc run with -Xptxas -v?")
        return 1
    print(*table(kernels), sep="\n")
    bad = [k for k in kernels if k.spilled > k.allowed()]
    most = max(k.registers for k in kernels)
    print(f"{len(kernels)} kernels, at most {most} registers, {len(bad)} spill more than they may")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
