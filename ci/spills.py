"""Fails where a kernel of the built cuda module keeps values in memory for want of registers.

python ci/spills.py                   # the installed package's module
python ci/spills.py FILE -k softmax   # another one; with a table of the kernels whose names match

What kernels use is read by cuobjdump (of the CUDA toolkit, or pip's nvidia-cuda-cuobjdump).
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

MODULE = "libbaracuda_cuda.so"
# Kernels that may use a stack, with the reason: a pattern of the demangled name, and the bytes.
ALLOWED: dict[str, tuple[int, str]] = {
    r"^quant::Encode<1[0-4]>": (272, "the scales of a block's groups, of which all are found before any is written"),
}


@dataclass
class Kernel:
    """What a kernel takes on one architecture; spilled registers and arrays that are no registers lie on its stack."""

    name: str
    arch: str
    registers: int
    stack: int

    def allowed(self) -> int:
        """How many bytes its stack may have."""
        return max((size for pattern, (size, _) in ALLOWED.items() if re.search(pattern, self.name)), default=0)


def installed(package: str) -> Path | None:
    """The folder of a package, which is not imported."""
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        return None
    return Path(next(iter(spec.submodule_search_locations))) if spec and spec.submodule_search_locations else None


def cuobjdump() -> str | None:
    """The tool on PATH, beside nvcc, or from its wheel."""
    wheel = installed("nvidia.cu13")
    nvcc = shutil.which("nvcc")
    places = [None, str(wheel / "bin") if wheel else "", str(Path(nvcc).resolve().parent) if nvcc else ""]
    return next((found for place in places if (found := shutil.which("cuobjdump", path=place))), None)


def read(text: str) -> list[Kernel]:
    """The kernels of what `cuobjdump -res-usage` has printed, with readable names."""
    kernels: list[Kernel] = []
    arch = name = ""
    for line in text.splitlines():
        if found := re.match(r"arch = (\S+)", line):
            arch = found[1]
        elif found := re.match(r"\s*Function (\S+):", line):
            name = found[1]
        elif found := re.match(r"\s*REG:(\d+) STACK:(\d+) .*LOCAL:(\d+)", line):
            kernels.append(Kernel(name, arch, int(found[1]), int(found[2]) + int(found[3])))
    names = "\n".join(kernel.name for kernel in kernels)
    plain = subprocess.run(["c++filt"], input=names, check=True, capture_output=True, text=True).stdout.splitlines()
    for kernel, name in zip(kernels, plain, strict=True):
        kernel.name = re.sub(r"^void baracuda::simt::entry<(.*)>\(.*$", r"\1", name).replace("baracuda::", "").strip()
    return kernels


def table(kernels: list[Kernel]) -> list[str]:
    """A line per kernel: its registers on each architecture, and what lies on its stack."""
    archs = sorted({k.arch for k in kernels})
    rows: dict[str, dict[str, Kernel]] = {}
    for k in kernels:
        rows.setdefault(k.name, {})[k.arch] = k
    lines = ["  ".join([*archs, "kernel, by its registers"])]
    for name, found in sorted(rows.items()):
        numbers = [f"{found[a].registers:{len(a)}}" if a in found else " " * len(a) for a in archs]
        stack = "".join(f"  {k.stack} bytes of stack on {k.arch}" for k in found.values() if k.stack)
        lines.append("  ".join([*numbers, name + stack]))
    return lines


def main() -> int:
    """Says whether any kernel uses more stack than it may."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("module", nargs="?", type=Path)
    parser.add_argument("-k", metavar="PATTERN", help="a regular expression for kernel names: prints their registers")
    options = parser.parse_args()
    package = installed("baracuda_cuda13")
    module = options.module or (package / MODULE if package else Path(MODULE))
    tool = cuobjdump()
    if not module.exists() or not tool:
        print(f"no {module}: built without nvcc" if tool else "no cuobjdump: pip install nvidia-cuda-cuobjdump")
        return 1 if options.module else 0
    done = subprocess.run([tool, "-res-usage", str(module)], check=True, capture_output=True, text=True)
    kernels = [k for k in read(done.stdout) if re.search(options.k or "", k.name)]
    if not kernels:
        print(f"{module} has no kernel whose name matches {options.k!r}")
        return 1
    bad = [k for k in kernels if k.stack > k.allowed()]
    if shown := kernels if options.k else bad:
        print(*table(shown), sep="\n")
    archs = ", ".join(sorted({k.arch for k in kernels}))
    most = max(k.registers for k in kernels)
    print(f"{len(kernels)} kernels on {archs}, at most {most} registers, {len(bad)} use more stack than they may")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
