"""`engine.F`: the functions of bc.functional, whose results are the engine's."""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from baracuda import _core
from baracuda import functional as F
from baracuda.call.inference import spec_of
from baracuda.describe.elements import Element
from baracuda.describe.errors import DeviceMemoryError, InvalidProblemError
from baracuda.describe.names import about

if TYPE_CHECKING:
    from baracuda.engine.engine import Engine

log = logging.getLogger("baracuda.engine")

# What `Engine(compute=...)` has work with operands of that element: sums stay f32 in all of them.
PRODUCTS = frozenset({
    "addbmm", "addmm", "addmv", "addr", "baddbmm", "bilinear", "bmm", "chain_matmul", "chain_matmul_backward", "dot", "einsum",
    "einsum_backward", "ger", "inner", "linear", "linear_backward", "matmul", "matmul_backward", "mm", "multi_dot", "mv", "outer",
    "scaled_dot_product_attention", "scaled_dot_product_attention_backward", "scaled_dot_product_attention_forward", "tensordot",
    "tensordot_backward", "varlen_attn", "varlen_attn_backward", "varlen_attn_forward", "vdot", "vecdot",
})  # fmt: skip


# Arguments of these that are f32 whatever the operands are.
STATISTICS = frozenset({"lse", "alibi_slopes", "sinks"})

# Elements that weights may have beside operands of f32: they are cast for the call, to f32 exactly.
NARROW = frozenset({Element.F8E4M3, Element.F8E5M2, Element.F16, Element.BF16})


