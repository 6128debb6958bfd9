"""Functions inside of functions: steps of a rule that another function's rule finds, and gradients pulled back through them.

A rule that makes its steps with `c.of(F.mul, a, b)` and views alone can run in two ways: as a program's steps, and on a
Tape, which runs them one after the other and keeps how each is pulled back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from baracuda import _core
from baracuda.call.compose import Composed, Composer, Number, Shape, Value, composed
from baracuda.call.op import LIST, OUT, REST, SCALAR, TENSOR, Arg, Call, Function, ListArg, run_new
from baracuda.choose.plan import plan
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.memory import views
from baracuda.memory.device import name_of
from baracuda.memory.results import is_torch

if TYPE_CHECKING:
    from baracuda.describe.spec import Descriptor


class Inlined(Call):
    """Given to a function's rule instead of a Call: its plans become steps."""

    def __init__(self, composer: Composer, args: tuple[Arg | None, ...], values: list[Value]) -> None:
        super().__init__(args, None)
        self.composer = composer
        self.values = values

    def seen(self, given: Any) -> Any:
        """What a step is given for an argument of the rule."""
        if isinstance(given, ListArg):
            return [self.seen(x) for x in given.items]
        if not isinstance(given, Arg):
            return given
        if not given.is_tensor:
            return given.value
        x = self.values[given.index]
        x = x if given.dims is None else x.permute(given.dims)
        if not given.fitted:
            return x
        strides = (0 if n == 1 != m else s for n, m, s in zip(x.shape, given.shape, x.strides, strict=True))
        return replace(x, shape=given.shape, strides=tuple(strides))

    def steps(self, rule: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """The steps of several kernels."""
        return rule(self.composer, *map(self.seen, arguments), **options)

    def __call__(
        self,
        desc: Descriptor,
        *,
        returns: tuple[str, ...] | None = None,
        views: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] | None = None,
        **given: Any,
    ) -> Any:
        """One step."""
        passed = {name: self.seen(value) for name, value in given.items()}
        made: dict[str, Value] = {}
        for p in desc.signature().outputs:
            if p.name not in passed:
                shape, dims = (views or {}).get(p.name, (tuple(int(n) for n in p.shape), None))
                made[p.name] = self.composer.new(shape, p.element)
                passed[p.name] = made[p.name] if dims is None else made[p.name].permute(dims)
        self.composer(desc, **passed)
        found = tuple(made[n] for n in returns or made)
        return found[0] if len(found) == 1 else found


def inlined(c: Composer, fn: Function, *args: Any, **options: Any) -> Any:
    """The results of another function's rule, of Values and numbers, as further steps."""
    bound = fn.__signature__.bind(*args, **options)
    bound.apply_defaults()
    if isinstance(fn, Composed):
        return fn.miss.rule(c, *bound.args, **bound.kwargs)
    values: list[Value] = []

    def arg(index: int, name: str, given: Any) -> Any:
        if isinstance(given, Value):
            values.append(given)
            return Arg(len(values) - 1, name, None, given.shape, given.element, place=c.place)
        if isinstance(given, Number):
            return Arg(index, name, given, (), Element.F32, is_tensor=False)
        if isinstance(given, (int, float)):
            element = Element.BOOL if given is True or given is False else Element.I64
            return Arg(index, name, given, (), element if isinstance(given, int) else Element.F32, is_tensor=False)
        return given

    tensors: list[Any] = []
    passed: dict[str, Any] = {}
    for i, (name, kind, *_) in enumerate(fn.miss.params):
        given = bound.arguments[name]
        if kind == LIST:
            items = tuple(arg(i, name, x) for x in given)
            passed[name], tensors = ListArg(i, name, items), [*tensors, *items]
        elif kind != OUT:
            passed[name] = arg(i, name, given) if kind in (TENSOR, SCALAR) else given
            tensors += [passed[name]] if kind == TENSOR else []
    return fn.miss.rule(Inlined(c, tuple(tensors), values), **passed)


