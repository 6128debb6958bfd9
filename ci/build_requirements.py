"""Prints what pip's build isolation would install, one requirement a line, with CMake and ninja."""

from __future__ import annotations

import tomllib
from pathlib import Path

settings = tomllib.loads((Path(__file__).resolve().parent.parent / "pyproject.toml").read_text())
print(*settings["build-system"]["requires"], "cmake>=3.25", "ninja>=1.10", sep="\n")
