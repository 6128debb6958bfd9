"""Libraries opened at run time: where they are looked for, in which order, and what is said when they cannot be used."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import baracuda
from baracuda import info

PACKAGE = Path(baracuda.__file__).parent
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
SOURCE = {
    "cublaslt": "__SIZE_TYPE__ cublasLtGetVersion(void) { return 131002; }",
    "cudnn": "__SIZE_TYPE__ cudnnGetVersion(void) { return 92801; }",
    "nvrtc": "int nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 5, 0; }",
}
FILE = {"cublaslt": "libcublasLt.so.13", "cudnn": "libcudnn.so.9", "nvrtc": "libnvrtc.so.13"}
IN_WHEEL = {"cublaslt": "nvidia/cu13/lib", "cudnn": "nvidia/cudnn/lib", "nvrtc": "nvidia/cu13/lib"}
VERSION = {"cublaslt": "13.10.2", "cudnn": "9.28.1", "nvrtc": "13.5"}
EACH = pytest.mark.parametrize("name", sorted(SOURCE))


def make(folder: Path, name: str, source: str | None = None) -> Path:
    """A library with the name and the version function of the real one."""
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / FILE[name]
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", f"-Wl,-soname,{FILE[name]}", "-o", str(out)]
    subprocess.run(command, input=source or SOURCE[name], text=True, check=True)
    return out


def found(name: str, before: str = "", folders: tuple[Path, ...] = (), **settings: str) -> dict[str, object]:
    """What a new process says of a library."""
    paths = os.pathsep.join([str(PACKAGE.parent), *map(str, folders), os.environ.get("PYTHONPATH", "")])
    env = {k: v for k, v in os.environ.items() if not k.startswith("BARACUDA_") and k != "LD_LIBRARY_PATH"}
    code = f"{before}\nimport json; from baracuda import _core; print(json.dumps(_core.libraries()))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env=env | {"PYTHONPATH": paths} | settings
    )
    facts: list[dict[str, object]] = json.loads(done.stdout)
    return next(f for f in facts if f["name"] == name)


@needs_compiler
@EACH
def test_the_order_is_process_then_wheels_then_system(name: str, tmp_path: Path) -> None:
    loaded, system = make(tmp_path / "loaded", name), make(tmp_path / "system", name)
    first, second = (make(tmp_path / site / IN_WHEEL[name], name) for site in ("one", "two"))
    sites = (tmp_path / "one", tmp_path / "two")
    path = {"LD_LIBRARY_PATH": str(system.parent)}
    for facts, file, source in (
        (found(name, f"import ctypes; ctypes.CDLL({str(loaded)!r})", sites, **path), loaded, "the process"),
        (found(name, "", sites, **path), first, "a wheel"),
        (found(name, "", sites[1:], **path), second, "a wheel"),
        (found(name, "", (), **path), system, "the system"),
    ):
        assert facts == {
            "name": name, "usable": True, "version": VERSION[name], "file": str(file), "from": source, "reason": "",
        }  # fmt: skip


@needs_compiler
@EACH
def test_a_variable_names_the_only_file_that_is_tried(name: str, tmp_path: Path) -> None:
    wheel = make(tmp_path / IN_WHEEL[name], name)
    variable = f"BARACUDA_{name.upper()}_LIBRARY"
    other = make(tmp_path / "other", name)
    facts = found(name, "", (tmp_path,), **{variable: str(other)})
    assert (facts["file"], facts["from"]) == (str(other), variable)
    facts = found(name, "", (tmp_path,), **{variable: str(tmp_path / "missing.so")})
    assert not facts["usable"] and facts["file"] == "" and variable in str(facts["reason"])
    assert "missing.so" in str(facts["reason"]) and str(wheel) not in str(facts["reason"])


@needs_compiler
@EACH
def test_what_is_wrong_with_a_file_is_told_and_the_next_one_is_tried(name: str, tmp_path: Path) -> None:
    make(tmp_path / "one" / IN_WHEEL[name], name, "int nothing;")
    broken = tmp_path / "two" / IN_WHEEL[name] / FILE[name]
    broken.parent.mkdir(parents=True)
    broken.write_text("no library")
    good = make(tmp_path / "three" / IN_WHEEL[name], name)
    bad = (tmp_path / "one", tmp_path / "two")
    facts = found(name, "", (*bad, tmp_path / "three"))
    assert facts["usable"] and facts["file"] == str(good) and facts["reason"] == ""
    reason = str(found(name, "", bad)["reason"])
    assert "has no function" in reason and str(broken) in reason and "pip install nvidia-" in reason


def test_importing_opens_none_and_info_names_all() -> None:
    code = "import baracuda; print(open('/proc/self/maps').read())"
    maps = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert not any(file in maps for file in FILE.values())
    facts = {f["name"]: f for f in info.collect()["libraries"]}
    assert sorted(facts) == sorted(FILE)
    for name, f in facts.items():
        assert bool(f["reason"]) != f["usable"]
        assert f"{name} " in info.text() and (f["reason"] or f["version"]) in info.text()


CUDA = [PACKAGE / "lib/libbaracuda_cuda.so", PACKAGE.parent / "baracuda_cuda13/libbaracuda_cuda.so"]


@pytest.mark.skipif(not any(f.exists() for f in CUDA), reason="the cuda backend is not installed")
def test_the_cuda_module_opens_without_a_driver() -> None:
    code = "from baracuda import _core; print(_core.backend_state('cuda'))"
    env = {k: v for k, v in os.environ.items() if not k.startswith("BARACUDA_")}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=env)
    assert "'built': True" in done.stdout and "libbaracuda_cuda.so" not in done.stdout


def test_a_level_that_is_none_is_said_not_unbuilt() -> None:
    """The kernels are here; the variable that chooses among them is wrong."""
    code = "from baracuda import _core; s = _core.backend_state('cpu'); print(s['built'], s['present'], s['reason'])"
    env = os.environ | {"BARACUDA_CPU_LEVEL": "v9"}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=env)
    assert done.stdout.startswith("True False ") and "v9" in done.stdout
