"""ztensor's EngineProxy and Tracer: which calls were made, by slots. bc.trace compiles functions; this only writes down."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from baracuda import _core
from baracuda.call.inference import spec_of
from baracuda.engine.ztensor.context import Context
from baracuda.engine.ztensor.table import Ztensor

if TYPE_CHECKING:
    from baracuda.engine.engine import Engine


@dataclass(frozen=True, slots=True)
class TracedOp:
    """A call.

    Attributes:
        OpName: Its name.
        InputIDs: Slots of the tensors that it was given.
        OutputID: Slot of its result, or of the first; -1 where there is none.
        OutputIDs: Slots of all results where there are several.
        ExtraArgs: What else it was given, by name.
    """

    OpName: str
    InputIDs: list[int]
    OutputID: int
    OutputIDs: list[int] = field(default_factory=list)
    ExtraArgs: dict[str, Any] = field(default_factory=dict)


class Tracer:
    """Writes calls down: each tensor is a slot.

    Tensors are kept alive, so that none of a later one is taken for an earlier one.

    Args:
        frozen: Weights: they have the first slots.
    """

    def __init__(self, frozen: Any = ()) -> None:
        self._ops: list[TracedOp] = []
        self._slots: dict[int, tuple[int, Any]] = {}
        self._opaque = False
        self._frozen = sorted({self.SlotFor(x) for x in frozen if x is not None})

    def SlotFor(self, t: Any) -> int:
        """The slot of a tensor; the next one where it is new."""
        return self._slots.setdefault(id(t), (len(self._slots), t))[0]

    def NextSlot(self) -> int:
        """How many slots there are."""
        return len(self._slots)

    def SlotShapes(self) -> dict[int, tuple[int, ...]]:
        """The shape of each slot."""
        return {slot: tuple(t.shape) for slot, t in self._slots.values()}

    def FrozenSlots(self) -> list[int]:
        """Slots of weights, in order."""
        return list(self._frozen)

    def TracedOps(self) -> list[TracedOp]:
        """The calls, in order."""
        return list(self._ops)

    def MarkOpaque(self) -> None:
        """Says that a call was made whose function is not known: UnaryOp."""
        self._opaque = True

    def HasOpaqueOps(self) -> bool:
        """Whether one was."""
        return self._opaque

    def Record(self, opName: str, inputs: Any, output: Any, extra: dict[str, Any] | None = None) -> None:
        """Writes down a call with one result, or with none."""
        slots = [self.SlotFor(x) for x in inputs]
        into = -1 if output is None else self.SlotFor(output)
        self._ops.append(TracedOp(opName, slots, into, [], extra or {}))

    def RecordMultiOutput(self, opName: str, inputs: Any, outputs: Any, extra: dict[str, Any] | None = None) -> None:
        """Writes down a call with several results."""
        slots, made = [self.SlotFor(x) for x in inputs], [self.SlotFor(x) for x in outputs]
        self._ops.append(TracedOp(opName, slots, made[0] if made else -1, made, extra or {}))

    def RecordGather(self, params: Any, indices: Any, output: Any, extra: dict[str, Any] | None = None) -> None:
        """Writes down a Gather."""
        self.Record("Gather", [params, indices], output, extra)


class EngineProxy:
    """An engine by ztensor's names, whose calls a tracer is told of. In-place calls too, which ztensor's leaves out.

    Args:
        real: The engine: a bc.Engine.

    Example:
        >>> proxy, tracer = EngineProxy(bc.Engine()), Tracer()
        >>> proxy.StartTracing(tracer)
        >>> y = proxy.MatMul(a, b)
        >>> proxy.StopTracing()
        >>> tracer.TracedOps()
    """

    def __init__(self, real: Engine) -> None:
        self._real, self._names = real, Ztensor(real)
        self._tracer: Any = None

    def Real(self) -> Engine:
        """The engine."""
        return self._real

    def StartTracing(self, tracer: Any) -> None:
        """Tells a tracer of all calls from now on: anything with Record, RecordMultiOutput and MarkOpaque."""
        self._tracer = tracer

    def StopTracing(self) -> None:
        """Ends that."""
        self._tracer = None

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._names, name)

        def traced(*args: Any, **kwargs: Any) -> Any:
            made = call(*args, **kwargs)
            if self._tracer is not None:
                self._record(name, args, kwargs, made)
            return made

        return traced

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._names), "Real", "StartTracing", "StopTracing"})

    def _record(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], made: Any) -> None:
        if name == "UnaryOp":
            self._tracer.MarkOpaque()
        words = self._names.names[name].words
        given = dict(zip(words, (x for x in args if not isinstance(x, Context)), strict=False)) | kwargs
        inputs: list[Any] = []
        extra = {}
        for word, x in given.items():
            if word in ("dst", "output"):
                continue
            parts = x if isinstance(x, (list, tuple)) else [x]
            if parts and all(_is_tensor(p) for p in parts):
                inputs += parts
            else:
                extra[word] = x
        if isinstance(made, (list, tuple)):
            self._tracer.RecordMultiOutput(name, inputs, made, extra)
        elif inputs:
            self._tracer.Record(name, inputs, made if _is_tensor(made) else None, extra)


def _is_tensor(x: Any) -> bool:
    return isinstance(x, _core.Tensor) or (hasattr(x, "shape") and spec_of(x) is not None)
