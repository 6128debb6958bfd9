"""What ci/metal.sh asks Python for: the tiny Llama on both devices, measurements beside torch and MLX, and one JSON of it all.

python ci/metal_report.py train FILE | measure FILE | join FOLDER [FAILED STEP...]
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = 1
TEXT = b"the quick brown fox jumps over the lazy dog. " * 9
SIZES: dict[str, tuple[int, ...]] = {
    "swiglu": (4096, 8192), "softmax": (4096, 4096), "rms_norm": (4096, 4096), "matmul": (2048, 2048),
    "attention": (1, 16, 2048, 64),
}  # fmt: skip


def losses(device: str, steps: int = 20) -> list[float]:
    """Of a small model's first steps, from the same numbers on either device."""
    from model import Config  # type: ignore[import-not-found, unused-ignore]
    from training import Batches, Trainer  # type: ignore[import-not-found, unused-ignore]

    c = Config(d_model=64, layers=2, heads=4, kv_heads=2, hidden=96, vocab=128, context=32)
    trainer = Trainer(c, batch=4, steps=steps, lr=5e-3, device=device)
    batches = Batches(TEXT, 4, c.context, seed=1)
    return [float(trainer.step(*batches[i])) for i in range(steps)]


def train(out: Path) -> int:
    """Whether the losses on the two devices agree within what rounding explains."""
    found = {device: losses(device) for device in ("cpu", "metal")}
    worst = float(np.max(np.abs(np.array(found["metal"]) / np.array(found["cpu"]) - 1)))
    out.write_text(json.dumps(found | {"largest_difference": worst}))
    print(f"largest relative difference of the loss: {worst:.3g}")
    return 0 if worst < 1e-3 else 1


def seconds(call: Callable[[], object], wait: Callable[[], object], runs: int = 10) -> float:
    """The median time of a call, of runs of ten calls each."""
    call(), wait()
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        for _ in range(10):
            call()
        wait()
        taken.append((time.perf_counter() - start) / 10)
    return float(np.median(taken))


def call_of_ours(op: str, x: Any) -> Callable[[], object]:
    import baracuda as bc
    import baracuda.functional as F

    t = bc.asarray(x, device="metal")
    weight = bc.asarray(x[0], device="metal")
    calls: dict[str, Callable[[], object]] = {
        "swiglu": lambda: F.swiglu(t),
        "softmax": lambda: F.softmax(t, -1),
        "rms_norm": lambda: F.rms_norm(t, (x.shape[1],), weight),
        "matmul": lambda: F.matmul(t, t),
        "attention": lambda: F.scaled_dot_product_attention(t, t, t),
    }
    return calls[op]


def first(op: str, x: Any) -> float:
    """Seconds of an op's first call in a process, of little work: its family's text is compiled."""
    import baracuda as bc

    call, start = call_of_ours(op, x[..., :8, :8]), time.perf_counter()
    call(), bc.Device("metal").synchronize()
    return time.perf_counter() - start


def ours(op: str, x: Any) -> float:
    import baracuda as bc

    return seconds(call_of_ours(op, x), bc.Device("metal").synchronize)


def of_torch(op: str, x: Any) -> float:
    import torch

    t = torch.tensor(x, device="mps")
    half = x.shape[1] // 2
    calls: dict[str, Callable[[], object]] = {
        "swiglu": lambda: t[:, :half] * torch.nn.functional.silu(t[:, half:]),
        "softmax": lambda: torch.softmax(t, -1),
        "rms_norm": lambda: torch.nn.functional.rms_norm(t, (x.shape[1],), t[0]),
        "matmul": lambda: t @ t,
        "attention": lambda: torch.nn.functional.scaled_dot_product_attention(t, t, t),
    }
    return seconds(calls[op], torch.mps.synchronize)


def of_mlx(op: str, x: Any) -> float:
    import mlx.core as mx  # type: ignore[import-not-found, unused-ignore]

    t = mx.array(x)
    half = x.shape[1] // 2
    calls: dict[str, Callable[[], Any]] = {
        "swiglu": lambda: t[:, :half] * t[:, half:] * mx.sigmoid(t[:, half:]),
        "softmax": lambda: mx.softmax(t, -1),
        "rms_norm": lambda: mx.fast.rms_norm(t, t[0], 1e-6),
        "matmul": lambda: t @ t,
        "attention": lambda: mx.fast.scaled_dot_product_attention(t, t, t, scale=x.shape[-1] ** -0.5),
    }
    return seconds(lambda: mx.eval(calls[op]()), lambda: None)


def measure(out: Path) -> int:
    """Seconds of each op, in f32: its first call, then ours, torch's and MLX's where they are installed."""
    peers: dict[str, Callable[[str, Any], float]] = {"first call": first, "ours": ours}
    peers |= {"torch": of_torch} if find_spec("torch") else {}
    peers |= {"mlx": of_mlx} if find_spec("mlx") else {}
    found: dict[str, dict[str, Any]] = {}
    for op, shape in SIZES.items():
        x = np.random.default_rng(0).standard_normal(shape, np.float32)
        found[op] = {"shape": shape}
        for name, measured in peers.items():
            try:
                found[op][name] = measured(op, x)
            except Exception as e:  # one that fails is told, and the others measured
                found[op][name] = f"{type(e).__name__}: {e}"[:500]
        print(op, found[op])
    out.write_text(json.dumps(found))
    return 1 if any(isinstance(f["ours"], str) for f in found.values()) else 0


def tests(report: Path) -> dict[str, Any] | None:
    """Counts of a JUnit report, and which tests failed with what; None where the run did not come to its end."""
    if not report.exists():
        return None
    suite = next(ElementTree.parse(report).getroot().iter("testsuite"))
    counts: dict[str, Any] = {name: int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")}
    counts["failed"] = {
        f"{case.get('classname')}::{case.get('name')}": (bad.text or "")[-1500:]
        for case in suite.iter("testcase")
        for kind in ("failure", "error")
        if (bad := case.find(kind)) is not None
    }
    return counts


def told(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def join(folder: Path, failed: list[str]) -> int:
    """Writes the file, and says where."""
    chip = told("sysctl", "-n", "machdep.cpu.brand_string")
    parts = {name: folder / f"{name}.json" for name in ("train", "measure")}
    made = {
        "schema": SCHEMA,
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "commit": told("git", "rev-parse", "HEAD"),
        "machine": {"chip": chip, "macos": platform.mac_ver()[0], "model": told("sysctl", "-n", "hw.model")},
        "compilers": {"clang": told("clang", "--version"), "metal": told("xcrun", "metal", "--version")},
        "info": told(sys.executable, "-m", "baracuda", "info"),
        "failed_steps": failed,
        "tests": {name: tests(folder / f"{name}.xml") for name in ("metal", "cpu")},
        **{name: json.loads(file.read_text()) if file.exists() else None for name, file in parts.items()},
    }
    slug = re.sub(r"[^a-z0-9]+", "-", chip.lower()).strip("-")
    out = ROOT / "bench" / "results" / f"metal-{slug}-{made['date'][:10]}.json"
    out.write_text(json.dumps(made, indent=1) + "\n")
    print(out.relative_to(ROOT))
    return 0


def main() -> int:
    """The command line."""
    what, path, *failed = sys.argv[1:]
    if what == "join":
        return join(Path(path), failed)
    return {"train": train, "measure": measure}[what](Path(path))


if __name__ == "__main__":
    sys.exit(main())
