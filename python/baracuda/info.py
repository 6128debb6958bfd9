"""What this installation is and can do, as text and as a dict: `python -m baracuda info`."""

from __future__ import annotations

import platform
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from baracuda import _core
from baracuda.choose.sku import rows
from baracuda.memory.device import BACKENDS, Device, devices


def collect() -> dict[str, Any]:
    """Facts about the build, the machine, the backends and the SKU table."""
    table = rows()
    paced, stalls, serial = _core.thread_pace()
    return {
        "version": _core.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "location": str(Path(__file__).parent),
        "cpu": dict(_core.cpu_info()),
        "threads": {
            "count": _core.num_threads(),
            "runtime": _core.thread_runtime(),
            "paced": paced,
            "stalls": stalls,
            "serial_now": serial,
        },
        "devices": [_facts(d) for d in devices()],
        "backends": {name: dict(_core.backend_state(name)) for name in BACKENDS},
        "libraries": [dict(found) for found in _core.libraries()],
        "rows": {"total": len(table), "by_family": dict(Counter(r["family"] for r in table))},
    }


def _facts(device: Device) -> dict[str, Any]:
    names = ("name", "usable", "reason", "description", "model", "arch", "units", "memory", "driver", "runtime")
    return {n: getattr(device, n) for n in names}


def text() -> str:
    """The facts as aligned lines."""
    facts = collect()
    cpu, threads = facts["cpu"], facts["threads"]
    lines = [
        f"baracuda {facts['version']}  (Python {facts['python']}, NumPy {facts['numpy']})",
        f"  installed in  {facts['location']}",
        f"  processor     {cpu['model']}, {cpu['usable_cpus']} usable CPUs, hardware level {cpu['hardware_level']}",
        f"  caches        L1d {cpu['l1d_bytes'] >> 10} KiB, L2 {cpu['l2_bytes'] >> 10} KiB, L3 {cpu['l3_bytes'] >> 20} MiB",
        f"  threads       {threads['count']}, {threads['runtime']}" + ("" if threads["paced"] else ", not paced"),
    ]
    for d in facts["devices"]:
        lines.append(
            f"  {d['name']:<13} " + (f"usable: {d['description']}" if d["usable"] else f"not usable: {d['reason']}")
        )
    for found in facts["libraries"]:
        what = f"{found['version']} from {found['from']}: {found['file']}" if found["usable"] else found["reason"]
        lines.append(f"  {found['name']:<13} {what}")
    families = ", ".join(f"{k} {v}" for k, v in sorted(facts["rows"]["by_family"].items()))
    lines.append(f"  SKU table     {facts['rows']['total']} rows: {families}")
    return "\n".join(lines)
