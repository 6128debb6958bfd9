"""Stand-ins for arrays while a function is traced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from baracuda import _core
from baracuda.call.operators import with_operators
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.promotion import broadcast

if TYPE_CHECKING:
    from baracuda.expr.trace import Shape, Trace, View

REDUCTIONS = ("sum", "mean", "amax", "amin", "prod")  # over the last axes


@with_operators
class Traced:
    """A stand-in for an array: has a shape and an element, and no data."""

    __slots__ = ("shape", "trace", "value")
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, trace: Trace, value: int, shape: Shape) -> None:
        self.trace = trace
        self.value = value
        self.shape = shape

    @staticmethod
    def __baracuda_function__(fn: Any, given: tuple[Any, ...]) -> Any:
        """Called by a function that meets a stand-in among its arguments."""
        flat = [y for x in given for y in (x if isinstance(x, (list, tuple)) else (x,))]
        return next(x for x in flat if isinstance(x, Traced)).trace.call(fn, given)

    @property
    def element(self) -> Element:
        """Of its numbers."""
        return self.trace.values[self.value].result

    @property
    def dtype(self) -> Element:
        """The same."""
        return self.element

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    ndim = rank

    @property
    def T(self) -> Traced:
        """With its dimensions in reverse order."""
        return self.permute(tuple(reversed(range(self.rank))))

    @property
    def mT(self) -> Traced:
        """With its last two dimensions exchanged."""
        return self.transpose(-1, -2)

    def transpose(self, *axes: int) -> Traced:
        """Two axes exchanged, as in torch; all of them in this order; none: in reverse order."""
        order = list(range(self.rank))
        if len(axes) != 2:
            return self.permute(axes or tuple(reversed(order)))
        a, b = (self._axis(x) for x in axes)
        order[a], order[b] = order[b], order[a]
        return self.permute(tuple(order))

    def permute(self, *axes: Any) -> Traced:
        """Its dimensions in this order; -1 is not counted from the end where it stands for a new one (internal)."""
        order = tuple(axes[0]) if len(axes) == 1 and isinstance(axes[0], (list, tuple)) else tuple(axes)
        if order == tuple(range(self.rank)):
            return self
        seen = self.trace.whole(self)
        shape = tuple(1 if a < 0 else self.shape[a] for a in order)
        made = Traced(self.trace, _permuted(self.trace, seen.value, self.rank, order, {}), shape)
        if self.trace.tape is None:
            return made
        back = tuple(order.index(a) for a in range(self.rank))
        return self.trace.tape.view(made, self, lambda dy: dy.permute(back))

    def unsqueeze(self, axis: int) -> Traced:
        """With a dimension of size 1 inserted before an axis."""
        if not -self.rank - 1 <= axis <= self.rank:
            raise InvalidProblemError(f"unsqueeze: got axis {axis}, want one of {self.rank + 1} places.")
        order = list(range(self.rank))
        order.insert(axis % (self.rank + 1), -1)
        return self.permute(tuple(order))

    def expand(self, *shape: Any) -> Traced:
        """Broadcast to a shape."""
        wanted = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else tuple(shape)
        if broadcast(self.shape, wanted, "expand") != wanted:
            raise InvalidProblemError(f"expand: got shape {wanted}, want one that {self.shape} broadcasts to.")
        made = Traced(self.trace, self.value, wanted)
        return made if self.trace.tape is None else self.trace.tape.view(made, self, lambda dy: dy)

    broadcast_to = expand

    def reshape(self, *shape: Any) -> Traced:
        """In another shape: what is computed so far is stored."""
        wanted = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else tuple(shape)
        if wanted == self.shape:
            return self
        return self._viewed(("reshape", wanted))

    def __getitem__(self, key: Any) -> Traced:
        if _core.key_copies(key):
            raise InvalidProblemError(
                "index: got an array, a list or a mask in a fused expression, want ints and slices. Index outside of it."
            )
        return self._viewed(("index", key))

    def _viewed(self, view: View) -> Traced:
        """A view of what lies in memory."""
        trace = self.trace
        if trace.tape is not None and not trace.tape.inside:
            raise InvalidProblemError(
                f"grad: {view[0]}: got a view that is not pulled back, want it made before the call."
            )
        why = f"{view[0]}: a value is stored before it is seen in another way"
        (x,) = (
            trace.stored([self], why) if self.shape == trace.values[self.value].shape else trace.stored([self.copied()])
        )
        leaf = trace.values[x.value]
        source, views = leaf.args
        probe: Any = _probe(x.shape, leaf.element)
        seen = probe[view[1]] if view[0] == "index" else probe.reshape(view[1])
        return trace.leaf(source, (*views, view), tuple(seen.shape), leaf.element)

    def copied(self) -> Traced:
        """Broadcast in memory."""
        value = self.trace.whole(self).value
        self.trace.store((value,), self.shape)
        return self.trace.seen(value, self.shape)

    def _axis(self, axis: int) -> int:
        if not -self.rank <= axis < self.rank:
            raise InvalidProblemError(f"transpose: got axis {axis}, want one of {self.rank} dimensions.")
        return axis % self.rank

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d array")
        return self.shape[0]

    def __bool__(self) -> bool:
        raise InvalidProblemError(
            "fuse: got the truth of an array, whose numbers are not known while a function is traced. Use F.where()."
        )

    def __repr__(self) -> str:
        return f"<traced {self.element} of shape {self.shape}>"


def _probe(shape: Shape, element: Element) -> Any:
    """A tensor without memory, for what views make of shapes."""
    from baracuda.memory.tensor import unbacked
    from baracuda.memory.views import contiguous_strides

    return unbacked(shape, element, contiguous_strides(shape), "cpu")


def _permuted(trace: Trace, value: int, rank: int, order: tuple[int, ...], known: dict[int, int]) -> int:
    """A value of a permuted array: the same function of permuted operands."""
    if value in known:
        return known[value]
    v = trace.values[value]
    lead = rank - len(v.shape)
    if v.function == "number" or not v.shape:
        made = value
    elif v.function == "leaf":
        own = tuple(-1 if a < lead else a - lead for a in order)  # dimensions that it is broadcast along are new ones
        shape = tuple(1 if a < 0 else v.shape[a] for a in own)
        source, views = v.args
        made = trace.value("leaf", v.element, (source, (*views, ("permute", own))), v.element, shape)
    else:
        args = tuple(_permuted(trace, a, rank, order, known) for a in v.args)
        padded = (1,) * lead + v.shape
        shape = tuple(1 if a < 0 else padded[a] for a in order)
        made = trace.value(v.function, v.element, args, v.result, shape)
    known[value] = made
    return made
