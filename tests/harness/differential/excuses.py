"""What docs/not-like-torch.md excuses: each excuse is named as its row there, and shows a call that needs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from baracuda.elements import Element
from baracuda.reference import LARGEST, to_reference
from differential import functions
from differential.calls import Call
from differential.values import FLOATS, Dtype, T

if TYPE_CHECKING:
    from differential.judge import Finding

Array = np.ndarray[Any, Any]
PAGE = Path(__file__).resolve().parents[3] / "docs" / "not-like-torch.md"


@dataclass(frozen=True)
class Excuse:
    """A row of the page.

    Attributes:
        row: The first cell of the row.
        kinds: Of the findings that it excuses.
        when: Whether it excuses one.
        example: A call that needs it.
        where: For numbers: the places that it excuses, in an array that broadcasts to the result. There the op's
            reference is right.
        free: Whether the reference does not tell there, either.
    """

    row: str
    kinds: str
    when: Callable[[Finding], bool]
    example: Callable[[], Call]
    where: Callable[[Call], Array] | None = None
    free: bool = False


def t(values: Any, element: str = "f32", **more: Any) -> T:
    """A tensor of an example."""
    return T(np.asarray(values).astype(Element.coerce(element).numpy), **more)


def call(name: str, *, gradient: bool = False, **given: Any) -> Call:
    """The call of an example."""
    return Call(name, given, gradient=gradient)


def rows() -> set[str]:
    """The first cells of the page's tables."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return {line.split(" | ")[0].removeprefix("| ") for line in lines}


def _named(*names: str) -> Callable[[Finding], bool]:
    return lambda f: f.call.name in names


def _says(*words: str) -> Callable[[Finding], bool]:
    return lambda f: all(w in f.detail for w in words)


def _values(x: Any) -> Array:
    return np.asarray(to_reference(x.array)) if isinstance(x, T) else np.asarray(x)


def _numbers(f: Finding) -> list[float]:
    return [v for v in f.call.given.values() if isinstance(v, (int, float)) and not isinstance(v, bool)]


def _elements(f: Finding) -> set[str]:
    return {x.element for x in f.call.tensors().values()}


def _unlike(f: Finding) -> bool:
    return len(_elements(f)) > 1


def _input_nan(c: Call) -> Array:
    return np.isnan(_values(c.given["input"]).astype(np.float64))


def _gradient_of(*names: str) -> Callable[[Finding], bool]:
    return lambda f: f.call.gradient and f.call.name in names


def _not_held(c: Call) -> Array:
    """Where a float is no number of the integer element that it is cast to."""
    info = np.iinfo(Element.coerce(c.given["dtype"].element).numpy)
    with np.errstate(invalid="ignore"):
        cut = np.trunc(_values(c.given["input"]).astype(np.float64))
        return np.asarray(~((cut >= info.min) & (cut < float(info.max) + 1)))


def _elementwise(c: Call) -> bool:
    return functions.family(c.name).__name__ in ("unary", "binary", "ternary")


def _at_the_ends(c: Call) -> Array:
    """Where a number is not finite, or its square or inverse is not in the element; everywhere if shapes do not tell."""
    found: list[Array] = []
    for x in c.tensors().values():
        size = np.abs(_values(x).astype(np.float64))
        most = LARGEST[Element.coerce(x.element)] if x.is_float else np.inf
        found.append(~((size == 0) | ((size > most**-0.5) & (size < most**0.5))))
    if not _elementwise(c):
        return np.asarray(any(bool(x.any()) for x in found))
    try:
        return np.asarray(np.logical_or.reduce(np.broadcast_arrays(*found)))
    except ValueError:
        return np.asarray(any(bool(x.any()) for x in found))


def _overflowing(c: Call) -> Array:
    """Whether terms may be so large that their sum is not finite in the element that is computed in."""
    sizes = [
        float(np.nanmax(np.abs(_values(x)), initial=0)) for x in c.tensors().values() if x.is_float and x.array.size
    ]
    return np.asarray(any(s > 1e18 for s in sizes))


