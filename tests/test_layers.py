"""Which part of the sources takes in which: the engine knows its backends by interfaces of its own, and no import goes round."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

INCLUDE = re.compile(r'^\s*#\s*include\s+"([a-z0-9_]+)/', re.M)
# What the files of a folder of csrc include no file of.
ABOVE = {
    "core": {"backends", "bindings", "host", "ops", "simt"},
    "host": {"bindings", "ops", "simt"},
    "backends": {"bindings"},
    "simt": {"bindings", "host"},
    "ops": {"bindings"},
}


SUFFIXES = (".h", ".cpp", ".cu", ".in", ".metal")


def sources(folder: str) -> list[Path]:
    return [p for p in (ROOT / "csrc" / folder).rglob("*") if p.suffix in SUFFIXES]


@pytest.mark.parametrize("folder", ABOVE)
def test_nothing_includes_what_lies_above_it(folder: str) -> None:
    found = sources(folder)
    assert len(found) > 5, "these are the sources"
    upward = [
        f"{p.relative_to(ROOT)}: {name}/"
        for p in found
        for name in INCLUDE.findall(p.read_text())
        if name in ABOVE[folder]
    ]
    assert not upward


def test_what_is_shipped_names_no_file_of_the_tests() -> None:
    """Headers that an include path of the tests adds have a place of their own there: simt/*_host.h."""
    harness = ROOT / "tests/harness"
    names = {p.relative_to(harness).parts[0] for p in harness.rglob("*.h")} | {"tests", "harness"}
    shipped = [p for f in ("csrc", "include") for p in (ROOT / f).rglob("*") if p.suffix in SUFFIXES]
    assert "emulator" in names and len(shipped) > 100
    assert not [str(p) for p in shipped if names & set(INCLUDE.findall(p.read_text()))]


INTRINSIC = re.compile(r"\b_mm\d*_|<\w*intrin\.h>|<arm_neon\.h>|__(?:AVX|SSE|F16C|FMA__|ARM_FEATURE)")


def test_intrinsics_are_in_the_vocabularies_of_levels() -> None:
    sources = [p for p in (ROOT / "csrc").rglob("*") if p.suffix in (".h", ".cpp")]
    using = {p.relative_to(ROOT / "csrc").as_posix() for p in sources if INTRINSIC.search(p.read_text())}
    assert using == {f"host/level_{kind}.h" for kind in ("x86", "arm", "bytes", "gather")}


def test_an_include_would_be_seen() -> None:
    assert INCLUDE.findall(
        '#pragma once\n#include <span>\n#include "backends/cpu/loader.h"\n  # include "core/row.h"\n'
    ) == [
        "backends",
        "core",
    ]


def imported(body: list[ast.stmt]) -> Iterator[str]:
    """What is imported when a module is: not inside of functions, nor for types alone."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{a.name}" for a in node.names)
            yield node.module
        elif isinstance(node, ast.If):
            yield from imported(node.orelse if "TYPE_CHECKING" in ast.unparse(node.test) else node.body + node.orelse)
        elif isinstance(node, (ast.Try, ast.With, ast.ClassDef)):
            yield from imported(node.body)


def circle(sources: dict[str, str]) -> list[str]:
    """Modules that import one another round; none."""
    # The package itself is there before any part of it: `from baracuda import _core` waits for nothing.
    known = sources.keys() - {"baracuda"}
    graph = {
        name: {m for m in imported(ast.parse(text).body) if m in known and m != name} for name, text in sources.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_import_goes_round() -> None:
    root = ROOT / "python"
    names = {
        p: ".".join(p.relative_to(root).with_suffix("").parts).removesuffix(".__init__") for p in root.rglob("*.py")
    }
    assert len(names) > 150, "these are the sources"
    assert not circle({name: path.read_text() for path, name in names.items()})


def test_a_circle_would_be_seen() -> None:
    a, b = "from baracuda.b import x\nimport os\n", "def f():\n    import baracuda.a\n"
    assert not circle({"baracuda.a": a, "baracuda.b": b})
    assert circle({"baracuda.a": a, "baracuda.b": "try:\n    from baracuda import a\nexcept ImportError:\n    pass\n"})
    only_for_types = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import baracuda.a\n"
    assert not circle({"baracuda.a": a, "baracuda.b": only_for_types})
