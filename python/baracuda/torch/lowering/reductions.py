"""Sums, extremes, orders, scans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from baracuda.torch.layout import element_of
from baracuda.torch.lowering.common import F, cast
from baracuda.torch.table import NotMapped, Want, lowers


def _dims(dim: Any) -> Any:
    """None where all are meant."""
    if dim is None or isinstance(dim, int):
        return dim
    return tuple(dim) or None


@lowers("sum.default sum.dim_IntList mean.default mean.dim nansum.default nanmean.default")
def total(want: Want, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Any:
    """Sums and means."""
    return getattr(F, want.name)(x, _dims(dim), keepdim, dtype=None if dtype is None else element_of(dtype))


@lowers("prod.default prod.dim_int")
def prod(want: Want, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Any:
    """Products."""
    return F.prod(x, dim, keepdim, dtype=None if dtype is None else element_of(dtype))


@lowers("amax.default amin.default")
def extreme(want: Want, x: Any, dim: Sequence[int] = (), keepdim: bool = False) -> Any:
    """Largest or least elements."""
    return getattr(F, want.name)(x, tuple(dim), keepdim) if dim else getattr(F, want.name)(x, keepdim=keepdim)


@lowers("max.default min.default median.default nanmedian.default")
def extreme_of_all(want: Want, x: Any) -> Any:
    """Of all elements."""
    return getattr(F, want.name)(x)


@lowers("max.dim min.dim median.dim nanmedian.dim")
def extreme_with_place(want: Want, x: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """Values and where they are."""
    found = getattr(F, want.name)(x, dim, keepdim)
    return tuple(found)


@lowers("argmax.default argmin.default")
def place(want: Want, x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Where the largest or least element is."""
    return getattr(F, want.name)(x, dim, keepdim)


@lowers("any all")
def truth(want: Want, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether one or all are true."""
    if str(x.element) == "u8" and want.element == "u8":
        raise NotMapped("of uint8 torch gives uint8")
    return getattr(F, want.name)(x, _dims(dim), keepdim)


@lowers("var.default var.dim var.correction std.default std.dim std.correction var_mean.correction std_mean.correction")
def spread(want: Want, x: Any, dim: Any = None, unbiased: bool = True, keepdim: bool = False, **options: Any) -> Any:
    """Variances and standard deviations, with means where they are asked for."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    keepdim = options.get("keepdim", keepdim)
    correction = options["correction"] if "correction" in options else int(options.get("unbiased", unbiased))
    found = getattr(F, want.name)(x, _dims(dim), None, keepdim, correction=1 if correction is None else correction)
    return tuple(found) if want.name.endswith("_mean") else found


@lowers("logsumexp.default")
def logsumexp(want: Want, x: Any, dim: Any, keepdim: bool = False) -> Any:
    """The logarithm of a sum of exponentials."""
    return F.logsumexp(x, tuple(dim) if isinstance(dim, (list, tuple)) else dim, keepdim)


@lowers("cumsum.default cumprod.default")
def scan(want: Want, x: Any, dim: int, *, dtype: torch.dtype | None = None) -> Any:
    """Running sums and products."""
    return getattr(F, want.name)(x, dim, dtype=None if dtype is None else element_of(dtype))


@lowers("cummax.default cummin.default logcumsumexp.default _logcumsumexp.default")
def running(want: Want, x: Any, dim: int) -> Any:
    """Running extremes."""
    found = getattr(F, want.name.removeprefix("_"))(x, dim)
    return tuple(found) if len(want.results) > 1 else found


@lowers("sort.default sort.stable")
def sort(
    want: Want, x: Any, dim: int = -1, descending: bool = False, *, stable: bool | None = None, **more: Any
) -> Any:
    """In order, with where elements were: equal ones keep theirs, as on torch's cpu."""
    dim, descending = more.get("dim", dim), more.get("descending", descending)
    return tuple(F.sort(x, dim, descending, True))


@lowers("topk.default")
def topk(want: Want, x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The largest or least; of equal ones, as integers often are, torch takes others."""
    if not want.result.dtype.is_floating_point:
        raise NotMapped("of equal integers torch takes others")
    return tuple(F.topk(x, k, dim, largest, sorted))


@lowers("kthvalue.default")
def kthvalue(want: Want, x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The k-th least."""
    return tuple(F.kthvalue(x, k, dim, keepdim))


@lowers("_softmax.default _log_softmax.default")
def softmax(want: Want, x: Any, dim: int, half_to_float: bool) -> Any:
    """Shares of exponentials, or their logarithms."""
    fn = F.log_softmax if want.name == "_log_softmax" else F.softmax
    return fn(x, dim, dtype="f32") if half_to_float else fn(x, dim)


@lowers("_softmax_backward_data.default _log_softmax_backward_data.default")
def softmax_backward(want: Want, dy: Any, y: Any, dim: int, dtype: torch.dtype) -> Any:
    """Their gradients by the result."""
    fn = F.log_softmax_backward if "log" in want.name else F.softmax_backward
    return cast(fn(dy, y, dim), want.element)


@lowers("_safe_softmax.default")
def safe_softmax(want: Want, x: Any, dim: int, dtype: torch.dtype | None = None) -> Any:
    """Softmax that gives 0 where all of a row is -inf."""
    y = F.softmax(x, dim) if dtype is None else F.softmax(x, dim, dtype=element_of(dtype))
    return F.where(F.all(F.eq(x, float("-inf")), dim, True), 0.0, y)


@lowers("linalg_vector_norm.default")
def vector_norm(
    want: Want, x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Any:
    """Lengths of vectors."""
    return F.vector_norm(x, ord, _dims(dim), keepdim, dtype=None if dtype is None else element_of(dtype))


@lowers("norm.Scalar norm.ScalarOpt_dim")
def norm(want: Want, x: Any, p: Any = 2, dim: Any = None, keepdim: bool = False) -> Any:
    """Lengths by their old name."""
    return F.norm(x, 2 if p is None else p, _dims(dim), keepdim)


@lowers("histc.default")
def histc(want: Want, x: Any, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    """How many lie where."""
    return F.histc(x, bins, min, max)


@lowers("count_nonzero.default count_nonzero.dim_IntList")
def count_nonzero(want: Want, x: Any, dim: Any = None) -> Any:
    """How many are not 0."""
    return F.count_nonzero(x, _dims(dim))


@lowers("trace.default")
def trace(want: Want, x: Any) -> Any:
    """The sum of a diagonal."""
    return F.trace(x)


@lowers("_cdist_forward.default")
def cdist(want: Want, x: Any, y: Any, p: float, compute_mode: int | None) -> Any:
    """Distances of all pairs of two lists."""
    return F.cdist(x, y, p)


@lowers("_pdist_forward.default")
def pdist(want: Want, x: Any, p: float = 2.0) -> Any:
    """Distances of all pairs of one list."""
    return F.pdist(x, p)