def _everywhere(c: Call) -> Array:
    return np.asarray(True)


def _accepted(row: str, when: Callable[[Finding], bool], example: Callable[[], Call]) -> Excuse:
    return Excuse(row, "accepted", when, example)


def _refused(row: str, when: Callable[[Finding], bool], example: Callable[[], Call]) -> Excuse:
    return Excuse(row, "refused", when, example)


# Families whose functions add up terms.
COMPARISONS = ("eq", "ne", "not_equal", "lt", "less", "le", "less_equal", "gt", "greater", "ge", "greater_equal")
SUMS = (
    "scatter",
    "reduce",
    "along",
    "statistics",
    "matmul",
    "products",
    "contractions",
    "norms",
    "pointwise_loss",
    "class_loss",
)
_SIGNS = np.where(np.arange(512).reshape(8, 64) * 2654435761 % 7 < 3, 1.0, -1.1) * 1e154
_X = [[1.0, 2.0], [3.0, 4.0]]
EXCUSES = (
    _accepted(
        "elements that torch's CPU kernels lack",
        lambda f: (
            f.call.name == "tanhshrink"
            or any(
                w in f.detail
                for w in (
                    "not implemented for",
                    "NotImplementedError",
                    "does not support bool",
                    "Integral inputs",
                    "not supported for",
                )
            )
        ),
        lambda: call("add", input=t([1], "u16"), other=t([1], "u16")),
    ),
    _accepted(
        "mixtures of unsigned elements that torch cannot promote",
        _says("Promotion for uint16"),
        lambda: call("clamp", input=t([2], "u16"), min=t([1], "u32"), max=t([1], "bool")),
    ),
    _refused(
        "`out=` of another shape or element",
        lambda f: f.call.out is not None and "out" in f.call.wrong + f.detail,
        lambda: Call("exp", {"input": t([1.0])}, wants_out=True, wrong="out"),
    ),
    _refused(
        "gradients that are zero everywhere",
        _says("no gradient but zero"),
        lambda: call("div", gradient=True, input=t([1.0]), other=t([2.0]), rounding_mode="floor"),
    ),
    _refused(
        "numbers for unsigned elements (`threshold`, `full`)",
        _says("in this range"),
        lambda: call("mul", input=t([1], "u64"), other=-2),
    ),
    _refused(
        "numbers for unsigned elements (`threshold`, `full`)",
        _says("that u", "holds"),
        lambda: call("full", size=(2,), fill_value=-2, dtype=Dtype("u8")),
    ),
    _refused(
        "numbers with a fraction for integers (`threshold`, `addcmul(value=)`, `scatter`, `full_like`, `arange(step=)`)",
        lambda f: any(isinstance(v, float) for v in _numbers(f)) and ("int" in f.detail or "step" in f.detail),
        lambda: call("threshold", input=t([1], "i32"), threshold=1.5, value=2.5),
    ),
    _refused("`hardtanh` of integers", _named("hardtanh"), lambda: call("hardtanh", input=t([1], "i32"))),
    _refused(
        "`addr` of several elements or of bool",
        _named("addr"),
        lambda: call("addr", input=t([[1.0]]), vec1=t([1], "i32"), vec2=t([1.0])),
    ),
    _refused(
        "`logsumexp`, `cosine_similarity` and weights of norms in other elements than the input's",
        lambda f: (
            f.call.name in ("logsumexp", "cosine_similarity", "layer_norm", "rms_norm", "group_norm")
            and ("element" in f.detail or "Cast" in f.detail)
        ),
        lambda: call("logsumexp", input=t([1, 2], "i32"), dim=0),
    ),
    _refused(
        "`cosine_similarity` of rank 0; `linear` with a vector as weight",
        lambda f: (
            (f.call.name in ("cosine_similarity", "linear") and "want 2 dimensions" in f.detail)
            or "at least one dimension" in f.detail
        ),
        lambda: call("linear", input=t(_X), weight=t([1.0, 2.0])),
    ),
    _refused(
        "batches of attention that broadcast",
        lambda f: f.call.name == "scaled_dot_product_attention" and "shape" in f.detail,
        lambda: call(
            "scaled_dot_product_attention",
            query=t(np.ones((2, 2, 3, 4))),
            key=t(np.ones((1, 2, 5, 4))),
            value=t(np.ones((1, 2, 5, 4))),
        ),
    ),
    _refused(
        "`slice_scatter`, `embedding_bag` and others with a source, weight or offsets of another element",
        lambda f: (
            f.call.name in ("slice_scatter", "embedding_bag", "embedding")
            and ("got" in f.detail or "No kernel" in f.detail)
            and bool(_unlike(f))
        ),
        lambda: call("slice_scatter", input=t(_X), src=t(_X, "f64")),
    ),
    _refused(
        "targets of class losses",
        lambda f: f.call.given.get("target") is not None and "u8" in f.detail,
        lambda: call("nll_loss", input=t(_X), target=t([0, 1], "u8")),
    ),
    _refused(
        "elements that a function takes only where the tensor is empty",
        lambda f: (
            any(0 in x.shape for x in f.call.tensors().values()) and ("element" in f.detail or "No kernel" in f.detail)
        ),
        lambda: call("softmax", input=t(np.ones((0, 2)), "i8"), dim=0),
    ),
    _refused(
        "index out of range",
        _says("IndexOutOfRangeError"),
        lambda: call("take_along_dim", input=t(np.ones((3, 3, 1))), indices=t([[[1]], [[3]]], "i64"), dim=0),
    ),
    _accepted(
        "`heaviside` of two elements; a number for a tensor (`hypot`, `nextafter`, ...)",
        lambda f: f.call.name == "heaviside" or "must be Tensor" in f.detail,
        lambda: call("heaviside", input=t([3.0]), other=t([1], "i32")),
    ),
    _accepted(
        "`hardtanh` with min_val > max_val; `celu` with alpha = 0",
        _named("hardtanh", "celu"),
        lambda: call("celu", input=t([1.0]), alpha=0.0),
    ),
    _accepted(
        "aliases, and options that are keywords only",
        lambda f: "unexpected keyword argument" in f.detail or "positional argument" in f.detail,
        lambda: call("true_divide", input=t([1.0]), other=t([2.0]), rounding_mode="floor"),
    ),
    _accepted(
        "`norm` over more than two dimensions, `logsumexp(dim=())`",
        lambda f: "matrix_norm" in f.detail or f.call.name == "logsumexp",
        lambda: call("norm", input=t(np.ones((2, 2, 2))), dim=(0, 1, 2)),
    ),
    _accepted(
        "indices for rank 0, and negative ones of `take_along_dim` without `dim`",
        lambda f: f.call.name in ("take_along_dim", "repeat_interleave") or "scalar" in f.detail,
        lambda: call("take_along_dim", input=t([1.0, 2.0]), indices=t([-1], "i64")),
    ),
    _accepted(
        "`addcdiv` of integers beside floats",
        _says("Integer division with addcdiv"),
        lambda: call("addcdiv", input=t([1.0]), tensor1=t([1], "i32"), tensor2=t([2], "i32")),
    ),
    _accepted(
        "numbers beyond a float element (`clamp`, `full_like`, `pad`, ...)",
        _says("without overflow"),
        lambda: call("masked_fill", input=t([1.0], "f16"), mask=t([1], "bool"), value=2**31),
    ),
    _accepted(
        "`inner` and `tensordot` of several elements",
        _named("inner", "tensordot"),
        lambda: call("inner", input=t([[1]], "u16"), other=t(np.ones((0, 1)), "bf16")),
    ),
    _accepted(
        "`pad` with a mode and `embedding_bag` of empty tensors",
        lambda f: "non-zero" in f.detail or "step must" in f.detail or "out of range for tensor" in f.detail,
        lambda: call("pad", input=t(np.ones((0, 4))), pad=[1, 1], mode="replicate"),
    ),
    _refused(
        "masks of u8; sources and targets of rank 1 where rank 0 is meant",
        lambda f: f.call.name == "where" or "want at least ()" in f.detail or "want shape ()" in f.detail,
        lambda: call("where", condition=t([1], "u8"), input=t([1.0]), other=t([2.0])),
    ),
    Excuse(
        "`lcm` beyond the element's range; `gcd` with its smallest number",
        "value",
        _named("lcm", "gcd"),
        lambda: call("lcm", input=t([2147483646], "i32"), other=t([-4], "i32")),
        _everywhere,
    ),
    Excuse(
        "gradient at NaN of `hardtanh`, `relu6`, `hardshrink`, `softshrink`; of `elu`, `selu`, `celu`",
        "value",
        _gradient_of("hardtanh", "relu6", "hardshrink", "softshrink", "elu", "selu", "celu"),
        lambda: call("hardtanh", gradient=True, input=t([np.nan] * 16, "f64")),
        _input_nan,
    ),
    Excuse(
        "gradient of `acosh` at -1 and below",
        "value",
        _gradient_of("acosh", "arccosh"),
        lambda: call("acosh", gradient=True, input=t([-2.0])),
        lambda c: _values(c.given["input"]) <= -1,
    ),
    Excuse(
        "gradient of `hardsigmoid`",
        "value",
        _gradient_of("hardsigmoid"),
        lambda: call("hardsigmoid", gradient=True, input=t([0.5] * 40, "f64")),
        _everywhere,
    ),
    Excuse(
        "gradient of `var` and `std` over `dim=()`",
        "value",
        lambda f: (
            f.call.gradient
            and f.call.name in ("var", "std", "var_mean", "std_mean")
            and f.call.given.get("dim", 0) in ((), [])
        ),
        lambda: call("var", gradient=True, input=t(_X), dim=()),
        _everywhere,
    ),
    Excuse(
        "gradients at infinities, at NaN and at the ends of the range",
        "value",
        lambda f: f.call.gradient and _elementwise(f.call),
        lambda: call("copysign", gradient=True, input=t([np.nan]), other=t([1.0])),
        _at_the_ends,
    ),
    Excuse(
        "gradients at infinities, at NaN and at the ends of the range",
        "value",
        lambda f: f.call.gradient and not _elementwise(f.call),
        lambda: call("vector_norm", gradient=True, x=t([0.0, np.nan, 1.0]), ord=1.5),
        _at_the_ends,
        free=True,
    ),
    Excuse(
        "gradients of norms of empty tensors",
        "value",
        lambda f: (
            f.call.gradient and f.call.name.endswith("norm") and any(0 in x.shape for x in f.call.tensors().values())
        ),
        lambda: call(
            "group_norm", gradient=True, input=t(np.ones((5, 4, 0)), "f64"), num_groups=2, weight=t(np.ones(4), "f64")
        ),
        _everywhere,
        free=True,
    ),
    Excuse(
        "gradient of `digamma` at its poles",
        "value",
        _gradient_of("digamma"),
        lambda: call("digamma", gradient=True, input=t([-1.0], "f64")),
        lambda c: _values(c.given["input"]) == np.floor(_values(c.given["input"])),
    ),
    Excuse(
        "comparisons of halves with a number",
        "value",
        lambda f: f.call.name in COMPARISONS and bool(_elements(f) & {"f16", "bf16"}),
        lambda: call("lt", input=t([0.001], "bf16"), other=0.001),
        _everywhere,
        free=True,
    ),
    _accepted(
        "masks of attention in another float element",
        _says("attn_mask dtype"),
        lambda: call(
            "scaled_dot_product_attention",
            query=t(_X, "bf16"),
            key=t(_X, "bf16"),
            value=t(_X, "bf16"),
            attn_mask=t(_X, "f16"),
        ),
    ),
    Excuse(
        "gradient of `scatter_reduce` by amax, amin and prod where `src` is larger than `index`",
        "value",
        _gradient_of("scatter_reduce"),
        lambda: call(
            "scatter_reduce",
            gradient=True,
            input=t([[1.0, 2.0]]),
            dim=0,
            index=T(np.zeros((1, 1), np.int64), index=True),
            src=t([[0.5, 0.5]]),
            reduce="amin",
        ),
        lambda c: np.asarray(
            c.given["reduce"] in ("amax", "amin", "prod") and c.given["index"].shape != c.given["src"].shape
        ),
        free=True,
    ),
    Excuse(
        "`isclose` of integers",
        "value",
        lambda f: f.call.name == "isclose" and not any(x.is_float for x in f.call.tensors().values()),
        lambda: call("isclose", input=t([2**24 + 1], "i32"), other=t([2**24], "i32"), rtol=0.0, atol=0.5),
        _everywhere,
        free=True,
    ),
    Excuse(
        "`ldexp` where 2^b is 0 or infinite",
        "value",
        _named("ldexp"),
        lambda: call("ldexp", input=t([0], "i32"), other=t([2147483647], "i32")),
        _everywhere,
        free=True,
    ),
    Excuse(
        "`cast` of floats that an integer element does not hold",
        "value",
        lambda f: f.call.name == "cast" and f.call.given["dtype"].element not in (*FLOATS, "bool"),
        lambda: call("cast", input=t([np.nan, -1.0, 1e30] * 8, "f64"), dtype=Dtype("u32")),
        _not_held,
        free=True,
    ),
    Excuse(
        "`arange` of floats",
        "value",
        _named("arange"),
        lambda: call("arange", start=0.001, end=-30.999, step=-1),
        _everywhere,
        free=True,
    ),
    Excuse(
        "losses of several elements",
        "element",
        lambda f: functions.family(f.call.name).__name__ == "pointwise_loss" and _unlike(f),
        lambda: call("binary_cross_entropy_with_logits", input=t([0.5, 0.1], "f64"), target=t([0.5, 0.25])),
    ),
    Excuse(
        "`pow` of -inf by 0.5",
        "value",
        _named("pow"),
        lambda: call("pow", input=t([-np.inf], "f64"), exponent=0.5),
        lambda c: np.isneginf(_values(c.given["input"]).astype(np.float64)),
    ),
    Excuse(
        "`addmv` of no rows",
        "shape",
        _named("addmv"),
        lambda: call("addmv", input=t(8, "i32"), mat=t(np.ones((0, 1)), "i32"), vec=t([-2], "i32")),
    ),
    Excuse(
        "`sinc`, `remainder` and `fmod` where a quotient or product overflows",
        "value",
        _named("sinc", "remainder", "fmod", "floor_divide", "div", "divide"),
        lambda: call("sinc", input=t([1.7e308, 3.0], "f64")),
        _at_the_ends,
    ),
    Excuse(
        "numbers inside of a formula that are subnormal or overflow",
        "value",
        _named("glu", "swiglu", "geglu", "silu_mul", "silu_and_mul"),
        lambda: call("glu", input=t([1.7e38, -100.0])),
        _at_the_ends,
        free=True,
    ),
    Excuse(
        "products and sums that are accumulated (`cumprod`, `norm`, ...)",
        "value",
        lambda f: not f.call.gradient and functions.family(f.call.name).__name__ in SUMS,
        lambda: call("mm", input=t(_SIGNS, "f64"), mat2=t(10 * _SIGNS.T, "f64")),
        _overflowing,
        free=True,
    ),
)
