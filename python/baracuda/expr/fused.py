"""`fuse`: a function of arrays as one kernel."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from baracuda import _core
from baracuda.call.op import OUT, TENSOR, Arg, Call, Function, Recipe
from baracuda.choose.plan import Plan, plan
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Descriptor
from baracuda.expr.gradient import gradient_of
from baracuda.expr.source import dialect_of, text_of
from baracuda.expr.stand_in import Traced
from baracuda.expr.trace import Trace, View
from baracuda.memory.device import place_of
from baracuda.memory.tensor import TensorSpec


@dataclass(frozen=True, slots=True)
class Explained:
    """What an expression became for arguments of some shapes and elements.

    Attributes:
        kernels: Descriptors of the fused kernels.
        not_fused: What is a call of its own, and why.
        shared: How many values were found to be the same as others.
    """

    kernels: tuple[Descriptor, ...]
    not_fused: tuple[str, ...]
    shared: int

    def __str__(self) -> str:
        lines = [f"{len(self.kernels)} fused kernel{'s' * (len(self.kernels) != 1)}; {self.shared} values shared"]
        lines += [f"  {desc.program}" for desc in self.kernels]  # type: ignore[attr-defined]
        lines += ["not fused:"] * bool(self.not_fused) + [f"  {why}" for why in self.not_fused]
        return "\n".join(lines)


def _traced(
    fn: Callable[..., Any], trace: Trace, args: dict[str, Any], options: dict[str, Any]
) -> tuple[list[Traced], bool]:
    """Runs the function; its results, in memory, and whether there are several."""
    made = fn(**args, **options)
    several = isinstance(made, (tuple, list))
    results = list(made) if several else [made]
    for x in results:
        if not isinstance(x, Traced) or x.trace is not trace:
            raise InvalidProblemError(
                f"fuse: got a {type(x).__name__} as a result, want an array that is made of the arguments, or a tuple of them."
            )
    return _finished(trace, results), several


def _finished(trace: Trace, results: list[Traced]) -> list[Traced]:
    """Results as what steps give: arguments, views of them, and what is broadcast to a result's shape are copied."""

    def finished(x: Traced) -> Traced:
        leaf = trace.values[x.value]
        (source, *_), views = leaf.args
        if source == "step" and not views and leaf.shape == x.shape:
            return x
        if trace.place_of(x.value, x.shape) is None:
            trace.store((x.value,), x.shape)
        return trace.seen(x.value, x.shape)

    return [finished(x) for x in trace.stored(results)]


