"""Builds attention plans with the real cuDNN for cards that are not there: no GPU, no driver.

    pip install nvidia-cudnn-frontend nvidia-cudnn-cu13 nvidia-cublas nvidia-cuda-nvrtc
    python tests/harness/cudnn/plans.py        # a line per problem and card; fails where cuDNN refuses one

The wheels may be unpacked elsewhere: BARACUDA_CUDNN_WHEELS names the folder. cuDNN is told of the card by a text
(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION); it chooses engines, checks support and compiles kernels, so that what is not
tested is only what they compute.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
CARDS = {
    80: ("NVIDIA A100-SXM4-80GB", 108, 166912),
    89: ("NVIDIA L40S", 142, 101376),
    90: ("NVIDIA H100 80GB HBM3", 132, 232448),
    100: ("NVIDIA B200", 148, 232448),
}
# The driver's functions that cuDNN looks for while it builds a plan; a plan is loaded into nothing.
DRIVER = {
    "cuDriverGetVersion": "int *v) { *v = 13000; return 0",
    "cuLibraryLoadData": "void **p) { *p = p; return 0",
    "cuLibraryGetKernel": "void **p) { *p = p; return 0",
    "cuKernelGetFunction": "void **p) { *p = p; return 0",
    "cuKernelGetAttribute": "int *v) { *v = 0; return 0",
    "cuKernelSetAttribute": ") { return 0",
    "cuLibraryUnload": ") { return 0",
    "cuOccupancyMaxPotentialClusterSize": "int *n) { *n = 8; return 0",
}
ABSENT = (
    "cuCtxGetCurrent", "cuCtxGetLimit", "cuCtxPopCurrent", "cuCtxPushCurrent", "cuDeviceGet", "cuDeviceGetCount",
    "cuGetErrorName", "cuGetErrorString", "cuLaunchCooperativeKernel", "cuLaunchKernel", "cuLaunchKernelEx",
    "cuLibraryLoadFromFile", "cuLinkAddData", "cuLinkComplete", "cuLinkCreate", "cuLinkDestroy",
    "cuModuleGetFunction", "cuModuleLoadData", "cuModuleUnload", "cuStreamGetCtx", "cuTensorMapEncodeIm2col",
    "cuTensorMapEncodeTiled",
)  # fmt: skip
# batch, heads, kv heads, queries, keys, d, dv, causal, bottom right
PROBLEMS = (
    (2, 8, 8, 512, 512, 64, 64, 0, 0), (2, 8, 2, 512, 512, 128, 128, 1, 0), (2, 8, 2, 512, 1024, 128, 128, 1, 1),
    (1, 8, 2, 100, 203, 64, 64, 1, 1), (1, 8, 2, 203, 100, 64, 64, 1, 0), (1, 4, 2, 33, 70, 40, 24, 0, 0),
    (1, 2, 1, 24, 40, 8, 8, 0, 0), (1, 2, 2, 17, 1, 16, 128, 0, 0), (2, 8, 8, 4096, 4096, 128, 128, 1, 0),
)  # fmt: skip


def wheels() -> Path:
    return Path(os.environ.get("BARACUDA_CUDNN_WHEELS") or sysconfig.get_path("platlib"))


def toolkit() -> Path | None:
    """The folder of the CUDA toolkit: the one that holds nvcc's headers."""
    nvcc = shutil.which("nvcc")
    if not nvcc:
        return None
    text = subprocess.run([nvcc, "-x", "cu", "-dryrun", "-"], input="", capture_output=True, text=True).stderr
    tops = [line.split("=", 1)[1].strip() for line in text.splitlines() if line.startswith("#$ TOP=")]
    return Path(tops[0]).resolve() if tops else None


def unable() -> str:
    """Why this cannot be done here; empty where it can."""
    wanted = ("include/cudnn_frontend.h", "nvidia/cudnn/include/cudnn.h", "nvidia/cu13/lib/libcublasLt.so.13",
              "nvidia/cu13/include/nvrtc.h")  # fmt: skip
    missing = [name for name in wanted if not (wheels() / name).exists()]
    if missing:
        return f"{wheels()} has no {', '.join(missing)}"
    return "" if toolkit() else "no CUDA toolkit"


