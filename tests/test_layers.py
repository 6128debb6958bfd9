"""Which part of the C++ sources includes which: the engine knows its backends by interfaces of its own alone."""

from __future__ import annotations

import re
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


def sources(folder: str) -> list[Path]:
    return [p for p in (ROOT / "csrc" / folder).rglob("*") if p.suffix in (".h", ".cpp", ".cu", ".in", ".metal")]


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


def test_an_include_would_be_seen() -> None:
    assert INCLUDE.findall(
        '#pragma once\n#include <span>\n#include "backends/cpu/loader.h"\n  # include "core/row.h"\n'
    ) == [
        "backends",
        "core",
    ]
