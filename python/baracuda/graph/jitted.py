"""bc.jit: a function that is traced and compiled for each kind of arguments, and then runs as one program."""

from __future__ import annotations

import functools
import inspect
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from baracuda import _core
from baracuda.call.inference import spec_of
from baracuda.call.tape import running
from baracuda.call.tree import Tree, flatten
from baracuda.describe.calls import parameter_names, signed
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError, shown
from baracuda.graph.execution import ExecutionPlan
from baracuda.graph.graph import ComputeGraph, trace
from baracuda.memory.device import name_of
from baracuda.memory.tensor import TensorSpec, asarray
from baracuda.memory.views import is_contiguous


class Jitted:
    """A compiled function, made by `bc.jit`.

    Attributes:
        fn: What it was made of.
    """

    def __init__(
        self, fn: Callable[..., Any], static_nums: frozenset[int], static_names: frozenset[str], donated: frozenset[int]
    ) -> None:
        self.fn = fn
        self.__name__ = self.__qualname__ = getattr(fn, "__name__", type(fn).__name__)
        self.__doc__ = fn.__doc__
        self.__wrapped__ = fn
        self._static_nums, self._static_names, self._donated = static_nums, static_names, donated
        self._runs: dict[Any, _Run] = {}
        self._last: _Run | None = None
        self._lock = threading.Lock()
        self._bound: dict[int, tuple[Any, Jitted]] = {}  # by the id of an instance, with a weak reference to it

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """A method of an instance, compiled for this one: what it reads of the instance is captured."""
        if instance is None:
            return self
        key = id(instance)  # instances may compare by value, and be copied
        if key not in self._bound:
            nums, donated = (frozenset(i - (i > 0) for i in given) for given in (self._static_nums, self._donated))
            gone = weakref.ref(instance, lambda _: self._bound.pop(key, None))
            self._bound[key] = (gone, Jitted(_Method(self.fn, gone), nums, self._static_names, donated))
        return self._bound[key][1]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the function's program for arguments like these, which is made where there is none.

        Where it is traced or differentiated it is part of that: the function is called.
        """
        if running.count or _core.tracer() is not None:
            return self.fn(*args, **kwargs)
        last = self._last
        if last is not None and (given := last.flat(args, kwargs)) is not None:
            try:
                return last.run(given)
            except InvalidProblemError:  # perhaps of other shapes: nothing was launched then
                if last.key == self._key(args, kwargs)[0]:
                    raise
        return self._other(args, kwargs)

    def _other(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        key, call = self._key(args, kwargs)
        found = self._runs.get(key)
        if found is None:
            with self._lock:
                found = self._runs.get(key) or _Run(key, call, self._graph(call).compile())
                self._runs[key] = found
        self._last = found
        given = found.flat(args, kwargs)
        assert given is not None, "the key says how arguments are nested"
        return found.run(given)

    def lower(self, *args: Any, **kwargs: Any) -> ComputeGraph:
        """The graph of a call with these arguments, or `bc.TensorSpec`s in their place: `print(fn.lower(x).explain())`."""
        return self._graph(self._key(args, kwargs)[1])

    @property
    def cache_size(self) -> int:
        """How many programs it has."""
        return len(self._runs)

    def clear_cache(self) -> None:
        """Forgets all programs."""
        with self._lock:
            self._runs, self._last = {}, None

    def __repr__(self) -> str:
        return f"<compiled {self.__name__}, {len(self._runs)} programs>"

    def _key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, _Call]:
        call = _Call()
        names = list(kwargs)
        for i, (value, name) in enumerate(zip(args, parameter_names(self.fn, len(args)), strict=True)):
            call.add(value, name, i in self._static_nums or i - len(args) in self._static_nums)
        for name in names:
            call.add(kwargs[name], name, name in self._static_names)
        call.names = names
        call.place_numbers()
        call.donated = [i for i in range(len(args)) if i in self._donated or i - len(args) in self._donated]
        return (tuple(map(_structure, call.trees)), tuple(names), tuple(call.specs)), call

    def _graph(self, call: _Call) -> ComputeGraph:
        if not call.specs:
            warnings.warn(
                f"jit: {self.__name__} got no tensor among its arguments: what it reads is captured, and its program always "
                "computes the same unless that is written to. Give the tensors as arguments.",
                stacklevel=4,
            )
        values = [tree.build(call.specs) for tree in call.trees]
        positional = len(values) - len(call.names)

        @functools.wraps(self.fn)
        def traced(*args: Any, **kwargs: Any) -> Any:
            result = self.fn(*args, **kwargs)
            given: list[Any] = []
            for i in call.donated:
                flatten(args[i], _is_leaf, given, [], "")
            return _donated(result, given)

        try:
            return trace(traced, *values[:positional], **dict(zip(call.names, values[positional:], strict=True)))
        except InvalidProblemError as error:
            if call.numbers:
                error.args = (
                    f"{error}\n  {', '.join(call.numbers.values())}: numbers are tensors of each run; name those in static_argnums or "
                    "static_argnames that decide what is computed.",
                )
            raise


class _Method:
    """A method of an instance that it does not keep alive."""

    def __init__(self, fn: Callable[..., Any], instance: Callable[[], Any]) -> None:
        functools.update_wrapper(self, fn)
        self._fn, self._instance = fn, instance
        _, *rest = inspect.signature(fn).parameters.values()
        self.__signature__ = inspect.Signature(rest)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._fn(self._instance(), *args, **kwargs)


class _Call:
    """The arguments of a call: how they are nested, and what kind of tensors they hold."""

    def __init__(self) -> None:
        self.trees: list[Tree] = []
        self.specs: list[TensorSpec] = []
        self.names: list[str] = []
        self.donated: list[int] = []
        self.numbers: dict[int, str] = {}  # which leaves are numbers, and what they are called

    def add(self, value: Any, name: str, static: bool) -> None:
        """Another argument."""
        if static:
            try:
                hash(value)
            except TypeError:
                raise InvalidProblemError(
                    f"jit: {name}: got {shown(value)}, want a value that can be hashed."
                ) from None
            self.trees.append(Tree("constant", value=value))
            return
        flat: list[Any] = []
        names: list[str] = []
        tree = flatten(value, _is_leaf, flat, names, name)
        first = len(self.specs)
        self.numbers |= {first + i: n for i, (n, x) in enumerate(zip(names, flat, strict=True)) if _is_number(x)}
        self.specs += map(_spec, flat)
        self.trees.append(tree.counted_from(first))

    def place_numbers(self) -> None:
        """Has numbers be on the device of the tensors, in the widest element that it computes with."""
        device = next((s.device for i, s in enumerate(self.specs) if i not in self.numbers), "cpu")
        for i in self.numbers:
            wide = self.specs[i].element is Element.F64 and device.startswith("metal")
            self.specs[i] = replace(
                self.specs[i], device=device, element=Element.F32 if wide else self.specs[i].element
            )


class _Run:
    """A program with the kind of arguments that it is for."""

    def __init__(self, key: Any, call: _Call, plan: ExecutionPlan) -> None:
        self.key = key
        self.plan = plan
        self._trees = call.trees
        self._names = call.names
        self._positional = len(call.trees) - len(call.names)
        elsewhere = [(i, call.specs[i]) for i in call.numbers if call.specs[i].device != "cpu"]
        self._numbers = [(i, spec.element, spec.device) for i, spec in elsewhere]

    def flat(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
        """The tensors among arguments that are nested as these are; None where they are not."""
        if len(args) != self._positional or len(kwargs) != len(self._names):
            return None
        found: list[Any] = []
        for value, tree in zip(args, self._trees, strict=False):
            if not _take(value, tree, found):
                return None
        for name, tree in zip(self._names, self._trees[self._positional :], strict=True):
            if name not in kwargs or not _take(kwargs[name], tree, found):
                return None
        for i, element, device in self._numbers:
            found[i] = asarray(found[i], element, device=device)
        return found

    def run(self, given: list[Any]) -> Any:
        """Runs the program."""
        return self.plan.run_flat(given)


# Types of tensors that were seen: most calls bring no others.
_ARRAYS: set[type] = {np.ndarray, _core.Tensor}


def _take(value: Any, tree: Tree, found: list[Any]) -> bool:
    """Appends the tensors of an argument; whether it is nested as a tree says, with the same constants."""
    kind, what = tree.kind, type(value)
    if kind == "leaf":
        if what not in _ARRAYS:
            if _is_number(value):
                value = _number(value)
            elif spec_of(value) is None:
                return False
            else:
                _ARRAYS.add(what)
        found.append(value)
        return True
    if kind == "constant":
        return value is tree.value or (what is type(tree.value) and bool(value == tree.value))
    if kind is dict:
        if not isinstance(value, dict) or len(value) != len(tree.keys) or not all(map(value.__contains__, tree.keys)):
            return False
        parts: Any = map(value.__getitem__, tree.keys)
    elif what is not kind:
        return False
    elif tree.keys:  # a dataclass
        parts = [getattr(value, key) for key in tree.keys]
    elif len(value) != len(tree.children):
        return False
    else:
        parts = value
    return all(_take(part, child, found) for part, child in zip(parts, tree.children, strict=True))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _is_leaf(value: Any) -> bool:
    return _is_number(value) or spec_of(value) is not None


def _number(value: Any) -> Any:
    """A number of a call as a tensor: elements of rank 0 do not widen those of others."""
    return np.asarray(value, np.float64 if isinstance(value, (float, np.floating)) else np.int64)


def _spec(value: Any) -> TensorSpec:
    if isinstance(value, TensorSpec):
        return value
    if _is_number(value):
        return TensorSpec((), Element.F64 if isinstance(value, (float, np.floating)) else Element.I64)
    seen = spec_of(value)
    assert seen is not None, "leaves are tensors or numbers"
    if seen.strides is None and not getattr(value, "is_meta", False) and type(value).__name__ != "ShapeDtypeStruct":
        shape, code, strides, *place = _core.describe(value)
        steps = None if is_contiguous(shape, strides) else tuple(strides)
        return TensorSpec(tuple(shape), Element(code), steps, name_of((place[0], place[1])), seen.read_only)
    return seen


def _structure(tree: Tree) -> Any:
    """How an argument is nested, with its constants, as part of a key."""
    if tree.kind == "leaf":
        return tree.value
    if tree.kind == "constant":
        try:
            hash(tree.value)
        except TypeError:
            raise InvalidProblemError(
                f"jit: got {shown(tree.value)} among the arguments, want tensors, numbers, or values that can be hashed."
            ) from None
        return type(tree.value), tree.value
    return tree.kind, tuple(tree.keys), tuple(map(_structure, tree.children))


def _donated(result: Any, left: list[Any]) -> Any:
    """Results in the memory of arguments that may be overwritten, as far as shape and element fit."""
    from baracuda import functional as F

    flat: list[Any] = []
    tree = flatten(result, lambda v: isinstance(v, _core.Tensor), flat, [], "result")
    # What shows an argument's memory is to be as it is now, and not as a later result leaves it.
    flat = [F.copy(made) if any(_shows(made, x) for x in left) else made for made in flat]
    for i, made in enumerate(flat):
        at = next((k for k, x in enumerate(left) if _takes(x, made)), None)
        if at is not None:
            flat[i] = F.copy(made, out=left.pop(at))
    return tree.build(flat)


def _shows(made: Any, x: Any) -> bool:
    return made.address == x.address or bool(_core.overlap(made, x))  # the same view is none to the engine


def _takes(x: Any, made: Any) -> bool:
    return x.shape == made.shape and x.element is made.element and not x.read_only


def _positions(value: int | Sequence[int], name: str) -> frozenset[int]:
    found = (value,) if isinstance(value, int) else tuple(value)
    if not all(isinstance(i, int) and not isinstance(i, bool) for i in found):
        raise InvalidProblemError(f"{name}: got {shown(value)}, want a position of an argument, or some.")
    return frozenset(found)


@signed
def jit(
    fn: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
) -> Jitted:
    """A function that is traced and compiled once for each kind of arguments, as jax.jit; each call is then one program.

    What decides is how arguments are nested, shapes, elements, strides and devices of tensors, and static values. Python
    numbers are numbers of each run, as tensors of rank 0: f64, or i64. Truth values, texts and None are static. Tensors
    that the function reads from elsewhere, such as attributes, are captured by reference.

    Args:
        fn: A function of `bc.functional` calls, views and operators, of `bc.grad` and of other jitted functions; see
            `bc.trace` for what it may not do.
        static_argnums: Positions of arguments that are passed as they are, and have to be hashable.
        static_argnames: Names of keyword arguments of that kind.
        donate_argnums: Positions of arguments whose memory results may take: results of the same shape and element are
            written there, and are these tensors.

    Returns:
        A function of the same arguments with `lower(*args)`, the graph of such a call, `cache_size` and `clear_cache()`.
        Its results are of the kind that its first tensor is of.

    Raises:
        InvalidProblemError: By the function: what `bc.trace` raises, with the line.

    Example:
        >>> step = bc.jit(bc.value_and_grad(loss))
        >>> value, gradients = step(weights, x, target)
    """
    if not callable(fn):
        raise InvalidProblemError(f"jit: fn: got {shown(fn)}, want a function.")
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    return Jitted(
        fn, _positions(static_argnums, "static_argnums"), frozenset(names), _positions(donate_argnums, "donate_argnums")
    )
