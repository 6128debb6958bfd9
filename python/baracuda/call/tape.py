"""The tape: calls of functions are recorded while Python runs, and one reverse mode walks them back.

Values may be real tensors, or tensors without memory while a graph is traced: the functions' own gradient rules run in
either case, so that a traced gradient is part of the graph.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from inspect import Parameter
from itertools import count
from typing import Any

import numpy as np

from baracuda import _core
from baracuda.call.gradients import Gradients, Place, Root
from baracuda.call.inference import spec_of
from baracuda.call.operators import OF_NUMPY, C, with_operators
from baracuda.call.pulls import Step, Taken, at, pulled
from baracuda.describe.elements import Element
from baracuda.describe.errors import BaracudaError, InvalidProblemError, shown
from baracuda.describe.lines import user_line
from baracuda.memory.results import is_torch
from baracuda.memory.views import is_contiguous


class _Running(threading.local):
    """How many tapes record what this thread calls."""

    count = 0


running = _Running()
_numbers = count()
# What is no tensor and holds none.
_PLAIN = frozenset({type(None), bool, int, float, complex, str, Element})
_KEYWORD_ONLY = Parameter.KEYWORD_ONLY
_VAR_POSITIONAL = Parameter.VAR_POSITIONAL
_VAR_KEYWORD = Parameter.VAR_KEYWORD


def _refuses_writes(kind: C) -> C:
    """Class decorator: `x += y` is refused, which Python would make a new tensor, and NumPy the same one."""

    def refused(sign: str) -> Callable[..., Any]:
        def method(self: Any, other: Any) -> Any:
            raise InvalidProblemError(
                f"x {sign}= y: got a tensor whose gradient is taken, want it to stay as it is. Write x = x {sign} y."
            )

        return method

    for name, sign in (
        ("add", "+"), ("sub", "-"), ("mul", "*"), ("truediv", "/"), ("floordiv", "//"), ("mod", "%"), ("pow", "**"),
        ("matmul", "@"), ("and", "&"), ("or", "|"), ("xor", "^"), ("lshift", "<<"), ("rshift", ">>"),
    ):  # fmt: skip
        setattr(kind, f"__i{name}__", refused(sign))
    return kind


@_refuses_writes
@with_operators
class Tracked:
    """What a function that is differentiated is given in the place of a tensor: it has values, and knows how it was made.

    Functions of bc.functional, operators and views take it. What reads its values (`item()`, `numpy()`, `bool(x)`) gets
    plain numbers, through which no gradient flows.
    """

    __slots__ = ("_place", "_seen", "root", "tape")
    __hash__ = object.__hash__

    def __init__(self, tape: Tape, root: Root, place: Place | None = None, seen: Any = None) -> None:
        self.tape = tape
        self.root = root
        self._place = place  # None: all of it
        self._seen = root.value if place is None else seen

    @staticmethod
    def __baracuda_function__(fn: Any, given: tuple[Any, ...]) -> Any:
        """Called by a function that meets one among its arguments."""
        return innermost(given).call(fn, given)

    # --- what it is

    @property
    def value(self) -> Any:
        """Its values, as a tensor that functions take."""
        return self._seen

    @property
    def place(self) -> Place:
        """Where it lies in its root."""
        return self.root.whole if self._place is None else self._place

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""
        sizes: tuple[int, ...] = self._sizes(tuple(self._seen.shape))
        return sizes

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._seen.shape)

    rank = ndim

    @property
    def numel(self) -> int:
        """Number of elements."""
        numel: int = self._sizes(self._tensor().numel)
        return numel

    @property
    def element(self) -> Element:
        """Of its numbers."""
        return self.root.element

    @property
    def dtype(self) -> Any:
        """Of its numbers, as its framework names it."""
        return self._seen.dtype

    @property
    def device(self) -> Any:
        """Where it lies."""
        return self.root.device

    @staticmethod
    def _sizes(given: Any) -> Any:
        """Sizes as the caller sees them, where a graph is traced whose sizes are open."""
        watch = getattr(_core.tracer(), "watch", None)
        return given if watch is None else watch.sizes(given)

    def __len__(self) -> int:
        return len(self._tensor())

    def __repr__(self) -> str:
        return f"<differentiated {self.element} of shape {tuple(self._seen.shape)}>"

    # --- views

    def _tensor(self) -> Any:
        """The same memory as a bc.Tensor."""
        return self._seen if isinstance(self._seen, _core.Tensor) else _core.borrow(self._seen)

    def _viewed(self, change: Callable[[Any], Any]) -> Tracked:
        """A view, made by a method of bc.Tensor; of a copy where none of this memory is possible."""
        try:
            seen = change(self._tensor())
            place = self.root.place(change(self.root.pattern(self.place)))
        except InvalidProblemError:
            if self._place is None and self._is_contiguous():
                raise
            from baracuda import functional as F

            return F.copy(self)._viewed(change)  # type: ignore[arg-type, no-any-return]
        if is_torch(self.root.value):  # whose views follow its streams
            import torch

            root = self.root.value
            start = root.storage_offset() + (seen.address - root.data_ptr()) // self.element.nbytes
            seen = torch.as_strided(root, seen.shape, seen.strides, start)
        return Tracked(self.tape, self.root, place, seen)

    def _is_contiguous(self) -> bool:
        seen = self._tensor()
        return is_contiguous(seen.shape, seen.strides)

    def permute(self, *axes: Any) -> Tracked:
        """As bc.Tensor.permute."""
        return self._viewed(lambda x: x.permute(*axes))

    def transpose(self, *axes: Any) -> Tracked:
        """As bc.Tensor.transpose."""
        return self._viewed(lambda x: x.transpose(*axes))

    def reshape(self, *shape: Any) -> Tracked:
        """As bc.Tensor.reshape; of a copy where it has to be."""
        return self._viewed(lambda x: x.reshape(*shape))

    def expand(self, *shape: Any) -> Tracked:
        """As bc.Tensor.expand."""
        return self._viewed(lambda x: x.expand(*shape))

    def broadcast_to(self, *shape: Any) -> Tracked:
        """As bc.Tensor.broadcast_to."""
        return self._viewed(lambda x: x.broadcast_to(*shape))

    def squeeze(self, *axes: Any) -> Tracked:
        """As bc.Tensor.squeeze."""
        return self._viewed(lambda x: x.squeeze(*axes))

    def unsqueeze(self, axis: int) -> Tracked:
        """As bc.Tensor.unsqueeze."""
        return self._viewed(lambda x: x.unsqueeze(axis))

    @property
    def T(self) -> Tracked:
        """With its dimensions in reverse order."""
        return self._viewed(lambda x: x.T)

    @property
    def mT(self) -> Tracked:
        """With its last two dimensions exchanged."""
        return self._viewed(lambda x: x.mT)

    def __getitem__(self, key: Any) -> Tracked:
        from baracuda.ops.indexing import keys

        return keys.read(self, key) if _core.key_copies(key) else self._viewed(lambda x: x[key])

    def __iter__(self) -> Iterator[Tracked]:
        return (self[i] for i in range(len(self)))

    # --- values, through which no gradient flows

    def item(self) -> Any:
        """Its only element as a number."""
        return self._tensor().item()

    def numpy(self) -> Any:
        """Its values as a NumPy array."""
        return self._tensor().numpy()

    def tolist(self) -> Any:
        """Its values as nested lists."""
        return self._tensor().tolist()

    def __bool__(self) -> bool:
        return bool(self._tensor())

    def __float__(self) -> float:
        return float(self._tensor())

    def __int__(self) -> int:
        return int(self._tensor())

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Operators of NumPy's arrays with one of these on the right."""
        from baracuda import functional as F

        if method == "__call__" and not options and ufunc.__name__ in OF_NUMPY:
            return getattr(F, OF_NUMPY[ufunc.__name__])(*inputs)
        raise _values_wanted(f"np.{ufunc.__name__}")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise _values_wanted("NumPy")

    def __setitem__(self, key: Any, value: Any) -> None:
        raise InvalidProblemError(
            f"x[{shown(key)}] = ...: got a tensor whose gradient is taken, want it to stay as it is. Make a new one by "
            "F.index_put, F.slice_scatter or F.where."
        )


