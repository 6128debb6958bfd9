"""Tries an installed wheel: contents, licences, size, import, plans, threads. Needs NumPy only."""

from __future__ import annotations

import argparse
import platform
import runpy
import sys
import tarfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

LIMIT_MB, CUDA_LIMIT_MB = 20, 25
LEVELS = "neon,neon_dot" if platform.machine() in ("aarch64", "arm64") else "v2,v3,v4,v4x"
LIBRARIES = ("libbaracuda.so", "libscipy_openblas.so", "fallback/libgomp.so.1")
TEXTS = ("LICENSE", "THIRD_PARTY_NOTICES.md", "licenses/GPL-3.0.txt", "licenses/GCC-exception-3.1.txt")


def contents(wheel: Path, levels: list[str]) -> None:
    size = wheel.stat().st_size / 1e6
    print(f"{wheel.name}: {size:.1f} MB")
    assert size < LIMIT_MB, f"the wheel has {size:.1f} MB, more than {LIMIT_MB}"
    names = zipfile.ZipFile(wheel).namelist()
    for library in (*LIBRARIES, *(f"libbaracuda_cpu_{level}.so" for level in levels)):
        assert f"baracuda/lib/{library}" in names, f"the wheel lacks baracuda/lib/{library}"
    for text in TEXTS:
        assert any(n.endswith(f".dist-info/licenses/{text}") for n in names), f"the wheel lacks {text}"
    assert "baracuda/py.typed" in names
    mine = sys.platform == "darwin"
    assert any(n.startswith("baracuda/metal/") for n in names) == mine, "Metal's texts are for macOS"
    stray = [n for n in names if n.split("/")[0] not in ("baracuda",) and ".dist-info/" not in n]
    assert not stray, f"stray files in the wheel: {stray[:5]}"


def sources(sdist: Path) -> None:
    """Whoever packages from the sdist runs its tests and ships its docs."""
    with tarfile.open(sdist) as packed:
        names = {n.partition("/")[2] for n in packed.getnames()}
    lacking = {"tests/conftest.py", "tests/test_guarantee.py", "docs/README.md", "examples/softmax.py", "ci/test.sh",
               "bench/overview.py", "python/baracuda/functional.pyi", *TEXTS} - names  # fmt: skip
    assert not lacking, f"the sdist lacks {sorted(lacking)}"
    stray = [n for n in names if n.startswith((".ci", ".github", "build/", ".venv")) or n.endswith((".so", ".pyc"))]
    assert not stray, f"stray files in the sdist: {stray[:5]}"


def cuda(wheel: Path) -> None:
    """The backend's own wheel, installed: its module is found and opens, whether or not the machine has a card."""
    size = wheel.stat().st_size / 1e6
    print(f"{wheel.name}: {size:.1f} MB")
    assert size < CUDA_LIMIT_MB, f"the wheel has {size:.1f} MB, more than {CUDA_LIMIT_MB}"
    names = zipfile.ZipFile(wheel).namelist()
    kept = [n for n in names if ".dist-info/" not in n and not n.endswith("/")]
    assert kept == ["baracuda_cuda13/libbaracuda_cuda.so"], f"the wheel holds {kept}"
    for text in ("LICENSE", "THIRD_PARTY_NOTICES.md", "cudnn-frontend-MIT.txt"):
        assert any(n.endswith(f".dist-info/licenses/licenses/{text}") for n in names), f"the wheel lacks {text}"

    from baracuda import _core

    state = _core.backend_state("cuda")
    assert state["built"] and "libbaracuda_cuda" not in state["reason"], state
    print(f"cuda: {state['reason'] or 'a device is here'}")


def plans() -> None:
    import numpy as np

    import baracuda as bc
    import baracuda.functional as F

    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, 128, 512)).astype(np.float32)
    y = np.empty((64, 128, 256), np.float32)
    plan = bc.plan(bc.GatedActivationDescriptor(kind="swiglu", input_shape=x.shape, element="f32"))
    plan.run(x=x, y=y)
    a, b = x[..., :256].astype(np.float64), x[..., 256:].astype(np.float64)
    np.testing.assert_allclose(y, a * (b / (1 + np.exp(-b))), rtol=1e-5, atol=1e-6)
    m = F.matmul(x[0], x[0].T)
    np.testing.assert_allclose(m, x[0].astype(np.float64) @ x[0].T.astype(np.float64), rtol=1e-4, atol=1e-3)
    print(plan.sku)


def threads(origin: str) -> None:
    from baracuda import _core

    runtime = _core.thread_runtime()
    print(f"threads: {runtime}")
    if origin:
        assert runtime.startswith(origin), f"the thread runtime is '{runtime}', want '{origin}'"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--sdist", type=Path)
    parser.add_argument("--levels", default=LEVELS, help="CPU levels that the wheel must have")
    parser.add_argument("--cuda", type=Path, help="the cuda backend's wheel, installed too: only it is tried")
    parser.add_argument("--threads-from", default="", choices=["", "shared", "system", "bundled"])
    args = parser.parse_args()
    assert find_spec("torch") is None, "this environment is not clean"
    if args.cuda:
        return cuda(args.cuda)
    contents(args.wheel, args.levels.split(","))
    if args.sdist:
        sources(args.sdist)
    plans()
    threads(args.threads_from)
    # Every SKU of f32, teams of threads against one; without ml_dtypes, bf16 too; of another runtime's threads some of each
    # kind. In this process: an emulated one starts no other.
    asked = ["--element=f32"] if args.threads_from else ["--all", "--element=f32", "--element=bf16"]
    sys.argv = ["baracuda", "check", *asked]
    runpy.run_module("baracuda", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
