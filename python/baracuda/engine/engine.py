"""bc.Engine: an allocation context on one device, with the functions bound to it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from baracuda import _core
from baracuda._core import MemoryTracker
from baracuda.describe.calls import Signed
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError, shown
from baracuda.engine.functions import Functions, _mapped
from baracuda.engine.memory import TensorArena, bytes_of
from baracuda.memory.device import name_of, place_of, synchronize

if TYPE_CHECKING:
    from baracuda.engine.tang import Tang
    from baracuda.engine.ztensor import Ztensor
    from baracuda.memory.tensor import Tensor

Hook = Callable[[str, float, Any], None]
_COMPUTE = (Element.F32, Element.F16, Element.BF16)


def compute_of(compute: Any) -> Element | None:
    """What operands of products are rounded to; None for f32.

    Raises:
        InvalidProblemError: It is neither f32, f16 nor bf16.
    """
    element = Element.coerce(compute, "compute")
    if element not in _COMPUTE:
        raise InvalidProblemError(f"compute: got {element}, want f32, f16 or bf16.")
    return None if element is Element.F32 else element


@dataclass(frozen=True, slots=True)
class EngineStats:
    """What an engine has used.

    Attributes:
        allocated: Bytes of its tensors that are alive, and of its arena.
        peak: The most of them at once, workspaces of running calls with them.
        limit: The most that may be, or None.
        allocations: Of tensors and workspaces.
        refused: Allocations that would have passed the limit.
        fallbacks: Calls that ran on the cpu for want of memory.
        tensors: Those that are alive, and the arena.
        arena_used: Bytes of the arena in use; 0 without one.
        arena_peak: The most of these.
        arena_overflows: Tensors that did not fit there.
    """

    allocated: int
    peak: int
    limit: int | None
    allocations: int
    refused: int
    fallbacks: int
    tensors: int
    arena_used: int
    arena_peak: int
    arena_overflows: int


@dataclass(frozen=True, slots=True)
class Alive:
    """What was still alive when an engine was closed: `bool` of it is whether anything was.

    Attributes:
        tensors: Shape, element and bytes of each.
        bytes: Of all of them.
    """

    tensors: tuple[tuple[tuple[int, ...], Element, int], ...]

    @property
    def bytes(self) -> int:
        """Of all of them."""
        return sum(n for _, _, n in self.tensors)

    def __bool__(self) -> bool:
        return bool(self.tensors)

    def __str__(self) -> str:
        lines = [f"{len(self.tensors)} tensors of {self.bytes} bytes are alive"]
        return "\n".join([*lines, *(f"  {element}{list(shape)}: {n} bytes" for shape, element, n in self.tensors[:20])])


class Engine(metaclass=Signed):
    """Functions on one device whose memory is counted, limited, and reported.

    `engine.F` has all functions of bc.functional; what they return are `bc.Tensor`s of the engine's. Inside of
    `with engine:` every `bc.Tensor` that the thread makes is one, whoever makes it: plans, compiled graphs, `bc.empty`.

    Args:
        device: Where it works.
        memory_limit: The most bytes that its tensors, its arena and the workspaces of its calls may take at once: a number
            or a text like "2GiB"; None for no limit. A call that would pass it is a `MemoryLimitError`; nothing is changed,
            later ones work.
        arena: The size of an arena for `step`, which is allocated at once.
        compute: "f16" or "bf16": operands of products and attention of f32 are rounded to it, and their results are f32
            again; sums are f32 always. "f32" by default.
        on_no_memory: "error", or "cpu": a call for which the device has no memory runs on the cpu, where its result stays,
            is logged (logger `baracuda.engine`) and counted. Calls that write to their arguments are errors even then.

    Example:
        >>> engine = bc.Engine(memory_limit="1GiB")
        >>> y = engine.F.softmax(engine.F.matmul(x, w), -1)
        >>> engine.stats().peak
    """

    def __init__(
        self,
        device: Any = "cpu",
        *,
        memory_limit: int | str | None = None,
        arena: int | str | None = None,
        compute: Any = "f32",
        on_no_memory: Literal["error", "cpu"] = "error",
    ) -> None:
        if on_no_memory not in ("error", "cpu"):
            raise InvalidProblemError(f"on_no_memory: got {shown(on_no_memory)}, want 'error' or 'cpu'.")
        self.device = name_of(place_of(device))
        self.memory = MemoryTracker(None if memory_limit is None else bytes_of(memory_limit, "memory_limit"))
        self.compute = compute_of(compute)
        self.on_no_memory = on_no_memory
        self.hooks: list[Hook] = []
        self.fallbacks = 0
        self.closed = False
        self._local = threading.local()
        self.arena: TensorArena | None = None
        if arena is not None:
            with self:
                self.arena = TensorArena(arena, self.device)
        self.F = Functions(self)

    # --- what new tensors come from

    @property
    def current_arena(self) -> TensorArena | None:
        """The arena, where the calling thread is in a `step`."""
        return getattr(self._local, "arena", None)

    def __enter__(self) -> Engine:
        if self.closed:
            raise InvalidProblemError("engine: got a closed one, want an open one.")
        stack = self._local.__dict__.setdefault("stack", [])
        stack.append(_core.exchange_memory(self.memory, self.current_arena))
        return self

    def __exit__(self, *_: object) -> None:
        _core.exchange_memory(*self._local.stack.pop())

    @contextmanager
    def step(self) -> Iterator[Engine]:
        """Has new tensors of this thread lie in the arena, which is reset at the end to where it was.

        What shall outlive the step is pinned (`engine.arena.pin`), copied, or made before. One thread at a time.
        """
        if self.arena is None:
            raise InvalidProblemError("step: got an engine without an arena, want Engine(arena='256MiB') or the like.")
        arena, before = self.arena, self.current_arena
        mark = arena.mark()
        self._local.arena = arena
        try:
            with self:
                yield self
        finally:
            self._local.arena = before
            arena.reset(min(mark, arena.used))  # it may have been reset, or let go of, in the step

    # --- to the device and back

    def upload(self, x: Any, element: Any = None) -> Tensor:
        """A copy of a tensor of any framework as one of the engine's.

        Args:
            x: What is copied: on the host, or on the device.
            element: Rounds to this one.
        """
        source = _core.borrow(x)
        if element is not None and source.element is not Element.coerce(element):
            source = self._host_cast(source, Element.coerce(element))
        with self:
            made = _core.empty(source.shape, source.element, device=self.device)
        return made.copy_from(source)

    def _host_cast(self, source: Tensor, element: Element) -> Tensor:
        from baracuda import functional as F

        return F.cast(source, element)  # type: ignore[no-any-return]

    def upload_weights(self, weights: Any, element: Any = None) -> Any:
        """Copies of all tensors of a dict or list, below the arena's floor where they lie in it."""
        if isinstance(weights, dict):
            return {k: self.upload(v, element) for k, v in weights.items()}
        return [self.upload(v, element) for v in weights]

    def download(self, x: Tensor) -> np.ndarray[Any, Any]:
        """A NumPy array of the numbers; one of the same memory where that is the host's."""
        return x.to("cpu").numpy()

    def sync(self) -> None:
        """Waits for the device."""
        if self.device != "cpu":
            synchronize(self.device)

    def gathered(self, values: Any) -> Any:
        """With what a fallback has left on the cpu on the device again, where it fits."""
        if self.device == "cpu":
            return values

        def there(x: Any) -> Any:
            return x if x.device == self.device else self.upload(x)

        return _mapped(there, values)

    # --- what it says

    def add_hook(self, hook: Hook) -> Callable[[], None]:
        """Has `hook(name, seconds, result)` called after each call through `F`; what it returns removes it.

        On other devices than the cpu the seconds are those until the kernels were launched; a hook may `sync`.
        """
        self.hooks.append(hook)
        return lambda: self.hooks.remove(hook)

    def stats(self) -> EngineStats:
        """Bytes and counts."""
        m, a = self.memory, self.arena
        arena = (a.used, a.peak, a.overflows) if a else (0, 0, 0)
        return EngineStats(m.allocated, m.peak, m.limit, m.allocations, m.refused, self.fallbacks, m.tensors, *arena)

    @property
    def ztensor(self) -> Ztensor:
        """The same by the names and argument lists of ztensor's Engine: `engine.ztensor.MatMul(a, b, dst)`."""
        from baracuda.engine.ztensor import Ztensor

        return Ztensor(self)

    @property
    def tang(self) -> Tang:
        """The same by those of tang's ComputeDevice: `engine.tang.rms_norm(data, weight, n_groups, dim, eps)`."""
        from baracuda.engine.tang import Tang

        return Tang(self)

    def close(self) -> Alive:
        """Refuses calls from now on, lets go of the arena, and says which tensors are alive; these stay what they are."""
        self.closed = True
        self.arena = None
        return Alive(tuple(self.memory.alive()))

    def __repr__(self) -> str:
        limit = "" if self.memory.limit is None else f" of {self.memory.limit}"
        return (
            f"<Engine on {self.device}, {self.memory.allocated}{limit} bytes in use{', closed' if self.closed else ''}>"
        )
