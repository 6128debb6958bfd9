"""Keys of `bc.Tensor` as NumPy reads them: what `x[key]` copies, and what `x[key] = value` writes.

A key is split into a view by its ints, slices, None and `...`, and into indices of some of that view's dimensions, which
are those of `index` and `index_put_`. Keys of slices and ints alone are views, which the engine makes by itself.
"""

from __future__ import annotations

from functools import lru_cache
from operator import index as whole
from typing import Any

import numpy as np

from baracuda import _core
from baracuda import functional as F
from baracuda.choose.plan import Plan, plan
from baracuda.describe.elements import Element
from baracuda.describe.errors import IndexOutOfRangeError, InvalidProblemError, shown
from baracuda.memory.tensor import Tensor, asarray, empty, outside_arenas
from baracuda.ops.indexing.index_put import read_named, write_named
from baracuda.ops.indexing.indexing import masked_number
from baracuda.ops.layout.layout import FillDescriptor

OPS = ()

Shape = tuple[int, ...]

_COMPLEX = (Element.C64, Element.C128)
_F8 = (Element.F8E4M3, Element.F8E5M2)


def read(tensor: Any, key: Any) -> Any:
    """What a key with lists, arrays or masks names: a copy, of a bc.Tensor or of one whose gradient is taken."""
    view, indices = _split(tensor, key)
    if (named := _named(indices)) is not None:
        return read_named(view, *named)
    if len(indices) == 1 and _is_mask_of(indices[0], view):
        return F.masked_select(view, indices[0])
    return F.index(view, tuple(indices))


def write(tensor: Tensor, key: Any, value: Any) -> None:
    """Writes a number, an array or nested lists where a key says, as NumPy does: cast, broadcast, overlapping or not."""
    if tensor.read_only:
        raise InvalidProblemError("x[key] = value: x is read-only. Write to a copy of it: copy.copy(x), or F.clone(x).")
    view, indices = _split(tensor, key) if _core.key_copies(key) else (tensor[key], [])
    number = value.item() if isinstance(value, np.generic) else value
    if not indices and isinstance(number, (bool, int, float)) and view.element not in (*_COMPLEX, *_F8):
        _fill(view, masked_number(number, view.element))
        return
    given = _values(view, number)
    if (mask := _spread_mask(view, indices, given)) is not None:
        F.where(mask, given, view, out=view)
    elif indices:
        given = _without_ones(given, _rank_of(view, indices))
        if (named := _named(indices)) is None:
            F.index_put_(view, tuple(indices), given)
        else:
            write_named(view, view.shape, given, *named)
    elif not _same(view, given):
        F.copy(_broadcast(given, view.shape), out=view)


# --- the key


def _named(indices: list[Any]) -> tuple[tuple[int, ...], list[Tensor]] | None:
    """The dimensions that have indices, and these; None where there are masks, whose values say which elements they name."""
    found = [(d, i) for d, i in enumerate(indices) if i is not None]
    if any(i.element is Element.BOOL for _, i in found):
        return None
    return tuple(d for d, _ in found), [i for _, i in found]


def _is_index(part: Any) -> bool:
    return bool(_core.key_copies((part,)))


def _split(tensor: Any, key: Any) -> tuple[Any, list[Any]]:
    """The view that the basic parts of a key give, and the index tensor of each of its first dimensions, or None."""
    if not isinstance(key, tuple):
        alone = _index_of(tensor, key)
        if 0 < alone.takes <= tensor.ndim:
            return tensor, [i for i in alone.found(tensor.shape[: alone.takes]) if i is not _TAKEN]
        key = (key,)
    parts = _spread([_index_of(tensor, k) if _is_index(k) else k for k in key], tensor.ndim)
    basic: list[Any] = []
    indices: list[Any] = []
    axis = 0
    for part in parts:
        if isinstance(part, _Index):
            basic += [slice(None)] * part.takes if part.takes else [None]
            indices += part.found(tensor.shape[axis : axis + part.takes])
        else:
            basic.append(part)
            indices += [None] if part is None or isinstance(part, slice) else []
        axis += part.takes if isinstance(part, _Index) else part is not None and part is not Ellipsis
    view = tensor[tuple(basic)]
    if not _side_by_side(parts):
        # NumPy puts what the indices name in front: so are their dimensions before.
        named = [d for d, index in enumerate(indices) if index is not None]
        view = view.permute((*named, *(d for d in range(view.ndim) if d not in named)))
        indices = [indices[d] for d in named]
    while indices and indices[-1] is None:
        indices.pop()
    return view, [i for i in indices if i is not _TAKEN]


_TAKEN = object()  # a dimension of a mask of several, whose index tensor stands at the first of them


