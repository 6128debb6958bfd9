"""Code that runs in a process of its own, because it may hang or crash; either is an error that shows the stacks."""

from __future__ import annotations

import subprocess
import sys


def run_alone(code: str, *arguments: str, limit: int = 120) -> str:
    """Runs Python code and returns what it printed; after `limit` seconds it is ended, and its stacks are shown."""
    watched = (
        f"import faulthandler\nfaulthandler.enable()\nfaulthandler.dump_traceback_later({limit}, exit=True)\n{code}"
    )
    done = subprocess.run(
        [sys.executable, "-c", watched, *arguments], capture_output=True, text=True, timeout=limit + 60, check=False
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    return done.stdout