class Tracked:
    """A tensor on a tape: has the views that a Value has."""

    def __init__(self, tape: Tape, value: Any, wanted: bool) -> None:
        self.tape = tape
        self.value = value  # a bc.Tensor, or a tensor of torch's, whose stream its kernels then follow
        self.wanted = wanted  # whether it depends on a tensor whose gradient is asked for

    @property
    def shape(self) -> Shape:
        """Its sizes."""
        return tuple(self.value.shape)

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def element(self) -> Element:
        """Its element."""
        return _element_of(self.value)

    def _view(self, value: Any, pull: Callable[[Any], Any]) -> Tracked:
        made = Tracked(self.tape, value, self.wanted)
        if self.wanted:
            self.tape.steps.append(((made,), (self,), pull))
        return made

    def permute(self, axes: Sequence[int]) -> Tracked:
        """As Value.permute, of all dimensions."""
        back = [0] * len(axes)
        for i, a in enumerate(axes):
            back[a] = i
        return self._view(self.value.permute(tuple(axes)), lambda dy: dy.permute(tuple(back)))

    def expand(self, shape: Shape) -> Tracked:
        """As Value.expand."""
        from baracuda.ops.reduce.reduce import sum_to

        own = self.shape
        return self._view(self.value.broadcast_to(shape), lambda dy: sum_to(dy, own))

    def reshape(self, shape: Shape) -> Tracked:
        """As Value.reshape, copied where it must be."""
        from baracuda.ops.layout.layout import copy

        own = self.shape
        try:
            value = self.value.reshape(shape)
        except InvalidProblemError:  # of strides that no view of this shape has
            value = copy(self.value).reshape(shape)
        return self._view(value, lambda dy: copy(dy).reshape(own))

    def __getitem__(self, key: Any) -> Tracked:
        own = self.shape
        offset, _, strides = _core.index_layout(own, views.contiguous_strides(own), key)
        return self._view(self.value[key], lambda dy: placed(dy, own, offset, strides))


@composed(tensors="dy")
def placed(c: Composer, dy: Value, shape: Any, offset: int, strides: Any) -> Value:
    """Zeros of a shape with dy in some of the places: the gradient of a view."""
    from baracuda.ops.layout.layout import CopyDescriptor

    made = c.zeros(tuple(shape), dy.element)
    if 0 not in dy.shape:
        seen = replace(made, shape=dy.shape, strides=tuple(strides), offset=offset)
        c(CopyDescriptor(dy.shape, dy.element), x=dy, y=seen)
    return made


class Tape:
    """Runs a rule's steps one after the other, and keeps how each is pulled back."""

    def __init__(self) -> None:
        self.device = "cpu"
        self.steps: list[tuple[tuple[Tracked, ...], tuple[Tracked, ...], Callable[[Any], Any]]] = []

    def leaf(self, value: Any) -> Tracked:
        """An argument."""
        _, code, _, *place = _core.describe(value)
        self.device = name_of((place[0], place[1]))
        return Tracked(self, value if is_torch(value) else _core.borrow(value), Element(code).is_float)

    def of(self, fn: Any, *args: Any, **options: Any) -> Any:
        """Calls a function."""
        tracked = [x for a in args for x in (a if isinstance(a, (list, tuple)) else (a,)) if isinstance(x, Tracked)]
        tracked += [x for x in options.values() if isinstance(x, Tracked)]
        given = [_value(a) for a in args]
        named = {name: _value(a) for name, a in options.items()}
        if fn.vjp_rule is None or not any(x.wanted for x in tracked):
            return self._made(fn(*given, **named), False)
        y, pull = fn.vjp_rule(*given, **named)
        made = self._made(y, True)
        outs = tuple(made) if isinstance(made, (list, tuple)) else (made,)
        self.steps.append((outs, tuple(tracked), pull))
        return made

    def _made(self, y: Any, wanted: bool) -> Any:
        if isinstance(y, (list, tuple)):
            return type(y)(self._made(x, wanted) for x in y)
        return Tracked(self, y, wanted and _element_of(y).is_float)

    def reshape(self, x: Tracked, shape: Shape) -> Tracked:
        """As Composer.reshape."""
        return x.reshape(shape)

    def zeros(self, shape: Shape, element: Element) -> Tracked:
        """As Composer.zeros."""
        from baracuda.ops.layout.layout import zeros

        return Tracked(self, zeros(shape, dtype=element, device=self.device), False)

    def eye(self, n: int, element: Element) -> Tracked:
        """As Composer.eye."""
        from baracuda.ops.layout.layout import eye

        return Tracked(self, eye(n, dtype=element, device=self.device), False)

    def copy(self, x: Tracked) -> Tracked:
        """As Composer.copy."""
        return x

    def cast(self, x: Tracked, element: Element) -> Tracked:
        """As Composer.cast."""
        from baracuda.ops.cast.cast import cast

        made: Tracked = x if x.element is element else self.of(cast, x, element)
        return made

    def wide(self, x: Tracked) -> Tracked:
        """As Composer.wide."""
        return self.cast(x, Element.F32) if x.element.is_half else x

    def gradients(self, found: Sequence[Tracked], dys: Sequence[Any], leaves: Sequence[Tracked]) -> list[Any]:
        """Gradients of leaves from those of results; None where none reaches one."""
        from baracuda.ops.binary.binary import _sum_to
        from baracuda.ops.layout.layout import zeros_like

        known: dict[int, Any] = {}

        def reached(x: Tracked, gradient: Any) -> None:
            before = known.get(id(x))
            known[id(x)] = gradient if before is None else _add()(before, gradient)

        for x, dy in zip(found, dys, strict=True):
            reached(x, dy if is_torch(dy) else _core.borrow(dy))
        for outs, tracked, pull in reversed(self.steps):
            if not any(id(x) in known for x in outs):
                continue
            floats = [x for x in outs if x.wanted]
            given = tuple(known[id(x)] if id(x) in known else zeros_like(x.value) for x in floats)
            gradients = pull(given[0] if len(given) == 1 else given)
            gradients = gradients if isinstance(gradients, (list, tuple)) else (gradients,)
            takers = [x for x in tracked if x.element.is_float]
            takers = takers if len(takers) >= len(gradients) else list(tracked)
            for x, gradient in zip(takers, gradients, strict=False):  # the last ones may be constants, as targets are
                if x.wanted:
                    reached(x, _sum_to(gradient, x.value))
        return [known.get(id(x)) for x in leaves]