class _Index:
    """An array, list or mask of a key.

    Attributes:
        held: An i64 or i32 index tensor or a mask, on the device of the indexed tensor.
        takes: How many dimensions it is for; 0 of a single truth value, which adds one of size 0 or 1.
        array: Of a mask whose values are known without a launch these; else None.
    """

    __slots__ = ("array", "held", "takes")

    def __init__(self, held: Tensor, takes: int, array: np.ndarray[Any, Any] | None = None) -> None:
        self.held, self.takes, self.array = held, takes, array

    def found(self, shape: Shape) -> list[Any]:
        """The index tensor of each dimension that it takes, which have this shape."""
        if self.array is None or not _core.inferring():
            return [self.held, *[_TAKEN] * (self.takes - 1)]
        # A traced function knows of this mask how many elements it names.
        if self.array.shape != shape:
            raise InvalidProblemError(f"index: got a mask of shape {self.array.shape}, want {shape}.")
        return [_constant(at, self.held) for at in self.array.nonzero()]


def _index_of(tensor: Any, part: Any) -> _Index:
    if hasattr(part, "__dlpack__") and not isinstance(part, np.ndarray):
        held = _here(tensor, _core.borrow(part))
        if held.element is Element.BOOL and held.ndim:
            return _Index(held, held.ndim)
        if held.element is not Element.BOOL:
            if not held.element.is_integer:
                raise InvalidProblemError(f"index: got {shown(held)}, want integers or bools.")
            return _Index(held if held.element in (Element.I32, Element.I64) else F.cast(held, Element.I64), 1)
        part = bool(held)
    array = _array_of(part)
    if array.dtype == bool and not array.ndim:
        return _Index(_constant(np.zeros(int(array), np.int64), tensor), 0)
    if array.dtype not in (bool, np.int32):
        array = array.astype(np.int64, copy=False)
    held = (
        _here(tensor, _core.borrow(np.require(array, None, ["C", "A"]))) if array is part else _constant(array, tensor)
    )
    return _Index(held, array.ndim, array) if array.dtype == bool else _Index(held, 1)


def _array_of(part: Any) -> np.ndarray[Any, Any]:
    """A list, array or truth value of a key as an array of bools or integers."""
    array = part if isinstance(part, np.ndarray) else _nested(part)
    if array.size == 0 and not isinstance(part, np.ndarray):
        array = array.astype(np.int64)  # an empty list names nothing
    if array.dtype.kind not in "bui":
        got = f"{array.dtype.name} of shape {array.shape}" if array.dtype != object else shown(part)
        raise InvalidProblemError(f"index: got {got}, want ints, slices, None, `...`, or integers and bools in arrays.")
    if array.dtype == np.uint64 and array.size and array.max() >= 2**63:
        raise InvalidProblemError("index: got integers of 2**63 and more, want those that i64 holds.")
    return array


def _nested(part: Any) -> np.ndarray[Any, Any]:
    try:
        return np.asarray([whole(p) for p in part] if isinstance(part, range) else part)
    except ValueError as error:
        raise InvalidProblemError(f"index: got {shown(part)}, want nested lists of equal lengths.") from error


_MOST = 4096  # bytes of values that are remembered


@lru_cache(maxsize=256)
def _remembered(raw: bytes, shape: Shape, dtype: str, device: str) -> Tensor:
    array: np.ndarray[Any, Any] = np.ndarray(shape, dtype, raw)
    with outside_arenas():
        return _core.borrow(array) if device == "cpu" else asarray(array, device=device)


def _constant(array: np.ndarray[Any, Any], like: Any) -> Tensor:
    """The values of a list or a number beside a tensor.

    A traced function may run several times, for several sizes, and has to capture the same memory each time.
    """
    if array.nbytes <= _MOST and (like.device == "cpu" or _core.inferring()):
        return _remembered(array.tobytes(), array.shape, array.dtype.str, like.device)
    return asarray(array, device=like.device)


def _here(tensor: Any, index: Tensor) -> Tensor:
    return index if index.device == tensor.device else index.to(tensor.device)


def _is_int(part: Any) -> bool:
    return not isinstance(part, (slice, _Index)) and part is not None and part is not Ellipsis


def _spread(parts: list[Any], rank: int) -> list[Any]:
    """The parts with slices for `...`, one for every dimension that no other part takes."""
    takes = sum(p.takes if isinstance(p, _Index) else p is not None and p is not Ellipsis for p in parts)
    dots = [i for i, p in enumerate(parts) if p is Ellipsis]
    if takes > rank or len(dots) > 1:
        got = f"a key for {takes} dimensions" if takes > rank else f"{len(dots)} times `...`"
        raise IndexOutOfRangeError(f"index: got {got}, want one for at most {rank}, with `...` once.")
    at = dots[0] if dots else len(parts)
    # The dots stay, which take nothing any more: they part the indices before them from those after.
    return [*parts[:at], *[slice(None)] * (rank - takes), *([...] if dots else []), *parts[at + 1 :]]


