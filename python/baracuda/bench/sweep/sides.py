"""A cell's two sides: arguments as the library's tensors, both calls, and whether they give the same."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from baracuda.bench.case import Statement
from baracuda.bench.sweep.cells import Cell
from baracuda.prove.draws import Array, Dtype, parameters

if TYPE_CHECKING:
    from collections.abc import Mapping

# How far results may differ, relative to their mean size: whether it is the same function, not how well it is computed.
_SAME = {"f64": 1e-6, "f32": 2e-3, "bf16": 6e-2, "f16": 2e-2}
# Share of results that may differ more: steps and ties fall elsewhere where values are rounded on the way, as torch's halves are.
_ODD_ONES = {"bf16": 5e-2, "f16": 5e-2}
_GRADIENT = 0.02  # what gradients of results of size 1 are measured by at least: some are the rounding of zeros
_BLOCK = (1 << 20) + 7  # numbers that are drawn anew before they repeat


class Unsuited(Exception):
    """One side does not take this call."""

    def __init__(self, side: str, reason: BaseException) -> None:
        """Of "ours" or "theirs"."""
        super().__init__(f"{side}: {type(reason).__name__}: {' '.join(str(reason).split())[:160]}")
        self.side = side


class Broken(Exception):
    """The two sides differ."""


class Library(Protocol):
    """What makes tensors and has functions of its own."""

    name: str

    def make(self, array: Array, rng: np.random.Generator) -> Any:
        """The tensor that is described."""

    def dtype(self, name: str) -> Any:
        """Its own, of an element's name."""

    def function(self, cell: Cell) -> Callable[..., Any]:
        """Its function, which takes what ours takes."""

    def keywords(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Of its function, in the place of ours."""

    def wide(self, value: Any) -> Any:
        """The same in f64 where there are halves in it; the value itself elsewhere."""

    def out(self, result: Any) -> Any:
        """Memory for such a result."""

    def numpy(self, result: Any) -> np.ndarray[Any, Any]:
        """Its numbers, floats as f64."""

    def like(self, result: Any, rng: np.random.Generator) -> Any:
        """Random numbers of this shape and element."""

    def gradient(self, cell: Cell, args: list[Any], kwargs: dict[str, Any], dy: list[Any]) -> Callable[[], Any]:
        """Runs its function and its gradient, which is given those of the results."""


def numbers(array: Array, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Of an array's values, in its shape, contiguous: floats as f32 or f64, integers as i64."""
    shape, values = array.shape, array.values
    whole = array.element[0] in "iu" or array.element == "bool"
    if values in ("order", "places"):
        flat = shape if values == "order" else (*shape[: array.dim], int(np.prod(shape[array.dim :])))
        return _distinct(array, flat, rng).reshape(shape)
    block = min(array.size, _BLOCK)
    made: np.ndarray[Any, Any]
    if values == "index":
        made = rng.integers(0, max(array.bound, 1), block)
    elif array.element == "bool":
        made = rng.random(block) < (0.5 if not isinstance(values, tuple) else values[0])
    elif isinstance(values, tuple):
        low, high = values
        made = rng.integers(int(low), max(int(high), int(low) + 1), block) if whole else rng.uniform(low, high, block)
    elif values == "sparse":
        made = rng.integers(1, 100, block) * (rng.random(block) < 0.01)
    else:
        made = rng.integers(0 if array.element[0] == "u" else -9, 10, block) if whole else rng.standard_normal(block)
    if values == "rising":
        return np.sort(made if block == array.size else np.resize(made, array.size)).reshape(shape)
    if not whole and array.element != "f64":
        made = made.astype(np.float32)
    return np.resize(made, array.size).reshape(shape)


def _distinct(array: Array, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Indices below the bound that differ along a dimension."""
    dim = array.dim % len(shape) if array.values == "order" else len(shape) - 1
    extent = shape[dim]
    if extent == array.size:
        return rng.permutation(array.bound)[:extent]
    across = [n for i, n in enumerate(shape) if i != dim]
    turned = rng.integers(0, array.bound, (*across, 1)) + rng.permutation(array.bound)[:extent]
    return np.moveaxis(turned % array.bound, -1, dim)


def laid_out(array: Array, values: Any, empty: Callable[..., Any], permute: Callable[..., Any], expand: Any) -> Any:
    """`values` in the layout that is described, by a library's own functions."""
    shape, rank = array.shape, len(array.shape)
    if array.layout in ("permuted", "channels_last"):
        order = array.order or (0, *range(2, rank), 1)
        back = tuple(int(i) for i in np.argsort(order))
        base = permute(empty(tuple(shape[i] for i in order)), back)
    elif array.layout == "strided":
        base = empty((*shape[:-1], 2 * shape[-1]))[..., ::2]
    elif array.layout == "row":
        base = empty((1, *shape[1:]))
        base[...] = values[:1]
        return expand(base, shape)
    elif array.layout == "column":
        base = empty((*shape[:-1], 1))
        base[...] = values[..., :1]
        return expand(base, shape)
    else:
        base = empty(shape)
    base[...] = values
    return base


def _built(value: Any, library: Library, rng: np.random.Generator) -> Any:
    if isinstance(value, Array):
        return library.make(value, rng)
    if isinstance(value, Dtype):
        return library.dtype(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_built(v, library, rng) for v in value)
    return value


def call_of(cell: Cell, given: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Positional arguments as far as they go without a gap, then keywords."""
    args: list[Any] = []
    kwargs = dict(given)
    for name, p in parameters(cell.name).items():
        if p.kind is p.VAR_POSITIONAL and f"*{name}" in kwargs:
            args += kwargs.pop(f"*{name}")
            break
        if p.kind is not p.POSITIONAL_OR_KEYWORD or name not in kwargs:
            break
        args.append(kwargs.pop(name))
    return args, kwargs


@dataclass(frozen=True, slots=True)
class Pair:
    """Both calls, ready to be timed."""

    ours: Statement
    theirs: Statement
    out: bool = False


def pair_of(cell: Cell, library: Library, seed: int) -> Pair:
    """Makes the arguments and both calls, and runs each once.

    Raises:
        Unsuited: If one side does not take the call.
        Broken: If they give different results.
    """
    import baracuda.functional as F

    rng = np.random.default_rng((seed, cell.number))
    args, kwargs = call_of(cell, {k: _built(v, library, rng) for k, v in cell.arguments.items()})
    fn, peer = getattr(F, cell.name), library.function(cell)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if cell.gradient:
            return _gradients(cell, library, args, kwargs)
        mine, others = kwargs, library.keywords(kwargs)
        expected, got = _tried("theirs", peer, *args, **others), _tried("ours", fn, *args, **mine)
        try:
            _compare(cell, library, got, expected)
        except Broken:  # sums of halves that the peer keeps in halves overflow: its f64 decides
            wide_args, wide = library.wide(args), library.wide(others)
            if wide_args is args:
                raise
            _compare(cell, library, got, _tried("theirs", peer, *wide_args, **wide))
        out = cell.out and _takes_out(peer, args, others, library, expected)
        if out:
            mine, others = ({**k, "out": library.out(expected)} for k in (mine, others))
            _compare(cell, library, _tried("ours", fn, *args, **mine), expected)
    return Pair(_statement(fn, args, mine), _statement(peer, args, others), out)


def _takes_out(peer: Callable[..., Any], args: list[Any], kwargs: dict[str, Any], library: Library, made: Any) -> bool:
    try:
        peer(*args, **kwargs, out=library.out(made))
    except (TypeError, RuntimeError, Unsuited):  # it has no such parameter, or not for this call
        return False
    return True


def _statement(fn: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Statement:
    """The call as people write it: its arguments by name, so that none is packed."""
    names = {f"a{i}": a for i, a in enumerate(args)} | {f"k_{k}": v for k, v in kwargs.items()}
    text = ", ".join([*(f"a{i}" for i in range(len(args))), *(f"{k}=k_{k}" for k in kwargs)])
    return Statement(f"f({text})", {"f": fn, **names})


def _tried(side: str, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    try:
        return fn(*args, **kwargs)
    except Exception as error:
        raise Unsuited(side, error) from error


def _gradients(cell: Cell, library: Library, args: list[Any], kwargs: dict[str, Any]) -> Pair:
    import baracuda as bc
    import baracuda.functional as F

    fn = getattr(F, cell.name)
    first = _tried("ours", fn, *args, **kwargs)
    floats = [y for y in _listed(first) if "float" in str(y.dtype)]
    if not floats:
        raise Unsuited("ours", TypeError("no result is a float"))
    dy = [library.like(y, np.random.default_rng(cell.number)) for y in floats]
    given = dy[0] if len(dy) == 1 else tuple(dy)

    def ours() -> Any:
        return bc.vjp(fn, *args, **kwargs)[1](given)

    theirs = library.gradient(cell, args, kwargs, dy)
    expected, got = _tried("theirs", theirs), _tried("ours", ours)
    try:
        _compare(cell, library, got, expected)
    except Broken:
        wide = library.wide(args)
        if wide is args:
            raise
        exact = library.gradient(cell, wide, library.wide(kwargs), library.wide(dy))
        _compare(cell, library, got, _tried("theirs", exact))
    return Pair(Statement.call(ours), Statement.call(theirs))


def _listed(result: Any) -> list[Any]:
    if isinstance(result, dict):
        result = list(result.values())
    return [x for r in result for x in _listed(r)] if isinstance(result, (list, tuple)) else [result]


def _compare(cell: Cell, library: Library, got: Any, expected: Any) -> None:
    """Loosely: shapes, and numbers as far as the element's rounding goes."""
    ours, theirs = [r for r in _listed(got) if r is not None], [r for r in _listed(expected) if r is not None]
    if cell.gradient and len(ours) > len(theirs):  # ours differentiates by a target, too
        del ours[[k for k, v in cell.arguments.items() if isinstance(v, Array)].index("target")]
    if len(ours) != len(theirs):
        if library.name == "numpy":  # a function of the same name that does something else
            raise Unsuited("theirs", TypeError("another number of results"))
        raise Broken(f"{len(ours)} results, the peer has {len(theirs)}")
    tolerance = max((_SAME[e] for e in _SAME if any(a == e for a in _elements(cell))), default=_SAME["f32"])
    allowed = max(_ODD_ONES.get(e, 2e-3) for e in _elements(cell))
    several = len(ours) > 1
    for mine, other in zip(ours, theirs, strict=True):
        a, b = library.numpy(mine), library.numpy(other)
        if a.shape != b.shape and library.name == "numpy":
            raise Unsuited("theirs", TypeError("another shape"))
        if a.shape != b.shape:
            raise Broken(f"shape {a.shape}, the peer has {b.shape}")
        if a.dtype.kind != "f" and b.dtype.kind != "f" and (several or cell.name in _WHICH):
            continue  # which of equal numbers is open
        least = _GRADIENT if cell.gradient else 0.0
        off = _share_off(a.astype(np.float64), b.astype(np.float64), tolerance, least)
        if off > allowed and off * a.size > 1:
            raise Broken(f"{off:.1%} of the results differ")


# Functions whose one result says where numbers are, of which several may be equal.
_WHICH = frozenset(("argsort", "argmax", "argmin", "masked_argmax", "masked_argmin", "lexsort"))


def _elements(cell: Cell) -> set[str]:
    from baracuda.prove.draws import arrays

    found = {a.element for a in arrays(cell.arguments)} | {cell.element}
    return found | {str(v) for v in cell.arguments.values() if isinstance(v, Dtype)}


def _share_off(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], tolerance: float, least: float) -> float:
    if not a.size:
        return 0.0
    with np.errstate(all="ignore"):
        finite = np.isfinite(b)
        size = max(np.abs(b[finite]).mean() if finite.any() else 0.0, least)
        near = np.abs(a - b) <= tolerance * (np.abs(b) + size) + 1e-30
    return float(1 - (near | (a == b) | (np.isnan(a) & np.isnan(b))).mean())
