"""Functions inside of functions: steps of a rule that another function's rule finds, and gradients pulled back through them.

A rule that makes its steps with `c.of(F.mul, a, b)` and views alone can run in two ways: as a program's steps, and by a
Recorder, which runs them one after the other on a tape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from baracuda.call.compose import Composed, Composer, Number, Shape, Value, composed
from baracuda.call.gradients import Root
from baracuda.call.handed import Handed, as_like, handed
from baracuda.call.op import LIST, OUT, REST, SCALAR, TENSOR, Arg, Call, Function, ListArg
from baracuda.call.tape import Tape, Tracked, stop_gradient
from baracuda.describe.elements import Element

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
        as_lies: Arg | None = None,
        **given: Any,
    ) -> Any:
        """One step."""
        passed = {name: self.seen(value) for name, value in given.items()}
        made: dict[str, Value] = {}
        for p in desc.signature().outputs:
            if p.name not in passed:
                shape, dims = (views or {}).get(p.name, (tuple(int(n) for n in p.shape), None))
                strides = self.composer.ordered(desc, shape, passed, self.seen(as_lies)) if dims is None else None
                made[p.name] = self.composer.new(shape, p.element, strides)
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


@composed(tensors="dy")
def placed(c: Composer, dy: Value, shape: Any, offset: int, strides: Any) -> Value:
    """Zeros of a shape with dy in some of the places: the gradient of a view."""
    from baracuda.ops.layout.layout import CopyDescriptor

    made = c.zeros(tuple(shape), dy.element)
    if 0 not in dy.shape:
        seen = replace(made, shape=dy.shape, strides=tuple(strides), offset=offset)
        c(CopyDescriptor(dy.shape, dy.element), x=dy, y=seen)
    return made


class Recorder:
    """Given to a composition's rule instead of a Composer: its steps run one after the other, recorded on a tape."""

    def __init__(self, tape: Tape, device: str) -> None:
        self.tape = tape
        self.device = device

    def of(self, fn: Any, *args: Any, **options: Any) -> Any:
        """Calls a function; one without a gradient makes constants, and what it has no gradient of is one to it."""
        if fn.vjp_rule is None:
            args, options = stop_gradient(args), stop_gradient(options)
        elif fn.constants:
            bound = fn.__signature__.bind(*args, **options)
            for name in fn.constants & bound.arguments.keys():
                bound.arguments[name] = stop_gradient(bound.arguments[name])
            args, options = bound.args, bound.kwargs
        return self._seen(fn(*args, **options))

    def _seen(self, y: Any) -> Any:
        """Results with the views that a Value has: what no gradient flows through as constants of the tape."""
        if isinstance(y, (list, tuple)):
            parts = [self._seen(x) for x in y]
            return type(y)(*parts) if hasattr(y, "_fields") else type(y)(parts)
        return y if isinstance(y, Tracked) else self.tape.leaf(y, constant=True)

    def reshape(self, x: Tracked, shape: Shape) -> Tracked:
        """As Composer.reshape."""
        return x.reshape(shape)

    def zeros(self, shape: Shape, element: Element) -> Tracked:
        """As Composer.zeros."""
        from baracuda.ops.layout.layout import zeros

        return self.tape.leaf(zeros(shape, dtype=element, device=self.device), constant=True)

    def eye(self, n: int, element: Element) -> Tracked:
        """As Composer.eye."""
        from baracuda.ops.layout.layout import eye

        return self.tape.leaf(eye(n, dtype=element, device=self.device), constant=True)

    def copy(self, x: Tracked) -> Tracked:
        """As Composer.copy; functions read any layout."""
        return x

    def cast(self, x: Tracked, element: Element) -> Tracked:
        """As Composer.cast."""
        from baracuda.ops.cast.cast import cast

        made: Tracked = x if x.element is element else self.of(cast, x, element)
        return made

    def wide(self, x: Tracked) -> Tracked:
        """As Composer.wide."""
        return self.cast(x, Element.F32) if x.element.is_half else x


def pulled_through(fn: Composed) -> Composed:
    """Gives a function whose rule makes its steps with `c.of` and views the gradient that these have."""
    kinds = {name: kind for name, kind, *_ in fn.miss.params}

    def rule(*args: Any, **kwargs: Any) -> tuple[Any, Callable[..., Any]]:
        spelled = fn.miss.spelling(args) if fn.miss.spelling is not None else args
        bound = fn.__signature__.bind(*spelled, **kwargs)
        bound.apply_defaults()
        tape, leaves, likes = Tape(), [], []
        tape.where = fn.__name__

        def leaf(value: Any) -> Tracked:
            made = tape.leaf(value)
            made.root.constant = not made.element.is_float
            leaves.append(made)
            likes.append(value)
            return made

        for name, value in bound.arguments.items():
            if kinds[name] == TENSOR and value is not None:
                bound.arguments[name] = leaf(value)
            elif kinds[name] == REST:
                listed = value[0] if len(value) == 1 and isinstance(value[0], (list, tuple)) else value
                bound.arguments[name] = tuple(map(leaf, listed))
        with tape.on():
            found = fn.miss.rule(Recorder(tape, leaves[0].device), *bound.args, **bound.kwargs)
        several = isinstance(found, (list, tuple))
        outs: list[Tracked] = list(found) if several else [found]

        def pull(dy: Any) -> Any:
            dys = dy if isinstance(dy, (list, tuple)) else (dy,)
            gradients = tape.gradients([(x, d) for x, d in zip(outs, dys, strict=True) if not x.root.constant])
            memory = Handed(dys)
            wanted = [(x, like) for x, like in zip(leaves, likes, strict=True) if not x.root.constant]
            made = tuple(memory.gradient(gradients, x, like) for x, like in wanted)
            return made[0] if len(made) == 1 else made

        y = _results(outs, {x.root for x in leaves}, likes[0])
        return (tuple(y) if several else y[0]), pull

    fn.vjp_rule = rule
    return fn


def _results(outs: Sequence[Tracked], taken: set[Root], like: Any) -> list[Any]:
    """Results for the caller, each in memory of its own: views, arguments and what is handed out twice are copied."""
    found = []
    for x in outs:
        alone = x.root not in taken and x.place.is_whole(x.root)
        taken.add(x.root)
        found.append(handed(x.value, like) if alone else as_like(x.value, like))
    return found
