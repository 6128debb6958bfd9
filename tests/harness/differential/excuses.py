"""What docs/not-like-torch.md excuses: each excuse is named as its row there, and shows a call that needs it."""

from __future__ import annotations

import numpy as np

from differential import functions
from differential.calls import Call
from differential.excuse import (
    Excuse,
    accepted,
    at_the_ends,
    call,
    elements,
    elementwise,
    everywhere,
    gradient_of,
    input_nan,
    named,
    not_held,
    numbers_in,
    overflowing,
    plain_numbers,
    refused,
    says,
    t,
    unlike,
)
from differential.values import FLOATS, Dtype, T

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
    accepted(
        "elements that torch's CPU kernels lack",
        lambda f: (
            f.call.name == "tanhshrink"
            or any(
                w in f.detail
                for w in (
                    "INTERNAL ASSERT FAILED",
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
    accepted(
        "mixtures of unsigned elements that torch cannot promote",
        says("Promotion for uint16"),
        lambda: call("clamp", input=t([2], "u16"), min=t([1], "u32"), max=t([1], "bool")),
    ),
    refused(
        "`out=` of another shape or element",
        lambda f: f.call.out is not None and "out" in f.call.wrong + f.detail,
        lambda: Call("exp", {"input": t([1.0])}, wants_out=True, wrong="out"),
    ),
    refused(
        "gradients that are zero everywhere",
        says("no gradient but zero"),
        lambda: call("div", gradient=True, input=t([1.0]), other=t([2.0]), rounding_mode="floor"),
    ),
    refused(
        "numbers for unsigned elements (`threshold`, `full`)",
        says("in this range"),
        lambda: call("mul", input=t([1], "u64"), other=-2),
    ),
    refused(
        "numbers for unsigned elements (`threshold`, `full`)",
        says("that u", "holds"),
        lambda: call("full", size=(2,), fill_value=-2, dtype=Dtype("u8")),
    ),
    refused(
        "numbers with a fraction for integers (`threshold`, `hardtanh`, `addmm(alpha=)`, `scatter`, `full_like`, `arange(step=)`)",
        lambda f: any(isinstance(v, float) for v in plain_numbers(f)) and ("int" in f.detail or "step" in f.detail),
        lambda: call("threshold", input=t([1], "i32"), threshold=1.5, value=2.5),
    ),
    refused(
        "`addr` of several elements or of bool",
        named("addr"),
        lambda: call("addr", input=t([[1.0]]), vec1=t([1], "i32"), vec2=t([1.0])),
    ),
    refused(
        "`cosine_similarity` and weights of norms in other elements than the input's",
        lambda f: (
            f.call.name in ("cosine_similarity", "layer_norm", "rms_norm", "group_norm")
            and ("element" in f.detail or "Cast" in f.detail)
        ),
        lambda: call("cosine_similarity", x1=t([1, 2], "i32"), x2=t([1.0, 2.0]), dim=0),
    ),
    refused(
        "`linear` with a vector as weight",
        lambda f: f.call.name == "linear" and "want 2 dimensions" in f.detail,
        lambda: call("linear", input=t(_X), weight=t([1.0, 2.0])),
    ),
    refused(
        "batches of attention that broadcast",
        lambda f: f.call.name == "scaled_dot_product_attention" and "want the batch" in f.detail,
        lambda: call(
            "scaled_dot_product_attention",
            query=t(np.ones((2, 2, 3, 4))),
            key=t(np.ones((1, 2, 5, 4))),
            value=t(np.ones((1, 2, 5, 4))),
        ),
    ),
    refused(
        "`slice_scatter`, `embedding_bag` and others with a source, weight or offsets of another element",
        lambda f: (
            f.call.name in ("slice_scatter", "embedding_bag", "embedding")
            and ("got" in f.detail or "No kernel" in f.detail)
            and bool(unlike(f))
        ),
        lambda: call("slice_scatter", input=t(_X), src=t(_X, "f64")),
    ),
    refused(
        "weights of classes",
        lambda f: "weight: got shape" in f.detail and functions.family(f.call.name).__name__ == "class_loss",
        lambda: call("nll_loss", input=t([[[1.0], [2.0]]]), target=t([[0]], "i64"), weight=t([[1.0], [2.0]])),
    ),
    accepted(
        "indices of `gather`, `index_select` and `take` in other integers",
        lambda f: f.call.name in ("gather", "index_select", "take") and "index" in f.detail.lower(),
        lambda: call("take", input=t([1.0, 2.0]), index=T(np.array([0, 1], np.int8), index=True)),
    ),
    accepted(
        "targets of class losses in other integers",
        says("target dtype to be Long or Byte"),
        lambda: call("nll_loss", input=t(_X), target=T(np.array([0, 1], np.int32), index=True)),
    ),
    accepted(
        "`group_norm` of groups of one element",
        lambda f: f.call.name == "group_norm" and "more than 1 value" in f.detail,
        lambda: call("group_norm", input=t([[[3.0]]]), num_groups=1),
    ),
    Excuse(
        "integers that an element does not hold: in comparisons, `floor_divide`, `remainder`, `fmod`; in shifts; in"
        " `maximum`, `gcd`, `sub(alpha=)` and their kin",
        "value",
        lambda f: "shift" in f.call.name and bool(plain_numbers(f)),
        lambda: call("bitwise_right_shift", input=t([11], "i8"), other=2**31),
        everywhere,
    ),
    Excuse(
        "`add` of bools with `alpha=-1`",
        "value",
        lambda f: f.call.name == "add" and elements(f) == {"bool"} and f.call.given.get("alpha") == -1,
        lambda: call("add", input=t([True], "bool"), other=t([True], "bool"), alpha=-1),
        everywhere,
    ),
    Excuse(
        "`logit` of halves with `eps`",
        "value",
        lambda f: f.call.name == "logit" and bool(elements(f) & {"f16", "bf16"}),
        lambda: call("logit", input=t([0.5, 5.0], "f16"), eps=1e-6),
        lambda c: numbers_in(c.given["input"]) > 1 - c.given.get("eps", 0.0),
    ),
    refused(
        "elements that a function takes only where the tensor is empty",
        lambda f: (
            any(0 in x.shape for x in f.call.tensors().values()) and ("element" in f.detail or "No kernel" in f.detail)
        ),
        lambda: call("softmax", input=t(np.ones((0, 2)), "i8"), dim=0),
    ),
    refused(
        "index out of range",
        says("IndexOutOfRangeError"),
        lambda: call("take_along_dim", input=t(np.ones((3, 3, 1))), indices=t([[[1]], [[3]]], "i64"), dim=0),
    ),
    accepted(
        "`heaviside` of two elements; a number for a tensor (`hypot`, `nextafter`, ...)",
        lambda f: f.call.name == "heaviside" or "must be Tensor" in f.detail,
        lambda: call("heaviside", input=t([3.0]), other=t([1], "i32")),
    ),
    accepted(
        "`hardtanh` with min_val > max_val; `celu` with alpha = 0",
        named("hardtanh", "celu"),
        lambda: call("celu", input=t([1.0]), alpha=0.0),
    ),
    accepted(
        "aliases, and options that are keywords only",
        lambda f: "unexpected keyword argument" in f.detail or "positional argument" in f.detail,
        lambda: call("true_divide", input=t([1.0]), other=t([2.0]), rounding_mode="floor"),
    ),
    accepted(
        "`norm` over more than two dimensions, `logsumexp(dim=())`",
        lambda f: "matrix_norm" in f.detail or f.call.name == "logsumexp",
        lambda: call("norm", input=t(np.ones((2, 2, 2))), dim=(0, 1, 2)),
    ),
    accepted(
        "indices for rank 0, and negative ones of `take_along_dim` without `dim`",
        lambda f: f.call.name in ("take_along_dim", "repeat_interleave") or "scalar" in f.detail,
        lambda: call("take_along_dim", input=t([1.0, 2.0]), indices=t([-1], "i64")),
    ),
    accepted(
        "`addcdiv` of integers beside floats",
        says("Integer division with addcdiv"),
        lambda: call("addcdiv", input=t([1.0]), tensor1=t([1], "i32"), tensor2=t([2], "i32")),
    ),
    accepted(
        "numbers beyond a float element (`clamp`, `full_like`, `pad`, ...)",
        says("without overflow"),
        lambda: call("masked_fill", input=t([1.0], "f16"), mask=t([1], "bool"), value=2**31),
    ),
    accepted(
        "`inner`, `tensordot` and `chain_matmul` of several elements",
        lambda f: f.call.name in ("inner", "tensordot", "chain_matmul") and unlike(f),
        lambda: call("inner", input=t([[1]], "u16"), other=t(np.ones((0, 1)), "bf16")),
    ),
    accepted(
        "`pad` with a mode and `embedding_bag` of empty tensors",
        lambda f: "non-zero" in f.detail or "step must" in f.detail or "out of range for tensor" in f.detail,
        lambda: call("pad", input=t(np.ones((0, 4))), pad=[1, 1], mode="replicate"),
    ),
    refused(
        "masks of u8; sources and targets of rank 1 where rank 0 is meant",
        lambda f: f.call.name == "where" or "want at least ()" in f.detail or "want shape ()" in f.detail,
        lambda: call("where", condition=t([1], "u8"), input=t([1.0]), other=t([2.0])),
    ),
    Excuse(
        "`lcm` beyond the element's range; `gcd` with its smallest number",
        "value",
        named("lcm", "gcd"),
        lambda: call("lcm", input=t([2147483646], "i32"), other=t([-4], "i32")),
        everywhere,
    ),
    Excuse(
        "gradient at NaN of `hardtanh`, `relu6`, `hardshrink`, `softshrink`; of `elu`, `selu`, `celu`",
        "value",
        gradient_of("hardtanh", "relu6", "hardshrink", "softshrink", "elu", "selu", "celu"),
        lambda: call("hardtanh", gradient=True, input=t([np.nan] * 16, "f64")),
        input_nan,
    ),
    Excuse(
        "gradient of `acosh` at -1 and below",
        "value",
        gradient_of("acosh", "arccosh"),
        lambda: call("acosh", gradient=True, input=t([-2.0])),
        lambda c: numbers_in(c.given["input"]) <= -1,
    ),
    Excuse(
        "gradient of `sinc` near 0",
        "value",
        gradient_of("sinc"),
        lambda: call("sinc", gradient=True, input=t(np.geomspace(1e-8, 0.2, 40), "f64")),
        lambda c: np.abs(numbers_in(c.given["input"])) < 0.25,
    ),
    Excuse(
        "gradient of `pow` by False",
        "value",
        lambda f: f.call.gradient and f.call.name == "pow" and f.call.given["exponent"] is False,
        lambda: Call("pow", {"input": t([0.0, 2.0]), "exponent": False}, positional=2, gradient=True),
        lambda c: numbers_in(c.given["input"]) == 0,
    ),
    refused(
        "`einsum` of several elements where something is summed",
        lambda f: f.call.name == "einsum" and unlike(f) and "want one element" in f.detail,
        lambda: Call(
            "einsum",
            {"equation": "bidb,bd,b", "*operands": [t(np.ones((2, 3, 2, 2))), t(np.ones((2, 2)), "i8"), t([1.0, 2.0])]},
            positional=1,
            gradient=True,
        ),
    ),
    Excuse(
        "gradient of `hardsigmoid`; of `celu` in f64",
        "value",
        gradient_of("celu"),
        lambda: call("celu", gradient=True, input=t([-0.5] * 40, "f64"), alpha=0.1),
        lambda c: numbers_in(c.given["input"]) < 0,
    ),
    Excuse(
        "gradient of `hardsigmoid`; of `celu` in f64",
        "value",
        gradient_of("hardsigmoid"),
        lambda: call("hardsigmoid", gradient=True, input=t([0.5] * 40, "f64")),
        everywhere,
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
        everywhere,
    ),
    Excuse(
        "gradients at infinities, at NaN and at the ends of the range",
        "value",
        lambda f: f.call.gradient and elementwise(f.call),
        lambda: call("copysign", gradient=True, input=t([np.nan]), other=t([1.0])),
        at_the_ends,
    ),
    Excuse(
        "gradients at infinities, at NaN and at the ends of the range",
        "value",
        lambda f: f.call.gradient and not elementwise(f.call),
        lambda: call("vector_norm", gradient=True, x=t([0.0, np.nan, 1.0]), ord=1.5),
        at_the_ends,
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
        everywhere,
        free=True,
    ),
    Excuse(
        "gradient of `digamma` at its poles",
        "value",
        gradient_of("digamma"),
        lambda: call("digamma", gradient=True, input=t([0.5, -1.0], "f64")),
        lambda c: numbers_in(c.given["input"]) == np.floor(numbers_in(c.given["input"])),
    ),
    Excuse(
        "gradient of `fmod` and `remainder` where a rounded quotient is an integer",
        "value",
        gradient_of("fmod", "remainder"),
        lambda: call("fmod", gradient=True, input=t([-100.0] * 9, "f64"), other=t([0.001] * 9, "f64")),
        everywhere,
    ),
    Excuse(
        "integer means of `scatter_reduce` and `index_reduce`",
        "value",
        lambda f: f.call.given.get("reduce") == "mean" and "f" not in f.call.given["input"].element,
        lambda: call(
            "scatter_reduce",
            input=t([-32768], "i16"),
            dim=0,
            index=T(np.zeros(1, np.int64), index=True),
            src=t([-32767], "i16"),
            reduce="mean",
        ),
        everywhere,
        free=True,
    ),
    Excuse(
        "comparisons of halves with a number",
        "value",
        lambda f: f.call.name in COMPARISONS and bool(elements(f) & {"f16", "bf16"}),
        lambda: call("lt", input=t([0.001], "bf16"), other=0.001),
        everywhere,
        free=True,
    ),
    accepted(
        "masks of attention in another float element",
        says("attn_mask dtype"),
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
        gradient_of("scatter_reduce"),
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
        "`isclose` of integers and halves",
        "value",
        lambda f: f.call.name == "isclose" and not elements(f) & {"f32", "f64"},
        lambda: call("isclose", input=t([2**24 + 1], "i32"), other=t([2**24], "i32"), rtol=0.0, atol=0.5),
        everywhere,
        free=True,
    ),
    Excuse(
        "`ldexp` where 2^b is 0 or infinite",
        "value",
        named("ldexp"),
        lambda: call("ldexp", input=t([0], "i32"), other=t([2147483647], "i32")),
        everywhere,
        free=True,
    ),
    Excuse(
        "`cast` of floats that an integer element does not hold",
        "value",
        lambda f: f.call.name == "cast" and f.call.given["dtype"].element not in (*FLOATS, "bool"),
        lambda: call("cast", input=t([np.nan, -1.0, 1e30] * 8, "f64"), dtype=Dtype("u32")),
        not_held,
        free=True,
    ),
    Excuse(
        "`arange` of floats",
        "value",
        named("arange"),
        lambda: call("arange", start=0.001, end=-30.999, step=-1),
        everywhere,
        free=True,
    ),
    Excuse(
        "losses of several elements",
        "element accepted",
        lambda f: functions.family(f.call.name).__name__ == "pointwise_loss" and unlike(f),
        lambda: call("binary_cross_entropy_with_logits", input=t([0.5, 0.1], "f64"), target=t([0.5, 0.25])),
    ),
    Excuse(
        "`pow` of -inf by 0.5",
        "value",
        named("pow"),
        lambda: call("pow", input=t([-np.inf], "f64"), exponent=0.5),
        lambda c: np.isneginf(numbers_in(c.given["input"]).astype(np.float64)),
    ),
    Excuse(
        "`addmv` of no rows",
        "shape",
        named("addmv"),
        lambda: call("addmv", input=t(8, "i32"), mat=t(np.ones((0, 1)), "i32"), vec=t([-2], "i32")),
    ),
    Excuse(
        "`sinc`, `remainder` and `fmod` where a quotient or product overflows",
        "value",
        named("sinc", "remainder", "fmod", "floor_divide", "div", "divide"),
        lambda: call("sinc", input=t([1.7e308, 3.0], "f64")),
        at_the_ends,
    ),
    Excuse(
        "numbers inside of a formula that are subnormal or overflow",
        "value",
        named("glu", "swiglu", "geglu", "silu_mul", "silu_and_mul", "elu", "celu"),
        lambda: call("glu", input=t([1.7e38, -100.0])),
        at_the_ends,
        free=True,
    ),
    Excuse(
        "products and sums that are accumulated (`cumprod`, `norm`, ...)",
        "value",
        lambda f: not f.call.gradient and functions.family(f.call.name).__name__ in SUMS,
        lambda: call("mm", input=t(_SIGNS, "f64"), mat2=t(10 * _SIGNS.T, "f64")),
        overflowing,
        free=True,
        by_processor=True,
    ),
)
