"""Devices: their names and facts, waiting for them, and what they found in the data."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

from baracuda import _core
from baracuda.describe.calls import Signed, signed
from baracuda.describe.errors import (
    BackendUnavailableError,
    InvalidProblemError,
    Refusal,
    shown,
)
from baracuda.describe.names import near

BACKENDS: tuple[str, ...] = _core.backends
Place = tuple[int, int]  # backend and ordinal, as the engine has them
CPU: Place = (BACKENDS.index("cpu"), 0)


def place_of(device: Any, field: str = "device") -> Place:
    """The backend and ordinal that "cpu", "cuda", "cuda:1", "metal", a Device or a torch.device names."""
    return _parse(str(device), field)


@lru_cache(maxsize=256)
def _parse(name: str, field: str) -> Place:
    found = re.fullmatch(rf"({'|'.join(BACKENDS)})(?::(\d{{1,4}}))?", name)
    if not found or (found[1] != "cuda" and found[2] not in (None, "0")):
        raise InvalidProblemError(f"{field}: got {shown(name)}, want 'cpu', 'cuda', 'cuda:0' or 'metal'{meant(name)}")
    return BACKENDS.index(found[1]), int(found[2] or 0)


# What other libraries call the backends.
_OTHERWISE = {"gpu": "cuda", "nvidia": "cuda", "mps": "metal", "apple": "metal", "host": "cpu", "x86": "cpu"}


def meant(name: str) -> str:
    """What a device that is misspelt, or another library's, would be here: the end of a message."""
    if re.fullmatch(r"cpu:(v\d\w*|neon\w*)|cuda:sm_\d+|metal:apple\d+", name):
        return ": for an architecture that need not be here ask query() or bc.capabilities()."
    found = re.fullmatch(r"([a-z]+)[\s:_-]*(\d{0,4})", name.strip().lower())
    if not found:
        return "."
    named = _OTHERWISE.get(found[1], found[1])
    backend = named if named in BACKENDS else near(named, BACKENDS)
    if backend is None:
        return "."
    number = f":{int(found[2])}" if found[2] and backend == "cuda" else ""
    return f"; did you mean {backend + number!r}?"


def name_of(place: Place) -> str:
    """A place as text: "cpu", "cuda:1" or "metal"."""
    backend = BACKENDS[place[0]]
    return f"{backend}:{place[1]}" if backend == "cuda" else backend


def _version(number: int) -> str:
    """13.0 from CUDA's 13000."""
    return f"{number // 1000}.{number % 1000 // 10}" if number else ""


@dataclass(frozen=True, slots=True)
class Device(metaclass=Signed):
    """A device: what it is, why it cannot be used where it cannot, and what its kernels found.

    Attributes:
        name: "cpu", "cuda:0", "metal"; "cuda" means "cuda:0".
    """

    name: str = "cpu"

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", name_of(place_of(self.name)))

    @property
    def backend(self) -> str:
        """Whose kernels run on it: "cpu", "cuda" or "metal"."""
        return BACKENDS[self._place[0]]

    @property
    def index(self) -> int:
        """Its number among the backend's devices."""
        return self._place[1]

    @property
    def usable(self) -> bool:
        """Whether plans can be made for it."""
        return not self.reason

    @property
    def reason(self) -> str:
        """Why it cannot be used; empty where it can."""
        state = _core.backend_state(self.backend)
        if not (state["built"] and state["present"]):
            return str(state["reason"])
        count = _core.device_count(self._place[0])
        if self.index < count:
            return ""
        return f"there {'is 1 device' if count == 1 else f'are {count} devices'} of this backend"

    @property
    def description(self) -> str:
        """One line: the model and what its kernels are built for, or why it cannot be used."""
        if self.reason:
            return self.reason
        if self.backend == "cpu":
            return f"{self.model}, kernels of level {_core.backend_state('cpu')['level']}"
        facts = [self.model, f"architecture {self.arch}" if self.arch else "", f"{self.memory / 2**30:.1f} GiB"]
        if self.driver:
            facts.append(f"driver {self.driver}, runtime {self.runtime}")
        return ", ".join(f for f in facts if f)

    @property
    def model(self) -> str:
        """The product's name; empty where there is no such device."""
        if self.backend == "cpu":
            return str(_core.cpu_info()["model"])
        return str(self._facts.get("name", ""))

    @property
    def arch(self) -> int:
        """cuda: the compute capability times ten, such as 90; cpu: the level of the kernels, such as 4."""
        if self.backend == "cpu":
            return int(_core.backend_state("cpu")["arch"])
        return int(self._facts.get("arch", 0))

    @property
    def units(self) -> int:
        """cuda: multiprocessors; cpu: cores that this process may use."""
        if self.backend == "cpu":
            return int(_core.cpu_info()["usable_cpus"])
        return int(self._facts.get("units", 0))

    @property
    def memory(self) -> int:
        """Bytes of memory that it has."""
        if self.backend == "cpu":
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return int(self._facts.get("memory", 0))

    @property
    def driver(self) -> str:
        """Version that the driver supports, such as "13.0"; empty for the cpu."""
        return _version(self._facts.get("driver", 0))

    @property
    def runtime(self) -> str:
        """Version of the runtime that baracuda was built with; empty for the cpu."""
        return _version(self._facts.get("runtime", 0))

    def check(self) -> None:
        """Waits for the device, and raises what its kernels have found since the last check.

        A cpu's work is done when `run` returns, which raises each error itself.

        Raises:
            BackendUnavailableError: The device cannot be used here; says why.
            IndexOutOfRangeError: A kernel met an index outside the indexed dimension.
            InvalidProblemError: A stream of the device is being captured.
            DeviceError: The device failed.
        """
        if self.reason:
            raise BackendUnavailableError(f"{self.name}: {self.reason}.")
        if self._place[0]:
            raise_fault(self._place, _core.device_take_fault(*self._place, 0))

    synchronize = check

    @property
    def _place(self) -> Place:
        return place_of(self.name)

    @property
    def _facts(self) -> dict[str, Any]:
        return (_core.device_describe(*self._place) or {}) if self._place[0] and not self.reason else {}

    def __str__(self) -> str:
        return self.name


@signed
def devices() -> tuple[Device, ...]:
    """The devices of this machine, the cpu first; a backend without any is listed once, with the reason."""
    found = [Device("cpu")]
    for backend in range(1, len(BACKENDS)):
        count = _core.device_count(backend)
        found += [Device(name_of((backend, i))) for i in range(max(count, 1))]
    return tuple(found)


@signed
def synchronize(device: Any = "cpu") -> None:
    """Waits until all work given to a device is done, and raises what it found. A cpu's work is done when `run` returns.

    Raises:
        BackendUnavailableError: The device cannot be used here; says why.
        IndexOutOfRangeError: A kernel met an index outside the indexed dimension.
        DeviceError: The device failed.
    """
    Device(str(device)).check()


def raise_fault(place: Place, fault: tuple[int, int, int, int, int, int] | None) -> None:
    """Raises what a kernel found: (row, step of a program, tensor, position, value, limit)."""
    if fault is not None:
        _core.device_raise_fault(*place, *fault)


def refuse_place(place: Place) -> NoReturn:
    """The error for a device that cannot be used here."""
    device = Device(name_of(place))
    raise BackendUnavailableError(f"{device.name}: {device.reason}.", [Refusal("no_device", "device", device.name, "")])