class Functions:
    """All functions of bc.functional, bound to an engine; `engine.F`.

    Arguments are tensors of any framework on the engine's device, and results `bc.Tensor`s of the engine's.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Callable[..., Any]:
        fn = None if name.startswith("_") else getattr(F, name, None)
        if fn is None or not callable(fn):
            hint = about(name, dir(F))
            raise AttributeError(f"engine.F: got no function {name!r}, want one of bc.functional{hint}")
        bound = Bound(self._engine, name, fn)
        setattr(self, name, bound)
        return bound

    def __dir__(self) -> list[str]:
        return [n for n in dir(F) if not n.startswith("_")]


class Bound:
    """One function of an engine."""

    def __init__(self, engine: Engine, name: str, fn: Callable[..., Any]) -> None:
        self._engine, self._fn = engine, fn
        self.__name__, self.__doc__ = name, fn.__doc__
        self.__signature__ = inspect.signature(fn)
        parameters = self.__signature__.parameters
        self._places = "device" in parameters
        self._out_at = _place_of_out(parameters)
        self._writes = name.endswith("_")
        self._product = name in PRODUCTS
        names = list(parameters)
        self._kept = {"out", *STATISTICS.intersection(names), *(names.index(n) for n in STATISTICS.intersection(names))}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function, with what it allocates counted by the engine."""
        if 0 <= self._out_at < len(args):
            kwargs = {**kwargs, "out": args[self._out_at]}
            args = args[: self._out_at] + args[self._out_at + 1 :]
        args, kwargs = tuple(map(_borrowed, args)), {k: v if k == "out" else _borrowed(v) for k, v in kwargs.items()}
        if self._places and kwargs.get("device") is None and kwargs.get("out") is None:
            kwargs["device"] = self._engine.device
        return self._observed(lambda: self._launched(args, kwargs))

    def _observed(self, call: Callable[[], Any]) -> Any:
        """Runs a call of an open engine, and tells its hooks."""
        engine = self._engine
        if engine.closed:
            raise InvalidProblemError(f"engine.F.{self.__name__}: got a closed engine, want an open one.")
        if not engine.hooks:
            return call()
        start = time.perf_counter()
        result = call()
        seconds = time.perf_counter() - start
        for hook in tuple(engine.hooks):
            hook(self.__name__, seconds, result)
        return result

    def _launched(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        engine = self._engine
        try:
            # What is written to must not be a copy: where it was left on the cpu, the function says so.
            if engine.on_no_memory == "cpu" and not self._writes:
                args, kwargs = engine.gathered(args), _but_out(engine.gathered, kwargs)
            before = _core.exchange_memory(engine.memory, engine.current_arena)
            try:
                return self._computed(args, kwargs)
            finally:
                _core.exchange_memory(*before)
        except DeviceMemoryError as error:
            if engine.on_no_memory != "cpu" or self._writes or kwargs.get("out") is not None:
                raise
            return self._on_cpu(args, kwargs, str(error))  # a log that kept the error would keep tensors alive

    def _computed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Operands of products in one element: weights that are narrower than f32 beside it, and `compute`."""
        if not self._product:
            return self._fn(*args, **kwargs)
        narrowed = self._narrowed(args, kwargs)
        if narrowed is None:
            return self._fn(*args, **kwargs)
        args, kwargs = narrowed
        out = kwargs.get("out")
        if self._engine.compute is None:
            return self._fn(*args, **kwargs)
        if out is None:
            return self._widened(self._fn(*args, **kwargs))
        if (kept := Element(_core.borrow(out)._element)) is not Element.F32:
            raise InvalidProblemError(f"{self.__name__}: out: got {kept}, want f32, which results of f32 operands are.")
        return F.cast(self._fn(*args, **{k: v for k, v in kwargs.items() if k != "out"}), Element.F32, out=out)

    def _narrowed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any] | None:
        """Operands, but for `out`, in the element that the engine works with; None where they are as they are to be."""
        operands = [v for at, v in (*enumerate(args), *kwargs.items()) if at not in self._kept]
        given = {x.element for x in _flat(operands)}
        compute = self._engine.compute or Element.F32
        changed = {*NARROW, Element.F32} - {compute}
        if Element.F32 not in given or not given & changed:
            return None

        def cast(at: int | str, value: Any) -> Any:
            kept = at in self._kept
            return value if kept else _mapped(lambda x: F.cast(x, compute) if x.element in changed else x, value)

        return tuple(cast(i, v) for i, v in enumerate(args)), {k: cast(k, v) for k, v in kwargs.items()}

    def _widened(self, result: Any) -> Any:
        """Results and gradients in f32 again."""
        return _mapped(lambda x: F.cast(x, Element.F32) if x.element is self._engine.compute else x, result)

    def _on_cpu(self, args: tuple[Any, ...], kwargs: dict[str, Any], why: str) -> Any:
        engine = self._engine
        engine.fallbacks += 1
        log.warning("%s runs on the cpu: %s", self.__name__, why)
        args, kwargs = _mapped(lambda x: x.to("cpu"), (args, kwargs))
        if self._places:
            kwargs["device"] = "cpu"
        before = _core.exchange_memory(engine.memory, None)
        try:
            return self._computed(args, kwargs)
        finally:
            _core.exchange_memory(*before)

    @property
    def vjp_rule(self) -> Callable[..., Any] | None:
        """What bc.vjp uses: the function's own rule; results and gradients are the engine's, and f32 of operands that were cast."""
        rule = getattr(self._fn, "vjp_rule", None)
        return None if rule is None else lambda *args, **kwargs: self._pulled(rule, args, kwargs)

    def _pulled(
        self, rule: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Callable[..., Any]]:
        args, kwargs = tuple(map(_borrowed, args)), {k: _borrowed(v) for k, v in kwargs.items()}
        pulls = []

        def forward() -> Any:
            with self._engine:
                narrowed = self._narrowed(args, kwargs) if self._product else None
                taken, named = narrowed or (args, kwargs)
                y, pull = rule(*taken, **named)
                pulls.append((pull, narrowed is not None and self._engine.compute))
                return self._widened(y) if pulls[0][1] else y

        y = self._observed(forward)
        pull, compute = pulls[0]

        def pull_here(*dys: Any) -> Any:
            with self._engine:
                dys = tuple(map(_borrowed, dys))
                if not compute:
                    return pull(*dys)
                dys = _mapped(lambda x: F.cast(x, compute) if x.element is Element.F32 else x, dys)
                return self._widened(pull(*dys))

        return y, pull_here

    def __repr__(self) -> str:
        return f"<engine.F.{self.__name__} on {self._engine.device}>"


def _place_of_out(parameters: Mapping[str, inspect.Parameter]) -> int:
    """Which positional argument `out` is, or -1."""
    positional = [p.name for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    return positional.index("out") if "out" in positional else -1


def _but_out(change: Callable[[Any], Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments changed, but for the one that is written to."""
    return {k: v if k == "out" else change(v) for k, v in kwargs.items()}


def _borrowed(value: Any) -> Any:
    """Tensors of other frameworks as bc.Tensors of the same memory: results are of the kind that arguments are."""
    if isinstance(value, (_core.Tensor, int, float, str, type(None))):
        return value
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(map(_borrowed, value))
    if spec_of(value) is None or not (hasattr(value, "__dlpack__") or hasattr(value, "__array_interface__")):
        return value
    return _core.borrow(value)


def _mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """With the tensors in it changed."""
    if isinstance(value, _core.Tensor):
        return change(value)
    if isinstance(value, (list, tuple)):
        parts = [_mapped(change, v) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {k: _mapped(change, v) for k, v in value.items()}
    return value


def _flat(value: Any) -> list[Any]:
    found: list[Any] = []
    _mapped(lambda x: found.append(x) or x, value)  # type: ignore[func-returns-value]
    return found
