"""The rooms that mutants are drawn from, and the tests that concern each: first those that know its ops best."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path, PurePath

ROOT = Path(__file__).resolve().parents[1]
GPU = re.compile(r"/(simt|cuda|cublaslt|cudnn|metal)[^/]*$|^csrc/(simt|backends/(cuda|simt))/")
# Tests and references themselves, what measures, tables that the compiler evaluates, and what no machine of CI can run.
LEFT_OUT = re.compile(
    r"_(ref|facts)\.py$|baracuda/(bench|metal)/|/(verify|layouts|narrow|testing|reference|_index|__main__|info|function_doc)\.py$|ops\.def$"
    r"|backends/metal/|target_(cuda|metal)\.h|metal_|submit_(cuda|metal)|/mma\.h$|cudnn|libraries\.|cpu/probe\.cpp|portable\.h"
)
# Larger rooms are drawn from more often, but none is left out.
SHARES = {"core": 40, "bindings": 40, "cpu backend": 16, "math": 12, "simt": 24, "cuda backend": 8, "python": 30}
FAMILY_SHARE, GPU_SHARE, PYTHON_OPS_SHARE = 6, 3, 24

# What every kernel, call and tensor passes through, generated for each op; and what is about the whole.
BY_OP = [
    "test_run_path", "test_refusal", "test_aliasing", "test_contract", "test_bad_requests", "test_threads", "test_short_rows",
    "test_small_launches", "test_large_results", "test_differential", "test_empties", "test_empties_functional", "test_refused",
    "test_numbers", "test_magnitudes", "test_straddle", "test_elements_alone",
]  # fmt: skip
WHOLE = [
    "test_functional", "test_import", "test_import_tensors", "test_import_protocol", "test_failing", "test_spec", "test_capability",
    "test_fork", "test_torch_flags", "test_libraries", "test_lifetimes", "test_lifetimes_model", "test_batches", "test_fuzz",
    "test_docs",
]  # fmt: skip
GENERATED = ["test_guarantee", "test_backward"]
LOOPS = ("unary", "binary", "cast", "layout", "reduce")
# Tests that know a part of the engine best; "device" stands for all of them.
KNOWN_BY = {
    r"core/(json|document|number|size|message|capability|capi\w*|dltensor)\.": "documents capi program",
    r"/program": "program program_documents capi remembered tiny_llama",
    r"bindings/(functional|recipe|opaque)": "functional remembered tracing refused",
    r"bindings/(import|anchor|bound)": "import import_tensors import_protocol functional lifetimes numbers torch_flags run_path",
    r"bindings/scope|baracuda/engine/": "engine engine_aliases",
    r"bindings/tensor": "tensor_views tensor_operators tensor_memory import_tensors",
    r"bindings/(plan|error|module|question|group|document)": "refusal spec capability contract batches bad_requests libraries",
    r"bindings/(device|queue)|core/(devices|stream)": "device",
    r"core/(evaluate|select|registry|refusal)": "capability spec refusal dims infer",
    r"core/(overlap|plan|workspace)": "aliasing dims run_path refusal large_results program",
    r"call/(op|compose|autograd|inference|steps)|/(results|options|promotion)\.py": "functional remembered infer steps bad_requests",
    r"call/program|/(sizes|record)\.py": "program program_documents capability",
    r"/(batches|generator)\.py": "batches functional numbers",
    r"describe/(spec|dims|errors|document|elements)|choose/plan": "spec dims refusal run_path contract documents",
    r"choose/(sku|capability|question)": "capability spec",
    r"memory/(tensor|device|stream|transfer)": "tensor_views tensor_memory import_tensors spec",
    r"cpu/(parallel|pace|loader|threads)": "threads fork failing libraries",
}


@cache
def families() -> list[str]:
    text = (ROOT / "CMakeLists.txt").read_text()
    found = re.search(r"set\(BARACUDA_FAMILIES\s+([\w\s]+?)\)", text)
    assert found, "CMakeLists.txt lists the families as BARACUDA_FAMILIES"
    return found[1].split()


@cache
def ops_by_family() -> dict[str, list[str]]:
    """From the installed package's table, in a process of its own: this one must not open any module."""
    code = "import json; from baracuda.choose.sku import rows; print(json.dumps(sorted({(r['family'], r['op']) for r in rows()})))"
    pairs = json.loads(subprocess.check_output([sys.executable, "-c", code], text=True))
    return {f: [op for family, op in pairs if family == f] for f in families()}


def room_of(file: str) -> str:
    """The room of a source; empty where none is drawn from it."""
    if LEFT_OUT.search(file):
        return ""
    parts = PurePath(file).parts
    if file.startswith("csrc/ops/"):
        return f"{parts[2]} (gpu)" if GPU.search(file) else parts[2]
    if file.startswith("python/baracuda/ops/"):
        return "python ops"
    for prefix, room in {
        "csrc/core/": "core", "csrc/bindings/": "bindings", "csrc/backends/cpu/": "cpu backend", "csrc/host/": "cpu backend",
        "csrc/simt/": "simt", "csrc/backends/cuda/": "cuda backend", "csrc/backends/simt/": "simt", "csrc/backends/": "core",
        "include/baracuda/math/": "math", "python/baracuda/": "python",
    }.items():  # fmt: skip
        if file.startswith(prefix):
            return room
    return ""


