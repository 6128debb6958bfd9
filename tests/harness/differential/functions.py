"""Which functions are compared, with which of torch's, and why the others are not."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

import baracuda.functional as F
from baracuda import _index
from baracuda.ops.unary.unary_kinds import KINDS
from differential import shapes as s
from differential import shapes_data as d

nn = torch.nn.functional

# By the module of baracuda.ops that a function is defined in: what its arguments are.
FAMILIES: dict[str, s.Family] = {
    "unary": s.unary, "binary": s.binary, "ternary": s.ternary, "reduce": s.reduce, "extrema": s.extrema, "scan": s.along,
    "softmax": s.along, "variance": s.statistics, "vector_norm": s.statistics, "gated": s.gated, "matmul": s.matmul, "products": s.products,
    "einsum": s.contractions, "layout": d.layout, "compact": d.compact, "cast": d.cast, "join": d.join, "arrange": d.arrange,
    "pad": d.pad, "indexing": d.indexing, "scatter": d.scatter, "index_reduce": d.masked, "embedding": d.embedding,
    "embedding_bag": d.embedding, "layer_norm": d.norms, "norm": d.norms, "pointwise_loss": d.pointwise_loss,
    "loss": d.class_loss, "nll_loss": d.class_loss, "linear_cross_entropy": d.class_loss, "attention": d.attention,
}  # fmt: skip

# What torch has no function of this name for, in torch's words.
FORMULAS: dict[str, Callable[..., Any]] = {
    "copy": torch.clone,
    "cast": lambda input, dtype: input.to(dtype),
    "repeat": lambda input, repeats: input.repeat(repeats),
    "silu_mul": lambda gate, value: nn.silu(gate) * value,
    "silu_and_mul": lambda input, dim=-1: nn.silu(input.chunk(2, dim)[0]) * input.chunk(2, dim)[1],
    "swiglu": lambda input, dim=-1: nn.silu(input.chunk(2, dim)[1]) * input.chunk(2, dim)[0],
    "geglu": lambda input, dim=-1: nn.gelu(input.chunk(2, dim)[1]) * input.chunk(2, dim)[0],
    "reglu": lambda input, dim=-1: nn.relu(input.chunk(2, dim)[1]) * input.chunk(2, dim)[0],
}

_OWN = "an op of its own, which `verify` compares with its reference"
_STATE = "writes to lists of tensors; compared with torch's own in tests/ops"
# Whose functions are compared, with their gradients, on torch's own samples instead, in tests/test_opinfo.py.
SAMPLED = (
    "conv",
    "pooling",
    "interpolate",
    "sample",
    "fold",
    "ctc",
    "response_norm",
    "conv_transposed",
    "joined",
    "copies",
    "distances",
    "linear_algebra",
    "arithmetic",
    "masked",
    "margin_losses",
    "sort",
    "selection",
    "quantile",
    "running",
    "counting",
    "coordinates",
    "index_put",
    "segments",
    "mode",
    "unique",
    "search",
)
_RANDOM = "gives random numbers of another stream"
ABSENT: dict[str, str] = {
    **dict.fromkeys((name for name, kind in KINDS.items() if not kind.of_torch), _OWN),
    **dict.fromkeys(("scaled_softmax", "sparsemax", "entmax15"), _OWN),
    **dict.fromkeys(
        ("nms", "batched_nms", "roi_align", "roi_pool", "roi_pool_forward"), "of torchvision; compared with its algorithm in tests/ops"),
    **dict.fromkeys(("sum_to", "int_mm", "scaled_matmul"), _OWN),
    **dict.fromkeys(
        ("quantize", "dequantize", "quant_matmul", "quant_matmul_ids", "quant_embedding"),
        "of GGUF's blocks; compared with the gguf package in tests/ops"),
    **dict.fromkeys(
        ("quantize_linear", "dequantize_linear", "dynamic_quantize", "fake_quantize", "fake_quantize_per_tensor_affine",
         "fake_quantize_per_channel_affine", "quant_linear", "repack_awq", "repack_gptq", "nvfp4_quantize",
         "nvfp4_dequantize", "rms_norm_quantize", "layer_norm_quantize", "glu_quantize", "reglu_quantize", "swiglu_quantize",
         "geglu_quantize", "silu_and_mul_quantize", "mx_quantize", "mx_dequantize"),
        "of scales and codes that go together; compared with torch's and ONNX's in tests/ops and tests/conformance"),
    **dict.fromkeys(("pack_int4", "unpack_int4", "rope", "rms_norm_rope", "rms_norm_rope_forward", "qk_norm_rope"), _OWN),
    **dict.fromkeys(("add_rms_norm", "add_rms_norm_forward", "rms_norm_add", "rms_norm_add_forward", "attention_merge"), _OWN),
    **dict.fromkeys(("attention_merge_states", "paged_append_slots_"), _OWN),
    **dict.fromkeys(("paged_append_", "paged_attention", "paged_attention_forward", "cross_entropy_fused"), _OWN),
    **dict.fromkeys(("varlen_attn", "varlen_attn_forward"), "torch's runs on some GPUs only; compared in tests/ops"),
    **dict.fromkeys(("adam_", "adamw_", "sgd_", "clip_grad_norm_", "clip_grad_value_"), _STATE),
    **dict.fromkeys(("adagrad_", "rmsprop_", "adadelta_", "adamax_", "nadam_", "radam_", "lion_"), _STATE),
    **dict.fromkeys(("lamb_", "muon_", "adafactor_", "unscale_grads_", "update_scale_"), _STATE),
    **dict.fromkeys(("clip_grads_with_norm_", "get_total_norm"), _STATE),
    **dict.fromkeys(
        ("batch_norm", "batch_norm_forward", "instance_norm", "instance_norm_forward", "native_batch_norm"),
        "updates running statistics; compared on torch's samples, and with its gradients in tests/ops"),
    **dict.fromkeys(("bernoulli", "bernoulli_", "multinomial", "randint", "random_", "randperm", "dropout"), _RANDOM),
    **dict.fromkeys(("normal", "normal_", "uniform", "uniform_", "rand", "rand_like", "randn", "randn_like"), _RANDOM),
    **dict.fromkeys(("randint_like", "sample_tokens", "verify_draft", "verify_tree", "categorical", "gumbel_max", "laplace_"), _RANDOM),
    **dict.fromkeys(("js_div", "tv_distance", "preference_loss"), "compared with formulas in tests/ops"),
    "filter_logits": "of transformers; compared with what its warpers keep in tests/ops",
    **dict.fromkeys(("gamma", "beta", "poisson", "binomial", "gamma_", "beta_", "poisson_", "binomial_"), _RANDOM),
    **dict.fromkeys(("fractional_max_pool2d", "fractional_max_pool3d"), "draws numbers; compared with torch on the same ones in tests/ops"),
    **dict.fromkeys(("exponential_", "cauchy_", "geometric_", "log_normal_", "trunc_normal_", "gumbel_softmax"), _RANDOM),
    **dict.fromkeys(
        ("cross_entropy_forward", "embedding_bag_forward", "layer_norm_forward", "rms_norm_forward", "linear_cross_entropy_forward",
         "linear_cross_entropy_fused", "scaled_dot_product_attention_forward"),
        "the function without _forward, and what its gradient needs; vjp calls it",
    ),
}  # fmt: skip
ABSENT |= {
    n: "of SAMPLED" for n in dir(F) if not n.endswith("_backward") and _index.FUNCTIONS[n].rpartition(".")[2] in SAMPLED
}


@cache
def names() -> tuple[str, ...]:
    """The functions that are compared."""
    return tuple(n for n in dir(F) if n not in ABSENT and not n.endswith("_backward"))


def family(name: str) -> s.Family:
    return FAMILIES[_index.FUNCTIONS[name].rpartition(".")[2]]


@cache
def torch_function(name: str) -> Callable[..., Any]:
    """Torch's function of this name, where bc.functional says that it looks for it."""
    if name in FORMULAS:
        return FORMULAS[name]
    for room in (nn, torch, torch.linalg, torch.special):
        if hasattr(room, name):
            found: Callable[..., Any] = getattr(room, name)
            return found
    raise LookupError(f"torch has no {name}: give it a formula, or a reason to be absent")


def parameters(name: str) -> dict[str, inspect.Parameter]:
    return dict(
        getattr(F, name).__signature__.parameters
        if hasattr(getattr(F, name), "__signature__")
        else inspect.signature(getattr(F, name)).parameters
    )


def has_gradient(name: str) -> bool:
    return getattr(getattr(F, name), "vjp_rule", None) is not None