def _element_of(x: Any) -> Element:
    return Element(_core.describe(x)[1])


def _add() -> Any:
    from baracuda import functional as F

    return F.add


def _value(given: Any) -> Any:
    if isinstance(given, (list, tuple)):
        return type(given)(map(_value, given))
    return given.value if isinstance(given, Tracked) else given


def as_like(x: Any, like: Any) -> Any:
    """A tensor in new memory, of the kind of another one."""
    from baracuda.ops.layout.layout import CopyDescriptor, copy

    if is_torch(x) and is_torch(like):
        return copy(x)
    _, code, _, *place = _core.describe(x)
    made = plan(CopyDescriptor(tuple(x.shape), Element(code)), name_of((place[0], place[1])))
    return run_new(made, like, x=x)


def _finished(gradient: Any, leaf: Tracked, like: Any) -> Any:
    from baracuda.ops.layout.layout import zeros_like

    return zeros_like(like) if gradient is None else as_like(gradient, like)


def pulled_through(fn: Composed) -> Composed:
    """Gives a function whose rule makes its steps with `c.of` and views the gradient that these have."""
    kinds = {name: kind for name, kind, *_ in fn.miss.params}

    def rule(*args: Any, **kwargs: Any) -> tuple[Any, Callable[..., Any]]:
        tape, leaves, likes = Tape(), [], []
        spelled = fn.miss.spelling(args) if fn.miss.spelling is not None else args
        bound = fn.__signature__.bind(*spelled, **kwargs)
        bound.apply_defaults()

        def leaf(value: Any) -> Tracked:
            leaves.append(tape.leaf(value))
            likes.append(value)
            return leaves[-1]

        for name, value in bound.arguments.items():
            if kinds[name] == TENSOR and value is not None:
                bound.arguments[name] = leaf(value)
            elif kinds[name] == REST:
                listed = value[0] if len(value) == 1 and isinstance(value[0], (list, tuple)) else value
                bound.arguments[name] = tuple(map(leaf, listed))
        found = fn.miss.rule(tape, *bound.args, **bound.kwargs)
        several = isinstance(found, (list, tuple))
        outs = list(found) if several else [found]

        def pull(dy: Any) -> Any:
            gradients = tape.gradients(outs, dy if isinstance(dy, (list, tuple)) else (dy,), leaves)
            made = tuple(_finished(g, x, k) for g, x, k in zip(gradients, leaves, likes, strict=True) if x.wanted)
            return made[0] if len(made) == 1 else made

        y = [as_like(x.value, likes[0]) for x in outs]
        return (tuple(y) if several else y[0]), pull

    fn.vjp_rule = rule
    return fn
