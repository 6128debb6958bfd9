"""Clang, which builds on macOS, takes the CPU backend and the engine without a warning: GCC's builds would not tell."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

import baracuda

ROOT = Path(__file__).resolve().parents[1]
CLANG = shutil.which("clang++-19") or shutil.which("clang++")
PARTS = ("ops/*/cpu*.cpp", "host/*.cpp", "core/*.cpp", "backends/*.cpp")
# Without those that include what the build generates.
SOURCES = sorted(p for part in PARTS for p in (ROOT / "csrc").glob(part) if '.inc"' not in p.read_text())
# As CMakeLists.txt has them for clang; what libstdc++ has deprecated it uses itself.
QUIET = ["unknown-pragmas", "bitwise-conditional-parentheses", "bitwise-instead-of-logical", "deprecated-declarations"]
WARNINGS = ["-Wall", "-Wextra", "-Werror", *(f"-Wno-{name}" for name in QUIET)]
LEVEL = ["-DBCU_CPU_LEVEL=2", '-DBCU_CPU_LEVEL_NAME="level"', "-DBCU_CPU_LEVEL_COMPLETE=1", '-DBCU_VERSION="0"']
MACHINE = [] if platform.machine() in ("aarch64", "arm64") else ["-march=x86-64-v2"]

pytestmark = [
    pytest.mark.skipif(not CLANG, reason="no clang++-19: apt-get install clang-19"),
    pytest.mark.drawn(12),  # seconds each
]


def said(source: Path) -> str:
    """What clang says of a source; empty for nothing."""
    folders = [
        f"-I{folder}" for folder in (ROOT / "csrc", ROOT / "include", Path(baracuda.__file__).parent / "include")
    ]
    command = [str(CLANG), "-std=c++20", "-fsyntax-only", *WARNINGS, *LEVEL, *MACHINE, *folders, str(source)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.relative_to(ROOT / "csrc").as_posix())
def test_clang_has_nothing_to_say(source: Path) -> None:
    assert not said(source), said(source)[-3000:]


# A member template that a constructor's lambda asks for before its body was read stays undefined: GCC links it, clang does not.
UNDEFINED = """
template <class F> decltype(auto) called(F&& f) { return f.template operator()<1>(); }
class Picker {
 public:
  Picker() : move_(called([]<int kPiece>() -> void (*)() { return &move<kPiece>; })) {}
 private:
  template <int kPiece> static void move() {}
  void (*move_)();
};
Picker picker;
"""


def test_what_gcc_does_not_tell_is_seen(tmp_path: Path) -> None:
    source = tmp_path / "undefined.cpp"
    source.write_text(UNDEFINED)
    assert "is not defined" in said(source)