def share_of(room: str) -> int:
    if room in SHARES:
        return SHARES[room]
    return PYTHON_OPS_SHARE if room == "python ops" else GPU_SHARE if room.endswith("(gpu)") else FAMILY_SHARE


@cache
def _includes(file: str) -> frozenset[str]:
    """All headers of ours that a source takes in."""
    path = ROOT / file
    if not path.exists():
        return frozenset()
    found: set[str] = set()
    for name in re.findall(r'^\s*#include "([^"]+)"', path.read_text(), re.M):
        at = f"csrc/{name}" if (ROOT / "csrc" / name).exists() else f"include/{name}"
        found |= {at, *_includes(at)}
    return frozenset(found)


def users_of(header: str, pattern: str) -> list[str]:
    """Families with a source that takes the header in."""
    return [
        f
        for f in families()
        if any(header in _includes(str(p.relative_to(ROOT))) for p in ROOT.glob(pattern.format(f)))
    ]


def _files(names: list[str]) -> list[str]:
    return [f"tests/{n}.py" for n in names if (ROOT / f"tests/{n}.py").exists()]


def _own_tests(family: str) -> list[str]:
    """tests/ops/test_<stem>.py of the family's own modules."""
    module = ROOT / "python/baracuda/ops"
    index = (ROOT / "python/baracuda/_index.py").read_text()
    ops = {op for op in ops_by_family()[family]}
    stems = {m[2] for m in re.finditer(r'^    "(\w+)": "baracuda\.ops\.\w+\.(\w+)",$', index, re.M) if m[1] in ops}
    stems |= {
        family,
        *({"einsum"} if family == "matmul" else set()),
        *({"linear_cross_entropy"} if family == "loss" else set()),
    }
    assert module.exists()
    return [str(p.relative_to(ROOT)) for s in sorted(stems) for p in sorted((ROOT / "tests/ops").glob(f"test_{s}*.py"))]


def _of_python_ops(stem: str) -> list[list[str]]:
    stem = stem.removesuffix("_kinds")
    index = (ROOT / "python/baracuda/_index.py").read_text()
    names = {m[1] for m in re.finditer(r'^    "(\w+)": "baracuda\.ops\.\w+\.(\w+)",$', index, re.M) if m[2] == stem}
    of = f"--families={','.join(f for f in families() if names & set(ops_by_family()[f]))}"
    own = [str(p.relative_to(ROOT)) for p in (ROOT / "tests/ops").glob(f"test_{stem}*.py")]
    return [
        [*own, *_files(["test_spec", "test_functional"]), *_files(GENERATED), of, "--light=40"],
        [*_files([*GENERATED, *BY_OP, *WHOLE]), "tests/ops", "tests/conformance", of],
    ]


def _device_tests() -> list[str]:
    return [str(p.relative_to(ROOT)) for p in sorted((ROOT / "tests/device").glob("test_*.py"))]


def _of_gpus(of: list[str]) -> list[list[str]]:
    device = _device_tests()
    guarantee = ["tests/device/test_device_guarantee.py", "-k", "cuda", f"--families={','.join(of)}"]
    others = [d for d in device if d not in guarantee]
    known = [[*guarantee, "--light=6"], guarantee] if of else []
    return [*known, [*others, f"--families={','.join(of)}"]]


def tests_of(file: str) -> list[list[str]]:
    """What pytest is given, one list of arguments after the other until something fails."""
    room = room_of(file)
    if room == "python ops":
        return _of_python_ops(PurePath(file).stem)
    if room.endswith("(gpu)") or room in ("simt", "cuda backend"):
        own = [room.removesuffix(" (gpu)")] if room.endswith("(gpu)") else []
        return _of_gpus([*own, *(f for f in users_of(file, "csrc/ops/{}/simt_launch.h") if f not in own)])
    if room in families():
        both = _of_gpus([room]) if PurePath(file).name == "skus.h" else []  # says what kernels of GPUs take, too
        others = [
            f for f in users_of(file, "csrc/ops/{}/cpu*.cpp") if f != room
        ]  # epilogues are other families' kernels
        if others:
            both.insert(0, [*_files(GENERATED), f"--families={','.join(others)}"])
        return [
            [*_files(GENERATED), f"--families={room}", "--light=30"],
            [*_own_tests(room), *_files(GENERATED), f"--families={room}"],
            [*_files([*BY_OP, *WHOLE]), "tests/conformance", f"--families={room}"],
            *both,
        ]
    if room == "math":
        of = f"--families={','.join(users_of(file, 'csrc/ops/{}/cpu*.cpp'))}"
        return [[*_files(GENERATED), of, "--light=60"], ["tests/ops", *_files(GENERATED), of]]
    whole = _files([*WHOLE, *BY_OP])
    users = users_of(file, "csrc/ops/{}/cpu*.cpp") or LOOPS
    loops = [f"--families={','.join(users)}"] if room == "cpu backend" else []
    known = next((names.split() for part, names in KNOWN_BY.items() if re.search(part, file)), [])
    own = _device_tests() if known == ["device"] else _files([f"test_{name}" for name in known])
    groups = [
        [*_files(["test_functional", "test_import_tensors", "test_run_path", *GENERATED]), *loops, "--light=60"],
        own or ["tests/ops", *_files(GENERATED), f"--families={','.join(users)}"],
        [*(t for t in whole if t not in own), "tests/native", "--light=600"],
        [*_files(GENERATED), "tests/ops", "tests/conformance"],
    ]
    return groups if room == "cpu backend" or known == ["device"] else [*groups, _device_tests()]