def _side_by_side(parts: list[Any]) -> bool:
    """Whether indices, with which ints count, have no slice, None or `...` among them."""
    kinds = [isinstance(p, _Index) or _is_int(p) for p in parts]
    first, last = kinds.index(True), len(kinds) - kinds[::-1].index(True)
    return all(kinds[first:last])


def _spread_mask(view: Tensor, indices: list[Any], given: Tensor) -> Tensor | None:
    """The mask of a key that has nothing else, in the rank of the view; None where each of its elements has a value.

    None also of elements that `where` does not take.
    """
    if view.element in (*_COMPLEX, *_F8):
        return None
    if len(indices) != 1 or indices[0] is None or indices[0].element is not Element.BOOL:
        return None
    mask: Tensor = indices[0]
    behind = view.ndim - mask.ndim
    if given.ndim > behind or mask.shape != view.shape[: mask.ndim]:
        return None
    return mask[(..., *[None] * behind)]


def _is_mask_of(index: Tensor, view: Any) -> bool:
    return index.element is Element.BOOL and index.shape == tuple(view.shape)


# --- the value


def _values(view: Tensor, value: Any) -> Tensor:
    """The value as a tensor of the view's element on its device, in memory that writing to the view does not change."""
    given = _core.borrow(value) if hasattr(value, "__dlpack__") else _constant(_numbers(value, view.element), view)
    if given._place != view._place:
        given = given.to(view.device)
    if given.element is view.element:
        return F.clone(given) if _shared(given, view) and not _same(view, given) else given
    if given.element in _COMPLEX and view.element not in _COMPLEX:
        raise InvalidProblemError(f"x[key] = value: got {given.element}, want a real element, as x has.")
    if view.element in _COMPLEX:
        return _complex(given, view.element)
    return F.cast(given, view.element)  # type: ignore[no-any-return]


def _numbers(value: Any, element: Element) -> np.ndarray[Any, Any]:
    """A number or nested lists as an array; a number as one of the element, where NumPy has that."""
    if element in _COMPLEX:
        return np.asarray(value, element.numpy)
    if not isinstance(value, (bool, int, float)):
        return np.asarray(value)
    number = masked_number(value, element)
    if element in (Element.BF16, *_F8):  # NumPy may have none of these
        return np.asarray(number, np.float64)
    with np.errstate(over="ignore"):
        return np.asarray(number, np.float64 if element.is_float else element.numpy).astype(element.numpy)


def _complex(given: Tensor, element: Element) -> Tensor:
    """The values in a complex element."""
    made = empty(given.shape, element, device=given.device)
    real, imaginary = _parts(made)
    if given.element in _COMPLEX:
        for to, part in zip((real, imaginary), _parts(given), strict=True):
            F.cast(part, to.element, out=to)
    else:
        F.cast(given, real.element, out=real)
        _fill(imaginary, 0)
    return made


def _parts(x: Tensor) -> tuple[Tensor, Tensor]:
    """The real and the imaginary numbers of a complex tensor, where they lie."""
    element = Element.F32 if x.element is Element.C64 else Element.F64
    steps = tuple(2 * s for s in x.strides)
    return _core.view_of(x, 0, x.shape, steps, element), _core.view_of(x, 1, x.shape, steps, element)


def _shared(a: Tensor, b: Tensor) -> bool:
    """Whether two share memory; in a traced function, whether they may at some size."""
    tracer = _core.tracer()
    return bool(_core.overlap(a, b) if tracer is None else tracer.shared(a, b))


def _same(a: Tensor, b: Tensor) -> bool:
    """Whether two are the same view: what `x[1:] += y` writes is there already."""
    return (a.address, a.shape, a.strides, a.element) == (b.address, b.shape, b.strides, b.element)


def _rank_of(view: Tensor, indices: list[Any]) -> int:
    """How many dimensions what the indices of a view name has."""
    tensors: list[Tensor] = [i for i in indices if i is not None]
    masks = [i.ndim for i in tensors if i.element is Element.BOOL]
    common = max(1 if i.element is Element.BOOL else i.ndim for i in tensors)
    return view.ndim - (len(tensors) - len(masks)) - sum(masks) + common


def _without_ones(given: Tensor, rank: int) -> Tensor:
    """Without the dimensions of size 1 that are in front of the first `rank` dimensions from the end."""
    while given.ndim > rank and given.shape[0] == 1:
        given = given[0]
    return given


def _broadcast(given: Tensor, shape: Shape) -> Tensor:
    try:
        return _without_ones(given, len(shape)).broadcast_to(shape)
    except InvalidProblemError:
        raise InvalidProblemError(
            f"x[key] = value: got shape {given.shape}, want one that broadcasts to {shape}, which is written."
        ) from None


@lru_cache(maxsize=256)
def _fills(shape: Shape, element: Element, device: str) -> Plan:
    return plan(FillDescriptor(shape, element), device)


def _fill(view: Tensor, number: float) -> None:
    _fills(view.shape, view.element, view.device).run(value=number, y=view)
