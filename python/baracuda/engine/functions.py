"""`engine.F`: the functions of bc.functional, whose results are the engine's."""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable
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
    "addbmm", "addmm", "addmv", "addr", "baddbmm", "bilinear", "bmm", "chain_matmul", "dot", "einsum", "ger", "inner", "linear",
    "linear_backward", "matmul", "matmul_backward", "mm", "multi_dot", "mv", "outer", "scaled_dot_product_attention",
    "scaled_dot_product_attention_backward", "tensordot", "varlen_attn", "varlen_attn_backward", "vdot",
})  # fmt: skip


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
        self._places = "device" in self.__signature__.parameters
        self._writes = name.endswith("_")
        self._product = name in PRODUCTS

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function, with what it allocates counted by the engine."""
        engine = self._engine
        if engine.closed:
            raise InvalidProblemError(f"engine.F.{self.__name__}: got a closed engine, want an open one.")
        args, kwargs = tuple(map(_borrowed, args)), {k: v if k == "out" else _borrowed(v) for k, v in kwargs.items()}
        if self._places and kwargs.get("device") is None and kwargs.get("out") is None:
            kwargs["device"] = engine.device
        if not engine.hooks:
            return self._launched(args, kwargs)
        start = time.perf_counter()
        result = self._launched(args, kwargs)
        seconds = time.perf_counter() - start
        for hook in tuple(engine.hooks):
            hook(self.__name__, seconds, result)
        return result

    def _launched(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        engine = self._engine
        try:
            if engine.on_no_memory == "cpu":
                args, kwargs = engine.gathered(args), engine.gathered(kwargs)
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
        given = {x.element for x in _flat((args, kwargs))}
        compute = self._engine.compute or Element.F32
        changed = {*NARROW, Element.F32} - {compute}
        if Element.F32 not in given or not given & changed:
            return self._fn(*args, **kwargs)
        args, kwargs = _mapped(lambda x: F.cast(x, compute) if x.element in changed else x, (args, kwargs))
        result = self._fn(*args, **kwargs)
        if compute is Element.F32:
            return result
        return _mapped(lambda x: F.cast(x, Element.F32) if x.element is compute else x, result)

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
        """What bc.vjp uses: the function's own rule; results and gradients are the engine's."""
        rule = getattr(self._fn, "vjp_rule", None)
        if rule is None:
            return None

        def pulled(*args: Any, **kwargs: Any) -> tuple[Any, Callable[..., Any]]:
            with self._engine:
                y, pull = rule(*map(_borrowed, args), **{k: _borrowed(v) for k, v in kwargs.items()})

            def pull_here(*dys: Any) -> Any:
                with self._engine:
                    return pull(*map(_borrowed, dys))

            return y, pull_here

        return pulled

    def __repr__(self) -> str:
        return f"<engine.F.{self.__name__} on {self._engine.device}>"


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
