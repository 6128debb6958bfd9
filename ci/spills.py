"""Fails when nvcc kept a kernel's values in memory: reads what `nvcc -Xptxas -v` printed.

nvcc ... -Xptxas -v -c file.cu 2>log; python ci/spills.py log        # lists only what spills
python ci/spills.py --all log                                        # registers of every kernel
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

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


def main() -> int:
    """Prints kernels and says whether any spills more than it may."""
    everything = "--all" in sys.argv
    kernels = [k for path in sys.argv[1:] if path != "--all" for k in read(Path(path).read_text())]
    if not kernels:
        print("no kernels in the log: was nvcc run with -Xptxas -v?")
        return 1
    bad = [k for k in kernels if k.spilled > k.allowed()]
    for k in kernels if everything else bad:
        print(f"{k.arch}  {k.registers:3} registers  {k.stack:4} bytes of stack  {k.spilled:4} spilled  {k.name}")
    most = max(k.registers for k in kernels)
    print(f"{len(kernels)} kernels, at most {most} registers, {len(bad)} spill more than they may")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
