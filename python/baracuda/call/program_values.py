"""What a program that is being built is made of: tensors and views of them, numbers, and draws of random numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError, shown
from baracuda.describe.sizes import AnySize, SizeExpr, contiguous_strides, product, simple
from baracuda.memory.views import is_contiguous

if TYPE_CHECKING:
    from collections.abc import Iterable

    from baracuda.call.program import ProgramBuilder
    from baracuda.describe.spec import Descriptor


class Value:
    """A tensor of a program that is being built, or a view of one: a slot, an offset, sizes and strides.

    Views are made as NumPy makes them, without a step of the program: `x[:, 2:4]`, `x.reshape(...)`, `x.transpose(...)`.
    """

    __slots__ = ("_builder", "element", "index", "offset", "shape", "strides")

    def __init__(
        self, builder: ProgramBuilder, index: int, element: Element, shape: Iterable[AnySize],
        strides: Iterable[AnySize] | None = None, offset: AnySize = 0,
    ) -> None:  # fmt: skip
        self._builder, self.index, self.element = builder, index, element
        self.shape = tuple(simple(s) for s in shape)
        self.strides = tuple(SizeExpr.of(s) for s in (contiguous_strides(self.shape) if strides is None else strides))
        self.offset = SizeExpr.of(offset)

    @property
    def contiguous(self) -> bool:
        """Whether it is laid out as a fresh tensor of its shape would be."""
        steps = [s.fixed for s in self.strides]
        if None not in steps and all(isinstance(s, int) for s in self.shape):  # most are
            return is_contiguous(self.shape, steps)  # type: ignore[arg-type]
        fresh = contiguous_strides(self.shape)
        return all(a == b or s == 1 for a, b, s in zip(self.strides, fresh, self.shape, strict=True))

    def _view(self, shape: Iterable[AnySize], strides: Iterable[AnySize], offset: AnySize | None = None) -> Value:
        start = self.offset if offset is None else offset
        return Value(self._builder, self.index, self.element, shape, strides, start)

    def reshape(self, *shape: Any) -> Value:
        """The same elements in other sizes; of a view that is not contiguous only splits of single dimensions are views."""
        sizes = list(shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape)
        if self.contiguous:
            if product(sizes) != product(self.shape):
                raise InvalidProblemError(f"reshape: got {tuple(sizes)}, want as many elements as {self.shape} has.")
            return self._view(sizes, contiguous_strides(sizes))
        strides: list[AnySize] = []
        rest = list(sizes)
        for size, step in zip(self.shape, self.strides, strict=True):
            part: list[AnySize] = []
            while rest and product(part) != size:
                part.append(rest.pop(0))
            if product(part) != size:
                raise InvalidProblemError(
                    f"reshape: got {tuple(sizes)} for a strided view {self.shape}, want each dimension whole or split."
                )
            strides += [s * step for s in contiguous_strides(part)]
        if any(s != 1 for s in rest):
            raise InvalidProblemError(f"reshape: got {tuple(sizes)}, want as many elements as {self.shape} has.")
        return self._view(sizes, [*strides, *[1] * len(rest)])

    def transpose(self, *axes: int) -> Value:
        """Dimensions in another order; none given: reversed."""
        rank = len(self.shape)
        order = axes or tuple(reversed(range(rank)))
        if sorted(a + rank * (a < 0) for a in order) != list(range(rank)):
            raise InvalidProblemError(f"transpose: got {axes}, want each of {rank} axes once.")
        return self._view([self.shape[a] for a in order], [self.strides[a] for a in order])

    def as_strided(
        self, shape: Iterable[AnySize], strides: Iterable[AnySize], offset: AnySize = 0, element: Any = None
    ) -> Value:
        """Any view of the memory: sizes, strides and an offset in elements, which may be the parts of complex ones."""
        kind = self.element if element is None else Element.coerce(element, "element")
        return Value(self._builder, self.index, kind, shape, strides, offset)

    def __getitem__(self, index: Any) -> Value:
        parts = index if isinstance(index, tuple) else (index,)
        if sum(p is not Ellipsis and p is not None for p in parts) > len(self.shape):
            raise InvalidProblemError(f"index: got {parts}, want at most {len(self.shape)} entries.")
        if Ellipsis in parts:
            at = parts.index(Ellipsis)
            lacking = len(self.shape) - (len(parts) - 1 - sum(p is None for p in parts))
            parts = (*parts[:at], *[slice(None)] * lacking, *parts[at + 1 :])
        shape: list[AnySize] = []
        strides: list[AnySize] = []
        offset, axis = self.offset, 0
        for part in parts:
            if part is None:
                shape.append(1)
                strides.append(0)
                continue
            size, step = self.shape[axis], self.strides[axis]
            axis += 1
            if isinstance(part, slice):
                start, length = _span(part, size)
                shape.append(length)
                strides.append(step)
            else:
                start = _from_start(part, size)
            offset = offset + step * start
        return self._view([*shape, *self.shape[axis:]], [*strides, *self.strides[axis:]], offset)

    def json(self) -> dict[str, Any]:
        """As the engine reads it."""
        out: dict[str, Any] = {"value": self.index, "shape": [SizeExpr.of(s).json() for s in self.shape]}
        if str(self.element) != self._builder.element_of(self.index):
            out["element"] = str(self.element)
        if self.offset != 0:
            out["offset"] = self.offset.json()
        if not self.contiguous:
            out["strides"] = [s.json() for s in self.strides]
        return out

    def __repr__(self) -> str:
        return f"<{self._builder.name_of(self.index)}: {self.element}{list(self.shape)}>"


def _from_start(at: Any, size: AnySize) -> AnySize:
    """An index counted from the start; one below 0 counts from the end."""
    if isinstance(at, int) and at < 0:
        return SizeExpr.of(size) + at
    if isinstance(at, int) and isinstance(size, int) and at > size:
        raise InvalidProblemError(f"index: got {at}, want at most {size}.")
    return at  # type: ignore[no-any-return]


def _span(part: slice, size: AnySize) -> tuple[AnySize, AnySize]:
    """Start and length of a slice."""
    if part.step not in (None, 1):
        raise InvalidProblemError(f"index: got a step of {shown(part.step)}, want 1.")
    start = 0 if part.start is None else _from_start(part.start, size)
    stop = size if part.stop is None else _from_start(part.stop, size)
    return start, simple(SizeExpr.of(stop) - start)


class Number:
    """A scalar of a program that is being built; `seed + n` adds a size to one of whole numbers."""

    __slots__ = ("added", "index")

    def __init__(self, index: int, added: AnySize = 0) -> None:
        self.index, self.added = index, SizeExpr.of(added)

    def __add__(self, size: AnySize) -> Number:
        return Number(self.index, self.added + size)

    def json(self) -> dict[str, Any]:
        """As the engine reads it."""
        return {"scalar": self.index} | ({"size": self.added.json()} if self.added != 0 else {})


class RandomState:
    """The random state of a program that is being built: what draws from it takes blocks in the order of the steps."""

    __slots__ = ("_draws", "seed")

    def __init__(self, seed: Number, draws: list[SizeExpr]) -> None:
        self.seed, self._draws = seed, draws

    def draw(self, desc: Descriptor) -> tuple[Number, Draw]:
        """Seed and offset for a step of this descriptor, or for several that shall draw the same (a gradient's mask)."""
        blocks = getattr(desc, "blocks", None)
        if blocks is None:
            raise InvalidProblemError(f"generator: got one for {type(desc).__name__}, want a descriptor that draws.")
        return self.seed, self.reserve(blocks())

    def reserve(self, blocks: AnySize) -> Draw:
        """The offset of the next draw, which takes so many blocks of the generator."""
        self._draws.append(SizeExpr.of(blocks))
        return Draw(len(self._draws) - 1)


class Draw:
    """Where the random numbers of a step start."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index
