"""What baracuda declares of cuBLASLt against the library itself, where a machine has it; no device is needed."""

from __future__ import annotations

import ctypes
import re
import shutil
import sys
from pathlib import Path

import pytest
from test_parallel import NATIVE, ROOT, run

from baracuda import _core

HEADER = ROOT / "csrc" / "backends" / "cuda" / "cublaslt.h"


def folder_of(header: str) -> Path | None:
    """Of the CUDA wheels or the toolkit."""
    places = [Path(p) / "nvidia" / "cu13" / "include" for p in sys.path] + [Path("/usr/local/cuda/include")]
    return next((p for p in places if (p / header).exists()), None)


def test_declarations_are_those_of_the_header(tmp_path: Path) -> None:
    folders = [folder_of(h) for h in ("cublasLt.h", "cuda_runtime_api.h")]
    if None in folders or shutil.which("g++") is None:
        pytest.skip("needs g++, cublasLt.h (wheel nvidia-cublas) and the CUDA runtime's headers")
    include = [f"-I{p}" for p in (ROOT / "csrc", ROOT / "include", *folders)]
    run("g++", "-std=c++20", "-fsyntax-only", "-Wall", *include, NATIVE / "cublaslt_header.cpp")


def test_the_library_has_the_functions_and_takes_our_descriptors() -> None:
    facts = next(f for f in _core.libraries() if f["name"] == "cublaslt")
    if not facts["usable"] or "emulated" in facts["file"]:
        pytest.skip(f"no cuBLASLt: {facts['reason']}")
    library = ctypes.CDLL(facts["file"])
    names = re.findall(r'X\(\w+, "(\w+)"\)', HEADER.read_text())
    assert len(names) > 8
    for name in names:
        assert getattr(library, name)
    room = (ctypes.c_uint64 * 64)()
    size, none = ctypes.c_size_t, ctypes.c_int64(64)
    assert library.cublasLtMatrixLayoutInit_internal(room, size(32 * 8), 0, none, none, none) == 0
    assert library.cublasLtMatmulDescInit_internal(room, size(64 * 8), 68, 0) == 0
    assert library.cublasLtMatmulPreferenceInit_internal(room, size(32 * 8)) == 0
