"""Forked children, in which imports that other threads had begun never end."""

from __future__ import annotations

import importlib
import os
import sys
from _thread import get_ident


def _forget_imports_of_other_threads() -> None:
    """Lets a child import anew what a thread that it does not have was importing: its lock is never released.

    Families are imported when they are first used, so that any call may import. importlib keeps its locks to itself;
    where they are not found, nothing is changed.
    """
    locks = getattr(getattr(importlib, "_bootstrap", None), "_module_locks", {})
    for name, reference in list(locks.items()):
        owner = getattr(reference(), "owner", None)
        if owner in (None, get_ident()) or name.partition(".")[0] != "baracuda":
            continue
        locks.pop(name, None)
        if getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False):
            del sys.modules[name]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_imports_of_other_threads)
