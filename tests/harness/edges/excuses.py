"""Why gradients at edges may differ: one table, a reason each. A finding that no row covers fails the test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.utils._pytree import tree_flatten

from edges.judge import Finding
from edges.points import RANGE

# Norms and what is made of them: nothing about them is excused at the ends of the range.
LENGTHS = ("norm", "vector_norm", "dist", "pdist", "pairwise_distance", "normalize", "matrix_norm", "masked_norm")
PRODUCTS = (
    "prod", "cumprod", "masked_prod", "masked_cumprod", "linalg_vander", "vander", "matrix_power", "scatter_reduce",
    "index_reduce", "segment_reduce",
)  # fmt: skip
SUMS_OF_PRODUCTS = (
    "addbmm", "addmm", "addmv", "addr", "baddbmm", "bilinear", "bmm", "chain_matmul", "multi_dot", "conv1d", "conv2d",
    "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "corrcoef", "cov", "cross", "linalg_cross", "dot",
    "einsum", "inner", "kron", "linear", "matmul", "mm", "mv", "outer", "ger", "tensordot", "vdot", "vecdot", "vander",
    "trapezoid", "trapz", "cumulative_trapezoid", "linear_cross_entropy", "scaled_dot_product_attention", "unfold", "fold",
    "cumsum", "sum", "mean", "nansum", "nanmean", "masked_sum", "masked_mean", "masked_cumsum", "interpolate", "diff",
)  # fmt: skip
BROADCAST = (
    "div", "divide", "true_divide", "mul", "multiply", "pow", "float_power", "fmod", "remainder", "addcdiv", "addcmul", "lerp",
    "atan2", "arctan2", "hypot", "xlogy", "xlog1py", "ldexp", "logaddexp", "logaddexp2", "prelu", "silu_mul", "copysign",
)  # fmt: skip
STATISTICS = (
    "batch_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "rms_norm",
    "local_response_norm",
    "normalize",
    "cosine_similarity",
)
STEPS = (
    "cosine_embedding_loss", "cosine_similarity", "gaussian_nll_loss", "hinge_embedding_loss", "margin_ranking_loss",
    "masked_std", "masked_var", "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss",
    "poisson_nll_loss", "renorm", "soft_margin_loss", "triplet_margin_loss", "triplet_margin_with_distance_loss",
    "batch_norm", "instance_norm", "layer_norm", "rms_norm", "group_norm", "local_response_norm", "mvlgamma",
    "masked_normalize", "normalize", "cdist", "lerp", "addcdiv", "addcmul", "cross_entropy", "nll_loss",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "smooth_l1_loss", "huber_loss", "kl_div",
)  # fmt: skip


@dataclass(frozen=True)
class Excuse:
    """A row.

    Attributes:
        reason: Why it is right, or as good as torch's.
        kinds: Of the findings that it excuses.
        when: Whether it excuses one.
    """

    reason: str
    kinds: str
    when: Callable[[Finding], bool]


def _named(*names: str) -> Callable[[Finding], bool]:
    return lambda f: f.points.name in names


def _numbers(f: Finding) -> list[torch.Tensor]:
    found = tree_flatten(f.points.given)[0]
    return [x.double() for x in found if isinstance(x, torch.Tensor) and x.dtype.is_floating_point]


def _infinite(f: Finding) -> bool:
    return any(bool(x.isinf().any()) for x in _numbers(f))


def _at_range(f: Finding) -> bool:
    return f.points.theme in RANGE


def _largest(f: Finding) -> float:
    return max((float(x[x.isfinite()].abs().max()) for x in _numbers(f) if x.isfinite().any()), default=0.0)


def _broadcast(f: Finding) -> bool:
    return len({tuple(x.shape) for x in _numbers(f)}) > 1


def _over_nothing(f: Finding) -> bool:
    """Whether a statistic is taken over `dim=()`."""
    args, options = f.points.given
    return any(isinstance(x, (tuple, list)) and not x for x in (*args[1:], options.get("dim")))


def _words(f: Finding) -> set[str]:
    return {x for x in tree_flatten(f.points.given)[0] if isinstance(x, str)}


EXCUSES = (
    Excuse(
        "docs/not-like-torch.md: refused by name, as a gradient that is zero everywhere, or as a form that is not built",
        "refused",
        lambda f: any(
            words in f.detail
            for words in (
                "no gradient but zero",
                "inverses are not built",
                "need singular values",
                "want 2 dimensions",
                "at least 2 dim",
            )
        ),
    ),
    Excuse(
        "docs/not-like-torch.md: values that tie are taken in the order of their positions, which torch leaves open",
        "value limit",
        _named(
            "topk",
            "kthvalue",
            "sort",
            "msort",
            "median",
            "nanmedian",
            "mode",
            "quantile",
            "nanquantile",
            "cummax",
            "cummin",
        ),
    ),
    Excuse(
        "docs/not-like-torch.md: the gradient of a variance over dim=() is that of its value; torch's is of another correction",
        "value limit",
        lambda f: f.points.name in ("var", "std", "var_mean", "std_mean") and _over_nothing(f),
    ),
    Excuse(
        "docs/not-like-torch.md: variances of values with an infinity are NaN, and so are their gradients",
        "value limit",
        lambda f: f.points.name in ("var", "std", "var_mean", "std_mean", "masked_var", "masked_std") and _infinite(f),
    ),
    Excuse(
        "docs/not-like-torch.md: the gradient of entr below 0 is 0, where the value is -inf, whatever x is",
        "value limit",
        lambda f: f.points.name == "entr" and f.got == 0,
    ),
    Excuse(
        "docs/not-like-torch.md: positions of grid_sample are rounded to f32, and lie on the other side of a place",
        "value limit",
        _named("grid_sample", "grid_sampler_2d", "grid_sampler_3d"),
    ),
    Excuse(
        "docs/not-like-torch.md: poles of digamma have an infinite gradient, torch's a large one",
        "value limit",
        lambda f: f.points.name in ("digamma", "lgamma", "mvlgamma", "polygamma"),
    ),
    Excuse(
        "docs/not-like-torch.md: scatter_reduce and index_reduce by amax, amin and prod share with what counts only",
        "value limit",
        lambda f: f.points.name in ("scatter_reduce", "index_reduce") and bool(_words(f) & {"amax", "amin", "prod"}),
    ),
    Excuse(
        "infinity among the factors: the product of the others is found by a division, NaN as torch's in f32",
        "value limit",
        lambda f: f.points.name in PRODUCTS and _infinite(f),
    ),
    Excuse(
        "products of many numbers leave the range of f32 on the way, where torch's float64 does not",
        "value limit",
        lambda f: f.points.name in PRODUCTS and _at_range(f),
    ),
    Excuse(
        "an infinity meets a 0, or one of the other sign, in a sum of products: NaN as in torch, by the formula",
        "value limit",
        lambda f: f.points.name in SUMS_OF_PRODUCTS and _infinite(f),
    ),
    Excuse(
        "sums of products leave the range of f32 on the way, or cancel there, where torch's float64 does not",
        "value limit",
        lambda f: f.points.name in SUMS_OF_PRODUCTS and _at_range(f),
    ),
    Excuse(
        "a function of several steps, each right by itself: infinity times the slope 0 of another step is NaN, as in torch",
        "limit",
        lambda f: f.points.name in STEPS and _infinite(f),
    ),
    Excuse(
        "docs/not-like-torch.md: numbers inside of a formula that overflow or are subnormal in f32, not in torch's float64",
        "value limit",
        lambda f: f.points.name in STEPS and _at_range(f),
    ),
    Excuse(
        "an index out of range is refused wherever it lies, also where torch does not look",
        "refused",
        lambda f: "Check the indices" in f.detail,
    ),
    Excuse(
        "infinity over an infinite length is NaN, as in torch; two in one length have no limit",
        "limit",
        lambda f: (
            f.points.name in (*LENGTHS, "hypot", "cdist", "renorm", "masked_normalize", "triplet_margin_loss")
            and _infinite(f)
        ),
    ),
    Excuse(
        "pdist takes the distance of each point to itself, too: an infinite point's is NaN, as torch's gradient",
        "limit",
        lambda f: f.points.name in ("pdist", "cdist") and _infinite(f),
    ),
    Excuse(
        "a deviation of equal numbers has no limit: 0, as `std` has it; torch's is NaN",
        "limit",
        lambda f: f.points.name == "masked_std" and abs(f.got) < 1e-6,
    ),
    Excuse(
        "what a mask leaves out is -inf itself and ties with an element that is; towards -inf it would not",
        "limit",
        lambda f: f.points.name in ("masked_logaddexp", "masked_logsumexp") and _infinite(f),
    ),
    Excuse(
        "equal infinities in a running logsumexp have no limit: each counts as if alone; torch's is NaN",
        "limit",
        lambda f: f.points.name == "logcumsumexp" and _infinite(f),
    ),
    Excuse(
        "e^(x - y) of numbers far from 0, whose difference f32 keeps few digits of; the bound says so",
        "value",
        lambda f: f.points.name in ("logcumsumexp", "logsumexp") and _largest(f) > 1e3,
    ),
    Excuse(
        "gradients of what was broadcast are sums, in which infinities of both signs meet in f32",
        "value limit",
        lambda f: f.points.name in BROADCAST and f.got != f.got and _broadcast(f),
    ),
    Excuse(
        "targets that are no probabilities or classes: an infinite one is not what the loss is about",
        "value limit",
        lambda f: f.points.name in ("binary_cross_entropy_with_logits", "multi_margin_loss") and _infinite(f),
    ),
    Excuse(
        "statistics of a row with an infinity are NaN, and so are its gradients",
        "value limit",
        lambda f: f.points.name in STATISTICS and _infinite(f),
    ),
    Excuse(
        "no limit, and NaN in torch: the formula gives a number",
        "limit",
        lambda f: f.points.name in ("pow", "float_power", "ldexp", "hypot") and f.want != f.want,
    ),
    Excuse(
        "x sigmoid(x) and x Phi(x) at infinity: infinity times a slope of 0, NaN as in torch; a clamp costs a fifth of the speed",
        "limit value",
        lambda f: (
            f.points.name in ("silu", "swiglu", "geglu", "silu_mul", "silu_and_mul") and _infinite(f) and f.got != f.got
        ),
    ),
)


def excused(finding: Finding) -> str:
    """The reason of the row that covers a finding; empty where none does."""
    return next((e.reason for e in EXCUSES if finding.kind in e.kinds.split() and e.when(finding)), "")