class Expr(Function):
    """A fused function: called as the function that it was made of.

    Positional parameters are arrays, keyword-only ones are options that decide the kernel. `out=` takes the result where
    there is one.
    """

    fused: Callable[..., Any]

    def __new__(cls, fn: Callable[..., Any], name: str) -> Expr:
        """Makes the engine's side of the function."""
        rule, signature, kinds = _rule(fn, name)
        made: Any = super().__new__(cls, rule, signature, kinds)
        return made  # type: ignore[no-any-return]

    def __init__(self, fn: Callable[..., Any], name: str) -> None:
        rule, signature, kinds = _rule(fn, name)
        super().__init__(rule, signature, kinds)
        self.fused, self.__module__ = fn, fn.__module__
        self.vjp_rule = self._pulled

    def _pulled(self, *args: Any, **options: Any) -> tuple[Any, Callable[..., Any]]:
        """What bc.vjp uses."""
        return self(*args, **options), lambda dy: self.grad(dy, *args, **options)

    def __reduce__(self) -> Any:
        return fuse, (self.fused,)

    def __repr__(self) -> str:
        return f"<fused expression {self.__name__}{self.__signature__}>"

    def _trace(self, specs: tuple[Any, ...], options: dict[str, Any], device: Any) -> tuple[Trace, list[Traced]]:
        trace = Trace(place_of(device))
        names = [p.name for p in inspect.signature(self.fused).parameters.values() if p.kind is not p.KEYWORD_ONLY]
        if len(specs) > len(names):
            raise InvalidProblemError(f"{self.__name__}: got {len(specs)} arrays, want at most {len(names)}.")
        args = {}
        for i, (name, x) in enumerate(zip(names, specs, strict=False)):
            seen = x if isinstance(x, TensorSpec) else _spec(x)
            args[name] = trace.argument(i, tuple(seen.shape), seen.element)  # type: ignore[arg-type]
        return trace, _traced(self.fused, trace, args, options)[0]

    @cached_property
    def grad(self) -> Expr:
        """Its gradient as a fused function: `grad(dy, *arrays)` gives that of each float array, in their order.

        By the functions' own rules, bit for bit what these give one after the other. Gradients of arrays that are broadcast
        are summed by `F.sum`. What is computed forward is computed again.

        Raises:
            InvalidProblemError: When it is called: there are several results, or one of its functions has no gradient.
        """
        return fuse(gradient_of(self.fused, self.__name__))

    def plan(self, *specs: Any, device: Any = "cpu", **options: Any) -> Plan:
        """The plan of its kernel, for arguments of these shapes and elements.

        Args:
            *specs: `bc.TensorSpec`s, or arrays.
            device: Where it runs.
            **options: The function's keyword-only arguments.

        Raises:
            InvalidProblemError: It is not one kernel of its arguments as they are; `explain` says why.
        """
        return self.kernel(*specs, device=device, **options)[0]

    def kernel(self, *specs: Any, device: Any = "cpu", **options: Any) -> tuple[Plan, tuple[int, ...]]:
        """`plan`, and for each of its inputs which of the arrays it is."""
        trace, _ = self._trace(specs, options, device)
        if len(trace.steps) != 1 or trace.steps[0].descriptor is None or _views(trace):
            raise InvalidProblemError(
                f"{self.__name__}.plan: got {len(trace.steps)} kernels, or views of arguments, want one kernel of the arguments as they "
                "are. explain() says what was not fused."
            )
        leaves = [trace.values[v].args[0] for v in trace.steps[0].leaves]
        return plan(trace.steps[0].descriptor, device), tuple(index for _, index, _ in leaves)

    def explain(self, *specs: Any, device: Any = "cpu", **options: Any) -> Explained:
        """What it becomes for arguments of these shapes and elements: kernels, and what was not fused.

        Args:
            *specs: `bc.TensorSpec`s, or arrays.
            device: Where it would run.
            **options: The function's keyword-only arguments.
        """
        trace, _ = self._trace(specs, options, device)
        kernels = tuple(s.descriptor for s in trace.steps if s.descriptor is not None)
        return Explained(kernels, tuple(trace.notes), trace.shared)

    def source(
        self, *specs: Any, device: Any = "cpu", dialect: str | None = None, whole: bool = False, **options: Any
    ) -> str:
        """What its kernels are made from: programs for a cpu, C++ for CUDA and for Metal; or the same as C.

        What is made for CUDA and Metal is compiled when a plan is selected. C is for other programs: functions of pointers to
        C-contiguous arrays, inputs first, with the sizes of `specs` and the functions of C's own library.

        Args:
            *specs: `bc.TensorSpec`s, or arrays.
            device: It need not be there.
            dialect: "program", "c", "cuda" or "metal", in the place of a device.
            whole: Also what every text for a GPU begins with, the functions themselves: all that its compiler is given.
            **options: The function's keyword-only arguments.

        Returns:
            A text for each kernel, one after the other.

        Raises:
            InvalidProblemError: `dialect` is none of these.
            UnsupportedError: The dialect is C, which has no text of a function (digamma, say), or sizes are Dims.
        """
        trace, _ = self._trace(specs, options, "cpu")
        made, written = [s.descriptor for s in trace.steps if s.descriptor is not None], dialect_of(dialect, device)
        names = [self.__name__ + f"_{k}" * (len(made) > 1) for k in range(len(made))]
        return "\n".join(text_of(d, written, whole, n) for d, n in zip(made, names, strict=True))


def _spec(x: Any) -> Any:
    shape, code, *_ = _core.describe(x)
    return TensorSpec(tuple(shape), Element(code))


def _views(trace: Trace) -> bool:
    return any(v.args[1] for v in trace.values if v.function == "leaf")


