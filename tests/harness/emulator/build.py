"""Builds the emulated cuda and metal modules, and says how to run Python with them.

    python tests/harness/emulator/build.py race          # builds, prints the settings
    python tests/harness/emulator/build.py race pytest   # the same, then runs the command with them

Variants: plain (fast), race (data races, uninitialised shared memory, anything outside of a launch's memory) and
sanitize (AddressSanitizer and UBSan). BARACUDA_EMULATED_FAMILIES="norm scan" builds only these.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
VARIANTS = ("plain", "race", "sanitize")
CUDA_MODULE, METAL_MODULE = "libbaracuda_cuda_emulated.so", "lib/libbaracuda_metal_emulated.so"
# Memory that was used before would hide what a kernel does not write; nothing is kept on disk.
METAL_SETTINGS = {"BARACUDA_METAL_POOL_BYTES": "0", "BARACUDA_CACHE_DIR": ""}


def unable() -> str:
    """Why the modules cannot be built here; empty where they can."""
    if "BARACUDA_SANITIZER" in os.environ:
        return "the emulator has sanitized builds of its own"
    missing = [name for name in ("g++", "cmake", "ninja") if not shutil.which(name)]
    return f"no {', '.join(missing)}" if missing else ""


def unable_metal() -> str:
    """Why the metal module cannot be built here, which is Objective-C++; empty where it can."""
    missing = [name for name in ("clang++-19", "gnustep-config") if not shutil.which(name)]
    missing += [] if list(Path("/usr/lib/gcc").glob("*/*/include/objc/objc.h")) else ["objc/objc.h"]
    return unable() or (
        f"no {', '.join(missing)}: apt-get install clang-19 libgnustep-base-dev gobjc" if missing else ""
    )


def build(variant: str = "plain", target: str = CUDA_MODULE) -> Path:
    """Brings one variant up to date in build/emulator-<variant>; processes that ask at once wait for each other."""
    if variant not in VARIANTS:
        raise ValueError(f"variant {variant!r}: want one of {', '.join(VARIANTS)}")
    folder = ROOT / "build" / f"emulator-{variant}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        only = os.environ.get("BARACUDA_EMULATED_FAMILIES", "").replace(" ", ";")
        configured = folder / "configured"
        if not configured.exists() or configured.read_text() != only:
            launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
            generate = ["cmake", "-S", HERE, "-B", folder, "-G", "Ninja", f"-DBARACUDA_EMULATOR={variant}", *launcher]
            _run([*generate, f"-DBARACUDA_EMULATED_FAMILIES={only}"])
            configured.write_text(only)
        _run(["ninja", "-C", folder, f"-j{os.cpu_count() or 1}", target])
    return folder / target


def archives(folder: Path) -> list[Path]:
    """What a program or module of one's own is linked with, in the build folder of a variant."""
    tool = folder / "libemulator.a"
    return [tool, *folder.glob("libhooks.a"), tool]  # hooks and emulator name each other


def environment(variant: str = "plain") -> dict[str, str]:
    """What a process must have set to use the modules as its cuda and, where it can be built, metal backend; builds them."""
    settings = {"BARACUDA_CUDA_MODULE": str(build(variant, CUDA_MODULE))}
    # It brings a cuBLASLt and an NVRTC of its own.
    settings |= {f"BARACUDA_{name}_LIBRARY": settings["BARACUDA_CUDA_MODULE"] for name in ("CUBLASLT", "NVRTC")}
    if not (why := unable_metal()):
        settings |= METAL_SETTINGS | {"BARACUDA_METAL_MODULE": str(build(variant, METAL_MODULE))}
        settings["BARACUDA_FAKE_METAL_TEXTS"] = str(_kernels(variant, "metal_host"))
    else:
        print(f"without the emulated metal module: {why}", file=sys.stderr)
    settings["BARACUDA_CACHE_DIR"] = str(_kernels(variant, "cuda"))
    if variant == "sanitize":
        settings |= sanitizer_environment()
    return settings


def _kernels(variant: str, target: str) -> Path:
    """Where the kernels of this very build are kept; those of earlier ones are deleted."""
    folder = ROOT / "build" / f"emulator-{variant}"
    made = (folder / "preludes" / f"expr_prelude_{target}.h.gch").stat().st_mtime_ns
    for old in folder.glob(f"kernels-{target}-*"):
        if old.name != f"kernels-{target}-{made}":
            shutil.rmtree(old, ignore_errors=True)
    return folder / f"kernels-{target}-{made}"


def sanitizer_environment() -> dict[str, str]:
    """For a process that is not instrumented itself."""
    names = ("libasan.so", "libubsan.so")
    found = [subprocess.check_output(["g++", f"-print-file-name={name}"], text=True).strip() for name in names]
    return {
        "LD_PRELOAD": " ".join(found),
        # CPython keeps what it allocates; fibers run twice as fast without fake stacks.
        "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0:allocator_may_return_null=1:handle_segv=0",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
    }


def _run(command: list[str | Path]) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} failed:\n{done.stdout[-8000:]}")


def main() -> int:
    """The command line."""
    variant, *command = sys.argv[1:] or ["plain"]
    if not command:
        print("\n".join(f"{name}={value}" for name, value in environment(variant).items()))
        return 0
    return subprocess.run(command, env=os.environ | environment(variant)).returncode


if __name__ == "__main__":
    sys.exit(main())
