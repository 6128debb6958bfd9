"""Arrays in, arrays of the same kind out: torch's names, arguments, promotion and results.

`baracuda.functional` mirrors `torch.nn.functional` and `torch`. A call of a shape that was seen before runs in C++ without
a Python frame. Gradients: `y, pull = bc.vjp(F.swiglu, x)`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from baracuda import _index
from baracuda.call.rooms import ROOMS, Room
from baracuda.describe.names import about as _about


def __getattr__(name: str) -> Any:
    module = _index.FUNCTIONS.get(name)
    if name in ROOMS:
        return globals().setdefault(name, Room(name))
    if module is None:
        hint = "" if name.startswith("_") else _about(name, _index.FUNCTIONS)
        hint = hint or "; dir(baracuda.functional) lists what there is"
        raise AttributeError(f"baracuda.functional has no {name!r}{hint}")
    found = getattr(import_module(module), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(_index.FUNCTIONS)