def _values_wanted(by: str) -> InvalidProblemError:
    return InvalidProblemError(
        f"{by}: got a tensor whose gradient is taken, want an array. Use functions of bc.functional, through which gradients "
        "flow; or take its values by x.numpy(), which are constants."
    )


class Tape:
    """Calls in order, of what depends on the tensors whose gradients are asked for."""

    def __init__(self) -> None:
        self.number = next(_numbers)
        self.steps: list[Step] = []
        self.where = ""  # what messages call the calls to come; by default the user's line
        # With sizes that are bc.Dims the same has to be done at all of them, however views lie.
        self.alike = getattr(_core.tracer(), "watch", None) is not None

    def leaf(self, value: Any, constant: bool = False) -> Tracked:
        """A tensor whose gradient is asked for; or a constant that has the views of one."""
        root = Root.of(value)
        root.constant = constant
        return Tracked(self, root)

    @contextmanager
    def on(self) -> Iterator[None]:
        """Composite functions of this thread look for tensors of tapes."""
        running.count += 1
        try:
            yield
        finally:
            running.count -= 1

    # --- forward

    def call(self, fn: Any, given: Sequence[Any]) -> Any:
        """Calls a function with these values of its parameters, and records how it is pulled back."""
        parameters = parameters_of(fn)
        taken: list[Taken] = []
        plain = [self._plain(p.name, value, taken) for p, value in zip(parameters, given, strict=True)]
        args, kwargs = spread(parameters, plain)
        if all(t.tracked is None for t in taken):
            return fn(*args, **kwargs)
        self._refuse_writes(fn, parameters, plain, taken)
        rule = fn.vjp_rule
        if rule is None:
            y, pull = fn(*args, **kwargs), None
        else:
            try:
                y, pull = rule(*args, **kwargs)
            except TypeError as error:  # a rule without one of the options
                raise InvalidProblemError(f"{fn.__name__}: its gradient takes no such call: {error}.") from error
        roots: list[Root] = []
        made = self._made(y, roots)
        if roots:
            where = self.where or user_line(sys._getframe(1))
            self.steps.append(Step(fn, tuple(roots), tuple(taken), pull, where))
        return made

    def _plain(self, name: str, value: Any, taken: list[Taken]) -> Any:
        """The value that an argument has; tensors are added to what was taken."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is Tracked and value.tape is self:
            taken.append(Taken(name, value.root.element, None if value.root.constant else value))
            return value._seen
        if isinstance(value, (list, tuple)):
            return kind([self._plain(name, x, taken) for x in value])
        if isinstance(value, np.generic):  # a number, as functions read it
            return value.item()
        if (element := element_of(value)) is not None:
            taken.append(Taken(name, element, None))
        return value

    def _refuse_writes(self, fn: Any, parameters: Sequence[Any], plain: list[Any], taken: list[Taken]) -> None:
        out = next((v for p, v in zip(parameters, plain, strict=True) if p.name == "out"), None)
        if out is not None:
            raise InvalidProblemError(
                f"{fn.__name__}: out: got a tensor beside one whose gradient is taken, want None: results are new."
            )
        if fn.__name__.endswith("_"):
            name = next(t.name for t in taken if t.tracked is not None)
            raise InvalidProblemError(
                f"{fn.__name__}: {name}: got a tensor whose gradient is taken, which this function may write to. Call it "
                "outside, on the gradients."
            )

    def _made(self, y: Any, roots: list[Root]) -> Any:
        """Results, of which those that can have a gradient are tracked."""
        if isinstance(y, (list, tuple)):
            parts = [self._made(x, roots) for x in y]
            return type(y)(*parts) if hasattr(y, "_fields") else type(y)(parts)
        element = element_of(y)
        if element is None or not element.is_float:
            return y
        made = self.leaf(y)
        roots.append(made.root)
        return made

    # --- backward

    def gradients(self, results: Sequence[tuple[Tracked, Any]]) -> Gradients:
        """Gradients of everything on the tape, from those of results."""
        found = Gradients(self.alike)
        for x, dy in results:
            found.add(x.root, x.place, dy)
        for step in reversed(self.steps):
            if any(map(found.reached, step.results)):
                self._pull(step, found)
        return found

    def _pull(self, step: Step, found: Gradients) -> None:
        from baracuda import functional as F

        if step.pull is None:
            raise at(step, InvalidProblemError(f"{step.fn.__name__} has no gradient"), "Stop it by bc.stop_gradient.")
        dys = tuple(found.of(root) for root in step.results)
        dys = tuple(F.zeros_like(r.value) if d is None else d for r, d in zip(step.results, dys, strict=True))
        try:
            gradients = pulled(step, dys[0] if len(dys) == 1 else dys)
        except BaracudaError as error:
            raise at(step, error) from error
        for taken, gradient in gradients:
            if taken.tracked is not None and gradient is not None:
                found.add(taken.tracked.root, taken.tracked.place, gradient)


@cache
def parameters_of(fn: Any) -> tuple[Any, ...]:
    """What a function takes."""
    return tuple(fn.__signature__.parameters.values())


def spread(parameters: Sequence[Any], values: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword arguments that call a function with these values of its parameters.

    Defaults are left out where they can be: gradient rules need not know every option.
    """
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    needed = 0
    for p, value in zip(parameters, values, strict=True):
        given = value is not p.default
        kind = p.kind
        if kind is _KEYWORD_ONLY:
            if given:
                kwargs[p.name] = value
            continue
        if kind is _VAR_POSITIONAL:
            args += value
        elif kind is _VAR_KEYWORD:
            kwargs |= value
        else:
            args.append(value)
        needed = len(args) if given else needed
    return args[:needed], kwargs


