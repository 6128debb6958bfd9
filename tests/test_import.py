"""`import baracuda` is light, works where nothing can be written, and takes the CPU level that it is told."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import baracuda

PACKAGE = Path(baracuda.__file__).parent
OPTIONAL = ("torch", "jax", "rich", "matplotlib", "ml_dtypes", "safetensors", "scipy")
LEVELS = ("v2", "v3", "v4", "v4x", "neon", "neon_dot")
# What ci/test.sh builds the lowest level of, and everything is.
LOWEST_FAMILIES = os.environ.get("BARACUDA_LOWEST_FAMILIES", "").split()


def python(code: str, **settings: str) -> str:
    """Runs code in a new interpreter that finds the same baracuda, and returns what it printed."""
    paths = os.pathsep.join([str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {k: v for k, v in os.environ.items() if not k.startswith("BARACUDA_")} | {"PYTHONPATH": paths} | settings
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_import_loads_no_family_and_nothing_optional() -> None:
    loaded = json.loads(python("import sys, json, baracuda; print(json.dumps(sorted(sys.modules)))"))
    assert [m for m in loaded if m.startswith("baracuda.ops.")] == []
    assert sorted(set(OPTIONAL) & set(loaded)) == []


def test_import_opens_no_openblas_and_no_thread_runtime() -> None:
    maps = python("import baracuda; print(open('/proc/self/maps').read())") if sys.platform == "linux" else ""
    assert "libgomp" not in maps
    assert str(PACKAGE / "lib" / "libscipy_openblas") not in maps


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/maps")
def test_work_on_the_cpu_opens_no_other_backend(tmp_path: Path) -> None:
    """Opening one starts its driver, which a forked child could not use then."""
    module = tmp_path / "other_backend.so"
    shutil.copy(PACKAGE / "lib" / "libbaracuda.so", module)
    code = """
import numpy as np, baracuda as bc, baracuda.functional as F
opened = lambda: "other_backend" in open("/proc/self/maps").read()
F.swiglu(np.ones((4, 8), np.float32))
plan = bc.plan(bc.GatedActivationDescriptor("swiglu", (4, 8)))
assert "swiglu.forward.cuda" in str(plan.explain())
assert bc.capabilities(op="swiglu", device="cpu")
assert not opened()
assert not bc.Device("cuda").usable
assert opened()
"""
    python(code, BARACUDA_CUDA_MODULE=str(module))


def test_import_time_is_reported(record_property: pytest.RecordProperty, capsys: pytest.CaptureFixture[str]) -> None:
    code = "import time, numpy; t = time.perf_counter(); import baracuda; print(time.perf_counter() - t)"
    own = min(float(python(code)) for _ in range(3)) * 1e3
    record_property("import_ms", own)
    with capsys.disabled():
        print(f"\nimport baracuda, NumPy excluded: {own:.1f} ms")


def test_import_from_a_read_only_place(tmp_path: Path) -> None:
    """Nothing is written beside the package, in the home folder or in the temporary one."""
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "baracuda").symlink_to(PACKAGE, target_is_directory=True)
    closed.chmod(stat.S_IRUSR | stat.S_IXUSR)  # root may write nevertheless: hence the listing
    code = "import sys; sys.dont_write_bytecode = True; import numpy as np, baracuda.functional as F\n"
    code += "print(F.swiglu(np.ones((2, 8), np.float32)).shape)"
    places = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "BARACUDA_CACHE_DIR", "PYTHONPATH"), str(closed))
    before = files(closed), files(PACKAGE)
    assert python(code, **places) == "(2, 4)\n"
    assert (files(closed), files(PACKAGE)) == before


def files(folder: Path) -> list[str]:
    return sorted(str(p) for p in folder.rglob("*") if p.suffix != ".pyc" and p.name != "__pycache__")


@pytest.mark.skipif(os.environ.get("BARACUDA_SANITIZER") is not None, reason="the instrumented build has one level")
@pytest.mark.parametrize("level", LEVELS)
def test_level_is_taken(level: str) -> None:
    """The level that is asked for is used, with every row's kernel in reach (v4x has a few families and takes the others
    from v4); or it is refused by name."""
    code = "import json, numpy as np, baracuda as bc, baracuda.functional as F\n"
    code += "from baracuda import _core\ns = _core.backend_state('cpu')\n"
    code += "x = np.linspace(-3, 3, 96, dtype=np.float32).reshape(4, 24)\n"
    code += "y = [F.swiglu(x).tolist()] if s['present'] else []\n"
    code += "lost = [r['op'] for r in _core.rows() if r['backend'] == 'cpu' and not _core.has_kernel(r['index'])"
    if LOWEST_FAMILIES and level in ("v2", "neon"):
        code += f" and r['family'] in {LOWEST_FAMILIES}"
    code += "]\n"
    code += "assert not s['present'] or not lost, lost\n"
    code += "print(json.dumps([s, y]))"
    state, got = json.loads(python(code, BARACUDA_CPU_LEVEL=level))
    if not state["present"]:
        assert level in state["reason"]
        return
    assert state["level"] == level
    state, best = json.loads(python(code))
    assert state["present"]
    for a, b in zip(got, best, strict=True):
        assert len(a) == len(b)
        assert max(abs(p - q) for r, s in zip(a, b, strict=True) for p, q in zip(r, s, strict=True)) < 1e-4


def test_unknown_level_is_refused_by_name() -> None:
    code = "import numpy as np, baracuda as bc, baracuda.functional as F\n"
    code += "try:\n    F.swiglu(np.ones((2, 8), np.float32))\n"
    code += "except bc.BackendUnavailableError as e:\n    print(e)"
    said = python(code, BARACUDA_CPU_LEVEL="v9")
    assert "BARACUDA_CPU_LEVEL" in said
    assert "v9" in said
