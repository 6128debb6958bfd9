"""What the numbers were measured on."""

from __future__ import annotations

import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def facts(threads: int, device: str = "cpu") -> dict[str, Any]:
    """Processor, memory, system, versions and threads, for the JSON file. Names neither the host nor its user."""
    from baracuda import info

    found = info.collect()
    memory = next((line.split()[1] for line in _read("/proc/meminfo").splitlines() if line.startswith("MemTotal")), "0")
    versions = {"baracuda": found["version"], "python": found["python"], "numpy": found["numpy"]}
    for name in ("torch", "scipy-openblas32"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "cpu": found["cpu"],
        "device": next(d for d in found["devices"] if d["name"] == device),
        "kernels": found["backends"]["cpu"]["level"],
        "memory_gib": round(int(memory) / 2**20, 1),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "huge_pages": _read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "threads": threads,
        "thread_runtime": re.sub(r"\S*/", "", found["threads"]["runtime"]),  # without folders
        "versions": versions,
    }