def element_of(value: Any) -> Element | None:
    """That of a tensor; None for anything else."""
    if isinstance(value, _core.Tensor):
        return value.element
    if isinstance(value, np.ndarray):
        return Element(_core.describe(value)[1])
    seen = spec_of(value)
    return None if seen is None else Element.coerce(seen.element)


def tracked_in(value: Any) -> Iterator[Tracked]:
    """The tensors of tapes among arguments."""
    if isinstance(value, Tracked):
        yield value
    elif isinstance(value, (list, tuple)):
        for x in value:
            yield from tracked_in(x)
    elif isinstance(value, dict):
        for x in value.values():
            yield from tracked_in(x)


def innermost(given: Any) -> Tape:
    """The newest tape that one of these arguments is on: calls of gradients of gradients are its own first."""
    found: Any = None
    for x in given:
        kind = type(x)
        if kind in _PLAIN:
            continue
        for tape in (x.tape,) if kind is Tracked else {y.tape for y in tracked_in(x)}:
            if found is None or tape.number > found.number:
                found = tape
    return found  # type: ignore[no-any-return]


def stop_gradient(value: Any) -> Any:
    """The same values as constants: no gradient flows through them.

    Args:
        value: A tensor inside of a function that is differentiated, or tensors nested in tuples, lists and dicts; anything
            else stays as it is.

    Returns:
        Tensors that functions take, in the same memory.
    """
    if isinstance(value, Tracked):
        return stop_gradient(value.value)
    if isinstance(value, dict):
        return {k: stop_gradient(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [stop_gradient(v) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value