def _rule(fn: Callable[..., Any], name: str) -> tuple[Any, inspect.Signature, dict[str, int]]:
    """The rule that a fused function's calls of a new kind are answered by, its signature and kinds of parameters."""
    own = inspect.signature(fn).parameters.values()
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in own):
        raise InvalidProblemError(f"fuse: {name}: got *args or **kwargs, want parameters with names.")
    arrays = [p.name for p in own if p.kind is not p.KEYWORD_ONLY]

    def rule(call: Call, *, out: Arg | None = None, **passed: Any) -> Recipe:
        trace = Trace(call.first().place)
        args: dict[str, Any] = {}
        given: list[Arg] = []
        for a in arrays:
            x = passed[a]
            if x is not None and not (isinstance(x, Arg) and x.is_tensor):
                raise InvalidProblemError(
                    f"{a}: got a number, want an array. Numbers are keyword-only parameters of a fused function, or 0-d arrays."
                )
            args[a] = None if x is None else trace.argument(len(given), x.shape, x.element)
            given += [] if x is None else [x]
        options = {n: x for n, x in passed.items() if n not in arrays}
        found, several = _traced(fn, trace, args, options)
        return _recipe(call, trace, found, several, given)

    parameter = inspect.Parameter
    shown = [p.replace(annotation="Arg" if p.default is p.empty and p.name in arrays else p.empty) for p in own]
    shown.append(parameter("out", parameter.KEYWORD_ONLY, default=None))
    first = parameter("call", parameter.POSITIONAL_OR_KEYWORD, annotation="Call")
    rule.__name__, rule.__doc__ = name, inspect.getdoc(fn)
    rule.__signature__ = inspect.Signature([first, *shown])  # type: ignore[attr-defined]
    public = inspect.Signature([p.replace(annotation=parameter.empty) for p in shown])
    return rule, public, dict.fromkeys(arrays, TENSOR) | {"out": OUT}


def _recipe(call: Call, trace: Trace, found: list[Traced], several: bool, given: list[Arg]) -> Recipe:
    """One plan where there is one kernel, of arguments as they are or permuted; else a program."""
    leaves = [trace.values[v] for step in trace.steps for v in step.leaves]
    simple = all(kind == "permute" for leaf in leaves for kind, _ in leaf.args[1])
    desc = trace.steps[0].descriptor
    order = [trace.values[x.value].args[0] for x in found]
    if len(trace.steps) == 1 and desc is not None and simple and len(set(order)) == len(order) == len(desc.results):
        inputs = {}
        for k, leaf in enumerate(leaves):
            (_, index, _), views = leaf.args
            x = given[index]
            for _, axes in views:
                dims = x.dims or tuple(range(x.rank))
                x = x._view(
                    tuple(-1 if a < 0 else dims[a] for a in axes), tuple(1 if a < 0 else x.shape[a] for a in axes)
                )
            inputs[f"x{k}"] = x
        return call(desc, returns=tuple(f"y{k}" for _, _, k in order), **inputs)

    def steps(c: Any, *values: Any) -> Any:
        made: list[tuple[Any, ...]] = []
        for step in trace.steps:
            read = [_read(c, trace.values[v].args, values, made) for v in step.leaves]
            results = step.made(c, *read)
            made.append(tuple(results) if isinstance(results, (tuple, list)) else (results,))
        results = [made[s][k] for _, s, k in order]
        return tuple(results) if several else results[0]

    return call.steps(steps, *given)


def _read(c: Any, leaf: tuple[Any, tuple[View, ...]], arguments: tuple[Any, ...], made: list[tuple[Any, ...]]) -> Any:
    """The view of an argument, or of a step's result, that a leaf is."""
    (kind, i, k), views = leaf
    x = arguments[i] if kind == "argument" else made[i][k]
    for how, what in views:
        x = x.permute(what) if how == "permute" else x[what] if how == "index" else c.reshape(x, what)
    return x


def fuse(fn: Callable[..., Any]) -> Expr:
    """A function of arrays as one kernel, by functions of bc.functional and operators.

    The result is, bit for bit, what the functions give one after the other in the compute type: halves are f32 in between
    and rounded once, when they are stored. What is not a function of single elements is a call of its own between
    kernels; `explain` says so.

    Args:
        fn: A function of arrays. Positional parameters are arrays; keyword-only ones are numbers and options, of which
            each value makes a kernel of its own. It is run with stand-ins, once for each kind of arguments.

    Returns:
        A function of the same arguments, and `out=`.

    Raises:
        InvalidProblemError: When it is called: the function looks at numbers of arrays, or needs more inputs, outputs or
            functions than a kernel has.

    Example:
        >>> gate = bc.expr.fuse(lambda x, w: F.sigmoid(x) * w + 1)
        >>> y = gate(x, w)
    """
    return Expr(fn, getattr(fn, "__name__", "expression").replace("<lambda>", "expression"))