def built(folder: Path) -> Path:
    """The tool, and a driver that knows no device."""
    top, wheel = toolkit(), wheels()
    assert top
    functions = [f"int {name}({body};}}" for name, body in DRIVER.items()]
    (folder / "driver.c").write_text("\n".join([*functions, *(f"int {name}(void) {{return 100;}}" for name in ABSENT)]))
    stub = ["gcc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", folder / "driver.c", "-o", folder / "libcuda.so.1"]
    subprocess.run(stub, check=True)
    headers = (wheel / "include", wheel / "nvidia/cudnn/include", top / "include", wheel / "nvidia/cu13/include")
    library = next(p for p in top.glob("**/libcudart_static.a"))
    command = [
        "g++", "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", f"-I{ROOT}/csrc",
        f"-I{ROOT}/include", *(f"-isystem{h}" for h in headers), HERE / "plans.cpp",
        ROOT / "csrc/backends/cuda/cudnn_functions.cpp", library, "-ldl", "-lpthread", "-lrt", "-o", folder / "plans",
    ]  # fmt: skip
    subprocess.run(command, check=True)
    return folder / "plans"


def device(arch: int) -> dict[str, object]:
    """A card as cuDNN's text has it."""
    name, units, shared = CARDS[arch]
    return {
        "deviceName": name, "cudaDeviceId": 0, "deviceVer": arch * 10, "driverVer": 13000,
        "multiProcessorCount": units, "regsPerBlock": 65536, "warpSize": 32, "maxSharedMemoryPerBlock": 49152,
        "maxSharedMemoryPerBlockOptin": shared, "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536,
        "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0,
        "supportCoopLaunch": 1, "totalGlobalMem": 85014609920, "smClockRateKHz": 1980000, "memClockRateKHz": 2619000,
        "memoryBusWidth": 5120, "l2CacheSize": 52428800, "maxGridSize": [2147483647, 65535, 65535],
        "maxBlockSize": [1024, 1024, 64],
    }  # fmt: skip


def problems() -> list[str]:
    """Lines for the tool: each problem in both directions."""
    lines = []
    for n, (b, h, kv, q_len, k_len, d, dv, causal, bottom_right) in enumerate(PROBLEMS):
        element = ("f16", "bf16")[n % 2]
        for direction in ("0 0", "1 1", "1 0"):
            lines.append(f"{direction} {element} {causal} {bottom_right} 1 {b} {h} {kv} {q_len} {k_len} {d} {dv}")
    return lines


def answers(tool: Path, arch: int) -> list[tuple[str, str]]:
    """(problem, what cuDNN says of it) for one card."""
    text = tool.parent / f"sm_{arch}.json"
    text.write_text(json.dumps(device(arch)))
    folders = (tool.parent, wheels() / "nvidia/cudnn/lib", wheels() / "nvidia/cu13/lib")
    settings = os.environ | {"LD_LIBRARY_PATH": ":".join(map(str, folders))}
    asked = problems()
    done = subprocess.run(
        [tool, text, str(arch)], input="\n".join(asked), capture_output=True, text=True, env=settings, check=False
    )
    said = done.stdout.splitlines()
    if len(said) != len(asked):
        raise RuntimeError(
            f"sm_{arch}: {len(said)} answers to {len(asked)} questions:\n{done.stdout}{done.stderr[-2000:]}"
        )
    return list(zip(asked, said, strict=True))


def main() -> int:
    """The command line."""
    if why := unable():
        print(why)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        tool = built(Path(folder))
        found = [(arch, *pair) for arch in CARDS for pair in answers(tool, arch)]
    print("\n".join(f"sm_{arch}: {asked}: {said}" for arch, asked, said in found))
    return int(any(not said.startswith("ok") for _, _, said in found))


if __name__ == "__main__":
    sys.exit(main())
